"""How a cluster is seen to stand: its newest sealed audit, one that runs or is late, what is stale, and what cannot be used."""

from pathlib import Path

import pytest
from compared_audits import TOPIC, Shop, row
from indexed_cluster import CLUSTER, HOUR, NOON, IndexedCluster

from kafka_audit.audit.outcome import why_unsealed
from kafka_audit.index.observe import observe
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import unseal_audit
from kafka_audit.times import time_of_id


@pytest.fixture
def cluster(tmp_path: Path) -> IndexedCluster:
    return IndexedCluster(tmp_path / "root")


def test_of_a_cluster_without_audits_nothing_is_known(cluster: IndexedCluster) -> None:
    seen = cluster.seen(0)
    assert (seen.overview, seen.unusable, seen.audit_at, seen.evidence_at, seen.unfinished, seen.running) == (
        None,
        "",
        None,
        None,
        "",
        False,
    )


def test_the_newest_sealed_audit_is_seen_with_its_waived_failures_and_its_age(cluster: IndexedCluster) -> None:
    cluster.sealed(0)
    newest = cluster.sealed(24, waived="accepted")
    seen = cluster.seen(25)
    assert seen.overview and seen.overview.audit_id == newest.path.name
    assert (seen.waived, seen.audit_at, seen.running) == ({("c", "a")}, NOON + 24 * HOUR, False)


def test_nobody_is_told_of_a_cluster_that_is_made_up(cluster: IndexedCluster) -> None:
    cluster.sealed(0, sample=True)
    cluster.begun(24)
    seen = cluster.seen(500, failed="the run was refused")
    assert (seen.overview, seen.unfinished, seen.audit_at, seen.running) == (None, "", None, False)


def test_a_newer_audit_that_is_not_sealed_runs_until_it_is_late(cluster: IndexedCluster) -> None:
    sealed = cluster.sealed(0)
    begun = cluster.begun(24)
    running, late = cluster.seen(25.9), cluster.seen(26.1)
    assert (running.running, running.unfinished) == (True, "")
    assert late.running
    assert late.unfinished == f"audit {begun.path.name} began at 2026-11-21 12:00 UTC and has no sealed report yet"
    assert late.overview and late.overview.audit_id == sealed.path.name


def test_an_audit_that_never_sealed_makes_the_cluster_stale_by_the_oldest_that_began(cluster: IndexedCluster) -> None:
    cluster.begun(0)
    cluster.begun(24)
    assert cluster.seen(25).audit_at == NOON


def test_an_audit_that_is_done_again_is_not_late_because_it_began_long_ago(cluster: IndexedCluster) -> None:
    cluster.sealed(0)
    again = cluster.sealed(24)
    assert unseal_audit(again)
    opened = again.path.stat().st_mtime
    hours = (opened - NOON.timestamp()) / 3600
    assert cluster.seen(hours + 1).unfinished == ""
    assert cluster.seen(hours + 3).unfinished.startswith(f"audit {again.path.name} began at")


def test_a_run_file_that_does_not_say_when_the_audit_began_is_replaced_by_its_id(cluster: IndexedCluster) -> None:
    begun = cluster.begun(0)
    begun.run_file.write_text("{")
    assert cluster.seen(1).unfinished == ""
    assert "began at 2026-11-20 12:00" in cluster.seen(3).unfinished


@pytest.mark.parametrize("name", ["overview.json", "failures.parquet"])
def test_an_index_that_was_changed_after_the_seal_is_not_used_and_its_path_is_not_told(cluster: IndexedCluster, name: str) -> None:
    sealed = cluster.sealed(0)
    (sealed.path / "index" / name).write_bytes(b"{}")
    seen = cluster.seen(1)
    assert seen.overview is None
    assert seen.unusable.startswith(f"audits/{CLUSTER}/{sealed.path.name}/index/{name}: was changed")
    assert (seen.audit_at, seen.running, seen.waived) == (NOON, False, frozenset())


def test_what_is_known_of_a_failed_audit_is_passed_on(cluster: IndexedCluster) -> None:
    cluster.sealed(0)
    assert cluster.seen(1, failed="the run was refused").unfinished == "the run was refused"


def test_an_audit_that_ended_unsealed_names_the_steps_that_failed(cluster: IndexedCluster) -> None:
    begun = cluster.begun(0)
    assert why_unsealed(begun) == f"audit {begun.path.name} ended without a sealed report; the logs of its tasks say why"
    write_json(begun.path / "failures" / "snapshot.json", {"step": "snapshot", "message": "no bootstrap server could be reached"})
    assert why_unsealed(begun).endswith("; step snapshot failed: no bootstrap server could be reached")
    (begun.path / "failures" / "snapshot.json").write_text("{")
    assert "cannot be read as JSON" in why_unsealed(begun)
    assert why_unsealed(cluster.sealed(1)) == ""


def test_a_whole_snapshot_and_one_of_offsets_are_evidence(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    made = shop.judge([row(TOPIC, "orders")])
    seen = observe(shop.root, CLUSTER, now=NOON, finish_within=HOUR)
    assert seen.evidence_at == time_of_id(made.snapshot.snapshot_id)


def test_a_folder_whose_name_is_no_time_stops_no_message(cluster: IndexedCluster) -> None:
    sealed = cluster.sealed(0)
    (sealed.path.parent / "99999999T999999Z-0123456789abcdef").mkdir()
    seen = cluster.seen(1)
    assert seen.overview and seen.running and seen.unfinished == ""
