"""The Airflow assets of this project: what a DAG may be scheduled on."""

from airflow.sdk import Asset, AssetAlias

_SCHEME = "kafka-audit://"

OFFSETS = AssetAlias("kafka_offsets")
"""The outlet of every offsets snapshot: which cluster's asset it updates is known only when the run's Params are."""


def asset(uri: str) -> Asset:
    """The asset of that uri; those of this project are named after what follows the scheme, all others by their uri."""
    return Asset(uri=uri, name=uri.removeprefix(_SCHEME))


def offsets_asset(cluster: str) -> Asset:
    """The asset that each offsets snapshot of a cluster updates: ``kafka-audit://offsets/<cluster>``."""
    return asset(f"{_SCHEME}offsets/{cluster}")
