"""Only the account that seals can hold the lock of the audits, every wait for it ends, and a check works without it."""

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from sealed_audits import CLUSTER, seal
from test_audit_chain import audit, chained
from test_audit_check import said, time_limit

from kafka_audit.errors import CollectionError
from kafka_audit.store import locks
from kafka_audit.store.layout import EvidenceRoot


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EvidenceRoot:
    """A cluster with one audit; nobody waits for longer than a moment."""
    monkeypatch.setattr(locks, "_SEAL_WAITS_SECONDS", 0.2)
    monkeypatch.setattr(locks, "_CHECK_WAITS_SECONDS", 0.2)
    found = EvidenceRoot(path=tmp_path)
    seal(found, 1)
    return found


@pytest.fixture
def lock(root: EvidenceRoot) -> Path:
    return root.audits(CLUSTER) / ".lock"


@pytest.fixture
def held(lock: Path) -> Iterator[None]:
    """Somebody holds the lock through a descriptor that is open for reading only."""
    descriptor = os.open(lock, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield
    os.close(descriptor)


def test_only_the_account_that_seals_can_open_the_lock(root: EvidenceRoot, lock: Path) -> None:
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    lock.chmod(0o644)
    seal(root, 2)
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600


@pytest.mark.usefixtures("held")
def test_a_seal_that_cannot_have_the_lock_ends_with_what_to_do(root: EvidenceRoot, lock: Path) -> None:
    with time_limit(), pytest.raises(CollectionError, match=rf"{lock}: another process has held the lock for .* see with `fuser"):
        seal(root, 2)
    assert not (audit(root, 2).path / "manifest.json").exists()


@pytest.mark.usefixtures("held")
def test_a_check_goes_on_without_the_lock_and_says_so(root: EvidenceRoot) -> None:
    with time_limit():
        assert "checked without the lock (another process has held the lock" in chained(root)
        assert "checked without the lock" in said("verify", audit(root, 1).path, code=5)


def test_a_pipe_in_place_of_the_lock_is_waited_for_by_nobody(root: EvidenceRoot, lock: Path) -> None:
    lock.unlink()
    os.mkfifo(lock)
    with time_limit():
        assert "checked without the lock (it is not a regular file" in chained(root)
        with pytest.raises(CollectionError, match="is not a regular file"):
            seal(root, 2)


def test_a_link_in_place_of_the_lock_is_not_followed(root: EvidenceRoot, lock: Path) -> None:
    lock.unlink()
    lock.symlink_to(root.path / "elsewhere")
    assert "checked without the lock" in chained(root)
    with pytest.raises(CollectionError, match=r"\.lock"):
        seal(root, 2)
    assert not (root.path / "elsewhere").exists()
