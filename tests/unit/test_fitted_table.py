"""A table in windows of any width: nothing wraps, what matters least is left out, and names keep both ends."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kafka_audit.cli.fitted_table import Column, fit, name_text, without_middle


def column(heading, *texts, rank=0, **about):
    return Column(heading=heading, cells=[Text(text) for text in texts], rank=rank, **about)


def drawn(columns, width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(fit(columns, width))
    return console.file.getvalue().splitlines()


COLUMNS = [
    column("STATE", "LOST", "OK"),
    column("LAG", "1,000", "?", rank=1, is_figure=True),
    column("GROUP", "orders-service-of-the-payments-team-in-production-blue", "g", is_name=True),
    column("SLA", "broken", "ok", rank=7),
    column("CLIENT-ID", "app-1", "app-2", rank=13, is_name=True, is_extra=True),
]


@pytest.mark.parametrize("width", range(1, 160, 3))
def test_no_line_is_wider_than_the_window_or_wraps(width):
    lines = drawn(COLUMNS, width)

    assert len(lines) == 3
    assert max(map(cell_len, lines)) <= width


def test_columns_are_left_out_from_the_one_that_matters_least_on():
    dropped = [tuple(fit(COLUMNS, width).dropped) for width in range(120, 10, -1)]

    assert list(dict.fromkeys(dropped)) == [(), ("CLIENT-ID",), ("SLA", "CLIENT-ID"), ("LAG", "SLA", "CLIENT-ID")]


def test_a_wide_window_shortens_nothing_and_aligns_figures_at_the_right():
    head, first, second = drawn(COLUMNS, 100)

    assert "orders-service-of-the-payments-team-in-production-blue" in first
    assert head.index("LAG") + 3 == first.index("1,000") + 5 == second.index("?") + 1


def test_columns_stand_closer_before_one_that_matters_is_left_out():
    fitted = {width: fit(COLUMNS[:4], width) for width in (34, 32)}

    assert [(found.gap, found.dropped) for found in fitted.values()] == [(2, []), (1, [])]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("orders", 6, "orders"),
        ("orders-service-blue", 12, "orders…-blue"),
        ("topic-with-a-name-17", 9, "topi…e-17"),
        ("日本語日本語日本語", 8, "日本…語"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_a_long_name_loses_its_middle(text, width, shown):
    assert without_middle(text, width) == shown
    assert cell_len(shown) <= width


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("a\u034f\U000e0100b", "a\\u034f\\U000e0100b"),
        ("\x1b[2J", "\\u001b[2J"),
        ("two\nlines", "two\\nlines"),
        ("", '""'),
        (" padded ", '" padded "'),
        (None, "-"),
        ("[red]g[/red] :smile:", "[red]g[/red] :smile:"),
    ],
)
def test_names_are_visible_and_inert(name, shown):
    assert name_text(name) == shown


def test_a_name_of_any_length_is_drawn_quickly_enough_to_be_cut_first():
    assert len(name_text("x" * 100_000)) < 500
    assert name_text("a" * 1_000 + "-17").endswith("a-17")
