"""Who may read the runs of which DAG, for the auth manager of per_dag_rights and its tests."""

AUDIT = "kafka_reliability_audit"
GRANTED: dict[str, set[str]] = {
    "orders": {f"{AUDIT}__orders"},
    "payments": {f"{AUDIT}__payments"},
    "plain": {AUDIT},
    "offsets": {"kafka_offsets_snapshot__orders"},
    "nothing": set(),
    "all": {AUDIT, f"{AUDIT}__orders", f"{AUDIT}__payments"},
}
"""For each user the DAGs whose runs may be read."""
