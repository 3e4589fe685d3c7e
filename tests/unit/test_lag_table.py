"""`kafka-audit lag` into a pipe: its text and JSON, order, rates, and the loop that reads again."""

import io
import json
from datetime import timedelta

import pytest
from lag_readings import AT, Made, behind

from kafka_audit.errors import CollectionError
from kafka_audit.lag.lag_table import Sort, as_json, as_text, watch

HOSTILE = (
    "=cmd|' /C calc'!A0",
    "<script>",
    "a\u202eb",
    "a\u034f\U000e0100b",
    "\x1b[31mred",
    "two\nlines\ttabs",
    "g t 0 5 5 0",
    "\u0000",
    "e\u0301\u0301\u0301\u0301",
)


def no_sla(group_id, topic):
    return None


def text(made, **options):
    return as_text(made.reading(), options.get("before"), no_sla, options.get("sort", Sort.GROUP))


def groups(made, sort):
    return [line.split()[0] for line in text(made, sort=sort).splitlines()[1:] if not line.startswith("  ")]


def test_the_columns_are_those_of_kafka_consumer_groups_and_ours():
    head, row = text(behind(40, 0, 100).unread(40, 40, 12)).splitlines()

    assert head.split() == [
        *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"),
        *("LOST", "MARGIN", "LAG-SECONDS", "SLA", "STATE"),
    ]
    assert row.split() == ["g", "t", "0", "40", "100", "60", "m1", "/10.0.0.1", "app", "0", "40", "12", "-", "BEHIND"]
    assert [head.index(word) for word in ("TOPIC", "LAG", "STATE")] == [row.index(word) for word in ("t ", "60", "BEHIND")]


def test_what_is_not_known_is_a_dash_in_every_column():
    assert text(Made().group().commit(5)).splitlines()[1].split() == ["g", "t", "0", "5", *["-"] * 9, "ORPHAN"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_strangers_stay_in_their_cell_and_cannot_move_the_terminal(name):
    made = Made().topic().log(0, 100).group(name).member(("t", 0), group=name, name=name).commit(40, group=name)
    printed = text(made)
    read = json.loads(as_json(made.reading(), None, no_sla, Sort.GROUP, cluster="c"))

    assert len(printed.splitlines()[1].split()) == 14
    assert printed.replace("\n", "").isprintable()
    assert as_json(made.reading(), None, no_sla, Sort.GROUP, cluster="c").isascii()
    assert read["rows"][0]["group"] == name


def test_a_very_long_name_is_cut_and_the_json_has_it_whole():
    name = "x" * 5000
    made = Made().topic().log(0, 100).group(name).commit(40, group=name)

    assert len(text(made).splitlines()[1]) < 500
    assert json.loads(as_json(made.reading(), None, no_sla, Sort.GROUP, cluster="c"))["rows"][0]["group"] == name


def test_sorting_puts_the_worst_first_and_the_unknown_last():
    made = Made().topic(partitions=1).log(50, 100)
    for name, committed in (("a", 90), ("b", 40), ("c", None), ("d", 60)):
        made.group(name).commit(committed, group=name)

    assert groups(made, Sort.GROUP) == ["a", "b", "c", "d"]
    assert groups(made, Sort.LAG) == ["b", "d", "a", "c"]
    assert groups(made, Sort.LOST) == ["b", "a", "d", "c"]
    assert groups(made, Sort.MARGIN) == ["d", "a", "b", "c"]


def test_rates_are_those_between_two_readings():
    before, now = behind(40, 0, 100), behind(60, 0, 200)
    now.at = AT + timedelta(seconds=10)
    for name in ("committed_offsets", "offsets"):
        now.rows[name][0]["read_at"] = now.at
    line = as_text(now.reading(), before.reading(), no_sla, Sort.GROUP).splitlines()

    assert line[0].split()[-2:] == ["CONSUMED/S", "PRODUCED/S"]
    assert line[1].split()[-2:] == ["2.0", "10.0"]


def test_no_rate_of_what_went_back_of_another_topic_and_of_what_was_not_there():
    before, now = behind(60, 0, 100), behind(40, 0, 200)
    other = behind(70, 0, 200)
    other.rows["topics"][0]["topic_id"] = "another"
    for made in (now, other):
        made.at = AT + timedelta(seconds=10)
        for name in ("committed_offsets", "offsets"):
            made.rows[name][0]["read_at"] = made.at

    def speeds(made):
        return as_text(made.reading(), before.reading(), no_sla, Sort.GROUP).splitlines()[1].split()[-2:]

    assert speeds(now) == ["-", "10.0"]
    assert speeds(other) == ["-", "-"]


def test_no_group_is_said_in_words():
    assert text(Made()) == "no group in scope has a commit or an assigned partition"


def watched(*reads):
    readings, out = iter(reads), io.StringIO()

    def read():
        one = next(readings, None)
        if one is None:
            raise KeyboardInterrupt
        if isinstance(one, Exception):
            raise one
        return one

    watch(
        read,
        lambda now, before: f"{now} {before}",
        every_seconds=1,
        out=out,
        say=lambda problem: out.write(f"said {problem}\n"),
        sleep=lambda _: None,
    )
    return out.getvalue()


def test_watching_appends_and_ends_without_an_error():
    assert watched("one", "two") == "one None\ntwo one\n"


def test_a_cluster_that_is_away_for_a_while_does_not_end_the_watch_but_one_that_never_answered_does():
    assert watched("one", CollectionError("gone"), "two") == "one None\nsaid gone\ntwo one\n"
    with pytest.raises(CollectionError):
        watched(CollectionError("gone"))
