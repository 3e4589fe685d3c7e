"""The PDF: valid, the same bytes each time, complete, and with names from a cluster as text only. Read back with poppler's tools."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typst
from hypothesis import given
from hypothesis import strategies as st
from lag_rows import group_sla, lag_bucket, series_table, sla_table
from pdf_files import LONGEST_TOPIC, TYPST, UNSEEN, needs_poppler, needs_qpdf, says_what_it_is, text_of, unspaced
from report_audit import AUDIT_ID, HOSTILE_GROUPS, FakeAudit, control, finding, group_partition

from kafka_audit.report import Report, html, read_report
from kafka_audit.report.comparison import Change, ChangedFinding, Comparison, TrendPoint
from kafka_audit.report.pdf import content, render
from kafka_audit.report.pdf.letters import GLYPHS, cut, drawable, prepared, spelled
from kafka_audit.report.pdf.typesetter import TEMPLATES, fonts

TOPIC = control("replication_factor_sufficient", "TOP-01")
GROUP = control("lag_within_sla", "CON-01", subject="group")


def hostile_report(root: Path) -> Report:
    """A report with hostile text wherever a cluster's text may stand, a comparison, a trend and a history of lag."""
    names = (*HOSTILE_GROUPS, *TYPST, *UNSEEN[:3], *UNSEEN[4:], LONGEST_TOPIC)
    fake = FakeAudit(root, (GROUP, TOPIC))
    problems = [{"dataset": "members", "api": "DescribeGroups", "group_id": name, "error": name, "message": name} for name in names]
    groups = [{"group_id": name, "group_type": "classic", "state": "Stable"} for name in names]
    fake.take_snapshot({"groups": groups, "errors": problems}, "20261120T231501Z-ab12cd35ab12cd35")
    fake.settings([finding(TOPIC, "orders", "not_assessed", reason=name) for name in names])
    words = ("status", "status_reason", "burrow", "time_to_loss_by", "lag_ms_method")
    partitions = [group_partition(name, LONGEST_TOPIC, 0, lag=3, lost=1, time_to_loss_ms=1, **dict.fromkeys(words, name)) for name in names]
    fake.lag(
        [finding(GROUP, name, observed=name, expected=name, evidence=name, tier=name, loosened=name) for name in names],
        partitions,
        group_slas=sla_table([group_sla(name, sla=name) for name in names]),
        lag_series=series_table([lag_bucket(name, hour, 40 * hour) for name in names for hour in (0, 1, 3, 4)]),
    )
    fake.gates(reasons=list(names))
    return compared(read_report(*fake.inputs.args, **fake.inputs.kwargs), names)


def compared(report: Report, names: tuple[str, ...]) -> Report:
    """The report with a comparison in which all of ``names`` are new, and a trend of three audits."""
    listed = tuple(
        ChangedFinding(
            **{"change": Change.NEW, "control_id": GROUP.id, "code": "CON-01", "title": name, "subject": "group", "resource": name},
            **{"severity": "critical", "severity_before": None, "observed": name, "observed_before": None, "why": name},
        )
        for name in names
    )
    previous = Comparison(
        previous_audit_id="20261119T231600Z-0badcafe0badcafe",
        previous_started_at="2026-11-19T23:16:00+00:00",
        previous_verdict="PASSED",
        counts={"new": len(names), "unchanged": 4},
        listed=listed,
        notes=("The policy differs.",),
    )
    trend = tuple(
        TrendPoint(
            **{"audit_id": f"a{day}", "started_at": f"2026-11-{day}T23:16:00+00:00", "verdict": "FAILED"},
            **{"failed_by_severity": {"critical": day, "low": 3}, "coverage": 0.9, "lost_records": None, "availability_percent": 99.5},
        )
        for day in (18, 19, 20)
    )
    return replace(report, comparison=previous, trend=trend)


def plain_report(root: Path, failures: int = 1, gates: bool = True, **verdicts: tuple[str, int]) -> Report:
    fake = FakeAudit(root, (GROUP, TOPIC))
    fake.settings([finding(TOPIC, f"t{number:05}", observed=str(number % 3)) for number in range(failures)])
    fake.lag([finding(GROUP, "billing", "pass")], [group_partition("billing", "orders", 0)])
    if gates:
        fake.gates(**verdicts)
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return render(hostile_report(tmp_path_factory.mktemp("hostile")))


@needs_poppler
def test_the_pdf_says_verdict_exit_code_failing_controls_and_hashes(tmp_path: Path) -> None:
    report = plain_report(tmp_path)
    text = text_of(render(report), "-layout")
    assert "FAILED" in text
    assert re.search(r"exit code 3: the gate\s+failed", text)
    assert all(result.code in text for result in report.failing)
    for sha256 in (report.collection.manifest_sha256, report.policy.sha256, report.catalogue_sha256):
        assert sha256 in text
    assert f"kafka-audit verify audits/orders-prod/{AUDIT_ID}" in text
    assert all(one.sha256 in text for one in (*report.audit_files, *report.collection.files))


@needs_poppler
def test_pages_are_numbered_and_the_contents_name_the_pages_where_sections_begin(hostile: bytes) -> None:
    pages = text_of(hostile, "-layout").split("\f")[:-1]
    for number, page in enumerate(pages, 1):
        assert f"page {number} of {len(pages)}" in page
    for section in ("Summary", "Frameworks", "Failures", "Lag and loss", "Waivers, attestations and policy", "Gates", "Appendix"):
        entry = re.search(rf"^\s*\d {section} [. ]+ \u2060?(\d+)$", pages[1], re.MULTILINE)
        assert entry, section
        assert re.search(rf"^\s*\d {section}$", pages[int(entry[1]) - 1], re.MULTILINE), section


@needs_poppler
def test_hostile_names_are_printed_as_text_with_what_draws_nothing_spelled_out(hostile: bytes) -> None:
    text = unspaced(text_of(hostile, "-raw"))
    for name in (*TYPST, *HOSTILE_GROUPS[:5], *UNSEEN[:3], *UNSEEN[4:]):
        assert unspaced(drawable(name)) in text, name
    assert r"pay\u202egnp.exe\u2066\u200b\u034f\U000e0100" in text
    assert r"\u4e2d\u6587" in text
    assert not re.search("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u034f\U000e0100\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufffd]", text)


@needs_poppler
def test_the_longest_topic_is_printed_whole(hostile: bytes) -> None:
    assert f"{LONGEST_TOPIC}-0" in unspaced(text_of(hostile, "-raw"))


@needs_qpdf
@needs_poppler
def test_the_pdf_is_valid_tagged_and_says_what_it_is(hostile: bytes, tmp_path: Path) -> None:
    file = tmp_path / "report.pdf"
    file.write_bytes(hostile)
    says_what_it_is(file, title="Kafka reliability audit of orders-prod", made="Fri Nov 20 23:20:00 2026")
    assert b"/Lang(en)" in re.sub(rb"\s", b"", hostile)


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    report = plain_report(tmp_path)
    made = render(report)
    assert render(report) == made
    assert render(replace(report, generated_at=report.generated_at + timedelta(seconds=1))) != made


def test_figures_and_words_of_any_length_are_printed(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (GROUP,))
    words = dict.fromkeys(("status", "status_reason", "burrow", "time_to_loss_by", "lag_ms_method"), "w" * 300)
    figures = dict.fromkeys(("lost", "lag", "margin", "beyond_end", "time_to_loss_ms", "lag_ms"), 2**62)
    fake.settings([])
    fake.lag([], [group_partition("g" * 249, "t" * 249, 0, **words, **figures)])
    fake.gates()
    assert render(read_report(*fake.inputs.args, **fake.inputs.kwargs)).startswith(b"%PDF")


def test_a_report_is_made_at_any_moment_and_the_pdf_says_the_second(tmp_path: Path) -> None:
    report = plain_report(tmp_path)
    moment = report.generated_at.replace(microsecond=123_456)
    assert render(replace(report, generated_at=moment)) == render(report)


@pytest.mark.parametrize("verdicts", [{}, {"evidence": ("FAIL", 4)}, {"evidence": ("ERROR", 1), "findings": ("ERROR", 1)}])
def test_an_audit_that_was_cut_short_is_never_shown_as_passed(tmp_path: Path, verdicts: dict[str, tuple[str, int]]) -> None:
    fake = FakeAudit(tmp_path, (GROUP, TOPIC))
    if verdicts:
        fake.gates(**verdicts)
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    front = content(report)["front"]
    assert isinstance(front, dict)
    assert front["verdict"]["kind"] == "void"
    assert front["coverage"]["percent"] is None
    assert (front["no_loss"], front["loss_unknown"]) == ("", "Whether records were lost is not known: verify left no lag results.")
    assert render(report).startswith(b"%PDF-1.7")


def test_passes_on_void_evidence_are_not_green(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (GROUP, TOPIC))
    fake.settings([finding(TOPIC, "orders", "pass")])
    fake.lag([finding(GROUP, "billing", "pass")], [group_partition("billing", "orders", 0)])
    fake.gates(evidence=("FAIL", 4), findings=("PASS", 0))
    front = content(read_report(*fake.inputs.args, **fake.inputs.kwargs))["front"]
    assert isinstance(front, dict)
    assert front["verdict"]["kind"] == "void"
    assert {part["kind"] for part in front["coverage"]["parts"] if part["count"]} == {"none"}


@needs_poppler
def test_an_empty_audit_says_that_nothing_is_known(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (GROUP, TOPIC))
    text = " ".join(text_of(render(read_report(*fake.inputs.args, **fake.inputs.kwargs))).split())
    assert "VOID" in text
    assert "Nothing was assessed, so whether anything fails is not known." in text
    assert "lag and loss are not known" in text
    assert text.count("There is no result of this gate for this evidence, so nothing has passed it.") == 2
    assert "The policy is met" not in text
    assert "PASSED" not in text


def rows_of(report: Report) -> list[dict[str, Any]]:
    """The rows of the first failing control: one for each cause."""
    groups: Any = content(report)["failures"]
    rows: list[dict[str, Any]] = groups[0]["cards"][0]["causes"]
    return rows


def test_resources_that_fail_for_the_same_reason_share_a_row(tmp_path: Path) -> None:
    assert [row["count"] for row in rows_of(plain_report(tmp_path, failures=30))] == ["10", "10", "10"]


def test_partitions_that_differ_only_in_the_names_that_they_say_share_a_row_as_on_the_page(tmp_path: Path) -> None:
    leader = control("leader_alive", "REP-01", subject="partition")
    fake = FakeAudit(tmp_path, (leader, GROUP))
    places = [(f"topic{number % 20}", number) for number in range(150)]
    rows = [finding(leader, f"{t}-{p}", topic=t, partition=p, observed=f"{t}-{p} has no leader", reason=f"of {t}") for t, p in places]
    fake.settings([*rows, finding(leader, "other-0", topic="other", partition=0, observed="two leaders")])
    fake.lag([])
    fake.gates()
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    first, second = rows_of(report)
    assert (first["count"], first["more"], second["count"]) == ("150", 138, "1")
    assert (first["observed"], first["resources"][0]) == ("topic0-0 has no leader", "topic0-0")
    assert first["notes"][:2] == ["of topic0", "written of the first; the others say the same with their own names"]
    assert "2 causes" in html.render(report)


@needs_poppler
def test_twenty_thousand_failures_are_counted_and_listed_as_far_as_they_fit(tmp_path: Path) -> None:
    made = render(plain_report(tmp_path, failures=20_000))
    pages = text_of(made, "-layout").split("\f")[:-1]
    text = " ".join(" ".join(pages).split())
    assert len(pages) <= 20
    assert "Fails on 20,000 of 20,000 assessed results" in text
    assert "19,800 more results are not in these rows; findings.parquet has all." in text
    assert "55 more in findings.parquet" in text


@needs_poppler
def test_the_comparison_the_trend_and_the_previous_audit_are_printed(hostile: bytes) -> None:
    text = " ".join(text_of(hostile, "-layout").split())
    assert "20261119T231600Z-0badcafe0badcafe · PASSED · 2026-11-19 23:16:00 UTC" in text
    assert "0 resolved" in text
    assert "Audits that are kept" in text
    assert "Lag over time" in text


@given(st.text())
def test_every_text_becomes_characters_that_the_fonts_can_draw(text: str) -> None:
    made = spelled(text)
    pieces = [made] if isinstance(made, str) else [one if isinstance(one, str) else one[0] for one in made]
    assert all(ord(character) in GLYPHS for character in "".join(pieces))
    assert "".join(pieces) == drawable(text)


@given(st.text(), st.integers(min_value=0, max_value=30))
def test_a_cut_text_is_as_long_as_asked_for_when_it_is_printed(text: str, longest: int) -> None:
    kept = re.sub("\N{HORIZONTAL ELLIPSIS} \\([0-9,]+ more characters\\)$", "", cut(text, longest))
    assert text.startswith(kept)
    assert len(drawable(kept)) <= longest


@given(st.text(alphabet=st.characters(categories=("L", "N", "P"))))
def test_no_piece_of_a_long_word_is_wider_than_a_narrow_column(text: str) -> None:
    made = prepared(text)
    pieces = [made] if isinstance(made, str) else [one for one in made if isinstance(one, str)]
    assert all(len(word) <= 14 for piece in pieces for word in piece.split(" "))


@pytest.mark.parametrize("style", ['font: "DejaVu Sans Mono"', 'font: "DejaVu Sans Mono", weight: 700'])
def test_the_fonts_in_the_wheel_have_every_character_that_is_not_spelled_out(style: str) -> None:
    letters = " ".join(chr(code) for code in sorted(GLYPHS))
    source = f"#set document(title: [t])\n#set text({style}, fallback: false)\n#sys.inputs.letters".encode()
    compiler = typst.Compiler(source, font_paths=fonts(), sys_inputs={"letters": letters})
    assert compiler.compile(format="pdf", pdf_standards=["a-2a", "ua-1"])


def test_templates_evaluate_nothing_and_load_nothing_but_each_other() -> None:
    files = sorted(TEMPLATES.glob("*"))
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"\b(eval|read|plugin|image|include|cbor|csv|toml|yaml|xml)\(|@preview|@local", text), file
        assert re.findall(r"\bjson\((?!bytes\(sys\.inputs\.)", text) == [], file
        assert set(re.findall(r'#import "(.*?)"', text)) <= {one.name for one in files}, file
