"""The clients that clients.yaml declares for a topic, with their settings, as constants of the plan: they grow with the policy only."""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_audit.clients.declared import Client
from kafka_audit.clients.settings import effective
from kafka_audit.policy import Policy
from spark_jobs.rows.tiers import matches_any

_TYPE = "array<struct<name:string,settings:map<string,string>>>"


def declared_clients(policy: Policy, kind: str, topic: Column) -> Column:
    """The declared producers or consumers whose topic patterns match, by name; empty when none does."""
    none = F.array().cast(_TYPE)
    clients = [one for one in policy.clients if one.kind == kind and one.topics]
    listed = [F.array(_client(one.name, _settings(one))).cast(_TYPE) for one in clients]
    found = [F.when(matches_any(topic, one.topics), each).otherwise(none) for one, each in zip(clients, listed, strict=True)]
    return F.concat(none, *found)


def _client(name: str, settings: Mapping[str, str]) -> Column:
    parts = [F.lit(part) for pair in sorted(settings.items()) for part in pair]
    values = F.create_map(*parts) if parts else F.create_map()
    return F.struct(F.lit(name).alias("name"), values.cast("map<string,string>").alias("settings"))


def _settings(client: Client) -> dict[str, str]:
    """Effective settings by the Java client's names; one whose value is not known is left out."""
    return {name: setting.value for name, setting in effective(client).items() if setting.value is not None}
