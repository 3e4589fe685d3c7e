"""The record of what was told: kept for each connection, under a lock, replaced when it is broken, and left alone by everything else."""

import json
import logging
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from sealed_audits import CLUSTER, WholeAudit

from kafka_audit.audit.check import check_audit
from kafka_audit.audit.listing import readable_clusters
from kafka_audit.errors import CollectionError
from kafka_audit.index.told import Told, told_record
from kafka_audit.policy import load_policy
from kafka_audit.store import locks
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.retention import delete_expired
from kafka_audit.store.sweep import sweep
from kafka_audit.store.unfinished import hidden_name

KNOWS = Told(audit_id="20261120T120000Z-0badcafe0badcafe", standing={"void": "The audit is void."}, lost_records=3)


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    return EvidenceRoot(path=tmp_path / "root")


def file(root: EvidenceRoot) -> Path:
    return root.told(CLUSTER) / "told.json"


def keep(root: EvidenceRoot, connection: str = "chat", told: Told = KNOWS) -> None:
    with told_record(root, CLUSTER) as record:
        record.keep(connection, told)


def read(root: EvidenceRoot, connection: str = "chat") -> Told:
    with told_record(root, CLUSTER) as record:
        return record.told(connection)


def test_each_connection_has_a_record_of_its_own(root: EvidenceRoot) -> None:
    keep(root)
    keep(root, "mail", Told(lost_records=9))
    assert (read(root), read(root, "mail").lost_records, read(root, "pager")) == (KNOWS, 9, Told())
    assert file(root).stat().st_mode & 0o777 == 0o640


def test_nothing_is_written_when_nothing_changed(root: EvidenceRoot) -> None:
    keep(root)
    before = file(root).stat()
    keep(root)
    assert file(root).stat() == before


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        "[]",
        "{}",
        '{"schema_version": 2, "kind": "told", "cluster": "prod", "connections": {}}',
        '{"schema_version": 1, "kind": "told", "cluster": "other", "connections": {}}',
        '{"schema_version": 1, "kind": "told", "cluster": "prod", "connections": {"chat": {"lost_records": -1}}}',
        '{"schema_version": 1, "kind": "told", "cluster": "prod", "connections": {"chat": {"audit_id": "%s"}}}' % ("x" * 999),
    ],
)
def test_a_broken_record_is_replaced_with_a_warning(root: EvidenceRoot, broken: str, caplog: pytest.LogCaptureFixture) -> None:
    keep(root)
    file(root).write_text(broken)
    with caplog.at_level(logging.WARNING):
        assert read(root) == Told()
    assert "everything that stands is told once more" in caplog.text
    keep(root)
    assert read(root) == KNOWS


def test_a_link_in_place_of_the_record_is_not_followed(root: EvidenceRoot, tmp_path: Path) -> None:
    keep(root)
    elsewhere = tmp_path / "elsewhere.json"
    file(root).rename(elsewhere)
    file(root).symlink_to(elsewhere)
    before = elsewhere.read_text()
    assert read(root) == Told()
    keep(root, told=Told(lost_records=1))
    assert elsewhere.read_text() == before
    assert not file(root).is_symlink()


def test_nobody_else_tells_of_a_cluster_meanwhile(root: EvidenceRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_TOLD_WAITS_SECONDS", 0.0)
    program = f"""
import sys
from pathlib import Path
from kafka_audit.index.told import told_record
from kafka_audit.store.layout import EvidenceRoot
with told_record(EvidenceRoot(path=Path({str(root.path)!r})), {CLUSTER!r}):
    print("held", flush=True)
    input()
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CollectionError, match="so nothing was told"):
            keep(root)
    finally:
        other.communicate("\n")
    keep(root)


def test_sweep_retention_verification_and_the_list_of_audits_leave_it_alone(tmp_path: Path) -> None:
    whole = WholeAudit(tmp_path / "root")
    keep(whole.root)
    before = file(whole.root).read_text()
    left = hidden_name(file(whole.root))
    left.write_text("{")
    sweep(whole.root, CLUSTER)
    delete_expired(whole.root, CLUSTER, load_policy().history, date(2030, 1, 1))
    assert check_audit(whole.audit.path, whole.root).problems == []
    assert readable_clusters(whole.root, lambda _: True) == [CLUSTER]
    assert file(whole.root).read_text() == before
    assert json.loads(before)["connections"]["chat"]["lost_records"] == 3
