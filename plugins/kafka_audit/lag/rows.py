"""What one reading decides for each partition that a group has committed or has assigned."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from kafka_audit.lag.position import PERHAPS_LEFT, held_unread, is_abandoned, position_of, read_topics, unread_bounds
from kafka_audit.lag.reading import Reading, Row
from kafka_audit.lag.seconds import Key, Seconds, UnreadTimes
from kafka_audit.policy.slas import LagSla

OK, BEHIND, LOST, NO_COMMIT = "OK", "BEHIND", "LOST", "NO_COMMIT"
ABANDONED, ORPHAN, BEYOND_END, NOT_ASSESSED = "ABANDONED", "ORPHAN", "BEYOND_END", "NOT_ASSESSED"
SLA_OK, SLA_BROKEN = "ok", "broken"
SlaOf = Callable[[str, str], LagSla | None]
_MOMENT = timedelta(microseconds=1)
_READS_ON = frozenset({OK, BEHIND, LOST})


class LagRow(NamedTuple):
    """One group partition; None where there is no such figure. ``reason`` says why a row is NOT_ASSESSED.

    ``lag`` is log end less commit, as kafka-consumer-groups counts: records that were lost are in it. ``margin`` is how many records
    may still be deleted before unread ones are.
    """

    group_id: str
    topic: str | None = None
    partition: int | None = None
    committed: int | None = None
    log_end: int | None = None
    lag: int | None = None
    member_id: str | None = None
    host: str | None = None
    client_id: str | None = None
    lost: int | None = None
    margin: int | None = None
    lag_seconds: Seconds | None = None
    sla: str | None = None
    state: str = NOT_ASSESSED
    reason: str | None = None
    position: int | None = None
    """The offset at which the group reads on."""
    unread: tuple[int, int] | None = None
    """The least and the most records that are unread."""
    held: int | None = None
    """How many of them open transactions hold back."""


def lag_rows(reading: Reading, sla_of: SlaOf) -> list[LagRow]:
    """All rows, by group, topic and partition; an SLA is judged by its limits of records and seconds, outside of its quiet hours."""
    facts = _Facts(reading)
    rows = [row for group in reading.datasets["groups"] for row in facts.of_group(group)]
    rows.sort(key=lambda row: (row.group_id, row.topic or "", -1 if row.partition is None else row.partition))
    return _with_slas(rows, sla_of, facts, reading.taken_at)


def is_quiet(sla: LagSla, at: datetime) -> bool:
    """Whether a time lies in an SLA's quiet hours, in which it judges nothing."""
    return bool(sla.quiet_spans(at, at + _MOMENT))


class _Facts:
    """The rows of a reading by what they are looked up with."""

    def __init__(self, reading: Reading) -> None:
        self.times = UnreadTimes(reading)
        self._hosts = reading.hosts
        self._topics = {row["topic"]: row for row in reading.datasets["topics"]}
        self.offsets: dict[Key, Row] = {(row["topic"], row["partition"]): row for row in reading.datasets["offsets"]}
        self._commits: dict[str, dict[Key, Row]] = {}
        for row in reading.datasets["committed_offsets"]:
            self._commits.setdefault(row["group_id"], {})[row["topic"], row["partition"]] = row
        self._members: dict[str, list[Row]] = {}
        for row in reading.datasets["members"]:
            self._members.setdefault(row["group_id"], []).append(row)
        unread = (row for row in reading.datasets["errors"] if row["dataset"] == "committed_offsets" and row["topic"] is None)
        self._refused = {row["group_id"]: row["error"] for row in unread if row["group_id"] is not None}

    def of_group(self, group: Row) -> Iterator[LagRow]:
        """Its rows; one without a place when its commits could not be read and no member has a partition."""
        group_id = group["group_id"]
        commits, members = self._commits.get(group_id, {}), self._members.get(group_id, [])
        owners = {(a["topic"], a["partition"]): member for member in members for a in member["assignment"] or ()}
        read = read_topics(members)
        refused = f"its commits could not be read ({self._refused[group_id]})" if group_id in self._refused else None
        places = sorted({*commits, *owners})
        if not places and refused is not None:
            yield LagRow(group_id=group_id, reason=refused)
        for key in places:
            commit = commits.get(key)
            owner = self._owner(group_id, owners.get(key))
            row = owner._replace(topic=key[0], partition=key[1], committed=commit["committed"] if commit else None)
            if commit is None:
                yield row._replace(reason=refused or "its commit is not in the answer")
            elif commit["error"] is not None:
                yield row._replace(reason=f"its commit could not be read ({commit['error']})")
            else:
                yield self._judged(row, key, abandoned=is_abandoned(key[0], group["state"], read))

    def _owner(self, group_id: str, member: Row | None) -> LagRow:
        if member is None:
            return LagRow(group_id=group_id)
        member_id = member["member_id"]
        return LagRow(group_id=group_id, member_id=member_id, host=self._hosts.get((group_id, member_id)), client_id=member["client_id"])

    def _judged(self, row: LagRow, key: Key, *, abandoned: bool | None) -> LagRow:
        topic, log = self._topics.get(key[0]), self.offsets.get(key)
        if topic is not None and topic["error"] is not None:
            return row._replace(reason=f"its topic could not be read ({topic['error']})")
        # Kafka leaves out of a group's commits the topics that may not be described: one that is shown and not listed is gone.
        if topic is None or (topic["partition_count"] is not None and key[1] >= topic["partition_count"]):
            return row._replace(state=ORPHAN)
        start, end = (log["log_start"], log["log_end"]) if log else (None, None)
        if start is None or end is None:
            reason = (log and log["error"]) or "not in the answer"
            return row._replace(log_end=end, reason=f"the offsets of its log could not be read ({reason})")
        if row.committed is None:
            return row._replace(log_end=end, state=NO_COMMIT)
        found = position_of(row.committed, start, end)
        if found.beyond_end:
            return row._replace(log_end=end, state=ABANDONED if abandoned else BEYOND_END)
        only_markers = self.times.only_markers(key, found.offset)
        drained = found.lag == 0 or bool(only_markers)
        held = 0 if drained or log is None else held_unread(found.offset, end, log["last_stable"])
        state = ABANDONED if abandoned else LOST if found.lost else OK if drained else BEHIND
        perhaps_left = abandoned is None and state != OK
        return row._replace(
            log_end=end,
            lag=found.lag + found.lost,
            lost=found.lost,
            margin=None if found.lost else found.margin,
            lag_seconds=Seconds(0) if drained else self.times.lag(key, found.offset),
            position=found.offset,
            unread=unread_bounds(found.lag, only_markers, held),
            held=held,
            state=NOT_ASSESSED if perhaps_left else state,
            reason=PERHAPS_LEFT if perhaps_left else None,
        )


def _with_slas(rows: list[LagRow], sla_of: SlaOf, facts: _Facts, at: datetime) -> list[LagRow]:
    held = [None if row.topic is None else sla_of(row.group_id, row.topic) for row in rows]
    quiet = {key for key, sla in {id(sla): sla for sla in held}.items() if sla is not None and is_quiet(sla, at)}
    covered: dict[tuple[str, int], _Covered] = {}
    for row, sla in zip(rows, held, strict=True):
        if sla is not None and id(sla) not in quiet:
            covered.setdefault((row.group_id, id(sla)), _Covered(sla)).add(row)
    found = (covered.get((row.group_id, id(sla))) for row, sla in zip(rows, held, strict=True))
    return [row if one is None else _with_sla(row, one, facts) for row, one in zip(rows, found, strict=True)]


@dataclass
class _Covered:
    """What one rule covers of a group: the least and the most of its unread records so far as they are known, and whether all are."""

    sla: LagSla
    least: int = 0
    most: int = 0
    is_whole: bool = True

    def add(self, row: LagRow) -> None:
        if row.state in {NOT_ASSESSED, BEYOND_END}:
            self.is_whole = False
        elif row.state in _READS_ON and row.unread is not None:
            self.least += row.unread[0]
            self.most += row.unread[1]

    def is_within(self, limit: int) -> bool | None:
        """None where the sum is not known."""
        if self.least > limit:
            return False
        return True if self.is_whole and self.most <= limit else None


def _with_sla(row: LagRow, covered: _Covered, facts: _Facts) -> LagRow:
    if row.state not in _READS_ON:
        return row
    answers, sla = [], covered.sla
    if sla.max_lag_records is not None:
        answers.append(covered.is_within(sla.max_lag_records))
    if sla.max_lag_seconds is not None:
        answers.append(_seconds_within(row, sla.max_lag_seconds, facts))
    if not answers or (None in answers and False not in answers):
        return row
    return row._replace(sla=SLA_BROKEN if False in answers else SLA_OK)


def _seconds_within(row: LagRow, limit: int, facts: _Facts) -> bool | None:
    if row.lag_seconds == Seconds(0):
        return True
    if row.topic is None or row.partition is None or row.position is None:
        return None
    kept = facts.times.is_within((row.topic, row.partition), row.position, limit)
    # Neither one offset that may be the end of a transaction is late, nor what a read_committed group may not read yet.
    return None if kept is False and row.unread is not None and row.unread[0] == 0 else kept
