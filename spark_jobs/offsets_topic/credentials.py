"""Kafka's credentials are options of a source, which Spark sends to its executors: over the network only encrypted."""

import re
from collections.abc import Mapping

from kafka_audit.errors import ConfigurationError
from spark_jobs.submit import SECRET_SETTINGS, is_local

_ENCRYPTED = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")


def check_transport(conf: Mapping[str, str], client: Mapping[str, str]) -> None:
    """ConfigurationError when ``client`` holds credentials and Spark would send them in clear, or to executors that nobody authenticated.

    ``conf`` is the configuration of the running application: what spark-submit, its files and the cluster's defaults came to.
    """
    secrets = sorted(name for name in client if re.search(SECRET_SETTINGS, name))
    master = conf.get("spark.master", "")
    if not secrets or is_local(master):
        return
    missing = [] if _is_true(conf, "spark.authenticate") else ["spark.authenticate=true"]
    if not any(_is_true(conf, name) for name in _ENCRYPTED):
        missing.append(" or ".join(f"{name}=true" for name in _ENCRYPTED))
    if missing:
        raise ConfigurationError(
            f"the connection's {', '.join(secrets)} would travel to the executors of {master} unprotected: set {' and '.join(missing)} "
            "in spark-defaults.conf where the job is submitted and on the Spark cluster (Spark's documentation: Security), "
            "or use a local master"
        )


def _is_true(conf: Mapping[str, str], name: str) -> bool:
    return conf.get(name, "false").strip().lower() == "true"
