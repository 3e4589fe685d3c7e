"""Who may change the cluster: its authorizer, the grants in its ACLs, and what the auditor itself may do."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts, ints

_CLASS, _OPEN = "authorizer.class.name", "allow.everyone.if.no.acl.found"
_ANYBODY, _UNKNOWN = "User:*", "Unknown"
_DESTRUCTIVE = ("All", "Alter", "AlterConfigs", "ClusterAction", "Delete")
_NOTHING_TO_DESTROY = ("DelegationToken", "TransactionalId", "User")
"""On these kinds no operation alters or deletes, so All does not either (Kafka documentation, Security: operations in Kafka)."""
_OF_A_READER = ("Describe", "DescribeConfigs", "Read")
_LISTED = 50


def authorizer(evidence: Evidence) -> dict[str, Column]:
    """Columns authorizers, brokers_without_authorizer, allow_if_no_acl and acls_disabled (kafka_audit.catalogue.rows)."""
    alive = set(broker_facts(evidence).alive or ())
    told: dict[str, dict[int, str | None]] = {_CLASS: {}, _OPEN: {}}
    for row in evidence.small("broker_configs", "broker_id", "name", "value", "is_sensitive"):
        if row["name"] in told and row["broker_id"] in alive:
            told[row["name"]][row["broker_id"]] = None if row["is_sensitive"] else row["value"] or ""
    classes = {broker: name for broker, name in told[_CLASS].items() if name is not None}
    without = sorted(broker for broker, name in classes.items() if not name)
    known = without or (alive and classes.keys() == alive)
    return {
        "authorizers": F.lit(sorted({name for name in classes.values() if name}) if classes else None).cast("array<string>"),
        "brokers_without_authorizer": ints(without if known else None),
        "allow_if_no_acl": F.lit(_open_to_all(alive, classes.keys() == alive, told[_OPEN])).cast("string"),
        "acls_disabled": F.lit(_acls_disabled(evidence)).cast("boolean"),
    }


def _open_to_all(alive: set[int], all_told: bool, values: dict[int, str | None]) -> str | None:
    """A broker that lists all its settings and not this one does not set it; one that sets it does not tell the value."""
    found = {"hidden" if value is None else value for value in values.values()} | ({"not set"} if alive - values.keys() else set())
    worst = next((word for word in ("true", "hidden") if word in found), None)
    if worst or not alive or not all_told:
        return worst
    return " and ".join(sorted(found))


def _unread_acls(evidence: Evidence) -> str | None:
    return evidence.whole_dataset_errors.get("acls") or broker_facts(evidence).unread_of_any("acls")


def _acls_disabled(evidence: Evidence) -> bool | None:
    reason = _unread_acls(evidence)
    if reason is None:
        return False
    return True if reason.startswith(missing.NO_AUTHORIZER) else None


def destructive_grants(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row: destructive_grant_count bigint and destructive_grants array<string>.

    An ALLOW of an operation that alters or deletes, on all resources of a kind or on the cluster, for a principal that the policy does
    not approve. Both are NULL when the ACLs could not be read, or when none is such a grant and some have words that are not known.
    """
    approved = [name for name in policy.approved_principals if name != _ANYBODY]
    wide = (F.col("resource_type") == "Cluster") | ((F.col("resource_name") == "*") & (F.col("pattern_type") == "Literal"))
    unclear = reduce(lambda left, right: left | right, [F.col(name) == _UNKNOWN for name in ("operation", "resource_type", "pattern_type")])
    text = F.concat(
        "principal",
        F.lit(" may "),
        "operation",
        F.lit(" on "),
        F.lower("resource_type"),
        F.when(F.col("resource_type") == "Cluster", F.lit("")).otherwise(F.concat(F.lit(" "), F.col("resource_name"))),
        F.when(F.col("host") == "*", F.lit("")).otherwise(F.concat(F.lit(" from "), F.col("host"))),
    )
    destructive = wide & F.col("operation").isin(*_DESTRUCTIVE) & ~F.col("resource_type").isin(*_NOTHING_TO_DESTROY)
    found = (
        evidence.table("acls")
        .where((F.col("permission_type") != "Deny") & ~F.col("principal").isin(approved))
        .agg(
            F.count_if(destructive).alias("count"),
            F.count_if(unclear).alias("unclear"),
            F.slice(F.array_sort(F.collect_list(F.when(destructive, text))), 1, _LISTED).alias("texts"),
        )
    )
    known = F.lit(_unread_acls(evidence) is None) & ((F.col("count") > 0) | (F.col("unclear") == 0))
    return found.select(
        F.when(known, F.col("count")).alias("destructive_grant_count"), F.when(known, F.col("texts")).alias("destructive_grants")
    )


def own_operations(evidence: Evidence) -> DataFrame:
    """One row: own_operation_count bigint, own_operations array<string> and own_rights_unread bigint (KIP-430).

    Groups that are Empty are not described, so nothing is known of them and they do not count as unread.
    """
    operations = F.col("authorized_operations")
    parts = [
        evidence.table("cluster").select(F.lit("cluster").alias("place"), operations),
        evidence.table("topics").select(F.concat(F.lit("topic "), "topic"), operations),
        evidence.table("groups")
        .where((F.col("state") != "Empty") | operations.isNotNull())
        .select(F.concat(F.lit("group "), "group_id"), operations),
    ]
    beyond = F.array_except(operations, F.array(*map(F.lit, _OF_A_READER)))
    found = (
        reduce(DataFrame.unionAll, parts)
        .select("place", operations, beyond.alias("beyond"))
        .agg(
            F.sum(F.array_size("beyond")).alias("count"),
            F.count_if(operations.isNull()).alias("unread"),
            F.array_sort(
                F.collect_list(F.when(F.array_size("beyond") > 0, F.concat("place", F.lit(": "), F.array_join("beyond", ", "))))
            ).alias("texts"),
        )
    )
    return found.select(
        F.col("count").alias("own_operation_count"),
        F.slice("texts", 1, _LISTED).alias("own_operations"),
        F.when(F.lit(evidence.rows("cluster") > 0), F.col("unread")).alias("own_rights_unread"),
    )
