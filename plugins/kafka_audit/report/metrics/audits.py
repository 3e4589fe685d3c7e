"""The figures of a cluster's newest sealed audit, from its report and its tables of lag."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from kafka_audit.audit.outcome import ERROR, VOID, failures_of
from kafka_audit.audit.published import judged_less
from kafka_audit.report.fleet.stored import StoredReport, read_stored, verdict_of
from kafka_audit.report.metrics.definitions import OF_SLAS
from kafka_audit.report.rows import batches, exists, loses
from kafka_audit.store.durable_files import read_json

_GROUP_COLUMNS = ("group_id", "time_to_loss_ms", "catch_up_ms", "expires_in_ms")
_GROUPS = pa.schema([("group_id", pa.string()), ("time_to_loss_ms", pa.int64()), ("expires_in_ms", pa.int64())])
RUN = "run.json"
NO_GROUPS = _GROUPS.empty_table()
"""``AuditFigures.groups`` of no audit."""
_SLAS = pa.schema([("group_id", pa.string()), ("sla", pa.string()), *((column, pa.float64()) for _, column, _ in OF_SLAS)])


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Loss(_Part):
    known: int
    rates_unknown: int
    records: int
    within_a_day: int


class _Lag(_Part):
    ran: bool
    unknown_count: int
    loss: _Loss


class StoredFigures(StoredReport):
    """What metrics take from report.json beyond what a fleet report does."""

    exit_code: int
    lag: _Lag


@dataclass(frozen=True, kw_only=True)
class AuditFigures:
    """One audit: ``verdict`` and ``exit_code`` as it ended, its report, and its tables.

    ``judged_less``: how many parameters make it judge less than one with the defaults; None if its run.json does not say.
    ``sample``: the audit is made up (kafka_audit.sample).

    - ``groups``: group_id string; time_to_loss_ms, expires_in_ms int64, the soonest of the group's partitions, NULL if none is known
    - ``slas``: group_id, sla string; availability_percent, target_percent, budget_allowed_minutes, budget_left_minutes double

    The tables have no rows if the evidence was not fit to judge. ``counted``: whether the counts of results are known.
    """

    verdict: str
    exit_code: int
    report: StoredFigures
    judged_less: int | None
    sample: bool
    counted: bool
    groups: pa.Table
    slas: pa.Table

    @property
    def fit(self) -> bool:
        return self.verdict not in (VOID, ERROR)


def read_audit(folder: Path) -> AuditFigures:
    """Read the figures of a sealed audit; IntegrityError if its report or a table has another form."""
    report = read_stored(folder, StoredFigures)
    failures = failures_of(folder)
    verdict = verdict_of(report, bool(failures))
    fit = verdict not in (VOID, ERROR)
    run = read_json(folder / RUN) if (folder / RUN).is_file() else {}
    params = run.get("params")
    return AuditFigures(
        verdict=verdict,
        exit_code=int(failures[0]["exit_code"]) if verdict == ERROR else report.exit_code,
        report=report,
        judged_less=len(judged_less(params)) if isinstance(params, dict) else None,
        sample=run.get("sample") is True,
        counted=fit and not report.missing,
        groups=_groups(folder / "lag" / "group_partitions.parquet") if fit else NO_GROUPS,
        slas=_slas(folder / "lag" / "group_slas.parquet") if fit else _SLAS.empty_table(),
    )


def _groups(path: Path) -> pa.Table:
    return _soonest([_soonest([_foreseen(table)]) for table in batches(path, _GROUP_COLUMNS)] if exists(path) else [])


def _foreseen(table: pa.Table) -> pa.Table:
    """Only losses that come before the group has caught up."""
    foreseen = pc.if_else(loses(table), table["time_to_loss_ms"], pa.scalar(None, pa.int64()))
    return pa.table([table["group_id"], foreseen, table["expires_in_ms"]], names=_GROUPS.names).cast(_GROUPS)


def _soonest(tables: Sequence[pa.Table]) -> pa.Table:
    rows = pa.concat_tables([NO_GROUPS, *tables])
    return rows.group_by("group_id").aggregate([("time_to_loss_ms", "min"), ("expires_in_ms", "min")]).rename_columns(_GROUPS.names)


def _slas(path: Path) -> pa.Table:
    columns = ("group_id", "policy", "availability_percent", "budget_allowed_minutes", "budget_left_minutes")
    found = [_SLAS.empty_table()]
    for table in batches(path, columns) if exists(path) else ():
        of_policy = {name: pc.struct_field(table["policy"], name) for name in ("sla", "target_percent")}
        found.append(
            pa.table([of_policy[name] if name in of_policy else table[name] for name in _SLAS.names], names=_SLAS.names).cast(_SLAS)
        )
    return pa.concat_tables(found)
