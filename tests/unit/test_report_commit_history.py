"""The report's section on commit history: a limited list, worst first, inferences marked as such, or the reason why there is none."""

import json
import re
from pathlib import Path

import pytest
from group_behaviour_rows import FOLDER, SHA256, group_behaviour, with_history, without_history
from report_audit import HOSTILE_GROUPS, FakeAudit, group_partition
from test_report_html import Page

from kafka_audit import report as package
from kafka_audit.errors import IntegrityError
from kafka_audit.report import Report, read_report
from kafka_audit.report.commit_history import SHOWN
from kafka_audit.report.html import render
from kafka_audit.report.json_report import as_json
from kafka_audit.report.json_report import render as as_text


def ran(root: Path) -> FakeAudit:
    fake = FakeAudit(root, ())
    fake.settings([])
    fake.lag([], [group_partition("a", "t", 0)])
    return fake


def read(fake: FakeAudit) -> Report:
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def text_of(fake: FakeAudit) -> str:
    return Page(render(read(fake))).text


def test_an_audit_without_a_record_of_a_commit_history_says_so(tmp_path: Path) -> None:
    fake = ran(tmp_path)
    assert "verify left no record of a commit history" in text_of(fake)
    assert as_json(read(fake))["commit_history"]["recorded"] is False


def test_without_a_history_one_sentence_says_why_and_how_to_get_it(tmp_path: Path) -> None:
    fake = ran(tmp_path)
    without_history(fake, reason="the commit history ends 5.3 h before the snapshot", changed_since=f"it used {FOLDER}, deleted since")
    text = text_of(fake)
    assert "the commit history ends 5.3 h before the snapshot. Controls answer from snapshots" in text
    assert "switch on the DAG kafka_commit_history" in text
    assert f"it used {FOLDER}, deleted since." in text
    assert "Cadence" not in text


def test_a_group_shows_members_cadence_and_the_inference_with_its_reason(tmp_path: Path) -> None:
    fake = ran(tmp_path)
    with_history(fake, [group_behaviour("billing")])
    text = text_of(fake)
    for words in (
        *("classic, 3 members", "every 5 s", "4.99 s to 5.01 s", "interval 5 s", "confidence medium", "assignor range"),
        *("session timeout 45 s", "auto-commit (inferred): 98 % of 900 intervals", "0 lost, 100 skipped of 1,100 offsets", "(23.5 h)"),
        *(FOLDER, SHA256, "1 group consistent with it"),
    ):
        assert words in text


def test_what_expired_or_went_back_comes_first_and_the_rest_is_counted(tmp_path: Path) -> None:
    fake = ran(tmp_path)
    rows = [group_behaviour(f"quiet-{number:03}") for number in range(60)]
    reason = "170.0 h after the last commit or member, longer than offsets.retention.minutes"
    rows += [
        group_behaviour("expired", expired=2, last_removed="2026-11-20 20:00:00Z", removed_reason=reason),
        group_behaviour("rewound", rewinds=3, largest_rewind=900, last_rewind="2026-11-20 21:00:00Z"),
        group_behaviour("stormy", rebalances=90),
        group_behaviour("unclear", removed_unknown=1, auto_commit=None, auto_commit_reason=None, auto_commit_confidence=None),
    ]
    with_history(fake, rows)
    history = read(fake).commit_history
    assert [one.group_id for one in history.groups[:4]] == ["expired", "unclear", "rewound", "stormy"]
    assert (len(history.groups), history.group_count, dict(history.auto_commit)) == (SHOWN, 64, {"consistent": 63, "unknown": 1})
    text = text_of(fake)
    assert f"First {SHOWN} of 64 groups" in text
    for words in ("2 expired", reason, "largest rewind 900 records, last at 2026-11-20 21:00:00Z", "1 expired or deleted"):
        assert words in text


def test_what_was_lost_before_it_could_be_read_is_named_by_partition(tmp_path: Path) -> None:
    fake = ran(tmp_path)
    gaps = [{"batch": "b", "partition": 7, "start": 1000, "lost": 40}]
    with_history(fake, [], totals={"expected": 200, "rows": 160, "lost": 40, "skipped": 0}, gaps=gaps, gap_count=3)
    text = text_of(fake)
    assert "40 lost, 0 skipped of 200 offsets: 160 records read. Lost offsets were gone before they could be read." in text
    assert "Skipped" not in text
    assert "partition 7, 40 from offset 1,000 and 2 more" in text
    assert "name no group in scope" in text


def test_a_group_whose_records_are_missing_or_held_back_is_not_said_to_have_done_nothing(tmp_path: Path) -> None:
    holed, lost = ran(tmp_path / "holed"), ran(tmp_path / "lost")
    at = "2026-11-20 12:00:00Z"
    with_history(holed, [group_behaviour("whole"), group_behaviour("holed", incomplete_until=at)])
    text = text_of(holed)
    assert f"records missing before {at}: counts are lower bounds" in text and "newest commits" not in text
    assert (text.count("nothing seen"), text.count("held back")) == (1, 0)
    with_history(lost, [group_behaviour("lost", incomplete_until=at, lost_until=at), group_behaviour("hidden", held_back_since=at)])
    text = text_of(lost)
    assert f"before {at}: counts are lower bounds, and the newest commits may be missing" in text
    assert f"held back by an open transaction: records after {at}" in text
    assert text.count("nothing seen") == 2


@pytest.mark.parametrize(("lost", "skipped", "kind"), [(0, 0, "pass"), (0, 7, "none"), (7, 0, "fail"), (7, 1, "fail")])
def test_a_reading_is_green_only_when_nothing_was_lost_or_skipped(tmp_path: Path, lost: int, skipped: int, kind: str) -> None:
    fake = ran(tmp_path)
    with_history(fake, [], totals={"expected": 9, "rows": 9 - lost - skipped, "lost": lost, "skipped": skipped})
    html = render(read(fake))
    (found,) = re.findall(rf'<span class="mark (\w+)"><svg[^>]*>(?:(?!</span>).)*</svg>{lost} lost, {skipped} skipped</span>', html)
    assert found == kind
    words = "transaction markers, records of aborted transactions, or compacted records; a consumer cannot tell these apart"
    assert (words in Page(html).text) == bool(skipped)


def test_hostile_group_ids_are_text(tmp_path: Path) -> None:
    fake = ran(tmp_path)
    with_history(fake, [group_behaviour(name, assignor=name, removed_reason=name, auto_commit=name) for name in HOSTILE_GROUPS])
    html = render(read(fake))
    assert "<script" not in html and "<img" not in html
    assert "\u202e" not in html and "\x1b" not in html


def test_the_json_is_valid_with_and_without_a_history(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    validator = jsonschema.Draft202012Validator(json.loads((Path(package.__path__[0]) / "report.schema.json").read_text()))
    whole, none = ran(tmp_path / "whole"), ran(tmp_path / "none")
    with_history(whole, [group_behaviour("a"), group_behaviour("b", **dict.fromkeys(("group_type", "commits", "interval_ms")))])
    without_history(none, reason="no commit history was read for this cluster")
    for fake in (whole, none):
        assert [error.message for error in validator.iter_errors(json.loads(as_text(read(fake))))] == []


def test_a_record_that_is_no_record_is_refused(tmp_path: Path) -> None:
    fake = ran(tmp_path)
    with_history(fake, [group_behaviour("a")], totals=None)
    with pytest.raises(IntegrityError, match=r"commit_history\.json"):
        read(fake)
