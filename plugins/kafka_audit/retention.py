"""Deletes what the history no longer has to keep: offsets snapshots whose day is rolled up, and days and commits that are too old."""

import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from kafka_audit.commit_batches import expired_batches, held, note_reached
from kafka_audit.errors import IntegrityError
from kafka_audit.evidence import OFFSETS, EvidenceRoot
from kafka_audit.lag_days import days_in, open_day
from kafka_audit.lag_samples import day_of
from kafka_audit.manifest import MANIFEST
from kafka_audit.policy.tiers import History


def delete_expired(
    root: EvidenceRoot, cluster: str, history: History, today: date, say: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Delete the cluster's offsets snapshots, rolled-up days and batches of commits that are older than ``history`` says, from ``today``.

    A snapshot goes only when its day's folder is whole and was made with it, or says why it was left out; ``say`` is told of each one that
    stays. Returns the ids of the snapshots, the days, and the batches (as ``commits/.../<batch>``) that were deleted.
    """
    limits, deleted = history.offsets, []
    accounted: dict[date, set[str] | str] = {}
    for snapshot_id in root.snapshot_ids(cluster, OFFSETS):
        try:
            day = day_of(root.snapshot(cluster, snapshot_id, OFFSETS).taken_ms)
        except IntegrityError as problem:
            say(f"{snapshot_id} stays: {problem}")
            continue
        if day >= today - timedelta(days=limits.keep_days):
            continue
        if day not in accounted:
            accounted[day] = _accounted(root.lag_days(cluster) / day.isoformat())
        known = accounted[day]
        if isinstance(known, str):
            say(f"{snapshot_id} stays: {known}")
        elif snapshot_id not in known:
            say(f"{snapshot_id} stays: the rolled-up day {day} does not know it; roll the day up again")
        else:
            _remove(root.snapshot_dir(cluster, snapshot_id, OFFSETS))
            deleted.append(snapshot_id)
    for folder in days_in(root, cluster):
        if date.fromisoformat(folder.name) < today - timedelta(days=limits.rolled_up_keep_days):
            _remove(folder)
            deleted.append(folder.name)
    commits = root.commit_history(cluster)
    for topic in (commits, commits / "transactions"):
        batches = _delete_batches(topic, today - timedelta(days=history.commits.keep_days), say)
        deleted += [f"{topic.relative_to(commits.parent)}/{batch}" for batch in batches]
    return deleted


def _delete_batches(history: Path, before: date, say: Callable[[str], None]) -> list[str]:
    """Decoded first: a raw batch without its decoded one is decoded again, one that is only decoded could not be traced."""
    if not (history / "raw").is_dir():
        return []
    with held(history) as is_held:
        if not is_held:
            say(f"{history} stays as it is: a run has been reading into it for all the time")
            return []
        for leftover in history.glob("*/.*.deleted"):
            shutil.rmtree(leftover)
        expired = expired_batches(history, before, say)
        if expired:
            note_reached(history)
        for batch in expired:
            _remove(history / "decoded" / batch)
            _remove(history / "raw" / batch)
    return expired


def _accounted(folder: Path) -> set[str] | str:
    """The snapshots that a rolled-up day was made with or left out; or why it cannot be relied on."""
    if not (folder / MANIFEST).is_file():
        return f"its day {folder.name} is not rolled up"
    try:
        day = open_day(folder)
    except IntegrityError as problem:
        return str(problem)
    return {source["snapshot_id"] for source in day.sources} | {one["snapshot_id"] for one in day.manifest["left_out"]}


def _remove(folder: Path) -> None:
    """Rename first, so that a folder that is half deleted is no snapshot any more."""
    doomed = folder.with_name(f".{folder.name}.deleted")
    folder.rename(doomed)
    shutil.rmtree(doomed)
