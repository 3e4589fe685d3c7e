"""The end of `kafka-audit audit`: what is new since the audit before, taken from its report.json."""

import io
import json
from pathlib import Path

import pytest
from compared_audits import BROKER, LOST, TOPIC, Judged, Shop, row
from rich.console import Console

from kafka_audit.cli.changes_since import print_changes


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def said(audit: Judged) -> list[str]:
    report = json.loads((audit.audit.path / "report" / "report.json").read_text())
    return printed(report["comparison"])


def printed(comparison: dict | None) -> list[str]:
    out = io.StringIO()
    print_changes(comparison, Console(file=out, width=160, color_system=None, highlight=False))
    return out.getvalue().splitlines()


def test_the_first_audit_has_none_before_it(shop: Shop) -> None:
    assert said(shop.audit([row(TOPIC, "orders")])) == [
        "New since the audit before: there is none; no earlier audit of this cluster is sealed"
    ]


def test_new_failures_are_listed_worst_first_with_the_counts_of_all_changes(shop: Shop) -> None:
    first = shop.audit([row(TOPIC, "orders"), row(BROKER, "1", "pass"), row(LOST, "g:orders-0", "pass")], topics={"orders": 1})
    second = shop.audit(
        [row(TOPIC, "orders", "pass"), row(BROKER, "1"), row(LOST, "g:orders-0", severity="critical")],
        topics={"orders": 1},
        groups=["g"],
    )
    lines = said(second)

    assert lines[0] == f"New since audit {first.id} (2026-11-20 13:00:00 UTC): 2 new, 0 worse, 1 resolved, 0 incomparable"
    assert [line.split()[:3] for line in lines[1:3]] == [["critical", "CON-03", "g:orders-0:"], ["low", "BRK-05", "1:"]]


def test_ten_are_listed_and_the_rest_is_counted(shop: Shop) -> None:
    names = [f"topic-{number:02}" for number in range(25)]
    shop.audit([row(TOPIC, name, "pass") for name in names], topics=dict.fromkeys(names, 1))
    lines = said(shop.audit([row(TOPIC, name) for name in names], topics=dict.fromkeys(names, 1)))

    assert "25 new" in lines[0]
    assert sum("TOP-01" in line for line in lines) == 10
    assert lines[11] == "  and 15 more"


def test_an_audit_that_cannot_be_compared_says_why_and_counts_nothing(shop: Shop) -> None:
    shop.audit([row(TOPIC, "orders")], cluster_id="one")
    lines = said(shop.audit([row(TOPIC, "orders")], cluster_id="two"))

    assert lines[0] == "New since the audit before: not known"
    assert "No earlier audit can be compared with." in lines[1]
    assert not any(" new," in line for line in lines)


def test_hostile_names_stay_on_their_line(shop: Shop) -> None:
    name = "a\u202eb\u034f\x1b[2J\n[red]"
    shop.audit([row(TOPIC, name, "pass")], topics={name: 1})
    lines = said(shop.audit([row(TOPIC, name)], topics={name: 1}))

    assert "a\\u202eb\\u034f\\u001b[2J\\n[red]" in lines[1]
    assert "\x1b" not in "".join(lines)
