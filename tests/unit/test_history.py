"""Which earlier snapshots an audit compares its own with."""

import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.history import OFFSETS_SNAPSHOTS, read_history
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id, seal_audit, unseal_audit
from kafka_audit.store.samples import DAY_MS, OTHER_SCOPE, read_samples
from kafka_audit.store.sealed import AUDIT, OFFSETS, SNAPSHOT

HOUR_MS = 3_600_000
FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)


def snapshot(
    root: Path, hour: float, cluster_id: str = "one", kind: str = SNAPSHOT, *, planned: float | None = None, scope: object = None
) -> Snapshot:
    taken = FIRST + timedelta(hours=hour)
    with EvidenceRoot(path=root).snapshot_writer(
        "prod", new_id(taken if planned is None else FIRST + timedelta(hours=planned), "x"), kind
    ) as writer:
        writer.write("topics", pa.table({"topic": [f"t{hour}"]}))
        return Snapshot.open(
            writer.seal({"cluster_id": cluster_id, "started_at": taken.isoformat(), "finished_at": taken.isoformat(), "scope": scope})
        )


def test_it_is_the_newest_of_those_before_oldest_first(tmp_path: Path) -> None:
    taken = [snapshot(tmp_path, hour) for hour in range(5)]
    history = read_history(taken[3], limit=2)
    assert [one.snapshot_id for one in history.snapshots] == [taken[1].snapshot_id, taken[2].snapshot_id]
    assert history.record()["used"][0]["manifest_sha256"] == taken[1].manifest_sha256


def test_without_earlier_ones_or_with_a_limit_of_none_it_is_empty(tmp_path: Path) -> None:
    first, second = snapshot(tmp_path, 0), snapshot(tmp_path, 1)
    assert read_history(first, limit=30).snapshots == ()
    assert read_history(second, limit=0).snapshots == ()


def audit(root: Path, judged: Snapshot, hour: float) -> None:
    evidence, audit_id = EvidenceRoot(path=root), new_id(FIRST + timedelta(hours=hour), "audit")
    evidence.audit("prod", audit_id).path.mkdir(parents=True)
    seal_audit(evidence, "prod", audit_id, {"snapshot": {"snapshot_id": judged.snapshot_id}})


def test_changes_are_counted_from_the_last_snapshot_that_a_sealed_audit_judged(tmp_path: Path) -> None:
    taken = [snapshot(tmp_path, hour) for hour in range(5)]
    assert read_history(taken[4], limit=30).before == taken[3]
    audit(tmp_path, taken[1], 1)
    audit(tmp_path, taken[0], 6)  # an older snapshot judged again
    unsealed = EvidenceRoot(path=tmp_path).audit("prod", new_id(FIRST + timedelta(hours=7), "audit"))
    unsealed.path.mkdir()
    write_json(unsealed.run_file, {"snapshot_id": taken[2].snapshot_id})
    history = read_history(taken[4], limit=30)
    assert history.before == taken[1]
    assert history.record()["last_audited"] == taken[1].snapshot_id
    assert read_history(taken[0], limit=30).before is None


def test_the_first_audit_of_a_cluster_has_no_audit_and_no_whole_snapshot_before_it(tmp_path: Path) -> None:
    snapshot(tmp_path, 0, kind=OFFSETS)
    first = snapshot(tmp_path, 1)
    assert read_history(first, limit=30).first_audit
    assert read_history(first, limit=30).record()["first_audit"] is True
    second = snapshot(tmp_path, 2)
    assert not read_history(second, limit=30).first_audit
    assert not read_history(second, limit=0).first_audit
    assert read_history(first, limit=30).first_audit


@pytest.mark.parametrize("harm", ["changed", "unreadable", "of another cluster"])
def test_after_an_earlier_whole_snapshot_that_cannot_be_used_no_audit_is_the_first(harm: str, tmp_path: Path) -> None:
    earlier = snapshot(tmp_path, 0, "other" if harm == "of another cluster" else "one")
    if harm == "changed":
        earlier.dataset("topics").write_bytes(b"!")
    if harm == "unreadable":
        (earlier.path / "manifest.json").write_text("{")
    assert not read_history(snapshot(tmp_path, 1), limit=30).first_audit


def test_after_a_sealed_audit_no_audit_is_the_first_even_if_everything_before_it_was_deleted(tmp_path: Path) -> None:
    first = snapshot(tmp_path, 0)
    audit(tmp_path, first, 1)
    shutil.rmtree(first.path)
    later = snapshot(tmp_path, 2)
    assert not read_history(later, limit=30).first_audit
    for folder in (tmp_path / "audits" / "prod").glob("2*"):
        shutil.rmtree(folder)
    assert not read_history(later, limit=30).first_audit
    (tmp_path / "audits" / "prod" / ".chain.json").write_text("{")
    assert not read_history(later, limit=30).first_audit


def test_the_first_audit_is_still_the_first_when_it_is_done_again(tmp_path: Path) -> None:
    only = snapshot(tmp_path, 0)
    audit(tmp_path, only, 1)
    (sealed,) = EvidenceRoot(path=tmp_path).sealed_ids("prod", AUDIT)
    assert read_history(only, 30, sealed).first_audit
    assert not read_history(only, 30, new_id(FIRST, "another")).first_audit
    assert unseal_audit(EvidenceRoot(path=tmp_path).audit("prod", sealed))
    assert read_history(only, 30, sealed).first_audit
    assert not read_history(only, 30, new_id(FIRST, "another")).first_audit


def test_a_snapshot_that_was_changed_is_left_out_with_the_reason(tmp_path: Path) -> None:
    taken = [snapshot(tmp_path, hour) for hour in range(3)]
    with taken[0].dataset("topics").open("ab") as stream:
        stream.write(b"!")
    (taken[1].path / "manifest.json").write_text("{")
    history = read_history(taken[2], limit=30)
    assert history.snapshots == ()
    assert "sha256 differs" in history.unusable[0]
    assert taken[1].snapshot_id in history.unusable[1]


def test_another_cluster_of_the_same_name_is_not_its_history(tmp_path: Path) -> None:
    other, own, last = snapshot(tmp_path, 0, "other"), snapshot(tmp_path, 1), snapshot(tmp_path, 2)
    history = read_history(last, limit=30)
    assert [one.snapshot_id for one in history.snapshots] == [own.snapshot_id]
    assert history.foreign == (other.snapshot_id,)
    assert history.unusable == ()


def test_snapshots_of_another_cluster_push_none_of_its_own_out(tmp_path: Path) -> None:
    own = snapshot(tmp_path, 0)
    strays = [snapshot(tmp_path, 1 + number, "other") for number in range(3)]
    history = read_history(snapshot(tmp_path, 9), limit=2)
    assert history.snapshots == (own,)
    assert history.foreign == tuple(one.snapshot_id for one in strays)


def test_offsets_snapshots_stand_among_the_whole_ones_by_their_time(tmp_path: Path) -> None:
    whole = [snapshot(tmp_path, hour) for hour in range(3)]
    light = [snapshot(tmp_path, hour, kind=OFFSETS) for hour in (0.5, 1.5, 2.5)]
    history = read_history(whole[2], limit=30)
    assert [one.snapshot_id for one in history.snapshots] == [one.snapshot_id for one in whole[:2]]
    assert [one.snapshot_id for one in history.all] == [one.snapshot_id for one in (whole[0], light[0], whole[1], light[1])]
    assert [one["snapshot_id"] for one in history.record()["used_offsets"]] == [one.snapshot_id for one in light[:2]]


def test_a_changed_offsets_snapshot_is_left_out_too(tmp_path: Path) -> None:
    light, last = snapshot(tmp_path, 0, kind=OFFSETS), snapshot(tmp_path, 1)
    light.dataset("topics").write_bytes(b"!")
    history = read_history(last, limit=30)
    assert history.all == ()
    assert light.snapshot_id in history.unusable[0]


def test_of_many_offsets_snapshots_the_newest_are_read(tmp_path: Path) -> None:
    light = [snapshot(tmp_path, minutes / 60, kind=OFFSETS) for minutes in range(OFFSETS_SNAPSHOTS + 2)]
    history = read_history(snapshot(tmp_path, 5), limit=30)
    assert [one.snapshot_id for one in history.offsets] == [one.snapshot_id for one in light[2:]]


def test_a_manifest_without_a_time_is_left_out(tmp_path: Path) -> None:
    with EvidenceRoot(path=tmp_path).snapshot_writer("prod", new_id(FIRST, "x"), OFFSETS) as writer:
        writer.seal({"cluster_id": "one"})
    history = read_history(snapshot(tmp_path, 1), limit=30)
    assert history.all == ()
    assert "started_at" in history.unusable[0]


def test_a_late_run_stands_where_it_read_the_cluster(tmp_path: Path) -> None:
    late = snapshot(tmp_path, 3, kind=OFFSETS, planned=1)
    early = snapshot(tmp_path, 2, kind=OFFSETS)
    history = read_history(snapshot(tmp_path, 4, planned=0), limit=30)
    assert [one.snapshot_id for one in history.all] == [early.snapshot_id, late.snapshot_id]
    assert read_history(snapshot(tmp_path, 2.5), limit=30).offsets[-1].snapshot_id == early.snapshot_id


def test_an_offsets_snapshot_of_another_scope_is_left_out_with_the_reason(tmp_path: Path) -> None:
    full = snapshot(tmp_path, 0, kind=OFFSETS, scope={"topics": "*", "groups": ["*", "a"]})
    narrow = [snapshot(tmp_path, 1, kind=kind, scope={"topics": ["orders*"]}) for kind in (OFFSETS, SNAPSHOT)]
    history = read_history(snapshot(tmp_path, 2), limit=30)
    assert history.all == (full, narrow[1])
    assert history.unusable == (f"{narrow[0].snapshot_id}: covers another scope of topics or groups",)


def test_a_narrow_sample_does_not_displace_the_full_one_of_its_interval(tmp_path: Path) -> None:
    narrow, full = snapshot(tmp_path, 0, kind=OFFSETS, scope={"topics": ["orders*"]}), snapshot(tmp_path, 0.5, kind=OFFSETS)
    first = round(FIRST.timestamp() * 1000)
    samples = read_samples(
        EvidenceRoot(path=tmp_path), "prod", first_ms=first, last_ms=first + DAY_MS, interval_ms=HOUR_MS, cluster_id=None
    )
    assert (samples.used, samples.left_out) == ((full,), ((narrow.snapshot_id, OTHER_SCOPE),))


@pytest.mark.parametrize("scope", [[1], "orders", {"topics": 5}, {"groups": [["a"]]}], ids=str)
@pytest.mark.parametrize("kind", [SNAPSHOT, OFFSETS])
def test_a_snapshot_with_a_scope_of_a_wrong_form_is_left_out_with_the_reason(tmp_path: Path, kind: str, scope: object) -> None:
    own, broken = snapshot(tmp_path, 0, kind=kind), snapshot(tmp_path, 1, kind=kind, scope=scope)
    history = read_history(snapshot(tmp_path, 2), limit=30)
    assert history.all == (own,)
    (reason,) = history.unusable
    assert reason.startswith(f"{broken.snapshot_id}: ")
    assert "scope" in reason


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59+00:00"])
def test_a_snapshot_of_an_impossible_time_is_left_out_and_cannot_be_audited_but_says_why(tmp_path: Path, time: str) -> None:
    broken = snapshot(tmp_path, 0)
    write_json(broken.path / "manifest.json", {**broken.manifest, "started_at": time})
    history = read_history(snapshot(tmp_path, 1), limit=30)
    assert history.all == ()
    assert "started_at is " in history.unusable[0]
    with pytest.raises(IntegrityError, match="started_at is "):
        read_history(Snapshot.open(broken.path), limit=30)
