"""Every format that lists only some of the failures says how many it leaves out, and the number is right."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from report_audit import HOSTILE_GROUPS, FakeAudit, control, finding

from kafka_audit.catalogue.control import Control
from kafka_audit.findings import COUNTED_AS, Status
from kafka_audit.report import Report, html, junit, markdown, read_report, sarif
from kafka_audit.report.control_status import listed
from kafka_audit.report.page_lists import listed_failures
from kafka_audit.report.pdf import failures as pdf_failures
from kafka_audit.report.shares import equal_share

FEW, MANY, MIXED = (control(f"control_{number}", f"TOP-0{number}") for number in (1, 2, 3))
ROWS = 10


def causes(of: Control, *sizes: int) -> list[dict[str, object]]:
    """Failures with as many causes as there are sizes."""
    return [
        finding(of, f"cause-{cause:02}-topic-{number:03}", observed=f"cause {cause:02}")
        for cause, size in enumerate(sizes)
        for number in range(size)
    ]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """200 failures at most are read of each control; 'many' has 230 of three causes, 'mixed' 13 causes, errors and unassessed topics."""
    fake = FakeAudit(tmp_path, (FEW, MANY, MIXED))
    rows = [*causes(FEW, 3), *causes(MANY, 120, 90, 20), *causes(MIXED, *([2] * 12), 1)]
    rows += [finding(MIXED, f"broken-{number}", "error", reason="raised") for number in range(9)]
    rows += [finding(MIXED, f"dark-{number}", "not_assessed", reason="TIMEOUT") for number in range(40)]
    fake.settings(rows)
    fake.lag([], [])
    fake.gates()
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


@pytest.mark.parametrize(
    ("sizes", "places", "share"),
    [((), 5, 0), ((3, 4), 7, 4), ((3, 4), 6, 3), ((100, 1, 1), 12, 10), ((5, 5, 5), 2, 0), ((5,), -3, 0), ((0, 0), 0, 0)],
)
def test_lists_are_cut_to_the_largest_equal_length_that_fits(sizes: tuple[int, ...], places: int, share: int) -> None:
    assert equal_share(sizes, places) == share


@pytest.mark.parametrize("most", [0, 4, 60, 150, 10_000])
def test_the_page_lists_no_more_than_its_share_and_counts_the_rest(report: Report, most: int) -> None:
    found = listed_failures(report, ROWS, most)
    for result in report.failing:
        shown = found[result.control_id]
        named = [one.resource for part in (*shown.rows, *shown.further) for one in part.findings]
        assert len(set(named)) == len(named) == shown.listed
        assert shown.listed + shown.left_out == result.counted.failed
        assert all(len(one.findings) + one.left_out == len(one.cause.findings) for one in (*shown.rows, *shown.further))
        assert all(one.findings for one in (*shown.rows, *shown.further))
        assert len(shown.rows) + len(shown.further) + shown.unlisted_causes == shown.causes
    with_a_row = sum(len(one.rows) for one in found.values())
    assert sum(one.listed for one in found.values()) <= max(most, 0) + with_a_row
    assert found[FEW.id].left_out == (0 if most >= 60 else 2)


@pytest.mark.parametrize("most", [4, 60, 150, 10_000])
def test_the_page_says_the_number_of_failures_that_it_does_not_list(report: Report, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST_LISTED", most)
    page = html.render(report)
    assert ("Not every failure is listed here" in page) == (most < 10_000 or report.truncated)
    for result in report.failing:
        card = re.search(
            rf'aria-label="{result.code} failures".*?</details>\s*(?=<details class="fold|</div>\s*(?:<h3|</section>))', page, re.S
        )
        assert card
        listed_here = set(re.findall(r"cause-\d\d-topic-\d\d\d", re.sub(r"<pre>.*?</pre>", "", card[0], flags=re.S)))
        said = re.search(r"First ([\d,]+) of ([\d,]+) failures, the most severe first. The other ([\d,]+)", card[0])
        if said is None:
            assert len(listed_here) == result.counted.failed
        else:
            shown, of, rest = (int(one.replace(",", "")) for one in said.groups())
            assert (len(listed_here), result.counted.failed) == (shown, of)
            assert shown + rest == of


def test_a_cause_that_is_listed_in_part_says_how_many_share_it(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST_LISTED", 60)
    page = html.render(report)
    first, of = (int(one) for one in re.search(r"First (\d+) of (\d+) topics with their evidence", page).groups())  # type: ignore[union-attr]
    assert of == 120
    assert f"{of - first} more have the same cause and are not listed." in page


def test_a_page_that_would_be_too_large_lists_less_and_says_so(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = len(html.render(report).encode())
    monkeypatch.setattr(html, "LARGEST", whole - 15_000)
    page = html.render(report)
    assert len(page.encode()) < whole - 15_000
    assert "of 230 failures, the most severe first. The other " in page
    monkeypatch.setattr(html, "LARGEST", 1)  # what cannot be reached is no endless loop
    assert "Not every failure is listed here" in html.render(report)


@pytest.mark.parametrize("most", [20, 100, 25_000])
def test_sarif_has_at_most_as_many_results_as_github_takes_and_counts_the_rest(
    report: Report, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", most)
    (run,) = json.loads(sarif.render(report))["runs"]
    assert len(run["results"]) <= most
    named = Counter((one["ruleId"], one["properties"]["status"]) for one in run["results"] if "resource" in one["properties"])
    told = [one for one in run["invocations"][0]["toolExecutionNotifications"] if one["descriptor"]["id"] == "not-listed"]
    left = {(one["associatedRule"]["id"], one["properties"]["status"]): one["properties"]["count"] for one in told}
    for result in report.results:
        for status, _, count in listed(result):
            assert named[result.code, status] + left.get((result.code, status), 0) == count
    assert run["properties"]["findingsPerControlAndStatus"] >= max(named.values())
    assert len(run["invocations"][0]["toolExecutionNotifications"]) <= most + len(told)


@pytest.mark.parametrize("most", [20, 100, 10_000])
def test_junit_has_a_bounded_number_of_test_cases_and_counts_the_rest(report: Report, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(junit, "MOST_CASES", most)
    root = ET.fromstring(junit.render(report))
    cases = [one for one in root.iter("testcase") if one.get("classname") != "gate"]
    assert len(cases) + 3 <= most
    for result in report.results:
        own = [one for one in cases if str(one.get("classname")).endswith(f".{result.control_id}")]
        for tag, status in (("failure", Status.FAIL), ("error", Status.ERROR), ("skipped", Status.NOT_ASSESSED)):
            found = [one for one in own if one.find(tag) is not None]
            rest = [int(said[1]) for one in found if (said := re.match(r"(\d+) more resources, ", str(one.get("name"))))]
            assert len(found) - len(rest) + sum(rest) == getattr(result.counted, COUNTED_AS[status])


def test_the_pdf_counts_the_resources_and_causes_that_its_rows_do_not_name(report: Report) -> None:
    cards = {card["code"]: card for group in pdf_failures.content(report) for card in group["cards"]}  # type: ignore[attr-defined]
    for result in report.failing:
        card = cards[result.code]
        counts = [int(str(one["count"]).replace(",", "")) for one in card["causes"]]
        assert sum(counts) + card["more"] == result.counted.failed
        assert [len(one["resources"]) + one["more"] for one in card["causes"]] == counts


def test_the_longest_summary_fits_into_a_comment_and_counts_the_controls_and_reasons_that_it_leaves_out(tmp_path: Path) -> None:
    longest = "\U000e0001" * 249
    controls = tuple(control(f"control_{number}", f"TOP-{number:02}", title=longest) for number in range(40))
    fake = FakeAudit(tmp_path, controls, cluster="c" * 63)
    fake.settings([finding(one, f"{number}{longest}") for one in controls for number in range(5)])
    fake.lag([], [])
    fake.gates(reasons=[f"{number} {longest} *{HOSTILE_GROUPS[0]}*" for number in range(40)])
    text = markdown.render(read_report(*fake.inputs.args, **fake.inputs.kwargs))
    assert len(text) < markdown.LONGEST_COMMENT
    rows, reasons = (len(re.findall(start, text, re.M)) for start in (r"^\| (?!severity)", r"^- \d+ (?!more reasons)"))
    assert f"{40 - rows} more controls with failures." in text
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    assert f"- {len(report.outcome.reasons) - reasons} more reasons in report.json" in text


def test_what_is_left_out_does_not_depend_on_the_order_of_rendering(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST_LISTED", 60)
    monkeypatch.setattr(sarif, "MOST_RESULTS", 60)
    again = replace(report)
    for render in (html.render, sarif.render, junit.render, markdown.render):
        assert render(report) == render(again)
