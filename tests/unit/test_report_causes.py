"""Failures with the same cause are one row of the report, whatever their resources are called."""

from dataclasses import replace

from report_audit import HOSTILE_GROUPS, control, finding

from kafka_audit.report.causes import by_cause, without_own_names
from kafka_audit.report.results import FINDING_COLUMNS, Finding

PARTITION = control("leader_alive", "REP-01", subject="partition")


def failure(topic: str, partition: int = 0, **changes: object) -> Finding:
    """A failure of one partition that names itself in what was observed."""
    resource = f"{topic}-{partition}"
    row = finding(PARTITION, resource, topic=topic, partition=partition, observed=f"{resource} has no leader", **changes)
    return Finding(**{name: row.get(name) for name in FINDING_COLUMNS})  # type: ignore[arg-type]


def test_the_same_cause_on_400_partitions_is_one_row() -> None:
    (cause,) = by_cause([failure(f"topic{number % 20}", number) for number in range(400)])
    assert len(cause.findings) == 400
    assert len(cause.same_evidence) == 399


def test_what_differs_in_more_than_the_name_is_another_cause() -> None:
    found = [
        failure("orders"),
        replace(failure("orders", 1), observed="orders-2 has no leader"),
        failure("orders", 2, expected="something else"),
        failure("orders", 3, reason="not the same reason"),
        failure("orders", 4, tier="standard"),
        failure("orders", 5, waiver="W-1"),
        failure("orders", 6, loosened="replication_factor 2 (strict: 3)"),
    ]
    assert len(by_cause(found)) == len(found)


def test_the_worst_severity_comes_first_and_then_the_most_resources() -> None:
    low = [failure("low", number, severity="low") for number in range(5)]
    one, three = failure("one"), [failure("three", number) for number in range(3)]
    assert [cause.first.topic for cause in by_cause([*low, replace(one, observed="alone"), *three])] == ["three", "one", "low"]


def test_a_name_inside_of_a_longer_name_stays() -> None:
    one = failure("orders")
    assert (
        without_own_names("orders-0 and orders-01, reorders-0 and my.orders-0", one) == "\u241a and orders-01, reorders-0 and my.orders-0"
    )


def test_numbers_and_short_names_stay_because_they_may_mean_something_else() -> None:
    assert [without_own_names("2 in sync", failure(name)) for name in ("2", "in", "222")] == ["2 in sync"] * 3
    assert len(by_cause([replace(failure("2"), observed="2 in sync"), replace(failure("1"), observed="1 in sync")])) == 2


def test_evidence_that_differs_is_not_called_the_same() -> None:
    (cause,) = by_cause([failure("aaa"), failure("bbb"), failure("ccc", evidence='{"replicas": [2]}')])
    assert cause.same_evidence == {"bbb-0"}


def test_hostile_names_are_grouped_like_others() -> None:
    (cause,) = by_cause([failure(name) for name in HOSTILE_GROUPS])
    assert [one.topic for one in cause.findings] == list(HOSTILE_GROUPS)
