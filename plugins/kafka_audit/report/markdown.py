"""Writes a summary of the report in Markdown, short enough for a pull request or a chat; names from the cluster stay text."""

import re

from kafka_audit.audit.outcome import PASSED
from kafka_audit.report import words
from kafka_audit.report.comparison import Change, Comparison
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult
from kafka_audit.safe_text import shortened, utc, visible

LONGEST_COMMENT = 65_536
"""The longest comment that GitHub takes, in characters; a summary is always shorter, because everything in it is bounded."""

_CONTROLS = 15
_RESOURCES = 3
_LONGEST = 120
_LONGEST_SENTENCE = 2000
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+.!|~@:&$-])")
_REFERENCE = re.compile(
    r"((?:@+(?=[\w\"'.-])|[#!~&$%]+(?=[\w\"'])|\bgh-(?=\d)|:(?=(?:100|1234|[\w+-]*[A-Za-z_+-][\w+-]*):)|://)+)", re.IGNORECASE
)
"""What GitHub and GitLab look for in the text after Markdown's escapes are gone: mentions, mail addresses, issues, labels, emoji, links."""

_MARKUP = re.compile(r"([\\`*_\[\]<>|])")
_WORD = re.compile(r"[a-z]{1,20}|[A-Z]{3}-[0-9]{2,4}")


def plain(value: object) -> str:
    """Text that Markdown shows as it is, in at most 120 characters; no mention, link or markup comes of it.

    A backslash does not keep GitHub from a mention or a mail address, and code does: what would begin one is code.
    """
    kept, cut = shortened(visible(str(value)[:_LONGEST]), _LONGEST)
    more = cut or len(str(value)) > _LONGEST
    return _escaped(kept, _SPECIAL) + ("\N{HORIZONTAL ELLIPSIS}" if more else "")


def _word(text: str) -> str:
    """A severity or a control's code; findings that no job wrote may have anything in its place."""
    return text if _WORD.fullmatch(text) else plain(text)


def render(report: Report) -> str:
    """Render the summary: verdict, reasons, loss, what changed, and the worst failing controls."""
    outcome = report.outcome
    mark = "\N{WHITE HEAVY CHECK MARK}" if outcome.verdict == PASSED else "\N{CROSS MARK}"
    lines = [
        f"## {mark} Kafka reliability audit of {plain(report.cluster)}: {outcome.verdict}",
        "",
        plain_sentence(words.summary(report)),
        "",
        *_loss(report),
        *(_comparison(report.comparison) if report.comparison else []),
        *_failures(report),
        *_reasons(report),
        *(line for one in report.not_written for line in (f"**Missing:** {plain(one.file)} could not be written: {plain(one.reason)}", "")),
        f"Audit {plain(report.audit_id)}, evidence of {plain(utc(report.collection.started_at))}, exit code {outcome.exit_code}.",
    ]
    return "\n".join(lines) + "\n"


def plain_sentence(text: str) -> str:
    """A sentence of our own, which may contain figures but no names: only what Markdown could take for markup is escaped."""
    kept, cut = shortened(visible(text), _LONGEST_SENTENCE)
    return _escaped(kept, _MARKUP) + ("\N{HORIZONTAL ELLIPSIS}" if cut else "")


def _escaped(text: str, special: re.Pattern[str]) -> str:
    parts = _REFERENCE.split(text)
    return "".join(f"`{part}`" if number % 2 else special.sub(r"\\\1", part) for number, part in enumerate(parts))


def _loss(report: Report) -> list[str]:
    said = " ".join(one for one in (words.loss(report.lag.loss), words.loss_not_known(report.lag)) if one)
    return [f"**Loss:** {plain_sentence(said)}", ""] if said else []


def _comparison(comparison: Comparison) -> list[str]:
    if not comparison.possible:
        return [f"**Since the previous audit:** not known. {' '.join(plain(note) for note in comparison.notes[:1])}", ""]
    counts = [f"{comparison.counts.get(change.value, 0):,} {change.value}" for change in Change]
    return [f"**Since audit {plain(comparison.previous_audit_id)}:** {', '.join(counts)}.", ""]


def _failures(report: Report) -> list[str]:
    failing = report.failing
    if not failing:
        return []
    rows = ["| severity | control | failing | for example |", "|---|---|---:|---|"]
    rows += [_row(result) for result in failing[:_CONTROLS]]
    more = len(failing) - _CONTROLS
    said = words.hints(report)
    return [*([said, ""] if said else []), *rows, "", *([f"{words.counted(more, 'more control')} with failures.", ""] if more > 0 else [])]


def _row(result: ControlResult) -> str:
    counts = result.counted
    named = ", ".join(
        plain(f"broker {finding.resource}" if finding.subject == "broker" else finding.resource) for finding in result.failures[:_RESOURCES]
    )
    waived = f" ({counts.waived:,} waived)" if counts.waived else ""
    return f"| {_word(result.worst)} | {_word(result.code)} {plain(result.title)} | {counts.failed:,}{waived} | {named} |"


def _reasons(report: Report) -> list[str]:
    """Why the gates did not pass, without the failures that the table lists."""
    if report.outcome.verdict == PASSED:
        return []
    reasons, more = report.outcome.reasons[:_CONTROLS], len(report.outcome.reasons) - _CONTROLS
    rest = [f"- {words.counted(more, 'more reason')} in report.json"] if more > 0 else []
    return ["Reasons:", "", *(f"- {plain(reason)}" for reason in reasons), *rest, ""]
