"""The metrics page: figures of the newest audit and the newest offsets of each cluster, bounded, and never a 0 that is not known."""

import json
import logging
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fleet_audits import fleet_audit, two_topics_fail
from lag_readings import Made
from lag_rows import group_sla, sla_table
from metrics_root import AT, Samples, offsets_snapshot, samples
from report_audit import AUDIT_ID, HOSTILE_GROUPS, FakeAudit, control, finding, group_partition
from sealed_audits import forge

from kafka_audit.audit.clusters import CLUSTERS_VARIABLE
from kafka_audit.audit.installation import POLICY_VARIABLE
from kafka_audit.policy import load_policy
from kafka_audit.report import openmetrics, read_report
from kafka_audit.report.json_report import as_json
from kafka_audit.report.metrics.definitions import LIVE, LONGEST_LABEL, label
from kafka_audit.report.metrics.page import CONTENT_TYPE, render_metrics
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit, unseal_audit
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT

FAILING = (("PASS", 0), ("FAIL", 3))
GROUP = control("lag_within_sla", "CON-01", subject="group")


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    return EvidenceRoot(path=tmp_path / "root")


def shop(*, at: Any = AT) -> Made:
    """A group that is behind on one partition and has lost records on another, and one that is level."""
    made = Made(at).topic("t", 2).log(0, 100).log(50, 100, partition=1)
    made.group("behind").member(("t", 0), ("t", 1), group="behind").commit(70, group="behind").commit(20, group="behind", partition=1)
    return made.group("level", state="Empty").commit(100, group="level")


def take(root: EvidenceRoot, made: Made, cluster: str = "prod", **about: Any) -> None:
    offsets_snapshot(root, cluster, made.rows, made.at, **about)


def page(root: EvidenceRoot, *clusters: str, **about: Any) -> Samples:
    return samples(render_metrics(root, clusters or ("prod",), **about))


def sealed_lag_audit(root: EvidenceRoot, partitions: list[dict[str, object]], slas: list[dict[str, object]], **run: Any) -> FakeAudit:
    """A sealed audit of the cluster orders-prod with these tables of lag; ``run``: more of its run.json."""
    fake = FakeAudit(root.path, (GROUP,))
    write_json(fake.audit.run_file, {**fake.audit.run(), **run})
    fake.settings([])
    fake.lag([finding(GROUP, "behind", "pass")], partitions, group_slas=sla_table(slas))
    fake.gates(findings=("PASS", 0))
    write_json(fake.audit.report / "report.json", as_json(read_report(*fake.inputs.args, **fake.inputs.kwargs)))
    seal_audit(root, "orders-prod", AUDIT_ID, {"snapshot": {"snapshot_id": fake.snapshot.snapshot_id}})
    return fake


def test_lag_is_named_as_in_kminion_where_it_means_the_same(root: EvidenceRoot) -> None:
    take(root, shop())
    found = page(root)
    assert found["kminion_kafka_consumer_group_topic_lag", "prod", "behind", "t"] == 30 + 80
    assert found["kminion_kafka_consumer_group_topic_offset_sum", "prod", "behind", "t"] == 90
    assert found["kminion_kafka_consumer_group_members", "prod", "behind"] == 1
    assert found["kminion_kafka_consumer_group_members", "prod", "level"] == 0
    states = {key[3]: value for key, value in found.items() if key[0] == "kminion_kafka_consumer_group_info"}
    assert states == {"behind": 1, "level": 0}
    assert found["kafka_audit_group_lag_records", "prod", "behind"] == 30 + 50
    assert found["kafka_audit_group_lost_records", "prod", "behind"] == 30
    assert found["kafka_audit_group_lost_records", "prod", "level"] == 0
    assert found["kafka_audit_groups", "prod"] == 2
    assert found["kafka_audit_offsets_timestamp_seconds", "prod"] == AT.timestamp()


def test_the_newest_snapshot_of_either_kind_counts(root: EvidenceRoot) -> None:
    take(root, shop())
    take(root, Made(AT + timedelta(minutes=5)).topic().log(0, 9).group("new").commit(4, group="new"), kind=SNAPSHOT)
    assert page(root)["kafka_audit_group_lag_records", "prod", "new"] == 5
    take(root, shop(at=AT + timedelta(minutes=10)), kind=OFFSETS)
    assert page(root)["kafka_audit_group_lag_records", "prod", "behind"] == 80


def test_made_up_clusters_have_no_metrics(root: EvidenceRoot) -> None:
    fake = sealed_lag_audit(root, [], [], sample=True)
    assert not fake.snapshot.manifest.get("sample")
    offsets_snapshot(root, "made-up", shop().rows, sample=True)
    take(root, shop())
    assert {key[1] for key in page(root, "orders-prod", "made-up", "prod")} == {"prod"}


def test_what_is_not_known_has_no_sample(root: EvidenceRoot) -> None:
    made = Made(AT).topic("t", 3).log(0, 100).log(None, 100, partition=1)
    made.group("part").commit(100, group="part").commit(5, group="part", partition=1)
    made.group("none").commit(None, group="none", error="TIMEOUT").group("no-members", error="TIMEOUT")
    made.group("refused").error("committed_offsets", "GROUP_AUTHORIZATION_FAILED", group_id="refused")
    take(root, made)
    found = page(root)
    assert {key[2] for key in found if key[0] == "kafka_audit_group_lag_records"} == {"part"}
    assert {key[2] for key in found if key[0] == "kafka_audit_group_lost_records"} == set()
    assert {key[2] for key in found if key[0] == "kafka_audit_group_lag_seconds"} == set()
    unknown = {key[2]: value for key, value in found.items() if key[0] == "kafka_audit_group_lag_unknown_partitions"}
    assert unknown == {"part": 1, "none": 1}
    assert ("kminion_kafka_consumer_group_members", "prod", "no-members") not in found
    assert not [key for key in found if key[0] == "kminion_kafka_consumer_group_topic_lag" and key[2] == "none"]


def test_lag_in_seconds_is_that_of_the_oldest_unread_record(root: EvidenceRoot) -> None:
    made = Made(AT).topic().log(0, 100).group().commit(40)
    made.unread(40, 40, 0)
    made.rows["first_unread"][-1]["timestamp_ms"] = int(AT.timestamp() * 1000) - 90_000
    take(root, made)
    assert page(root)["kafka_audit_group_lag_seconds", "prod", "g"] == 90


def test_values_that_contradict_each_other_are_not_shown(root: EvidenceRoot) -> None:
    made = Made(AT).topic().log(100, 40).group().commit(40)
    take(root, made)
    assert ("kafka_audit_group_lag_records", "prod", "g") not in page(root)


def test_a_group_is_within_its_limits_or_not(root: EvidenceRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(tmp_path / "policy", "small", 50)
    monkeypatch.setenv(POLICY_VARIABLE, str(policy))
    take(root, shop())
    found = page(root)
    within = {key[2:]: value for key, value in found.items() if key[0] == "kafka_audit_sla_within_limits"}
    assert within == {("behind", "small"): 0, ("level", "small"): 1}
    assert found["kafka_audit_up", "prod", "slas"] == 1
    (policy / "slas.yaml").write_text("groups: nothing")
    found = page(root)
    assert not [key for key in found if key[0] == "kafka_audit_sla_within_limits"]
    assert found["kafka_audit_up", "prod", "slas"] == 0
    assert found["kafka_audit_group_lag_records", "prod", "behind"] == 80


def test_the_slas_are_those_of_the_clusters_own_policy(root: EvidenceRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, file = policy_of(tmp_path / "own", "large", 5_000), tmp_path / "clusters.yaml"
    file.write_text(json.dumps({"version": 1, "clusters": [{"name": "prod", "connection": "c", "policy": str(own)}]}))
    monkeypatch.setenv(CLUSTERS_VARIABLE, str(file))
    monkeypatch.setenv(POLICY_VARIABLE, str(policy_of(tmp_path / "policy", "small", 50)))
    take(root, shop())
    within = {key[2:]: value for key, value in page(root).items() if key[0] == "kafka_audit_sla_within_limits"}
    assert within == {("behind", "large"): 1, ("level", "large"): 1}


def policy_of(folder: Path, name: str, max_lag_records: int) -> Path:
    """A folder with a policy of one SLA, for all groups."""
    folder.mkdir()
    (folder / "tiers.yaml").write_text((load_policy().folder / "tiers.yaml").read_text())
    rules = [{"pattern": "*", "name": name, "max_lag_records": max_lag_records}]
    (folder / "slas.yaml").write_text(json.dumps({"version": 1, "groups": rules}))
    return folder


def test_the_worst_groups_are_shown_and_the_others_counted(root: EvidenceRoot) -> None:
    made = Made(AT).topic().log(50, 1000)
    for number in range(20):
        made.group(f"g{number:02}", state="Empty").commit(1000 - number, group=f"g{number:02}")
    made.group("lost").commit(49, group="lost").group("idle")
    take(root, made)
    found = page(root, limit=3)
    assert {key[2] for key in found if key[0] == "kminion_kafka_consumer_group_topic_lag"} == {"lost", "g19", "g18"}
    assert {key[2] for key in found if key[0] == "kafka_audit_group_lag_records"} == {"lost", "g19", "g18"}
    assert (found["kafka_audit_groups", "prod"], found["kafka_audit_groups_left_out", "prod"]) == (22, 19)
    assert found["kafka_audit_group_topics_left_out", "prod"] == 18
    everything = page(root, limit=22)
    assert (everything["kafka_audit_groups_left_out", "prod"], everything["kminion_kafka_consumer_group_members", "prod", "idle"]) == (0, 0)


def test_slas_beyond_the_limit_are_left_out_by_name_and_not_by_how_bad_they_are(root: EvidenceRoot) -> None:
    made = Made(AT).topic().log(0, 100_000)
    for name, offset in (("a", 100_000), ("b", 0), ("c", 0)):
        made.group(name, state="Empty").commit(offset, group=name)
    take(root, made)
    found = page(root, limit=2)
    assert {key[2]: value for key, value in found.items() if key[0] == "kafka_audit_sla_within_limits"} == {"a": 1, "b": 0}
    assert found["kafka_audit_slas_left_out", "prod"] == 1


def test_figures_that_need_a_history_are_those_of_the_newest_audit(root: EvidenceRoot) -> None:
    partitions = [
        group_partition("behind", "t", 0, time_to_loss_ms=90_000, catch_up_ms=None, expires_in_ms=60_000, lag=5),
        group_partition("behind", "t", 1, time_to_loss_ms=30_000, catch_up_ms=10_000, expires_in_ms=50_000, lag=5),
        group_partition("deleted-since", "t", 0, time_to_loss_ms=1, lag=5),
    ]
    sealed_lag_audit(root, partitions, [group_sla("behind"), group_sla("level", target_percent=None, budget_left_minutes=None)])
    take(root, shop(), "orders-prod")
    found = page(root, "orders-prod")
    assert {key[2]: value for key, value in found.items() if key[0] == "kafka_audit_group_time_to_loss_seconds"} == {"behind": 90}
    assert {key[2]: value for key, value in found.items() if key[0] == "kafka_audit_group_offsets_expire_seconds"} == {"behind": 50}
    assert found["kafka_audit_sla_availability_ratio", "orders-prod", "behind", "interactive"] == pytest.approx(0.999)
    left = {key[2]: value for key, value in found.items() if key[0] == "kafka_audit_sla_error_budget_left_seconds"}
    assert left == {"behind": 172 * 60}


def test_an_audit_has_the_same_figures_as_in_its_own_file(root: EvidenceRoot) -> None:
    folder = fleet_audit(root.path, "failing", two_topics_fail, gates=FAILING)
    found = page(root, "failing")
    assert found["kafka_audit_verdict", "failing", "FAILED"] == 1
    assert found["kafka_audit_exit_code", "failing"] == 3
    report = json.loads((folder / "report" / "report.json").read_text())
    assert found["kafka_audit_coverage_ratio", "failing"] == report["coverage"]["assessed"] / report["coverage"]["applicable"]
    assert found["kafka_audit_failed_results", "failing", "critical"] == 2
    assert found["kafka_audit_waived_results", "failing", "critical"] == 1
    assert ("kafka_audit_failed_results", "failing", "info") not in found


def test_an_audit_of_a_part_of_the_cluster_says_so(root: EvidenceRoot) -> None:
    fake = sealed_lag_audit(root, [], [])
    assert page(root, "orders-prod")["kafka_audit_judged_less", "orders-prod"] == 0
    unseal_audit(fake.audit)
    run = read_json(fake.audit.run_file)
    write_json(fake.audit.run_file, {**run, "params": {**run["params"], "topics": "orders-*", "fail_on": "critical", "min_coverage": 1}})
    seal_audit(root, "orders-prod", AUDIT_ID, {"snapshot": {"snapshot_id": fake.snapshot.snapshot_id}})
    assert page(root, "orders-prod")["kafka_audit_judged_less", "orders-prod"] == 2


def test_the_page_and_the_file_of_an_audit_agree(root: EvidenceRoot) -> None:
    fake = sealed_lag_audit(root, [group_partition("g", "t", 0, lag=7, time_to_loss_ms=5_000)], [group_sla("g")])
    own = samples(openmetrics.render(read_report(*fake.inputs.args, **fake.inputs.kwargs)))
    found = page(root, "orders-prod")
    of_groups = {key for key in own if key[0].startswith("kafka_audit_group")}
    assert {key: value for key, value in found.items() if key in own} == {key: own[key] for key in own.keys() - of_groups}


@pytest.mark.parametrize("gates", [(("FAIL", 4), ("FAIL", 3))])
def test_of_a_void_audit_and_of_one_with_a_failed_step_only_the_end_is_told(root: EvidenceRoot, gates: Any) -> None:
    fleet_audit(root.path, "void", two_topics_fail, gates=gates)
    fleet_audit(root.path, "crashed", two_topics_fail, failed_step="verify", lag=False)
    found = page(root, "void", "crashed")
    told = {key[0] for key, value in found.items() if not key[0].startswith("kafka_audit_up")}
    of_end = {f"kafka_audit_{name}" for name in ("verdict", "exit_code", "judged_less", "evidence_timestamp_seconds")}
    assert told == of_end
    assert found["kafka_audit_verdict", "void", "VOID"] == found["kafka_audit_verdict", "crashed", "ERROR"] == 1
    assert found["kafka_audit_exit_code", "crashed"] == 1


def test_a_cluster_that_was_changed_is_down_the_reason_is_in_the_log_and_others_are_not_affected(
    root: EvidenceRoot, caplog: pytest.LogCaptureFixture
) -> None:
    folder = fleet_audit(root.path, "changed", two_topics_fail)
    (folder / "report" / "report.json").write_text("{}")
    take(root, shop(), "changed")
    take(root, shop(), "prod")
    newest = next((root.path / "offsets" / "prod").iterdir())
    (newest / "offsets.parquet").write_bytes(b"PAR1")
    take(root, shop(), "well")
    with caplog.at_level(logging.WARNING):
        found = page(root, "changed", "prod", "well", "never-seen", "../escape")
    up = {key[1:]: value for key, value in found.items() if key[0] == "kafka_audit_up"}
    assert {key for key, value in up.items() if value and key[1] != "slas"} == {("changed", "offsets"), ("well", "offsets")}
    assert {key[0] for key in up} == {"changed", "prod", "well", "never-seen", "../escape"}
    assert ("kafka_audit_verdict", "changed", "FAILED") not in found
    assert found["kafka_audit_group_lag_records", "well", "behind"] == 80
    assert "report.json" in caplog.text
    assert "offsets.parquet: its sha256 differs" in caplog.text
    assert "sha256" not in render_metrics(root, ["prod"])


@pytest.mark.parametrize("number", [10**400, "many", None, -1.5])
def test_a_report_with_numbers_that_are_none_costs_only_its_own_cluster(root: EvidenceRoot, number: object) -> None:
    folder = fleet_audit(root.path, "forged", two_topics_fail)
    file = folder / "report" / "report.json"
    report = json.loads(file.read_text())
    report["totals"]["failed"] = number
    file.write_text(json.dumps(report))
    forge(folder)
    take(root, shop())
    found = page(root, "forged", "prod")
    assert found["kafka_audit_up", "forged", "audit"] == 0
    assert ("kafka_audit_verdict", "forged", "PASSED") not in found
    assert found["kafka_audit_group_lag_records", "prod", "behind"] == 80


def test_a_report_that_is_as_it_was_sealed_after_a_forgery_of_nothing_is_read(root: EvidenceRoot) -> None:
    forge(fleet_audit(root.path, "same", two_topics_fail))
    assert page(root, "same")["kafka_audit_up", "same", "audit"] == 1


def test_an_audit_that_was_sealed_last_and_is_gone_is_told(root: EvidenceRoot) -> None:
    folder = fleet_audit(root.path, "lost", two_topics_fail)
    (folder / "manifest.json").unlink()
    assert page(root, "lost")["kafka_audit_up", "lost", "audit"] == 0


def test_hostile_names_are_labels_that_a_parser_reads_and_stay_apart(root: EvidenceRoot) -> None:
    names = (*HOSTILE_GROUPS, "a\u200b", "a\\u200b", 'x"} 1\nkafka_audit_up{cluster="prod"} 1')
    made = Made(AT).topic().log(0, 100)
    for name in names:
        made.group(name).commit(40, group=name)
    take(root, made)
    text = render_metrics(root, ["prod"])
    found = samples(text)
    assert sum(key[0] == "kafka_audit_group_lag_records" for key in found) == len(names)
    assert text.endswith("# EOF\n")
    assert not {"\u202e", "\x1b", "\u200b", "\u034f", "\U000e0100"} & set(text)


def test_every_metric_is_defined_once_and_told_even_without_samples(root: EvidenceRoot) -> None:
    text = render_metrics(root, [])
    assert [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")] == [metric.name for metric in LIVE]
    assert CONTENT_TYPE.startswith("application/openmetrics-text")
    assert samples(text) == {}


def test_a_cluster_named_twice_is_told_once(root: EvidenceRoot) -> None:
    take(root, shop())
    assert render_metrics(root, ["prod", "prod"]) == render_metrics(root, ["prod"])


def test_the_documentation_has_every_metric_with_its_labels_and_meaning() -> None:
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if re.match(r"\| `(kafka_audit|kminion)_\w+` ", line)
    ]
    said = [(row[0].strip("`"), tuple(re.findall(r"`(\w+)`", row[1])), row[3]) for row in rows]
    assert said == [(metric.name, metric.labels, metric.about) for metric in LIVE]


def test_a_label_of_any_length_is_cut_and_two_different_texts_stay_different() -> None:
    ids = ["\x01" * 32_766 + end for end in "ab"] + ["a" * LONGEST_LABEL, "a" * (LONGEST_LABEL + 1), "\x01" * LONGEST_LABEL]
    shown = [label(one) for one in ids]
    assert max(map(len, shown)) == LONGEST_LABEL + 17
    assert len(set(shown)) == len(ids)
    assert shown[2] == ids[2]
