"""``kafka-audit diff``: what changed from one sealed audit to another."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kafka_audit.audit.previous import cluster_id_of
from kafka_audit.cli.options import Cluster, Root, sealed_folder
from kafka_audit.errors import ConfigurationError, GateFailedError, IncompleteError
from kafka_audit.report.changes import comparison_of
from kafka_audit.report.compare import compare
from kafka_audit.report.comparison import Change, ChangedFinding, Comparison
from kafka_audit.report.side import PARTS, Side
from kafka_audit.safe_text import shortened, visible
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.sealed import AUDIT, Place, Sealed, place_of
from kafka_audit.times import is_id

_SHOWN = 20
_WIDEST = 80
_WORDS = {
    Change.NEW: ("red", "new: fails now and did not, or not on the same topic"),
    Change.WORSE: ("red", "worse: failed and fails, at a higher severity, with more lost records, or without its waiver"),
    Change.INCOMPARABLE: ("yellow", "incomparable: one of the two audits could not see it, or asked something else"),
    Change.RESOLVED: ("green", "resolved: failed and was assessed again as passed, or its topic no longer exists"),
    Change.UNCHANGED: ("dim", "unchanged: failed and fails"),
}


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="The earlier audit: its folder, URL or id.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The later audit: its folder, URL or id.")],
    root: Root = Path("audit-root"),
    cluster: Cluster = "kafka",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
) -> None:
    """Print what changed from audit A to audit B: new, worse, resolved and incomparable failures. Checks the hashes of both first.

    Exit code 0: every failure of B is an unchanged one of A. 3: some are new, worse or cannot be compared. 4: B was void or judged a part
    of the cluster only, so its failures are not all known. 2: the audits are not of the same cluster. 5: a file was changed after it was
    sealed.
    """
    sides = earlier, later = [_side(_folder(one, root, cluster)) for one in (before, after)]
    ids = [_cluster_id(side) for side in sides]
    names = [side.audit.path.parent.name for side in sides]
    if ids[0] != ids[1] or (names[0] != names[1] and not ids[0]):
        said = " and ".join(f"{name} (Kafka cluster {one or 'not known'})" for name, one in zip(names, ids, strict=True))
        raise ConfigurationError(f"the audits are of different clusters, {visible(said)}: compare audits of the same cluster")
    found = comparison_of(earlier, later, compare(earlier, later), _order(earlier, later))
    code = GateFailedError.exit_code if found.not_shown_old else 0 if _is_whole(later) else IncompleteError.exit_code
    if as_json:
        typer.echo(json.dumps({**_document(found), "audit_id": later.audit.path.name, "exit_code": code}, indent=2, sort_keys=True))
    else:
        _print(found, later, Console(highlight=False, width=None if sys.stdout.isatty() else 160))
    raise typer.Exit(code)


def _folder(named: str, root: Path, cluster: str) -> Path:
    if is_id(named) and not Path(named).exists():
        return EvidenceRoot(path=root.resolve()).bring_audit(cluster, named).path
    if "://" in named:
        return sealed_folder(named)
    return Path(os.path.abspath(named))  # noqa: PTH100 - resolve() would follow links, and evidence is never read through one


def _side(folder: Path) -> Side:
    """One sealed audit, with the hashes of all its files checked."""
    place = place_of(folder)
    if place is None or place.kind != AUDIT:
        raise ConfigurationError(
            f"{folder} is not the folder of an audit: name ROOT/audits/CLUSTER/AUDIT_ID, or the audit's id with --root and --cluster"
        )
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {folder}: check the id, --root and --cluster")
    return _opened(folder, place)


def _opened(folder: Path, place: Place) -> Side:
    Sealed.verified(folder, place)
    return Side.sealed(Audit(path=folder), EvidenceRoot(path=place.root), place.cluster)


def _cluster_id(side: Side) -> str:
    return str(side.snapshot.manifest.get("cluster_id") or "") if side.snapshot else cluster_id_of(side.audit)


def _is_whole(side: Side) -> bool:
    """Whether an audit could show all of its failures."""
    return side.fit and side.judged_parts == PARTS.keys()


def _order(earlier: Side, later: Side) -> list[str]:
    if earlier.audit.path.resolve() == later.audit.path.resolve():
        return ["A and B are the same audit, so nothing can differ."]
    first, second = (sealed_as(side.audit.path) for side in (earlier, later))
    if first and second and first.sequence > second.sequence and earlier.audit.path.parent == later.audit.path.parent:
        return ["A was sealed after B: what is called new here was there first."]
    return []


def _document(found: Comparison) -> dict[str, Any]:
    value = asdict(found)
    del value["changes"]
    return value


def _print(found: Comparison, after: Side, console: Console) -> None:
    console.print(
        Text(f"From audit {found.previous_audit_id} ({visible(found.previous_started_at)}) to {after.audit.path.name}", style="bold")
    )
    counts = ", ".join(f"{found.counts[change.value]:,} {change.value}" for change in _WORDS)
    console.print(Text(f"Failures: {counts}"))
    for note in found.notes:
        console.print(Text(f"  - {visible(note)}"))
    for change, (colour, words) in _WORDS.items():
        listed = [one for one in found.listed if one.change is change]
        if listed and change is not Change.UNCHANGED:
            _print_change(listed[:_SHOWN], found.counts[change.value], Text(words, style=colour), console)


def _print_change(listed: Sequence[ChangedFinding], count: int, heading: Text, console: Console) -> None:
    console.print()
    console.print(heading)
    table = Table(box=None, pad_edge=False, show_edge=False)
    for title in ("SEVERITY", "CONTROL", "WHERE", "OBSERVED", "BEFORE", "WHY"):
        table.add_column(title, overflow="fold")
    for one in listed:
        severity = one.severity or one.severity_before or ""
        cells = (severity, one.code, one.resource, one.observed, one.observed_before, one.why)
        table.add_row(*(Text(_cell(cell)) for cell in cells))
    console.print(table)
    if count > len(listed):
        console.print(Text(f"and {count - len(listed):,} more", style="dim"))


def _cell(value: str | None) -> str:
    """A text of a cell, short and without characters that act on a terminal."""
    kept, cut = shortened(value or "-", _WIDEST)
    return visible(kept) + ("\N{HORIZONTAL ELLIPSIS}" if cut else "")
