"""Measure the check of a chain of audits, as whole processes, and the cost of sealing an audit with every file synced to disk.

    .venv/bin/python bench/verify_chain.py --audits 1000
    .venv/bin/python bench/verify_chain.py --offsets-snapshots 324
    .venv/bin/python bench/verify_chain.py --seal-like audit-root/audits/shop/20261120T231500Z-0123456789abcdef

The chain's audits have the same files as a real one, each a few kilobytes. The second form copies as many offsets snapshots as an audit
uses with one day of five-minute samples (27 hours of snapshots) and seals the result; the third seals copies of a real audit.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import patch

from processes import run

from kafka_audit.audit.inputs import keep_used, policy_files
from kafka_audit.catalogue.load import shipped_controls
from kafka_audit.policy import load_policy
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id, seal_audit, unseal_audit
from kafka_audit.store.manifest import FileHashes, tree_files
from kafka_audit.store.sealed import OFFSETS

CLUSTER = "bench"
FIRST = datetime(2024, 1, 1, tzinfo=timezone.utc)
PART_FILES = ("findings.parquet/part-00000.parquet", "summary.parquet/part-00000.parquet", "history.json")
FILES = (
    *(f"{part}/{name}" for part in ("settings", "lag") for name in PART_FILES),
    *(
        f"lag/{name}.parquet/part-00000.parquet"
        for name in ("group_partitions", "group_slas", "lag_series", "partition_windows", "sla_burns")
    ),
    *("lag/lag_history.json", "gate/evidence.json", "gate/findings.json", "report/report.html", "report/report.json", "report/junit.xml"),
)
OFFSETS_SNAPSHOTS, FILES_OF_A_SNAPSHOT = 3, 8
REPEATS = 5


def copy_rules(target: Path) -> Path:
    """Copy the shipped policy and controls, as an audit keeps them."""
    controls = {f"controls/{path.name}": path for path in shipped_controls().glob("*.yaml")}
    for name, source in ({f"policy/{name}": path for name, path in policy_files(load_policy()).items()} | controls).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target / name)
    return target


def make_audit(root: EvidenceRoot, number: int, rules: Path) -> None:
    """Seal one audit with 17 files, copies of the rules, and copies of a few offsets snapshots."""
    audit = root.audit(CLUSTER, new_id(FIRST + timedelta(hours=number), str(number)))
    for name in FILES:
        file = audit.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(4096))
    write_json(audit.run_file, {"audit_id": audit.path.name})
    shutil.copytree(rules, audit.inputs, copy_function=shutil.copyfile)
    for number_of_snapshot in range(OFFSETS_SNAPSHOTS):
        folder = root.path / "offsets" / CLUSTER / str(number_of_snapshot)
        if not folder.exists():
            folder.mkdir(parents=True)
            for one in range(FILES_OF_A_SNAPSHOT):
                (folder / f"{one}.parquet").write_bytes(os.urandom(20_000))
        shutil.copytree(folder, audit.inputs / "offsets" / CLUSTER / folder.name, copy_function=os.link)
    seal_audit(root, CLUSTER, audit.path.name, {})


def cli_seconds(*arguments: str, log: Path) -> float:
    return run([sys.executable, "-m", "kafka_audit.cli", *arguments], log=log).wall_s


def chain(audits: int, folder: Path) -> None:
    root, rules = EvidenceRoot(path=folder / "root"), copy_rules(folder / "rules")
    began = time.monotonic()
    with patch("os.fsync"):  # without syncs: a thousand seals would wait for the disk for minutes
        for number in range(audits):
            make_audit(root, number, rules)
    state = read_state(root.audits(CLUSTER))
    assert state is not None and state.head is not None and state.last == audits
    manifest = json.loads((root.audit(CLUSTER, state.head.audit_id).path / "manifest.json").read_text())
    print(f"made {audits} audits of {len(manifest['files'])} files in {time.monotonic() - began:.0f} s")
    os.environ["KAFKA_AUDIT_ROOT"] = str(root.path)
    log = folder / "log"
    for _ in range(2):  # the first run also writes byte code
        start = cli_seconds("version", log=log)
    for _ in range(REPEATS):
        used = run([sys.executable, "-m", "kafka_audit.cli", "verify", "--chain", CLUSTER, "--head", state.head.manifest_sha256], log=log)
        beyond = used.wall_s - start
        print(f"verify --chain: {used.wall_s:.2f} s, {beyond:.2f} s beyond the start ({start:.2f} s); peak {used.peak_mb:.0f} MB")


def sealing(audit: Path, folder: Path) -> None:
    """Seal copies of a real audit, after everything else was written back to disk."""
    seconds = []
    for number in range(REPEATS):
        root = EvidenceRoot(path=folder / f"root-{number}")
        copy = root.audit(CLUSTER, audit.name)
        shutil.copytree(audit, copy.path)
        for name in ("manifest.json", "manifest.dsse.json"):
            (copy.path / name).unlink(missing_ok=True)
        subprocess.run(["sync"], check=True)
        for file in copy.path.rglob("*"):  # rewritten, because a real run's files are still dirty pages when it is sealed
            if file.is_file():
                file.write_bytes(file.read_bytes())
        hashes, began = FileHashes(), time.monotonic()
        seal_audit(root, CLUSTER, audit.name, {}, hashes)
        seconds.append(time.monotonic() - began)
        assert unseal_audit(copy)
    files = tree_files(copy.path)
    size = sum(entry["bytes"] for entry in files.values())
    print(f"sealing {len(files)} files, {size / 2**20:.1f} MB, all dirty: median {statistics.median(seconds):.3f} s of {seconds}")


def keeping(count: int, folder: Path) -> None:
    """Copy and seal what an audit used: offsets snapshots of ten tables of 20 kB each, on the same file system."""
    root = EvidenceRoot(path=folder)
    named = []
    for number in range(count):
        with root.snapshot_writer(CLUSTER, new_id(FIRST + timedelta(minutes=5 * number), str(number)), OFFSETS) as writer:
            for one in range(10):
                (writer.folder / f"{one}.parquet").write_bytes(os.urandom(20_000))
            sealed = Snapshot.open(writer.seal({}))
        named.append({"snapshot_id": sealed.snapshot_id, "manifest_sha256": sealed.manifest_sha256})
    audit = root.audit(CLUSTER, new_id(FIRST, "audit"))
    write_json(audit.lag / "lag_history.json", {"days": [], "offsets_snapshots": named})
    for what in ("in the job", "before the seal"):
        began = time.monotonic()
        hashes = FileHashes()
        keep_used(audit, root, CLUSTER, hashes)
        print(f"keeping {count} offsets snapshots {what}: {time.monotonic() - began:.2f} s")
    began = time.monotonic()
    seal_audit(root, CLUSTER, audit.path.name, {}, hashes)
    size = (audit.path / "manifest.json").stat().st_size
    print(f"sealing them: {time.monotonic() - began:.2f} s; the manifest has {size / 1024:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--offsets-snapshots", type=int, help="how many an audit used, to be kept and sealed")
    parser.add_argument("--seal-like", type=Path, help="the folder of a real audit, whose copies are sealed")
    parser.add_argument("--folder", type=Path, help="where to write; default: a new folder for temporary files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        if arguments.seal_like:
            sealing(arguments.seal_like, Path(folder))
        elif arguments.offsets_snapshots:
            keeping(arguments.offsets_snapshots, Path(folder))
        else:
            chain(arguments.audits, Path(folder))


if __name__ == "__main__":
    main()
