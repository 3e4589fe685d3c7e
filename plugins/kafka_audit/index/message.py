"""The text of one notification: what is new, in at most three lines, and where to look."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_audit.findings import Severity
from kafka_audit.index.news_item import LINES, RECOVERED, News

_LONGEST_SUBJECT = 160


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message to people, in plain text; ``good``: it tells nothing but recoveries. ``severity``: the worst of its news."""

    subject: str
    text: str
    severity: Severity
    good: bool


def message_of(cluster: str, news: Sequence[News], page: str) -> Message:
    """The message that tells ``news``, which is not empty and worst first; ``page``: the address of the cluster's page, or empty."""
    lines = _lines(news)
    subject = f"Kafka audit of {cluster}: {lines[0]}"
    if len(subject) > _LONGEST_SUBJECT:
        subject = subject[: _LONGEST_SUBJECT - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return Message(
        subject=subject,
        text="\n".join([f"Kafka cluster {cluster}", *lines, *(["", page] if page else [])]),
        severity=news[0].severity,
        good=all(item.kind == RECOVERED for item in news),
    )


def _lines(news: Sequence[News]) -> list[str]:
    """The first line of each item, then further lines of the first ones, as many as fit."""
    heads = [item.lines[0] for item in news]
    if len(heads) > LINES:
        return [*heads[: LINES - 1], f"{len(heads) - LINES + 1} more changes are on the page."]
    free = LINES - len(heads)
    found = []
    for item in news:
        more = item.lines[1 : 1 + free]
        free -= len(more)
        found += [item.lines[0], *more]
    return found
