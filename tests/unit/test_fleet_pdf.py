"""The PDF of a fleet: valid, the same bytes each time, whole at any number of clusters, and with names as text only. Read back with poppler."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fleets import NEWEST, fleet_of, shipped
from pdf_files import LONGEST_TOPIC, TYPST, UNSEEN, needs_poppler, needs_qpdf, says_what_it_is, text_of, unspaced
from report_audit import HOSTILE_GROUPS

from kafka_audit.report.fleet.document import as_pdf, content
from kafka_audit.report.fleet.matrix import Cell, Fleet, FleetCluster
from kafka_audit.report.fleet.states import STATES
from kafka_audit.report.fleet.verdicts import period
from kafka_audit.report.pdf.letters import brief, drawable
from kafka_audit.report.results import Counts

HOSTILE = ("W" * 249, LONGEST_TOPIC, *HOSTILE_GROUPS, *TYPST, *UNSEEN)
FEW = shipped()[::2]


def pages_of(made: bytes) -> list[str]:
    return text_of(made, "-layout").split("\f")[:-1]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def few() -> bytes:
    return as_pdf(fleet_of(3))


@pytest.fixture(scope="module")
def many() -> bytes:
    return as_pdf(fleet_of(40, controls=FEW))


@pytest.fixture(scope="module")
def hostile() -> bytes:
    return as_pdf(fleet_of(len(HOSTILE), *HOSTILE, controls=FEW))


@needs_poppler
def test_the_head_says_the_clusters_the_period_and_every_verdict(many: bytes) -> None:
    first = flat(pages_of(many)[0])
    assert "40 clusters, of which 33 could be audited" in first
    assert "2026-11-09 14:15:00 UTC to 2026-11-20 23:15:00 UTC" in first
    for said in ("10 PASSED", "17 FAILED", "6 INCOMPLETE", "2 VOID", "1 ERROR", "2 NO AUDIT", "2 UNUSABLE"):
        assert said in flat(text_of(many, "-raw", "-l", "1")), said


@needs_poppler
def test_every_cluster_has_its_verdict_the_age_of_its_evidence_and_its_reason(few: bytes) -> None:
    first = flat(text_of(few, "-raw", "-l", "1"))
    assert "1 orders-prod audit 20261120T231600Z-0123456789abcdef" in first
    assert "2026-11-20 16:15:00 UTC 7 h older than the newest" in first
    assert re.search(
        r"analytics audit 20261117T231600Z-0123456789abcdef VOID 2026-11-17 23:15:00 UTC 3 d older than the newest( \u2013){6}", first
    )
    assert "The snapshot lacks the dataset replica_log_dirs of 3 of 9 brokers" in first


@needs_poppler
def test_a_small_matrix_is_in_words_and_repeats_its_header_on_each_page(few: bytes) -> None:
    pages = pages_of(few)
    assert all("payments-prod" in page and "What has to hold" in page for page in pages[1:])
    text = flat(pages[1])
    assert re.search(r"CON-06 The group moves on while there is something to read 1,234 fails passes not known", text)
    assert all(state.words in text and state.means in text for state in STATES)


@needs_poppler
def test_many_clusters_go_into_blocks_of_columns_with_letters_that_a_legend_explains(many: bytes) -> None:
    pages = pages_of(many)
    assert (
        ["Clusters 1 to 20 of 40" in page for page in pages].count(True)
        == ["Clusters 21 to 40 of 40" in page for page in pages].count(True)
        == 1
    )
    matrix = [page for page in pages if "What has to hold" in page]
    second = next(place for place, page in enumerate(matrix) if "Clusters 21 to 40" in page)
    for place, page in enumerate(matrix):
        assert ("search-index-us-east-2-13" in page, "telemetry-edge-39" in page) == (place < second, place >= second), place
    legend = flat(matrix[0])
    assert all(f"{state.letter} {state.words} {state.means}" in legend for state in STATES)
    assert len({state.letter for state in STATES}) == len(STATES)


@needs_poppler
def test_every_control_is_in_every_block(many: bytes) -> None:
    text = text_of(many, "-raw")
    assert {text.count(f"\n{control.code} ") for control in FEW} == {2}


@needs_poppler
def test_nothing_is_outside_of_the_page(hostile: bytes, many: bytes) -> None:
    for made in (hostile, many):
        boxes = re.findall(r'<word xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">', text_of(made, "-bbox"))
        assert len(boxes) > 1000
        places = [[float(one) for one in box] for box in boxes]
        assert min(place[0] for place in places) >= 39 and max(place[2] for place in places) <= 803
        assert min(place[1] for place in places) >= 20 and max(place[3] for place in places) <= 580


@needs_poppler
def test_hostile_names_are_printed_as_text_with_what_draws_nothing_spelled_out(hostile: bytes) -> None:
    text = unspaced(text_of(hostile, "-raw"))
    for name in (name for name in HOSTILE if len(name) < 300):
        assert unspaced(drawable(name)) in text, name
    assert not re.search("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u034f\U000e0100\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufffd]", text)


@needs_qpdf
@needs_poppler
def test_the_pdf_is_valid_tagged_and_says_what_it_is(hostile: bytes, tmp_path: Path) -> None:
    file = tmp_path / "fleet.pdf"
    file.write_bytes(hostile)
    info = says_what_it_is(file, title=f"Kafka reliability audits of {len(HOSTILE)} clusters", made="Fri Nov 20 23:15:00 2026")
    assert re.search(r"Page size: +841.89 x 595.276", info), "landscape"


def test_the_same_fleet_gives_the_same_bytes(few: bytes) -> None:
    assert as_pdf(fleet_of(3)) == few
    assert as_pdf(fleet_of(4)) != few


@needs_poppler
def test_a_fleet_without_any_usable_audit_says_that_nothing_is_known() -> None:
    lost = FleetCluster(name="lost", verdict="NO AUDIT", why=("No audit of it is sealed.",))
    fleet = Fleet(clusters=(lost, lost), controls=())
    made = as_pdf(fleet)
    assert as_pdf(fleet) == made
    text = flat(text_of(made, "-raw"))
    assert "2 clusters, of which 0 could be audited" in text
    assert "not known: no cluster has evidence that can be used" in text
    assert "No audit of these clusters can be used, so nothing is known of any control." in text
    assert text.count("No audit of it is sealed.") == 2
    assert "PASSED" not in text and "passes" not in text


@pytest.mark.parametrize("time", ["yesterday", "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00", "2026-11-20T23:15:00"])
def test_any_time_of_evidence_can_be_set(time: str) -> None:
    fleet = fleet_of(2)
    odd = replace(fleet.clusters[0], evidence_at=time)
    assert as_pdf(replace(fleet, clusters=(odd,), controls=fleet.controls[:2])).startswith(b"%PDF-1.7")


def test_the_numbers_of_narrow_columns_have_at_most_four_characters() -> None:
    fleet = fleet_of(8)
    numbers = (1, 999, 1_000, 9_999, 10_000, 999_999, 1_000_000, 45_600_000)
    cells = [
        Cell(standing=fleet.clusters[0].cells[fleet.controls[0].control_id].standing.FAIL, counts=Counts(failed=one), worst="high")
        for one in numbers
    ]
    clusters = [replace(fleet.clusters[0], cells={fleet.controls[0].control_id: cell}) for cell in cells]
    (block,) = content(replace(fleet, clusters=tuple(clusters), controls=fleet.controls[:1]))["blocks"]
    shown = [cell["number"] for cell in block["groups"][0]["rows"][0]["cells"]]
    assert shown == ["1", "999", "1.0k", "9.9k", "10k", "999k", "1.0M", "45M"]


def test_the_period_leaves_out_what_is_no_time() -> None:
    fleet = fleet_of(2)
    odd = replace(fleet.clusters[1], evidence_at="soon")
    assert period(replace(fleet, clusters=(fleet.clusters[0], odd))) == (NEWEST, NEWEST)
    assert period(replace(fleet, clusters=(odd,))) is None
    earlier = replace(odd, evidence_at=(NEWEST - timedelta(days=1)).isoformat())
    assert period(replace(fleet, clusters=(fleet.clusters[0], earlier))) == (NEWEST - timedelta(days=1), NEWEST)


@pytest.mark.parametrize(
    ("text", "shown"), [("orders", "orders"), ("a" * 12, "a" * 12), ("a" * 13, f"{'a' * 11}\u2026"), ("\u202e" * 3, "\u202e\u2026")]
)
def test_a_brief_name_has_at_most_so_many_printed_characters(text: str, shown: str) -> None:
    assert brief(text, 12) == shown
    assert len(drawable(shown)) <= 12
