"""The Airflow hook that turns a ``kafka`` connection into this project's connection settings."""

import os
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Connection

# Without the Kafka provider installed, "airflow connections add --conn-type kafka" stores the type "generic".
_TYPES = ("kafka", "generic")


class KafkaAuditHook(BaseHook):
    """Reads a connection whose Extra holds librdkafka keys, as Airflow's Kafka provider writes them.

    The parameter is called ``kafka_config_id`` as in that provider, so that its connections are used unchanged.
    """

    conn_name_attr = "kafka_config_id"
    default_conn_name = "kafka_default"
    conn_type = "kafka"
    hook_name = "Apache Kafka (audit)"

    def __init__(self, kafka_config_id: str = default_conn_name) -> None:
        super().__init__()
        self.kafka_config_id = kafka_config_id

    def get_conn(self) -> ConnectionSettings:
        """The checked settings; ConfigurationError (exit 2) names a missing connection, a wrong type or every unusable key."""
        name = self.kafka_config_id
        try:
            connection = self.get_connection(name)
        except AirflowNotFoundException as problem:
            raise ConfigurationError(
                f"there is no Airflow connection {name!r}: define it in the UI, or with the environment variable "
                f'AIRFLOW_CONN_{name.upper()}=\'{{"conn_type":"kafka","extra":{{"bootstrap.servers":"host:9092"}}}}\''
            ) from problem
        if connection.conn_type not in _TYPES:
            wanted = " or ".join(_TYPES)
            raise ConfigurationError(f"the Airflow connection {name!r} has type {connection.conn_type!r}; use one of type {wanted}")
        return ConnectionSettings.from_mapping(self._keys(connection), where=f"the Airflow connection {name!r}")

    def _keys(self, connection: "Connection") -> dict[str, Any]:
        elsewhere = [field for field in ("host", "login", "password", "port", "schema") if getattr(connection, field, None)]
        if elsewhere:
            raise ConfigurationError(
                f"the Airflow connection {self.kafka_config_id!r} fills {', '.join(elsewhere)}, which a kafka connection does not use: "
                "write bootstrap.servers, sasl.username and sasl.password as keys of its Extra"
            )
        try:
            extra = connection.extra_dejson
        except ValueError as problem:
            # Not chained: the parser's message quotes the text, and with it perhaps a password.
            kind = type(problem).__name__
            raise ConfigurationError(f"the Extra of the Airflow connection {self.kafka_config_id!r} is not valid JSON ({kind})") from None
        if not isinstance(extra, dict) or not extra:
            raise ConfigurationError(
                f"the Extra of the Airflow connection {self.kafka_config_id!r} is empty: write at least bootstrap.servers"
            )
        return extra


def stored_settings(conn_id: str) -> ConnectionSettings:
    """What :meth:`KafkaAuditHook.get_conn` returns in a task, for a process outside of tasks that may read Airflow's database."""
    # Airflow looks into its database only in processes that say that they are its own; tasks ask its API server.
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    return KafkaAuditHook(conn_id).get_conn()
