"""Deletes expired history: offsets snapshots whose day is rolled up, and days and commits that are too old."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.policy.tiers import History
from kafka_audit.store.commit_batches import expired_batches
from kafka_audit.store.durable_files import remove_folder, sync_folder, sync_tree
from kafka_audit.store.lag_days import LagDay, day_of_id, days_in
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.locks import history_held
from kafka_audit.store.manifest import MANIFEST, read_manifest
from kafka_audit.store.mirrors import need_local
from kafka_audit.store.samples import DUPLICATE, day_of
from kafka_audit.store.sealed import LAG_DAY, OFFSETS, Place
from kafka_audit.store.sweep import sweep


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What becomes of a snapshot, a rolled-up day or a batch of commits (``commits/.../<batch>``), and why."""

    name: str
    goes: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.name} {'goes' if self.goes else 'stays'}: {self.reason}"


@dataclass(kw_only=True)
class _Retention:
    """One pass over what is kept of a cluster. Each decision is told before it is carried out."""

    root: EvidenceRoot
    cluster: str
    dry_run: bool
    tell: Callable[[Decision], None]
    made: list[Decision] = field(default_factory=list)

    def stays(self, name: str, reason: str) -> None:
        self._decide(Decision(name=name, goes=False, reason=reason))

    def goes(self, name: str, reason: str, *folders: Path) -> None:
        """Decide that it goes, and remove its folders in this order, unless this is a dry run."""
        self._decide(Decision(name=name, goes=True, reason=reason))
        for folder in () if self.dry_run else folders:
            try:
                remove_folder(folder)
            except OSError as problem:
                raise CollectionError(f"cannot remove {folder}: {problem.strerror or problem}; nothing but it is affected") from problem

    def _decide(self, decision: Decision) -> None:
        self.made.append(decision)
        self.tell(decision)


def delete_expired(
    root: EvidenceRoot,
    cluster: str,
    history: History,
    today: date,
    tell: Callable[[Decision], None] = lambda _: None,
    *,
    dry_run: bool = False,
) -> list[Decision]:
    """Delete the cluster's offsets snapshots, rolled-up days and batches of commits that are older than ``history`` says, from ``today``.

    A snapshot goes only when its day is rolled up, whole and durable, and was made of it as it is now or has another one of its interval.
    What a day left out for any other reason (another cluster's, changed, of another scope) never goes, nor does the day while such a
    snapshot is there. Returns every decision, each of which ``tell`` hears before it is carried out; a ``dry_run`` carries none out.
    """
    need_local(root.path, "retention")
    pass_ = _Retention(root=root, cluster=cluster, dry_run=dry_run, tell=tell)
    if not dry_run:
        sweep(root, cluster)  # what an earlier deletion that was killed left
    staying = _snapshots(pass_, today - timedelta(days=history.offsets.keep_days))
    _days(pass_, today - timedelta(days=history.offsets.rolled_up_keep_days), staying)
    commits = root.commit_history(cluster)
    for topic in (commits, commits / "transactions"):
        _batches(pass_, topic, today - timedelta(days=history.commits.keep_days))
    return pass_.made


def _snapshots(pass_: _Retention, before: date) -> set[date]:
    """Delete the snapshots of days before ``before``; returns the days of which some stay."""
    accounts: dict[date, _Account | str] = {}
    staying: set[date] = set()
    for snapshot_id in pass_.root.sealed_ids(pass_.cluster, OFFSETS):
        try:
            one = pass_.root.snapshot(pass_.cluster, snapshot_id, OFFSETS)
            day = day_of(one.taken_ms)
        except IntegrityError as problem:
            pass_.stays(snapshot_id, str(problem))
            staying.update(_days_around(snapshot_id))
            continue
        folder = pass_.root.lag_days(pass_.cluster) / day.isoformat()
        if day >= before:
            staying.add(day)
            if reason := _left_out(folder).get(snapshot_id):
                pass_.stays(snapshot_id, f"the rolled-up day {day} left it out: it {reason}")
            continue
        if day not in accounts:
            accounts[day] = _account(pass_, folder)
        reason = _why_it_stays(one, accounts[day])
        if reason:
            staying.add(day)
            pass_.stays(snapshot_id, reason)
        else:
            pass_.goes(snapshot_id, f"it is older than {before} and in the rolled-up day {day}", one.path)
    return staying


def _days_around(snapshot_id: str) -> Iterator[date]:
    """The days that may have left out a snapshot whose manifest cannot be read: it began less than a day from the time in its id."""
    day = day_of_id(snapshot_id)
    for days in (-1, 0, 1):
        if day is not None:
            with suppress(OverflowError):  # the calendar ends there
                yield day + timedelta(days=days)


def _days(pass_: _Retention, before: date, staying: set[date]) -> None:
    for folder in days_in(pass_.root, pass_.cluster):
        day = date.fromisoformat(folder.name)
        if day < before and day in staying:
            pass_.stays(folder.name, "it tells why snapshots of that day were left out, and these are still there")
        elif day < before:
            pass_.goes(folder.name, f"it is older than {before}", folder)


def _batches(pass_: _Retention, history: Path, before: date) -> None:
    """Decoded first: a raw batch without its decoded one is decoded again, one that is only decoded could not be traced."""
    if not (history / "raw").is_dir():
        return
    place = history.relative_to(pass_.root.commit_history(pass_.cluster).parent).as_posix()
    with nullcontext(True) if pass_.dry_run else history_held(history) as is_held:
        if not is_held:
            pass_.stays(place, "a run has been reading into it for all the time")
            return
        expired = expired_batches(history, before, lambda batch, reason: pass_.stays(f"{place}/{batch}", reason))
        for batch in expired:
            pass_.goes(
                f"{place}/{batch}", f"its newest record is older than {before}", history / "decoded" / batch, history / "raw" / batch
            )


@dataclass(frozen=True, kw_only=True)
class _Account:
    """What a rolled-up day says of its snapshots: the sha256 of the manifest of those that may go, and why the others were left out."""

    day: str
    may_go: Mapping[str, str]
    left_out: Mapping[str, str]


def _why_it_stays(one: Snapshot, account: _Account | str) -> str:
    """The reason for which an expired snapshot stays; empty when it may go."""
    if isinstance(account, str):
        return account
    if one.snapshot_id in account.left_out:
        return f"the rolled-up day {account.day} left it out: it {account.left_out[one.snapshot_id]}"
    if one.snapshot_id not in account.may_go:
        return f"the rolled-up day {account.day} was made without it"
    problems = one.problems()
    if problems or account.may_go[one.snapshot_id] != one.manifest_sha256:
        return f"it was changed since the day {account.day} was rolled up{': ' if problems else ''}{'; '.join(problems[:3])}"
    return ""


def _account(pass_: _Retention, folder: Path) -> _Account | str:
    """What a rolled-up day says, once its hashes are checked and it is durable; or why it cannot be relied on."""
    if not (folder / MANIFEST).is_file():
        return f"its day {folder.name} is not rolled up"
    try:
        day = LagDay.verified(folder, Place(kind=LAG_DAY, cluster=pass_.cluster, root=pass_.root.path))
        duplicates = {one["snapshot_id"]: one["manifest_sha256"] for one in day.manifest["left_out"] if one["reason"] == DUPLICATE}
        sources = {one["snapshot_id"]: one["manifest_sha256"] for one in day.sources}
        account = _Account(day=folder.name, may_go={**duplicates, **sources}, left_out=_reasons(day.manifest))
    except (IntegrityError, KeyError, TypeError) as problem:
        return f"{folder} cannot be relied on: {problem}"
    try:
        if not pass_.dry_run:
            sync_tree(folder)
            for parent in folder.parents[:4]:  # lag, the cluster, history, the root
                sync_folder(parent)
    except OSError as problem:
        return f"{folder} cannot be made durable: {problem}"
    return account


def _left_out(folder: Path) -> Mapping[str, str]:
    """Why a rolled-up day left snapshots out, by their ids; empty when it is not rolled up, or broken: that is told when they expire."""
    try:
        return _reasons(read_manifest(folder)) if (folder / MANIFEST).is_file() else {}
    except (IntegrityError, KeyError, TypeError):
        return {}


def _reasons(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    return {one["snapshot_id"]: str(one["reason"]) for one in manifest["left_out"] if one["reason"] != DUPLICATE}
