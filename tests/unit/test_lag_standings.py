"""Groups as Arrow columns stand where `kafka-audit lag` says that they stand: by the golden table, and on random readings."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from lag_golden import GOLDEN
from lag_readings import AT, Made
from test_lag_position import reading_of

from kafka_audit.collect.datasets import DATASETS
from kafka_audit.lag.reading import Reading
from kafka_audit.lag.rows import NOT_ASSESSED, SLA_BROKEN, SLA_OK, LagRow, lag_rows
from kafka_audit.lag.seconds import EXACT
from kafka_audit.lag.sla_standings import within_limits
from kafka_audit.lag.standings import READ, standings
from kafka_audit.policy.slas import LagSla, QuietHours

RECORDS = LagSla(pattern="*", name="records", max_lag_records=50)
SECONDS = LagSla(pattern="*", name="seconds", max_lag_seconds=60)
BOTH = LagSla(pattern="*", name="both", max_lag_records=50, max_lag_seconds=60)
NO_PROGRESS = LagSla(pattern="*", name="progress", max_no_progress_seconds=60)
ALL_DAY = [QuietHours.model_validate({"days": ["fri", "sat", "sun", "mon", "tue", "wed", "thu"], "from": "00:00", "to": "00:00"})]


def tables_of(reading: Reading) -> dict[str, pa.Table]:
    return {name: _table(name, reading.datasets[name]) for name in READ}


def _table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=DATASETS[name].schema)


def of_rows(row: LagRow) -> tuple[Any, ...]:
    exact = row.lag_seconds.value if row.lag_seconds is not None and row.lag_seconds.bound == EXACT else None
    unread = row.unread or (None, None)
    return row.group_id, row.topic, row.partition, row.state, row.position, row.lag, row.lost, *unread, exact


def of_columns(row: Mapping[str, Any]) -> tuple[Any, ...]:
    known = row["state"] != "BEYOND_END" and not (row["state"] == "ABANDONED" and row["least"] is None)
    figures = (row[name] if known else None for name in ("position", "behind", "lost", "least", "most", "age_s"))
    return row["group_id"], row["topic"], row["partition"], row["state"], *figures


def compare(reading: Reading) -> None:
    there = [row for row in lag_rows(reading, lambda _group, _topic: None) if row.topic is not None]
    found = [of_columns(row) for row in standings(tables_of(reading)).to_pylist()]
    assert [one[:-1] for one in found] == [of_rows(row)[:-1] for row in there]
    assert [one[-1] for one in found] == [pytest.approx(of_rows(row)[-1]) for row in there]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_standing(name: str) -> None:
    case = GOLDEN[name]
    row = next(row for row in standings(tables_of(reading_of(case).reading())).to_pylist() if row["topic"] == "t")
    assert row["state"] == case.expected
    assert (row["least"], row["most"]) == (case.records or (None, None))
    if case.position is not None:
        assert (row["position"], row["lag"], row["lost"]) == (case.position, case.lag, case.lost)
        assert row["behind"] == (case.lag or 0) + (case.lost or 0)


def random_reading(chance: random.Random) -> Reading:
    """Two groups on partitions of three topics, with everything that may be missing missing at times."""
    made = Made()
    for topic in ("t", "u", "gone"):
        if topic != "gone":
            made.topic(topic, partitions=chance.choice([2, 2, 1]), error=chance.choice([None] * 9 + ["TIMEOUT"]))
        for partition in range(2):
            log = chance.choice([(0, 100), (40, 100), (100, 100), (70, 71), (None, 100), (0, None)])
            made.log(*log, topic=topic, partition=partition, stable=chance.choice([None, None, 90]))
    for group in ("g", "h"):
        made.group(group, state=chance.choice(["Stable", "Stable", "Empty", "PreparingRebalance"]))
        for member in range(chance.randrange(3)):
            places = chance.sample([("t", 0), ("t", 1), ("u", 0)], k=chance.randrange(3))
            made.member(*places, group=group, name=f"m{member}", subscribed=chance.choice([None, ["t"], ["u"], ["t", "u"]]))
            if chance.random() < 0.1:
                made.rows["members"][-1]["assignment"] = None
        for topic, partition in (("t", 0), ("t", 1), ("u", 0), ("gone", 0)):
            if chance.random() < 0.8:
                offset = chance.choice([0, 30, 40, 70, 95, 99, 100, 130, None])
                made.commit(offset, group=group, topic=topic, partition=partition, error=chance.choice([None] * 9 + ["TIMEOUT"]))
    _with_unread(made, chance)
    return made.reading()


def _with_unread(made: Made, chance: random.Random) -> None:
    for position in (0, 30, 40, 70, 95, 99):
        if chance.random() < 0.7:
            record = chance.choice([position, position + 1, None])
            age = None if record is None else chance.choice([5.0, 59.0, 61.0, 3600.0, -30.0, None])
            made.unread(position, record, age, error=chance.choice([None] * 6 + ["CORRUPT_MESSAGE", "TOPIC_AUTHORIZATION_FAILED"]))
    if chance.random() < 0.6:
        made.demanded(60, chance.choice([0, 31, 35, 41, 96, 97, 100]), error=chance.choice([None] * 5 + ["TIMEOUT"]))
    if chance.random() < 0.1:
        made.error("committed_offsets", "GROUP_AUTHORIZATION_FAILED", group_id="h")
        made.rows["committed_offsets"] = [row for row in made.rows["committed_offsets"] if row["group_id"] != "h"]


@pytest.mark.parametrize("seed", range(150))
def test_random_standings_are_those_of_the_lag_command(seed: int) -> None:
    compare(random_reading(random.Random(seed)))


def expected(reading: Reading, sla: LagSla) -> dict[str, bool]:
    """What the rows of `kafka-audit lag` say of whole groups: broken by one row, kept if every row that is read further is."""
    found: dict[str, bool] = {}
    rows = lag_rows(reading, lambda _group, _topic: sla)
    unread = {row.group_id for row in rows if row.state in {NOT_ASSESSED, "BEYOND_END"}}
    for group in {row.group_id for row in rows}:
        answers = [row.sla for row in rows if row.group_id == group and row.state in {"OK", "BEHIND", "LOST"}]
        if SLA_BROKEN in answers:
            found[group] = False
        elif answers and set(answers) == {SLA_OK} and group not in unread:
            found[group] = True
    return found


@pytest.mark.parametrize("sla", [RECORDS, SECONDS, BOTH], ids=lambda sla: str(sla.name))
@pytest.mark.parametrize("seed", range(60))
def test_random_groups_are_within_their_slas_where_the_lag_command_says_so(seed: int, sla: LagSla) -> None:
    reading = random_reading(random.Random(1000 + seed))
    tables = tables_of(reading)
    found = within_limits(standings(tables), tables, lambda _group, _topic: sla, AT)
    assert {row["group_id"]: row["within"] for row in found.to_pylist()} == expected(reading, sla)
    assert set(found["sla"].to_pylist()) <= {sla.name}


def test_the_random_readings_have_groups_of_both_kinds_and_of_none() -> None:
    found: list[bool | None] = []
    for seed in range(60):
        reading = random_reading(random.Random(1000 + seed))
        said = expected(reading, BOTH)
        found += [said.get(group) for group in ("g", "h")]
    assert {True, False, None} == set(found)


@pytest.mark.parametrize("sla", [NO_PROGRESS, RECORDS.model_copy(update={"quiet_hours": ALL_DAY}), None])
def test_no_answer_in_quiet_hours_without_a_limit_that_one_reading_can_judge_and_without_an_sla(sla: LagSla | None) -> None:
    tables = tables_of(Made().topic().log(0, 100).group().member(("t", 0)).commit(100).reading())
    assert within_limits(standings(tables), tables, lambda _group, _topic: sla, AT).num_rows == 0


def test_a_rule_covers_the_topics_that_it_matches_and_no_others() -> None:
    made = Made().topic("t").topic("u").log(0, 100).log(0, 100, topic="u").group(state="Empty").commit(100).commit(0, topic="u")
    tables = tables_of(made.reading())
    by_topic = {"t": RECORDS, "u": RECORDS.model_copy(update={"name": "other", "max_lag_records": 99})}
    found = within_limits(standings(tables), tables, lambda _group, topic: by_topic[topic], AT)
    assert [(row["sla"], row["within"]) for row in found.to_pylist()] == [("other", False), ("records", True)]
