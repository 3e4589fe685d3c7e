"""Which nodes elect leaders and create topics, and by which settings, if controllers are no brokers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from snapshot_builder import READ_AT, READ_MS, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.policy import load_policy
from kafka_audit.policy.managed_service import ManagedService
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.broker.controllers import Controllers, controllers
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

KEY = "unclean.leader.election.enable"


def synthetic(*voters: int) -> Synthetic:
    """Three brokers and the topic orders, which has no value of its own; the quorum has these voters."""
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("orders")
    one.tables["quorum"].clear()
    for number in voters:
        times = {"last_fetch_timestamp_ms": READ_MS, "last_caught_up_timestamp_ms": READ_MS, "read_at": READ_AT}
        one.add("quorum", replica_id=number, role="voter", is_leader=number == voters[0], log_end_offset=1, **times)
    return one


def told(one: Synthetic, controller: int, **values: str) -> Synthetic:
    for name, value in {KEY: "false", "default.replication.factor": "3", "min.insync.replicas": "2", **values}.items():
        row = {"name": name, "value": value, "source": "STATIC_BROKER_CONFIG", "is_sensitive": False, "synonyms": []}
        one.add("controller_configs", controller_id=controller, **row)
    return one


def with_brokers(one: Synthetic, key: str, value: str, *synonyms: dict[str, str]) -> Synthetic:
    rows = [row for row in one.tables["broker_configs"] if row["name"] == key]
    if not rows:
        for number in (1, 2, 3):
            one.add("broker_configs", broker_id=number, name=key, source="DEFAULT_CONFIG", is_sensitive=False, synonyms=[])
        rows = one.tables["broker_configs"][-3:]
    for row in rows:
        row |= {"value": value, "synonyms": list(synonyms)}
    return one


def with_values(values: dict[int, str | None], one: Synthetic) -> Synthetic:
    """Brokers that tell these values of KEY; None: one that does not tell."""
    for row in one.tables["broker_configs"]:
        if row["name"] == KEY:
            row["value"] = values[row["broker_id"]]
    return one


def down(one: Synthetic, broker: int) -> Synthetic:
    for row in one.tables["brokers"]:
        row["alive"] = row["broker_id"] != broker
    return one


def unread(one: Synthetic, controller: int) -> Synthetic:
    return one.error("controller_configs", "REQUEST_TIMED_OUT", broker_id=controller)


WIDE = {"name": KEY, "value": "false", "source": "DYNAMIC_DEFAULT_BROKER_CONFIG"}
ROWS: dict[str, tuple[Synthetic, dict[str, Any], dict[str, Any]]] = {
    "every voter is a broker": (
        synthetic(1, 2, 3),
        {"dedicated_controllers": [], "controllers_answered": [], "controller_values": {}, "controller_settings": []},
        {"dedicated_controllers": [], "elector_values": ["false"]},
    ),
    "a broker that is no voter elects nobody": (
        with_values({1: "false", 2: "false", 3: "true"}, synthetic(1, 2)),
        {"dedicated_controllers": []},
        {"elector_values": ["false"]},
    ),
    "of brokers that are voters one did not tell": (
        with_values({1: "false", 2: None, 3: "false"}, synthetic(1, 2, 3)),
        {"dedicated_controllers": []},
        {"elector_values": None},
    ),
    "a voter that is down elects nobody": (
        with_values({1: "false", 2: None, 3: "false"}, down(synthetic(1, 2, 3), 2)),
        {"dedicated_controllers": []},
        {"elector_values": ["false"]},
    ),
    "the voters are not known": (
        synthetic().error("quorum", "REQUEST_TIMED_OUT"),
        {"dedicated_controllers": None, "controllers_answered": None},
        {"dedicated_controllers": None, "elector_values": None},
    ),
    "brokers without a role in KRaft have a controller among them": (
        with_brokers(synthetic().error("quorum", "UNSUPPORTED_VERSION"), "process.roles", ""),
        {"dedicated_controllers": []},
        {"dedicated_controllers": [], "elector_values": ["false"]},
    ),
    "brokers that are no controllers have them elsewhere": (
        with_brokers(synthetic().error("quorum", "REQUEST_TIMED_OUT"), "process.roles", "broker"),
        {"dedicated_controllers": None},
        {"dedicated_controllers": None},
    ),
    "all controllers told their settings": (
        told(told(synthetic(101, 102), 101), 102, **{KEY: "true"}),
        {"dedicated_controllers": [101, 102], "controllers_answered": [101, 102]},
        {"elector_values": ["false", "true"]},
    ),
    "one of two controllers told nothing": (
        unread(told(synthetic(101, 102), 101), 102),
        {"dedicated_controllers": [101, 102], "controllers_answered": [101]},
        {"elector_values": None},
    ),
    "one that told true is enough to know": (
        unread(told(synthetic(101, 102), 101, **{KEY: "true"}), 102),
        {"controllers_answered": [101]},
        {"elector_values": ["true"]},
    ),
    "a value for the whole cluster stands for a controller that told nothing": (
        with_brokers(unread(synthetic(101), 101), KEY, "false", WIDE),
        {"controllers_answered": []},
        {"elector_values": ["false"]},
    ),
    "a broker among the voters elects by its own settings": (
        with_brokers(told(synthetic(1, 101), 101), KEY, "true"),
        {"dedicated_controllers": [101]},
        {"elector_values": ["false", "true"]},
    ),
}


def _found(spark: SparkSession, one: Synthetic, folder: Path) -> Controllers:
    return controllers(Evidence(spark=spark, snapshot=one.write(folder), small_cluster=True))


@pytest.mark.parametrize("case", ROWS)
def test_who_decides_and_by_which_settings(case: str, spark: SparkSession, tmp_path: Path) -> None:
    state, of_cluster, of_topic = ROWS[case]
    found = _found(spark, state, tmp_path)
    for columns, expected in ((found.columns_of_cluster, of_cluster), (found.columns_of_topic, of_topic)):
        (row,) = spark.range(1).select(*[column.alias(name) for name, column in columns.items()]).collect()
        assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(("voters", "expected"), [((1, 101), [True, False, False]), ((), [None, None, None])])
def test_a_broker_may_be_the_active_controller_if_it_is_a_voter(
    voters: tuple[int, ...], expected: list[bool | None], spark: SparkSession, tmp_path: Path
) -> None:
    may = _found(spark, synthetic(*voters), tmp_path).may_be_active(F.col("id").cast("int"))
    assert [row["may"] for row in spark.range(1, 4).select("id", may.alias("may")).orderBy("id").collect()] == expected


@pytest.mark.parametrize(
    ("controller", "expected"), [(None, None), ({}, False), ({KEY: "true"}, True)], ids=["it told nothing", "it says false", "it says true"]
)
def test_without_a_value_of_its_own_a_topic_is_led_as_the_controller_says(
    controller: dict[str, str] | None, expected: bool | None, spark: SparkSession, tmp_path: Path
) -> None:
    state = unread(synthetic(101), 101) if controller is None else told(synthetic(101), 101, **controller)
    (row,) = spark.range(1).select(_found(spark, state, tmp_path).elect_unclean().alias("unclean")).collect()
    assert row["unclean"] is expected


@pytest.mark.parametrize(("error", "status"), [("REQUEST_TIMED_OUT", "not_applicable"), ("DEADLINE_EXCEEDED", "not_assessed")])
def test_controllers_that_a_managed_service_keeps_out_of_reach_are_hidden(
    error: str, status: str, spark: SparkSession, tmp_path: Path
) -> None:
    service = ManagedService(name="Cloud", documentation="https://cloud.example/limits", hides=["controller_configs"])
    policy = replace(load_policy(), managed_service=service)
    evidence = Evidence(
        spark=spark, snapshot=synthetic(101).error("controller_configs", error, broker_id=101).write(tmp_path), small_cluster=True
    )
    found = {}
    with evidence.tables.settings():
        for control in (one for one in load_catalogue().controls if one.code in ("QRM-03", "TOP-04")):
            rows = wide_rows(control.subject, evidence, policy)
            (one,) = judge(rows, [control], None, PolicyColumns(policy=policy, at=READ_AT)).collect()
            found[control.code] = one["status"]
    assert found == {"QRM-03": status, "TOP-04": status}
