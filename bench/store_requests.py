"""Count the requests to an object store: of sealing a snapshot, of finding the newest of 4,032, of reading one, and of sealing an audit.

    versitygw --access test --secret testtest --port 127.0.0.1:7071 --access-log requests.log --quiet posix --versioning-dir VERSIONS DATA
    versitygw admin --access test --secret testtest --endpoint-url http://127.0.0.1:7071 create-bucket --owner test --bucket bench
    AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=testtest AWS_REGION=us-east-1 KAFKA_AUDIT_STORE_OPTIONS=endpoint=http://127.0.0.1:7071 \\
        .venv/bin/python bench/store_requests.py --root s3://bench/root --log requests.log

The requests are those that the server logs. Every step begins with an empty mirror.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa

from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, new_id, seal_audit
from kafka_audit.store.mirrors import MIRROR_VARIABLE
from kafka_audit.store.sealed import OFFSETS

CLUSTER = "bench"
DATASETS = 12
AUDIT_FILES = 40


def main() -> None:
    """Print one line for each step: requests and seconds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--root", required=True, help="URL of an empty root")
    parser.add_argument("--log", type=Path, required=True, help="access log of the server")
    parser.add_argument("--snapshots", type=int, default=4032, help="manifests of offsets snapshots: two weeks of one every five minutes")
    asked = parser.parse_args()
    now = datetime.now(timezone.utc)

    def measure(what: str, work: Callable[[EvidenceRoot], object]) -> None:
        with tempfile.TemporaryDirectory() as mirror:
            os.environ[MIRROR_VARIABLE] = mirror
            root = EvidenceRoot.at(asked.root)
            before, began = _requests(asked.log), time.monotonic()
            work(root)
            seconds = time.monotonic() - began
            time.sleep(1)  # the server writes its log a little later
            print(f"{what}: {_requests(asked.log) - before} requests, {seconds:.2f} s")

    ids = [new_id(now - timedelta(minutes=5 * number), "bench") for number in range(asked.snapshots)]
    measure(f"{len(ids)} manifests", lambda root: _manifests(root, ids))
    newest = new_id(now + timedelta(minutes=1), "bench")
    measure(f"seal a snapshot of {DATASETS} datasets", lambda root: _snapshot(root, newest))
    measure("find the newest snapshot", lambda root: root.newest_sealed(CLUSTER, OFFSETS))
    measure("list all snapshots", lambda root: root.sealed_ids(CLUSTER, OFFSETS))
    measure("read the newest snapshot", lambda root: root.snapshot(CLUSTER, newest, OFFSETS).problems())
    measure(f"seal an audit of {AUDIT_FILES} files", lambda root: _audit(root, newest))


def _manifests(root: EvidenceRoot, ids: list[str]) -> None:
    remote = root.remote
    if remote is None:
        raise SystemExit("--root: name a URL")
    remote.each(lambda one: remote.objects.create(f"manifests/offsets/{CLUSTER}/{one}.json", b"{}"), ids)


def _snapshot(root: EvidenceRoot, snapshot_id: str) -> None:
    now = datetime.now(timezone.utc).isoformat()
    with root.snapshot_writer(CLUSTER, snapshot_id, OFFSETS) as writer:
        for number in range(DATASETS):
            writer.write(f"dataset_{number}", pa.table({"topic": ["orders"], "number": [number]}))
        writer.seal({"cluster_id": "one", "started_at": now, "finished_at": now})


def _audit(root: EvidenceRoot, audit_id: str) -> None:
    audit = root.audit(CLUSTER, audit_id)
    write_json(audit.run_file, {"audit_id": audit_id})
    for number in range(AUDIT_FILES - 1):
        write_json(audit.report / f"{number}.json", {"number": number})
    seal_audit(root, CLUSTER, audit_id, {"snapshot": {"snapshot_id": "x"}})


def _requests(log: Path) -> int:
    return sum(1 for _ in log.open(encoding="utf-8"))


if __name__ == "__main__":
    main()
