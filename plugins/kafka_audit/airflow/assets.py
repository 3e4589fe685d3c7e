"""The Airflow assets of this project: what a DAG may be scheduled on."""

import os

from airflow.sdk import Asset, AssetAlias

SCHEDULE_VARIABLE = "KAFKA_AUDIT_SCHEDULE"
_SCHEME = "kafka-audit://"

OFFSETS = AssetAlias("kafka_offsets")
"""The outlet of every offsets snapshot: which cluster's asset it updates is known only when the run's Params are."""


def asset(uri: str) -> Asset:
    """The asset of that uri; those of this project are named after what follows the scheme, all others by their uri."""
    return Asset(uri=uri, name=uri.removeprefix(_SCHEME))


def offsets_asset(cluster: str) -> Asset:
    """The asset that each offsets snapshot of a cluster updates: ``kafka-audit://offsets/<cluster>``."""
    return asset(f"{_SCHEME}offsets/{cluster}")


def audit_schedule(cluster: str) -> str | list[Asset] | None:
    """When audits of a cluster run by themselves, by ``KAFKA_AUDIT_SCHEDULE``; None when that is not set.

    ``asset``: after each offsets snapshot of this cluster. A text with ``://``: on updates of the asset of that uri.
    Anything else: a cron expression or preset.
    """
    said = os.environ.get(SCHEDULE_VARIABLE) or None
    if said == "asset":
        return [offsets_asset(cluster)]
    return [asset(said)] if said and "://" in said else said
