"""The chart of a group's lag: its scale, gaps and description, and that names are shown as text only."""

import re
from xml.etree import ElementTree as ET

import pytest
from report_audit import HOSTILE_GROUPS

from kafka_audit.report.chart_frame import between
from kafka_audit.report.charts import in_words, lag_chart, top_of_scale
from kafka_audit.report.lag_history import LagHistory
from kafka_audit.report.words import duration, minutes, percentage, rate

SVG = "{http://www.w3.org/2000/svg}"
HOUR = 3_600_000


def history(*lags: int | None, inside: tuple[float | None, ...] | None = None, known: tuple[float, ...] | None = None) -> LagHistory:
    return LagHistory(
        start_ms=1_795_219_200_000,  # 2026-11-21 00:00 UTC
        step_ms=HOUR,
        lag=lags,
        lost=tuple(None if lag is None else 0 for lag in lags),
        in_sla_share=inside or (None,) * len(lags),
        known_share=known or tuple(float(lag is not None) for lag in lags),
    )


def shapes(found: LagHistory, limit: int | None = None) -> dict[str, list[dict[str, str]]]:
    """The attributes of what is drawn in the plot, by class, without the lines of the scale."""
    plot = ET.fromstring(str(lag_chart(1, "g", found, limit))).find("svg")
    assert plot is not None
    drawn: dict[str, list[dict[str, str]]] = {}
    for element in plot:
        if element.attrib.get("class", "grid") != "grid":
            drawn.setdefault(element.attrib["class"], []).append(dict(element.attrib))
    return drawn


def test_the_line_goes_from_0_at_the_bottom_to_the_largest_lag_at_the_top() -> None:
    (line,) = shapes(history(0, 50, 100))["line"]
    assert line["d"] == "M0 88V88H240V44H480V0H720"


def test_a_limit_above_all_lag_is_on_the_scale() -> None:
    found = history(10, 10)
    assert top_of_scale(found, 40) == 40
    drawn = shapes(found, 40)
    assert drawn["limit"][0]["d"] == "M0 0H720"
    assert drawn["line"][0]["d"] == "M0 66V66H720"


def test_a_single_point_is_drawn_over_its_whole_interval() -> None:
    assert shapes(history(7))["line"][0]["d"] == "M0 0V0H720"


def test_lag_that_was_always_0_is_a_line_at_the_bottom() -> None:
    assert shapes(history(0, 0, 0))["line"][0]["d"] == "M0 88V88H720"


def test_a_gap_interrupts_the_line_and_is_hatched_in_plot_and_strip() -> None:
    drawn = shapes(history(4, None, 4, inside=(1.0, None, 1.0)))
    assert [line["d"] for line in drawn["line"]] == ["M0 0V0H240", "M480 0V0H720"]
    assert [(gap["x"], gap["width"], gap["fill"]) for gap in drawn["gap"]] == [("240", "240", "url(#chart-1-gap)")] * 2
    assert [(box["x"], box["width"]) for box in drawn["inside"]] == [("0", "240"), ("480", "240")]


def test_a_history_of_which_nothing_is_known_has_no_line_and_no_compliance() -> None:
    drawn = shapes(history(None, None))
    assert set(drawn) == {"gap"}
    assert "the lag is known in 0 of 2." in in_words(history(None, None), 5)


def test_outside_is_higher_than_inside_and_a_part_that_is_not_known_is_no_compliance() -> None:
    drawn = shapes(history(1, 9, 1, inside=(1.0, 0.5, 1.0), known=(1.0, 1.0, 0.5)), 5)
    (outside,), inside, (part,) = drawn["outside"], drawn["inside"], drawn["part"]
    assert float(outside["height"]) > float(inside[0]["height"])
    assert part["x"] == "480"


def test_huge_lags_keep_their_order_and_their_digits() -> None:
    found = history(2**62, 2**61)
    assert shapes(found)["line"][0]["d"] == "M0 0V0H360V44H720"
    assert f"Largest lag {2**62:,} records" in in_words(found)


def test_the_words_give_the_figures_of_the_chart() -> None:
    words = in_words(history(4, 30, None, 2, inside=(1.0, 0.25, None, 1.0)), 10)
    assert words == (
        "4 intervals of 1 h; the lag is known in 3 of 4. Largest lag 30 records from 2026-11-21 01:00 UTC. At the end 2 records. "
        "The SLA allows 10 records: more in 1 of 3. Inside the SLA throughout in 2, outside for a part at least in 1."
    )


def test_the_axes_have_a_scale_with_its_unit_and_times_in_utc() -> None:
    root = ET.fromstring(str(lag_chart(1, "g", history(0, 50, 1250), 600)))
    said = {element.text: (element.attrib["x"], element.attrib["y"]) for element in root.iter("text")}
    assert list(said) == [
        *("1,250 records", "0", "500", "SLA: at most 600 records"),
        *("2026-11-21 00:00", "11-21 01:30", "2026-11-21 03:00 UTC"),
    ]
    top, bottom, middle, limit = (float(y) for _, y in list(said.values())[:4])
    assert top < limit < middle < bottom
    assert [x for x, _ in list(said.values())[4:]] == ["0", "50%", "100%"]


@pytest.mark.parametrize(("top", "middle"), [(1, None), (2, 1), (9, 2), (10, 5), (109, 50), (1250, 500), (2**62, 2 * 10**18)])
def test_the_scale_has_a_round_number_between(top: int, middle: int | None) -> None:
    assert between(top) == middle


def test_the_chart_is_an_image_with_a_title_and_a_description() -> None:
    root = ET.fromstring(str(lag_chart(3, "billing", history(1))))
    named = {element.attrib["id"]: element.text for element in root if element.tag in (f"{SVG}title", f"{SVG}desc", "title", "desc")}
    assert root.attrib["role"] == "img"
    assert [named[name] for name in root.attrib["aria-labelledby"].split()] == [
        "Lag of billing, 2026-11-21 00:00 to 2026-11-21 01:00 UTC",
        in_words(history(1)),
    ]


@pytest.mark.parametrize("group", HOSTILE_GROUPS)
def test_a_hostile_group_id_is_only_text_in_the_title(group: str) -> None:
    markup = str(lag_chart(1, group, history(1, None), 1))
    tags = {element.tag for element in ET.fromstring(markup).iter()}
    assert tags <= {"svg", "title", "desc", "defs", "pattern", "rect", "path", "text"}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u034f\U000e0100\u200b-\u200f\u2028-\u202e\u2066-\u2069]", markup)


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (None, "\u2013"),
        (0, "0 s"),
        (250, "0.25 s"),
        (59_999, "59 s"),
        (3_600_000, "1 h"),
        (11_549_000, "3 h 12 min"),
        (7 * 86_400_000 + 1, "7 d"),
        (-5_000, "-5 s"),
    ],
)
def test_a_duration_has_two_units_and_is_rounded_down(milliseconds: int | None, words: str) -> None:
    assert duration(milliseconds) == words


def test_percentages_never_round_up_and_what_is_not_known_is_a_dash() -> None:
    assert [percentage(value) for value in (100.0, 99.99999, 99.5, 0.0, None)] == ["100%", "99.999%", "99.5%", "0%", "\u2013"]
    assert [minutes(value) for value in (216.0, 0.25, None)] == ["216 min", "0.2 min", "\u2013"]
    assert [rate(value) for value in (120.4, 0.01, 0.0, None)] == ["120/s", "36/h", "0/s", "\u2013"]
