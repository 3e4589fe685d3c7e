"""`kafka-audit lag` on a terminal of any size: what stands first, what is left out and said, colours, and what changed."""

import io
from dataclasses import replace

import pytest
from lag_readings import Made, behind, later
from rich.cells import cell_len
from rich.console import Console

from kafka_audit.cli.lag_columns import count_text, duration_text
from kafka_audit.cli.lag_screen import screen_of, watch_on_screen
from kafka_audit.errors import CollectionError
from kafka_audit.lag.lag_table import Sort

LONG_ID = "consumer-orders-service-1-1b9f9c9e-7a1d-4c4c-9f3a-8b4b1ab0f3c1"


def no_sla(group_id, topic):
    return None


def console(width=120, height=24, **about):
    options = {"color_system": None, "force_terminal": True, **about}
    return Console(file=io.StringIO(), width=width, height=height, highlight=False, _environ={"TERM": "xterm-256color"}, **options)


def screen(made, before=None, *, folded=True, watched=False):
    shown = screen_of(made.reading(), None, no_sla, Sort.GROUP, cluster="prod", folded=folded, is_watched=watched)
    return shown if before is None else replace(shown, before=screen(before, folded=folded).by_key())


def drawn(shown, width=120, height=24, **about):
    out = console(width, height, **about)
    out.print(shown)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def shop(groups=3):
    """A group that lost records, one that could not be read, and some that are behind or have read all."""
    made = Made().topic("orders", 3).topic().log(50, 2_000)
    for partition in range(3):
        made.log(1_000, 90_000, topic="orders", partition=partition)
    name = "eu-west-1.payments.settlement-batch.production.blue"
    made.group(name).member(*(("orders", partition) for partition in range(3)), group=name, name=LONG_ID)
    for partition, committed in enumerate((89_000, 800, 90_000)):
        made.commit(committed, group=name, topic="orders", partition=partition)
    made.group("unread").commit(None, group="unread", error="COORDINATOR_NOT_AVAILABLE")
    for number in range(groups):
        made.group(f"g{number:02}", state="Empty").commit(2_000 if number % 2 else 1_900, group=f"g{number:02}")
    return made


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("height", [10, 24, 60])
@pytest.mark.parametrize("watched", [False, True])
def test_the_screen_fits_the_window_with_the_worst_group_first(width, height, watched):
    lines = drawn(screen(shop(100), shop(99) if watched else None, watched=watched), width, height)

    assert len(lines) < height
    assert max(map(cell_len, lines)) <= width
    at = next(number for number, line in enumerate(lines) if line.startswith("STATE"))
    assert lines[at + 1].startswith("LOST ")


def test_at_80_columns_the_figures_come_first_and_names_lose_their_middle():
    lines = drawn(screen(shop()), 80)

    assert lines[1].split() == ["STATE", "LOST", "MARGIN", "LAG", "TIME", "GROUP", "WORST", "OF", "IN", "STATE"]
    assert lines[2].split()[:5] == ["LOST", "200", "gone", "90,200", "?"]
    assert "…" in lines[2]
    assert lines[2].split()[-3:] == ["orders-1", "3", "1"]
    assert lines[3].split() == ["NOT_ASSESSED", "?", "?", "?", "?", "unread", "t-0", "1", "1"]
    assert any("Too narrow for CLIENT-ID, HOST, CONSUMER-ID: use a wider window or --json" in line for line in lines)


def test_at_200_columns_no_column_is_left_out():
    lines = drawn(screen(shop()), 200)

    assert lines[1].split()[-3:] == ["CLIENT-ID", "HOST", "CONSUMER-ID"]
    assert "eu-west-1.payments.settlement-batch.production.blue" in lines[2]
    assert not any("narrow" in line for line in lines)


def test_the_heading_counts_the_groups_by_state():
    assert drawn(screen(shop()))[0] == "prod  2026-11-20 23:15:00 UTC  5 groups: 1 LOST, 1 NOT_ASSESSED, 2 BEHIND, 1 OK"


def test_what_is_cut_is_counted_by_state_and_says_how_to_get_it():
    lines = drawn(screen(shop(100)), 200, 20)
    shown = sum(line.startswith(("LOST", "NOT_ASSESSED", "BEHIND", "OK")) for line in lines)

    cut = f"{102 - shown} more groups not shown ({50 - (shown - 2)} BEHIND, 50 OK): enlarge the window, choose with --groups, or list all with"
    assert any(line.strip() == f"{cut} --partitions or --json" for line in lines)


def test_notes_stay_and_are_cut_last():
    assert any("its commit could not be read (COORDINATOR_NOT_AVAILABLE): unread:t-0" in line for line in drawn(screen(shop(100)), 80, 20))
    small = drawn(screen(shop(100)), 80, 8)
    assert small[-1].strip() == "More notes: --json"


def test_partitions_are_listed_all_even_if_they_scroll():
    lines = drawn(screen(shop(100), folded=False), 200, 10)

    assert sum(line.startswith(("LOST", "NOT_ASSESSED", "BEHIND", "OK")) for line in lines) == 104
    assert "PARTITION" in lines[1].split()
    assert "CURRENT-OFFSET" in lines[1].split()


def test_watched_partitions_fit_the_window():
    assert len(drawn(screen(shop(100), folded=False, watched=True), 200, 10)) < 10


def test_the_notes_name_the_column_as_it_stands_there():
    made = behind(40, 0, 100).unread(40, None, error="TOPIC_AUTHORIZATION_FAILED")

    assert any("TIME is not from the unread record itself" in line for line in drawn(screen(made)))


def test_hostile_names_stay_on_their_line():
    name = "a\u202eb\u034f\x1b[2J\n[red]x[/red]"
    made = Made().topic().log(0, 100).group(name).member(("t", 0), group=name, name=name).commit(40, group=name)
    for width in (80, 200):
        text = "\n".join(drawn(screen(made, folded=False), width))
        assert "\x1b" not in text
        assert not {"\u202e", "\u034f"} & set(text)
    assert "a\\u202eb\\u034f\\u001b[2J\\n[red]x[/red]" in text


def test_no_group_is_said_in_words():
    assert "no group in scope has a commit or an assigned partition" in drawn(screen(Made()))


def test_states_have_colours_and_none_where_nobody_wants_them():
    coloured = "\n".join(drawn(screen(shop()), color_system="256"))
    plain = "\n".join(drawn(screen(shop()), color_system="256", no_color=True))

    assert "\x1b[1;31mLOST" in coloured
    assert "\x1b[32mOK" in coloured
    assert "\x1b[1mLOST" in plain
    assert not any(f"\x1b[{code}m" in plain for code in ("31", "1;31", "32", "36", "33"))


def test_what_changed_since_the_reading_before_is_said_and_marked():
    before, now = behind(100, 0, 100), behind(40, 0, 100)
    now.group("fresh", state="Empty").commit(100, group="fresh")
    before.group("left", state="Empty").commit(100, group="left")
    lines = drawn(screen(now, before, watched=True), color_system="256")
    text = "\n".join(lines)

    assert "was OK" in text
    assert "\x1b[1;7;36mBEHIND" in text, "a state that changed is drawn in reverse"
    assert "new" in next(line for line in lines if "fresh" in line)
    assert "Gone since the reading before: left" in text
    same = "\n".join(drawn(screen(now, now, watched=True), color_system="256"))
    assert "\x1b[1;7" not in same
    assert "new" not in same


def test_a_reading_that_failed_is_said_above_the_table():
    lines = drawn(replace(screen(shop()), problem="no broker \x1b[2J answered"))

    assert lines[1] == "Not read again, so this is not the present state: no broker \\u001b[2J answered"


def watched(*reads):
    """What is written until Ctrl-C comes while the last reading is awaited."""
    readings, out = iter(reads), console()

    def read():
        one = next(readings, None)
        if one is None:
            raise KeyboardInterrupt
        if isinstance(one, Exception):
            raise one
        return one.reading()

    def show(reading, before):
        return screen_of(reading, before, no_sla, Sort.GROUP, cluster="prod", folded=True, is_watched=True)

    watch_on_screen(read, show, out, every_seconds=1, sleep=lambda _: None)
    return out.file.getvalue()


def test_watching_draws_in_the_second_screen_and_leaves_the_last_table_on_the_first():
    text = watched(behind(100, 0, 100), later(behind(40, 0, 100), 5))
    on_screen, left = text.split("\x1b[?1049l")

    assert "\x1b[?1049h" in on_screen
    assert "(Ctrl-C ends it)" in on_screen
    assert "23:15:00" not in left
    assert "Ctrl-C" not in left


def test_a_reading_that_fails_does_not_end_the_watch_but_the_first_one_does():
    text = watched(behind(100, 0, 100), CollectionError("no broker answered"), behind(40, 0, 100))

    assert "no broker answered" in text
    assert "was OK" in text.split("\x1b[?1049l")[1], "compared with the last reading that there was"
    assert "no broker answered" not in text.split("\x1b[?1049l")[1]
    with pytest.raises(CollectionError):
        watched(CollectionError("gone"))


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999_999, "999,999"), (1_000_000, "1.0M"), (19_990_000, "19.9M"), (2_500_000_000, "2.5G"), (10**19, "10,000.0P")],
)
def test_large_counts_are_rounded_down(number, text):
    assert count_text(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.25, "0.2s"), (3, "3s"), (59.9, "59s"), (60, "1m 0s"), (8_040, "2h 14m"), (86_400 * 3 + 4 * 3_600, "3d 4h")],
)
def test_durations_have_two_units(seconds, text):
    assert duration_text(seconds) == text
