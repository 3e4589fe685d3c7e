"""The Airflow assets of this project, one of each kind per cluster; DAGs of other teams can read them and be scheduled on them."""

from airflow.sdk import Asset

_SCHEME = "kafka-audit://"


def asset(uri: str) -> Asset:
    """The asset of that uri; those of this project are named after what follows the scheme, all others by their uri."""
    return Asset(uri=uri, name=uri.removeprefix(_SCHEME))


def offsets_asset(cluster: str) -> Asset:
    """The asset that each offsets snapshot of a cluster updates: ``kafka-audit://offsets/<cluster>``."""
    return asset(f"{_SCHEME}offsets/{cluster}")


def audit_asset(cluster: str) -> Asset:
    """The asset that each audit of a cluster updates, whatever its verdict: ``kafka-audit://audits/<cluster>``."""
    return asset(f"{_SCHEME}audits/{cluster}")
