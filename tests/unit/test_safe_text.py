"""Making text from a cluster visible, cutting it, linking and counting."""

from datetime import datetime, timezone

import pytest

from kafka_audit.safe_text import grouped, is_web_link, paragraphs, percent, shortened, utc, visible, with_link


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("orders", "orders"),
        ("a b", "a b"),
        ("two\nlines\tand\rmore", r"two\nlines\tand\rmore"),
        ("nul\x00esc\x1b", r"nul\u0000esc\u001b"),
        ("next\x85line", r"next\u0085line"),
        ("pay\u202egnp.exe", r"pay\u202egnp.exe"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("separators\u2028\u2029", r"separators\u2028\u2029"),
        ("no\u00a0break", r"no\u00a0break"),
        ("hangul\u3164filler", r"hangul\u3164filler"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("\ufffe\ud800", r"\ufffe\ud800"),
        ("facturaci\u00f3n \u05e7\u05d1", "facturaci\u00f3n \u05e7\u05d1"),
    ],
)
def test_invisible_characters_are_spelled_out_and_letters_of_any_script_stay(name: str, shown: str) -> None:
    assert visible(name) == shown


@pytest.mark.parametrize(
    ("first", "last"),
    [
        *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F)),
        *((0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
        *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
    ],
)
def test_every_code_point_that_unicode_lets_a_font_ignore_is_spelled_out(first: int, last: int) -> None:
    """Default_Ignorable_Code_Point of https://www.unicode.org/Public/14.0.0/ucd/DerivedCoreProperties.txt."""
    for code in range(first, last + 1):
        spelled = f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
        assert visible(f"payments{chr(code)}") == f"payments{spelled}"
        assert not is_web_link(f"https://a.example/{chr(code)}")


def test_stacked_combining_marks_are_spelled_out_after_the_second() -> None:
    assert visible("e" + "\u0301" * 4) == "e\u0301\u0301" + r"\u0301\u0301"


def test_long_names_are_cut_and_the_cut_is_counted() -> None:
    assert shortened("x" * 250) == ("x" * 200, 50)
    assert shortened("short") == ("short", 0)


@pytest.mark.parametrize(
    ("reference", "words", "target"),
    [
        ("https://kafka.apache.org/documentation/#x", "", "https://kafka.apache.org/documentation/#x"),
        ("KIP-966 - https://cwiki.apache.org/KIP-966", "KIP-966", "https://cwiki.apache.org/KIP-966"),
        ("javascript:alert(1)", "javascript:alert(1)", ""),
        ("data:text/html,x", "data:text/html,x", ""),
        ("https://user@evil.example/", "https://user@evil.example/", ""),
        ("https://", "https://", ""),
        ('see https://a.example/"onclick', 'see https://a.example/"onclick', ""),
        ("https://a.example/\u202e", "https://a.example/\u202e", ""),
        ("Kafka documentation", "Kafka documentation", ""),
    ],
)
def test_only_plain_web_addresses_become_links(reference: str, words: str, target: str) -> None:
    assert with_link(reference) == (words, target)


def test_percentages_are_rounded_down_and_there_is_none_of_nothing() -> None:
    assert percent(9_999, 10_000) == "99.9%"
    assert percent(10, 10) == "100.0%"
    assert percent(0, 0) == "\u2013"


def test_numbers_that_are_not_known_are_a_dash_and_not_0() -> None:
    assert (grouped(None), grouped(0), grouped(1_234_567)) == ("\u2013", "0", "1,234,567")


def test_times_are_shown_in_utc_and_odd_ones_as_they_are() -> None:
    assert utc("2026-11-20T23:15:00Z") == "2026-11-20 23:15:00 UTC"
    assert utc("2026-11-21T01:15:00+02:00") == "2026-11-20 23:15:00 UTC"
    assert utc(datetime(2026, 11, 20, tzinfo=timezone.utc)) == "2026-11-20 00:00:00 UTC"
    assert utc("yesterday") == "yesterday"
    assert utc("9999-12-31T23:59:59-01:00") == "9999-12-31T23:59:59-01:00"
    assert utc("0001-01-01T00:00:00+01:00") == "0001-01-01T00:00:00+01:00"
    assert utc(None) == "not known"


def test_prose_keeps_its_paragraphs_and_loses_its_line_breaks() -> None:
    assert paragraphs("one\ntwo\n\n three \n") == ["one two", "three"]


def test_a_reference_of_many_addresses_is_read_in_one_pass() -> None:
    text = "http://" * 200_000 + " and words"
    assert with_link(text) == (text, "")
