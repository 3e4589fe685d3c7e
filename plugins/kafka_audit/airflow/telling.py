"""Tells people what is new of a cluster: reads how it stands, compares with what each connection was told, and sends the difference.

It loads pyarrow, Apprise and the providers, which nothing may at DAG parse (notify.py).
"""

import logging
from datetime import datetime
from urllib.parse import quote

from airflow.sdk.configuration import conf

from kafka_audit.airflow.delivery import deliver
from kafka_audit.audit.notification import NotifySettings
from kafka_audit.errors import AuditError, ConfigurationError, NotToldError
from kafka_audit.index.message import message_of
from kafka_audit.index.news import find_news
from kafka_audit.index.observe import observe
from kafka_audit.index.told import told_record
from kafka_audit.store.layout import EvidenceRoot

log = logging.getLogger(__name__)


def tell(root: EvidenceRoot, cluster: str, settings: NotifySettings, *, now: datetime, failed: str = "") -> dict[str, list[str]]:
    """Tell each connection what is new to it of a cluster; {connection: the kinds of news that it accepted}.

    ``failed``: what is known of an audit that ended without a sealed report, or is late. A connection's news counts as told when it
    accepted the message. One that fails does not keep the others from being told; afterwards ConfigurationError or NotToldError names all
    that failed, and the next call tells them.
    """
    told: dict[str, list[str]] = {}
    problems: list[AuditError] = []
    with told_record(root, cluster) as record:
        observed = observe(root, cluster, now=now, finish_within=settings.finish_within, failed=failed)
        for connection in settings.connections:
            news, after = find_news(observed, record.told(connection), least=settings.least, stale_hours=settings.stale_hours)
            try:
                if news:
                    deliver(connection, message_of(cluster, news, page_of(cluster)))
            except (ConfigurationError, NotToldError) as problem:
                log.error("%s", problem)
                problems.append(problem)
                continue
            record.keep(connection, after)
            told[connection] = [item.kind for item in news]
            log.info("%s: told %s", connection, ", ".join(told[connection]) or "nothing, because nothing is new")
    if problems:
        said = "; ".join(str(problem) for problem in problems)
        final = all(isinstance(problem, ConfigurationError) for problem in problems)
        raise (ConfigurationError if final else NotToldError)(f"cluster {cluster}: not everyone was told: {said}")
    return told


def page_of(cluster: str) -> str:
    """The address of a cluster's page below Airflow's ``[api] base_url``; empty where that is not set."""
    base = str(conf.get("api", "base_url", fallback="") or "").rstrip("/")
    return f"{base}/kafka-audit/clusters/{quote(cluster, safe='')}/" if base else ""
