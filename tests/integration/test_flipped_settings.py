"""Settings of a healthy cluster are changed and restored with an admin client and Kafka's own tools, and each verdict follows its setting.

Settings that brokers read only at their start (BRK-01, 02, 05, 07, 08, QRM-01), and those that need clients or disks, are tested with the
faulty seed (test_whole_audit.py). All changes are made together, each on its own topic, group or broker. Before the cluster is seeded,
it is read for an audit of an empty one. It is stopped before Spark judges its snapshots.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from empty_shop import audit_empty, read_empty
from flipped_cluster import CLUSTER, OVERTAKEN, OWN_TOPICS, REWOUND, Flipped
from judged_here import judged
from own_control import CODE as OWN_CODE

from kafka_audit.audit.outcome import PASSED
from kafka_audit.cli.demo import POLICIES
from kafka_audit.sandbox import lifecycle
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Snapshot

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Pair = tuple[str, str]

FAILING: frozenset[Pair] = frozenset(
    {
        ("TOP-02", "orders"),
        ("TOP-03", "invoices"),
        ("TOP-10", "invoices"),  # with a rack gone, two of the three that it asks for are left
        ("TOP-04", "payments"),
        ("TXN-04", "consumer fraud-check"),  # it reads transactions whose markers an unclean election may drop
        ("TOP-06", "inventory"),
        ("TOP-16", "inventory"),
        ("BRK-10", "1"),
        ("TOP-07", "customers"),
        ("TOP-08", "shipments"),
        ("TOP-09", "clickstream"),
        ("TOP-12", "clickstream"),
        ("TOP-06", "read"),
        ("TOP-05", f"{OVERTAKEN}:read-0"),
        ("TOP-05", f"{REWOUND}:read-0"),
        ("BRK-03", "__consumer_offsets"),
        ("BRK-04", "__transaction_state"),
        ("TXN-03", "2"),
        ("BRK-06", "cluster"),
        ("QTA-01", "cluster"),
        ("BRK-09", "cluster"),
        ("SEC-01", "cluster"),
        ("SEC-02", "cluster"),
        ("TOP-01", "thinned"),
        ("TOP-03", "thinned"),
        ("TOP-10", "thinned"),
        ("REP-05", "led-0"),
        ("TOP-13", "spare"),
        ("TOP-14", "recreated"),
        ("TOP-15", "grown"),
        ("CON-03", f"{OVERTAKEN}:read-0"),
        ("CON-05", f"{REWOUND}:read-0"),
    }
)


def _of_new(topic: str, *partitions: int) -> set[Pair]:
    """What compares partitions with a past that these, being new, do not have."""
    return {(code, f"{topic}-{number}") for number in partitions for code in ("REP-05", "REP-07")}


def _policy(folder: Path) -> Path:
    """The healthy sandbox's policy, with the topics and groups that are added to it."""
    files = {path.name: yaml.safe_load(path.read_text()) for path in (POLICIES / "healthy").glob("*.yaml")}
    tiers, clients, slas = files["tiers.yaml"], files["clients.yaml"]["clients"], files["slas.yaml"]
    demanding = {**tiers["tiers"]["no_loss"], "parameters": {"REP-05": {"spared_leader_changes": 0}}}
    tiers["tiers"] = {"no_leader_change": demanding, **tiers["tiers"]}
    declared = {"cleanup_policy": "delete", "producer_clocks_attested": True}
    tiers["topics"] = [
        {"pattern": "led", "tier": "no_leader_change", **declared},
        {"pattern": "clickstream", "power_domains_attested": True, **declared},
        *tiers["topics"],
    ]
    tiers["declared_topics"].append("spare")
    # No snapshot is from before the records were written, so how late the groups are is not known.
    slas["groups"] = [{"pattern": group, "name": "by hand", "max_lag_records": 500} for group in (REWOUND, OVERTAKEN)] + slas["groups"]
    shop, reader = clients[0], next(client for client in clients if client["kind"] == "consumer")
    clients.append({**shop, "name": "console", "topics": list(OWN_TOPICS)})
    clients += [{**reader, "name": group, "group": group, "topics": ["read"]} for group in (REWOUND, OVERTAKEN)]
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    return folder


@dataclass(frozen=True)
class Judged:
    """One judged snapshot: its findings by control code and resource."""

    findings: dict[Pair, dict[str, Any]]

    def having(self, *statuses: str) -> set[Pair]:
        return {pair for pair, row in self.findings.items() if row["status"] in statuses}

    def observed(self, code: str, resource: str = "cluster") -> str:
        return str(self.findings[code, resource]["observed"])


def _judge(snapshot: Snapshot, policy: Path) -> Judged:
    audit = judged(snapshot, CLUSTER, "--policy", str(policy))
    rows = [row for step in (audit.settings, audit.lag) for row in pq.read_table(step / "findings.parquet").to_pylist()]
    return Judged({(row["code"], row["resource"]): row for row in rows})


@dataclass(frozen=True)
class Story:
    """The cluster as it was, with everything changed, and restored; and the report on it while it was empty."""

    empty: dict[str, Any]
    before: Judged
    changed: Judged
    restored: Judged
    refused: str


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    from spark_jobs.engine.session import spark_session

    root = tmp_path_factory.mktemp("flipped")
    (root / "empty").mkdir()
    with lifecycle.start(lifecycle.NO_SEED, directory=root / "sandbox") as sandbox:
        empty = read_empty(sandbox, root / "empty")
        lifecycle.seed_running("healthy", directory=root / "sandbox")
        flipped = Flipped(sandbox, root)
        flipped.prepare()
        before = flipped.snapshot()
        refused = flipped.change()
        changed = flipped.snapshot()
        flipped.restore()
        restored = flipped.snapshot()
    policy = _policy(root / "policy")
    session = spark_session("kafka_audit flipped settings")
    try:
        verdicts = [_judge(snapshot, policy) for snapshot in (before, changed, restored)]
        report = read_json(audit_empty(empty).report / "report.json")
    finally:
        session.stop()
    return Story(report, *verdicts, refused=refused)


MANUAL = {(f"OPS-0{number}", "cluster") for number in (1, 2, 3)}
"""What no machine can see stays open until a person files an attestation."""


def test_an_empty_cluster_is_judged_by_what_it_has_and_by_a_control_that_is_one_file_of_our_own(story: Story) -> None:
    assert (story.empty["verdict"], story.empty["exit_code"]) == (PASSED, 0)
    counts = {control["code"]: control["counts"] for control in story.empty["controls"]}
    assert counts["TOP-01"]["population"] == counts["TOP-01"]["passed"] == 0
    assert counts["BRK-02"]["passed"] == counts[OWN_CODE]["passed"] == 3


def test_before_any_change_everything_is_assessed_and_nothing_fails(story: Story) -> None:
    assert story.before.having("fail", "error", "not_assessed") == MANUAL


def test_exactly_the_controls_of_the_changed_settings_fail(story: Story) -> None:
    without_elr = {pair for pair in story.changed.findings if pair[0] == "REP-06"}  # the feature is the whole cluster's
    assert story.changed.having("fail", "error") == FAILING | without_elr
    assert {resource for _, resource in without_elr} >= {"orders-0", "__consumer_offsets-0"}


def test_what_is_new_has_no_past_to_be_compared_with(story: Story) -> None:
    assert story.changed.having("not_assessed") == MANUAL
    assert {("TOP-15", "recreated")} | _of_new("recreated", 0) | _of_new("grown", 1, 2) <= story.changed.having("not_applicable")


def test_findings_on_the_whole_cluster_name_each_change(story: Story) -> None:
    drift = story.changed.observed("BRK-06")
    assert "num.replica.fetchers: 1 (broker 1, 2), 2 (broker 3)" in drift
    assert "transaction.partition.verification.enable: false (broker 2), true (broker 1, 3)" in drift
    for topic in ("orders", "__consumer_offsets", "__transaction_state"):
        assert f"{topic}: min.insync.replicas=1 (brokers: 2)" in drift
    assert "payments: unclean.leader.election.enable=true (brokers: false)" in drift
    assert "invoices" not in drift
    assert "User:stranger may Delete on topic *" in story.changed.observed("SEC-01")
    assert "topic orders: Write" in story.changed.observed("SEC-02")
    assert "transaction.version" in story.changed.observed("BRK-09")


def test_a_groups_timeouts_are_read_and_brokers_refuse_what_would_not_be_coherent(story: Story) -> None:
    shipping = ("CON-12", "consumer shipping")
    assert story.before.observed(*shipping) != story.changed.observed(*shipping)
    assert "15000" in story.changed.observed(*shipping)
    assert "less than or equal to group.consumer.max.heartbeat.interval.ms" in story.refused


def test_everything_that_can_be_undone_passes_again(story: Story) -> None:
    assert story.restored.having("fail", "error") == {("TOP-14", "recreated"), ("TOP-14", "spare")}
    assert story.restored.having("not_assessed") == MANUAL
    assert {("TOP-15", "spare")} | _of_new("spare", 0) <= story.restored.having("not_applicable")
    nothing_unread = {pair for pair in FAILING if pair[0] == "TOP-05"}
    assert nothing_unread <= story.restored.having("not_applicable")
    assert FAILING - nothing_unread - {("TOP-14", "recreated")} <= story.restored.having("pass")
