"""The findings of one day: the template's, where the story decides which of its failures are failures, and their summary."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from kafka_audit.findings import COUNTED_AS, EvidenceClass, Status
from kafka_audit.input_files.glob import matches
from kafka_audit.policy.waivers import Waiver, in_force
from kafka_audit.sample.day import Day
from kafka_audit.sample.groups import sla_name
from kafka_audit.sample.story import LIMIT_RECORDS, WINDOW_DAYS

Row = dict[str, Any]
Told = Mapping[tuple[str, str], Row]
_PASSED = "sample data: as it should be"
_MISSING = "sample data: the brokers did not answer in time"
_OF_EVERY_DAY = ("CON-01", "CON-02", "CON-03", "CON-14", "TOP-05")
"""Controls whose results follow from the day's tables of groups."""


def told_by(tables: Mapping[str, pa.Table], day: Day) -> dict[tuple[str, str], Row]:
    """(code, resource) -> the fields of the findings that follow from the day's tables of groups."""
    partitions, slas = (tables[name].to_pylist() for name in ("group_partitions", "group_slas"))
    return {**dict(_of_slas(slas, day)), **dict(_of_partitions(partitions))}


def _of_slas(slas: Sequence[Row], day: Day) -> Iterator[tuple[tuple[str, str], Row]]:
    for row in slas:
        resource, lag = row["resource"], row["lag_known"]
        limit = f"at most {LIMIT_RECORDS} records behind in all (SLA {sla_name(row['group_id'])})"
        seen = f"{lag} records behind over {row['partition_count']} committed partitions"
        yield ("CON-01", resource), _told(Status.FAIL if lag > LIMIT_RECORDS else Status.PASS, seen, limit)
        yield ("CON-02", resource), _told(Status.NOT_APPLICABLE, "not known", "no SLA in seconds matches the group")
        found = day.availability(row["group_id"])
        if found.target is None:
            yield ("CON-14", resource), _told(Status.NOT_APPLICABLE, "not known", "no SLA with an availability target matches the group")
            continue
        seen = (
            f"within the SLA in {found.percent} % of the minutes that are known; {found.minutes_in} minutes within, {found.minutes_out} "
            f"outside, {found.unknown} not assessed, 0 in quiet hours; error budget {found.minutes_out} of {found.allowed} minutes used"
        )
        asked = f"at least {found.target} % of the minutes of {WINDOW_DAYS} days within the SLA {sla_name(row['group_id'])}"
        status = {True: Status.PASS, False: Status.FAIL, None: Status.NOT_ASSESSED}[found.met]
        why = "sample data: less than 95 % of the minutes are known" if found.met is None else None
        yield ("CON-14", resource), _told(status, seen, asked, why)


def _of_partitions(partitions: Sequence[Row]) -> Iterator[tuple[tuple[str, str], Row]]:
    for row in partitions:
        resource, lag, lost, left = row["resource"], row["lag"], row["lost"], row["time_to_loss_ms"]
        seen = f"sample data: {row['status_reason'].removeprefix('sample data: ')}"
        yield ("CON-03", resource), _told(Status.FAIL if lost else Status.PASS, seen)
        soon = left is not None and left <= 86_400_000
        yield ("TOP-05", resource), _told(Status.FAIL if soon else Status.PASS if lag else Status.NOT_APPLICABLE, seen)


def _told(status: Status, observed: str, expected: str | None = None, reason: str | None = None) -> Row:
    return {"status": status.value, "observed": observed, "reason": reason, **({"expected": expected} if expected else {})}


def findings_of(rows: Sequence[Row], told: Told, day: Day, waivers: Sequence[Waiver], began: datetime) -> list[Row]:
    """The day's findings of one part, in the template's order."""
    about = {"audit_id": day.audit_id, "snapshot_id": day.snapshot_id, "cluster": day.cluster.name, "waiver": None}
    valid = in_force(waivers, began)
    made = []
    for row in rows:
        new = {**row, **about, **_changed(row, told, day)}
        if new["status"] == Status.FAIL.value:
            new["waiver"] = next((one.id for one in valid if one.covers(row["code"], row["resource"])), None)
        made.append(new)
    return made


def _changed(row: Row, told: Told, day: Day) -> Row:
    code, resource = row["code"], row["resource"]
    if any(matches(pattern, code) for pattern in day.cluster.unassessed.get(day.number, ())):
        return {"status": Status.NOT_ASSESSED.value, "reason": _MISSING, "observed": "not known", "evidence": "{}"}
    if (code, resource) in told:
        return {**told[code, resource], "evidence": "{}", "remediation": None}
    if row["evidence_class"] == EvidenceClass.MANUAL.value or row["status"] in (Status.PASS.value, Status.NOT_APPLICABLE.value):
        return {}
    if row["status"] == Status.FAIL.value and code not in _OF_EVERY_DAY and day.cluster.fails(day.number, code, resource):
        return {}
    return {"status": Status.PASS.value, "reason": None, "observed": _PASSED, "evidence": "{}", "remediation": None}


def summary_of(template: pa.Table, findings: Sequence[Row]) -> pa.Table:
    """The summary of one part: the template's controls, counted again."""
    counts: dict[str, dict[str, int]] = {}
    for row in findings:
        own = counts.setdefault(row["control_id"], dict.fromkeys((*COUNTED_AS.values(), "waived"), 0))
        own[COUNTED_AS[Status(row["status"])]] += 1
        own["waived"] += row["waiver"] is not None
    rows = [{**row, **{name: n for name, n in counts.get(row["control_id"], {}).items() if name in row}} for row in template.to_pylist()]
    return pa.Table.from_pylist(rows, schema=template.schema)
