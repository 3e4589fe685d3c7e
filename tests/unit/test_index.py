"""The index of an audit: its figures, what it remembers of earlier audits, and what is refused when it is read."""

import json
import shutil
from pathlib import Path

import pytest
from compared_audits import BROKER, CLUSTER, GROUP, LOST, TOPIC, Judged, Shop, row
from report_audit import LAG_PARTITIONS, group_partition, spark_folder

from kafka_audit.audit.outcome import VOID
from kafka_audit.errors import IntegrityError
from kafka_audit.index.build import _missed, fails_since
from kafka_audit.index.overview import FAILURES, GROUPS, LETTERS, OVERVIEW, UNKNOWN_LETTER, FailsSince, PastAudit
from kafka_audit.index.read import newest_index, open_index
from kafka_audit.index.tables import FAILURE_ROW, GROUP_ROW
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sealed import AUDIT


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "root")


def stood(judged: Judged, control_id: str) -> str:
    return next(one.history for one in open_index(judged.audit).overview.controls if one.control_id == control_id)


def test_an_overview_has_the_figures_of_its_report(shop: Shop) -> None:
    judged = shop.audit([row(TOPIC, "orders"), row(TOPIC, "clicks", "pass"), row(BROKER, "1", severity="low")], groups=["billing", "idle"])
    found = open_index(judged.audit)
    overview, report = found.overview, judged.read()
    assert (overview.audit_id, overview.cluster, overview.cluster_id) == (judged.id, CLUSTER, "one")
    assert (overview.verdict, overview.exit_code) == ("FAILED", 3)
    assert (overview.assessed, overview.applicable) == (report.coverage.assessed, report.coverage.applicable)
    assert {name: one.results for name, one in (overview.failed or {}).items() if one.results} == {"high": 1, "low": 1}
    assert overview.loss is not None and overview.loss.records == 7
    assert overview.groups is not None and overview.groups.total == 2
    assert [(one.group_id, one.lost) for one in overview.happened_losses] == [("billing", 7)]
    assert found.sequence == 1
    assert overview.changes is None


def test_groups_are_rows_in_the_order_of_their_ids_and_what_is_not_known_is_null(shop: Shop) -> None:
    found = open_index(shop.audit([], groups=["zebra", "billing"]).audit)
    assert found.groups().schema == GROUP_ROW
    rows = found.groups().to_pylist()
    assert [one["group_id"] for one in rows] == ["billing", "zebra"]
    billing, idle = rows
    assert (billing["place"], billing["lost"], billing["partitions"]) == (1, 7, 2)
    assert (idle["lost"], idle["lag"], idle["expires_in_ms"], idle["status"]) == (None, None, None, "NOT_ASSESSED")
    assert found.group("billing") == billing
    assert found.group("nobody") is None


def test_nothing_of_a_void_audit_is_known(shop: Shop) -> None:
    shop.audit([row(TOPIC, "orders")])
    judged = shop.audit([row(TOPIC, "orders")], evidence=("FAIL", 4))
    found = open_index(judged.audit)
    overview = found.overview
    assert overview.verdict == VOID
    figures = (overview.assessed, overview.failed, overview.statuses, overview.loss, overview.budget, overview.groups, overview.targets)
    assert figures == (None,) * 7
    assert overview.coverage is None and overview.failures("critical") is None
    assert found.groups().num_rows == found.failures().num_rows == 0
    assert {one.standing for one in overview.controls} == {"unknown"}
    assert stood(judged, TOPIC.id) == "F?"
    assert all(one.fails_since is None for one in overview.controls)


def test_offsets_that_no_sum_can_hold_cost_only_the_sums(shop: Shop) -> None:
    judged = shop.judge([row(TOPIC, "orders")], groups=["billing"])
    absurd = [group_partition("billing", "orders", number, lag=2**62, lost=2**62, time_to_loss_ms=2**62) for number in range(3)]
    shutil.rmtree(judged.audit.lag / "group_partitions.parquet")
    spark_folder(judged.audit.lag / "group_partitions.parquet", absurd, LAG_PARTITIONS)
    judged.seal()
    found = open_index(judged.audit)
    assert found.overview.loss is not None and found.overview.loss.partitions == 3
    assert [one.lost for one in found.overview.happened_losses] == [2**62] * 3
    (billing,) = found.groups().to_pylist()
    assert (billing["lost"], billing["lag"], billing["lag_max"]) == (None, None, 2**62)


def test_an_audit_without_the_results_of_a_part_has_no_totals(shop: Shop) -> None:
    overview = open_index(shop.audit([row(TOPIC, "orders")], parts=("settings",)).audit).overview
    assert (overview.failed, overview.coverage, overview.loss, overview.groups) == (None, None, None, None)
    assert next(one for one in overview.controls if one.control_id == GROUP.id).standing == "did_not_run"


def test_failures_keep_the_audit_since_which_they_are_listed(shop: Shop) -> None:
    first = shop.audit([row(TOPIC, "orders")])
    second = shop.audit([row(TOPIC, "orders"), row(TOPIC, "clicks"), row(LOST, "billing [orders-0]")])
    found = open_index(second.audit).failures()
    assert found.schema == FAILURE_ROW
    since = {one["resource"]: one["since_audit_id"] for one in found.to_pylist()}
    assert since == {"orders": first.id, "clicks": second.id, "billing [orders-0]": second.id}
    assert [one["resource"] for one in open_index(second.audit).failures(TOPIC.id).to_pylist()] == ["clicks", "orders"]
    shop.audit([row(TOPIC, "clicks")])
    again = shop.audit([row(TOPIC, "orders")])
    assert open_index(again.audit).failures().to_pylist()[0]["since_audit_id"] == again.id


def test_a_void_audit_is_no_gap_in_since_when_a_failure_is_seen(shop: Shop) -> None:
    first = shop.audit([row(TOPIC, "orders")])
    shop.audit([row(TOPIC, "orders")], evidence=("FAIL", 4))
    shop.audit([row(TOPIC, "orders")], evidence=("FAIL", 4))
    newest = shop.audit([row(TOPIC, "orders")])
    assert open_index(newest.audit).failures().to_pylist()[0]["since_audit_id"] == first.id


def test_what_an_audit_of_a_part_passes_ends_no_failure(shop: Shop) -> None:
    first = shop.audit([row(TOPIC, "orders")])
    part = shop.judge([row(TOPIC, "clicks", "pass")])
    run = part.audit.run()
    write_json(part.audit.run_file, {**run, "params": {**run.get("params", {}), "topics": "clicks"}})
    part.seal()
    last = shop.audit([row(TOPIC, "orders")])
    assert open_index(part.audit).overview.judged_less == ("topics",)
    assert stood(last, TOPIC.id) == "F?F"
    [line] = [one for one in open_index(last.audit).overview.controls if one.control_id == TOPIC.id]
    assert line.fails_since is not None and line.fails_since.audit_id == first.id


def test_targets_missed_are_not_known_where_none_is_missed_only_because_not_all_were_judged() -> None:
    assert [_missed(judged) for judged in ([], [True, True], [True, None], [None, False])] == [0, 0, None, 1]


def test_the_worst_failures_of_a_control_come_first(shop: Shop) -> None:
    judged = shop.audit([row(TOPIC, "a", severity="low"), row(TOPIC, "z", severity="critical"), row(TOPIC, "m", severity="low")])
    assert [one["resource"] for one in open_index(judged.audit).failures(TOPIC.id).to_pylist()] == ["z", "a", "m"]


def test_each_control_remembers_how_it_stood(shop: Shop) -> None:
    shop.audit([row(TOPIC, "orders")])
    shop.audit([row(TOPIC, "orders", "pass")], controls=(TOPIC, GROUP, LOST))
    third = shop.audit([row(TOPIC, "orders", "not_assessed"), row(BROKER, "1")])
    assert stood(third, TOPIC.id) == "FPN"
    assert stood(third, BROKER.id) == f"{UNKNOWN_LETTER}{LETTERS['not_in_audit']}F"
    assert [one.audit_id for one in open_index(third.audit).overview.past][-1] == third.id
    assert len(open_index(third.audit).overview.past) == 3


PAST = [PastAudit(audit_id=f"a{number}", started_at=f"t{number}", verdict="FAILED") for number in range(6)]


@pytest.mark.parametrize(
    ("history", "since", "earlier"),
    [
        ("F", "a0", True),
        ("PF", "a1", False),
        ("PFF", "a1", False),
        ("PFNF", "a1", False),
        ("PF?EDF", "a1", False),
        ("NF", "a1", True),
        ("PFWF", "a1", False),
        ("FPF", "a2", False),
        ("F\N{EN DASH}F", "a2", False),
        ("FP", None, False),
        ("FN", None, False),
    ],
)
def test_since_when_a_control_fails_skips_audits_that_could_not_tell(history: str, since: str | None, earlier: bool) -> None:
    found = fails_since(history, PAST[: len(history)], None)
    assert found == (None if since is None else FailsSince(audit_id=since, started_at=since.replace("a", "t"), earlier=earlier))


def test_what_is_remembered_no_more_is_taken_from_the_audit_before() -> None:
    long_ago = FailsSince(audit_id="old", started_at="then", earlier=False)
    assert fails_since("FF", PAST[:2], long_ago) == long_ago
    assert fails_since("PF", PAST[:2], long_ago) != long_ago


def test_the_newest_sealed_audit_is_read_whatever_was_begun_since(shop: Shop) -> None:
    assert newest_index(shop.root, CLUSTER) is None
    assert shop.root.newest_evidence(CLUSTER) is None
    sealed = shop.audit([row(TOPIC, "orders")])
    begun = shop.judge([])
    newest = newest_index(shop.root, CLUSTER)
    assert newest is not None and newest.overview.audit_id == sealed.id
    assert shop.root.ids(CLUSTER, AUDIT) == (begun.id, sealed.id)
    assert shop.root.newest_evidence(CLUSTER) == begun.snapshot.snapshot_id
    with pytest.raises(IntegrityError, match="is not sealed"):
        open_index(begun.audit)


def change_overview(judged: Judged, **fields: object) -> None:
    path = judged.audit.path / OVERVIEW
    write_json(path, {**json.loads(path.read_text(encoding="utf-8")), **fields})


@pytest.mark.parametrize("name", [OVERVIEW, GROUPS, FAILURES])
def test_a_file_that_was_changed_after_the_seal_is_not_read(shop: Shop, name: str) -> None:
    judged = shop.audit([row(TOPIC, "orders")])
    with (judged.audit.path / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(IntegrityError, match="was changed after the audit was sealed"):
        found = open_index(judged.audit)
        found.groups()
        found.failures()


def forged(judged: Judged, **fields: object) -> None:
    """Change the overview, and the manifest with it, as someone may who can write into the folder."""
    from kafka_audit.store.durable_files import sha256_of

    change_overview(judged, **fields)
    manifest = json.loads((judged.audit.path / MANIFEST).read_text(encoding="utf-8"))
    manifest["files"][OVERVIEW]["sha256"] = sha256_of(judged.audit.path / OVERVIEW)
    write_json(judged.audit.path / MANIFEST, manifest)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"schema_version": 2}, "schema version 2"),
        ({"verdict": "GREEN"}, "verdict"),
        ({"exit_code": -1}, "exit_code"),
        ({"assessed": True, "applicable": 10**400}, "applicable"),
        ({"audit_id": "20200101T000000Z-0000000000000000"}, "is of audit"),
        ({"cluster": "payments"}, "of cluster 'payments'"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_an_overview_of_another_form_is_refused(shop: Shop, fields: dict[str, object], says: str) -> None:
    judged = shop.audit([row(TOPIC, "orders")])
    forged(judged, **fields)
    with pytest.raises(IntegrityError, match=says):
        open_index(judged.audit)


def test_an_earlier_audit_that_was_changed_is_not_remembered(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    first = shop.audit([row(TOPIC, "orders")])
    forged(first, summary="All is well.")
    second = shop.audit([row(TOPIC, "orders")])
    found = open_index(second.audit)
    assert stood(second, TOPIC.id) == "F"
    assert found.failures().to_pylist()[0]["since_audit_id"] == second.id
    assert "what the index remembers of earlier audits begins with this one" in caplog.text


def test_the_same_audit_gives_the_same_bytes(shop: Shop) -> None:
    judged = shop.judge([row(TOPIC, "orders")], groups=["billing"])
    written = []
    for _ in range(2):
        judged.write()
        written.append({path.name: path.read_bytes() for path in (judged.audit.path / "index").iterdir()})
    assert written[0] == written[1]
    tables = ("groups", "failures", "partitions", "readers", "slas")
    assert set(written[0]) == {"overview.json", *(f"{name}.parquet" for name in tables)}
