"""What ``kafka-audit audit`` says last: what is new since the audit before, as the report has it."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from kafka_audit.findings import Severity
from kafka_audit.report.comparison import Change
from kafka_audit.safe_text import shortened, utc, visible

SEVERITY_STYLES = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan", "info": "dim"}
_COUNTED = (Change.NEW, Change.WORSE, Change.RESOLVED, Change.INCOMPARABLE)
_LISTED = 10
_NOTES = 3
_LONGEST = 120


def print_changes(comparison: Mapping[str, Any] | None, console: Console) -> None:
    """Print the counts and the first new failures, worst severity first; ``comparison`` is that of ``report.json``."""
    if comparison is None:
        console.print(Text("New since the audit before: there is none; no earlier audit of this cluster is sealed", style="bold"))
        return
    notes = [str(note) for note in comparison["notes"]]
    if not comparison["possible"]:
        console.print(Text("New since the audit before: not known", style="bold yellow"))
        _print_notes(notes, console)
        return
    counts = comparison["counts"]
    new = int(counts[Change.NEW.value])
    since = f"New since audit {visible(str(comparison['previous_audit_id']))} ({visible(utc(comparison['previous_started_at']))})"
    counted = ", ".join(f"{counts[change.value]:,} {change.value}" for change in _COUNTED)
    console.print(Text.assemble((since, "bold"), f": {counted}"))
    listed = [one for one in comparison["listed"] if one["change"] == Change.NEW.value]
    listed.sort(key=lambda one: Severity(one["severity"]).rank if one["severity"] else len(Severity))
    for one in listed[:_LISTED]:
        console.print(_line(one))
    if new > len(listed[:_LISTED]):
        console.print(Text(f"  and {new - len(listed[:_LISTED]):,} more", style="dim"))
    _print_notes(notes, console)


def _line(one: Mapping[str, Any]) -> Text:
    severity = str(one["severity"] or "not known")
    text = Text("  ").append(f"{severity:<8}", style=SEVERITY_STYLES.get(severity, ""))
    what = _short(one["observed"]) if one["observed"] else f"not true: {_short(one['title'])}"
    return text.append(f"  {visible(str(one['code']))}  {_short(one['resource'])}: {what}")


def _print_notes(notes: list[str], console: Console) -> None:
    for note in notes[:_NOTES]:
        console.print(Text(f"  - {visible(note)}", style="dim"))
    if len(notes) > _NOTES:
        console.print(Text(f"  - and {len(notes) - _NOTES:,} more notes on the comparison, in the report", style="dim"))


def _short(text: object) -> str:
    kept, cut = shortened(str(text), _LONGEST)
    return visible(kept) + ("\N{HORIZONTAL ELLIPSIS}" if cut else "")
