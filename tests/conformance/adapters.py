"""What other tools answer on the same cases, by their published rules. A question that a tool does not answer is missing from its table.

Each answer is a function of the case alone, written from the tool's source or documentation, which is named beside it.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from conformance.cases import UNKNOWN, Answer, Case
from conformance.evidence import place_of

Rule = Callable[[Case], Answer | None]
"""None: the tool says nothing in this case."""


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _partition(case: Case, sample: Mapping[str, Any], number: int | None = None) -> dict[str, Any]:
    """A partition of the topic as brokers describe it; without a number the one that is asked about."""
    topic = sample["topics"][case.place("topic")] or {}
    which = case.place("partition") if number is None else number
    part = {**topic, **topic.get("per_partition", {}).get(str(which), {})}
    replicas = part.get("replicas", [1, 2, 3])
    return {"start": 0, "leader": replicas[0], "isr": replicas, **part, "replicas": replicas}


def _commit(case: Case, sample: Mapping[str, Any]) -> int | None:
    """The committed offset on that partition; None without one."""
    for text, committed in (sample["groups"][case.place("group")] or {}).get("commits", {}).items():
        if place_of(text) == (case.place("topic"), case.place("partition")):
            return committed if isinstance(committed, int) else None
    return None


def _end(case: Case, sample: Mapping[str, Any]) -> int | None:
    """The log end offset; None for a partition that is not there or could not be asked."""
    topic = sample["topics"].get(case.place("topic"), "absent")
    there = topic != "absent" and case.place("partition") < (topic or {}).get("partitions", 1)
    return _partition(case, sample).get("end") if there else None


def _config(case: Case, name: str, default: str) -> str | None:
    configs = _partition(case, case.now).get("configs", {})
    return None if configs == "refused" else str(configs.get(name, default))


# Kafka's own tools: tools/src/main/java/org/apache/kafka/tools/TopicCommand.java (class PartitionDescription) and
# consumer/group/ConsumerGroupCommand.java of Kafka 4.
def _min_isr(case: Case) -> int | None:
    """kafka-topics.sh compares with min.insync.replicas as it is configured."""
    value = _config(case, "min.insync.replicas", "2")
    return None if value is None else int(value)


def _under_min_isr(case: Case, spare: int) -> Answer:
    """--under-min-isr-partitions (spare 0): no leader, or fewer in sync than configured; --at-min-isr-partitions adds those just at it."""
    partition, least = _partition(case, case.now), _min_isr(case)
    if least is None:
        return UNKNOWN
    return _yes(partition["leader"] >= 0 and len(partition["isr"]) >= least + spare)


def _live_leader(case: Case) -> Answer:
    """--unavailable-partitions: no leader, or one that is not among the live brokers."""
    leader, brokers = _partition(case, case.now)["leader"], (case.now.get("cluster") or {}).get("brokers", {})
    return _yes(leader >= 0 and (brokers.get(leader) or {}).get("alive", True))


def _replication_factor(case: Case, number: int) -> int:
    """Assigned replicas without those that a reassignment adds, as kafka-topics.sh counts them."""
    partition = _partition(case, case.now, number)
    return len(set(partition["replicas"]) - set(partition.get("adding", [])))


def _fewest_replicas(case: Case) -> int:
    return min(_replication_factor(case, number) for number in range((case.now["topics"][case.place("topic")] or {}).get("partitions", 1)))


def _tools_lag(case: Case) -> Answer:
    """Column LAG of kafka-consumer-groups.sh: log end - commit; "-" without one of them."""
    committed, end = _commit(case, case.now), _end(case, case.now)
    return UNKNOWN if committed is None or end is None else end - committed


def _hangs(case: Case) -> Answer | None:
    """kafka-transactions.sh find-hanging: open for longer than the longest timeout, and not known to any coordinator."""
    if "producers" in _partition(case, case.now).get("refused", {}):
        return UNKNOWN
    producers = _partition(case, case.now).get("producers")
    if producers is None:
        return None
    old = [one for one in producers if one.get("open_from", -1) >= 0 and one["silent_minutes"] > 15]
    return _yes(any("transaction" not in one for one in old))


KAFKA_TOOLS: dict[str, Rule] = {
    "will_acks_all_writes_succeed": lambda case: _under_min_isr(case, 0),
    "do_writes_survive_one_more_failure": lambda case: _under_min_isr(case, 1),
    "has_a_live_leader": _live_leader,
    "is_every_replica_in_sync": lambda case: _yes(
        _replication_factor(case, case.place("partition")) <= len(_partition(case, case.now)["isr"])
    ),
    "are_there_three_replicas": lambda case: _yes(_fewest_replicas(case) >= 3),
    "lag": _tools_lag,
    "does_a_transaction_hang": _hangs,
}


# kminion, prometheus/collect_consumer_group_lags.go: no metric without both offsets, else high watermark - commit, and 0 if that is negative.
def _kminion_lag(case: Case) -> Answer:
    lag = _tools_lag(case)
    return max(0, lag) if isinstance(lag, int) else lag


KMINION: dict[str, Rule] = {"lag": _kminion_lag}


# klag-exporter, src/collector/lag_calculator.rs: a watermark that is missing counts as (0, commit); lag is 0 where records were lost;
# seconds are the age of the record at the commit, 0 without lag, and 0 where records were lost and none was read.
def _klag(case: Case) -> tuple[int, int, int] | None:
    """Commit, low and high watermark; None without a commit."""
    committed, end = _commit(case, case.now), _end(case, case.now)
    if committed is None:
        return None
    return (committed, 0, committed) if end is None else (committed, _partition(case, case.now)["start"], end)


def _klag_figure(figure: Callable[[int, int, int], int]) -> Rule:
    def answer(case: Case) -> Answer:
        offsets = _klag(case)
        return UNKNOWN if offsets is None else figure(*offsets)

    return answer


def _klag_seconds(case: Case) -> Answer:
    offsets = _klag(case)
    if offsets is None:
        return UNKNOWN
    committed, low, high = offsets
    if high <= committed:
        return 0
    ages = [age for offset, age in _partition(case, case.now).get("records", {}).items() if int(offset) >= max(committed, low)]
    return max(0, ages[0]) if ages else 0 if committed < low else UNKNOWN


KLAG: dict[str, Rule] = {
    "lag": _klag_figure(lambda committed, low, high: 0 if committed < low else max(0, high - committed)),
    "records_lost": _klag_figure(lambda committed, low, high: max(0, low - committed)),
    "was_a_record_lost": lambda case: UNKNOWN if (offsets := _klag(case)) is None else _yes(offsets[0] < offsets[1]),
    "lag_seconds": _klag_seconds,
}


# Burrow, core/internal/evaluator/caching.go, default settings: ten commits, ten log ends. A sample counts as a commit where the offset
# changed or the group has members, who commit whether they move or not. Lag is the newest log end that is known - commit, and 0 if that is
# negative.
def _burrow(case: Case) -> str | None:
    """Burrow's word for the partition; None where it knows no commit or no log end."""
    ends: list[int] = []
    commits: list[tuple[float, int, int]] = []
    before = None
    for minutes_ago, sample in zip(case.minutes_ago, case.samples, strict=True):
        offset, end = _commit(case, sample), _end(case, sample)
        ends += [] if end is None else [end]
        group = sample["groups"][case.place("group")] or {}
        if offset is not None and ends and (offset != before or group.get("reads") or group.get("members")):
            commits.append((-minutes_ago, offset, max(0, ends[-1] - offset)))
        before = offset
    commits, ends = commits[-10:], ends[-10:]
    return _burrow_word(commits, ends) if commits else None


def _burrow_word(commits: list[tuple[float, int, int]], ends: list[int]) -> str:
    (first, *_), (last, newest, _) = commits[0], commits[-1]
    offsets, lags = [offset for _, offset, _ in commits], [lag for *_, lag in commits]
    if ends[-1] <= newest:
        return "OK"
    if -last > last - first and min(ends) > newest:
        return "STOP"
    back = next((number for number in range(1, len(offsets)) if offsets[number] < offsets[number - 1]), None)
    if back is not None and max(offsets[back:]) < offsets[back - 1]:
        return "REWIND"
    if min(lags) > 0 and len(set(offsets)) == 1:
        return "STALL"
    falls = any(later < lag for lag, later in pairwise(lags))
    return "OK" if falls or min(lags) == 0 else "WARN"


_WORDS = {"OK": "ok", "WARN": "falling behind", "STOP": "stopped", "STALL": "stalled", "REWIND": "rewound"}


BURROW: dict[str, Rule] = {
    "lag": _kminion_lag,  # CurrentLag of core/internal/storage/inmemory.go
    "does_the_group_keep_up": lambda case: UNKNOWN if (word := _burrow(case)) is None else _yes(word == "OK"),
    "what_is_wrong_with_the_group": lambda case: None if (word := _burrow(case)) is None else _WORDS[word],
    "was_the_group_rewound": lambda case: UNKNOWN if (word := _burrow(case)) is None else _yes(word == "REWIND"),
}


# A reader who compares settings with "Best practices for Apache Kafka clients" of Amazon MSK: acks=all with three replicas and
# min.insync.replicas=2, many retries, delivery.timeout.ms of 60 s or more, auto.offset.reset=latest for new or recreated groups. What is as
# advised is taken for safe; of a setting that nobody wrote, and of other values of auto.offset.reset, the reader says nothing.
# https://docs.aws.amazon.com/msk/latest/developerguide/bestpractices-kafka-client.html
def _settings(case: Case) -> dict[str, str]:
    client = case.now["clients"][case.place("client")] if case.now.get("clients") else {}
    return {name: str(value).lower() for name, value in client.get("settings", {}).items()}


def _advised_copies(case: Case) -> Answer:
    least = _min_isr(case)
    return UNKNOWN if least is None else _yes(least < 2 or len(_partition(case, case.now)["replicas"]) < 3)


def _advised_acks(case: Case) -> Answer | None:
    acks = _settings(case).get("acks")
    return None if acks is None else _yes(acks not in ("all", "-1"))


def _advised_retries(case: Case) -> Answer | None:
    written = {"retries": 2147483647, "delivery.timeout.ms": 120_000}
    given = {name: int(value) for name, value in _settings(case).items() if name in written}
    values = written | given
    return _yes(values["retries"] > 0 and values["delivery.timeout.ms"] >= 60_000) if given else None


ADVICE: dict[str, Rule] = {
    "are_there_three_replicas": lambda case: _yes(_fewest_replicas(case) >= 3),
    "can_one_disk_lose_acknowledged_records": _advised_copies,
    "can_the_producer_lose_acknowledged_records": _advised_acks,
    "do_retries_outlast_a_failover": _advised_retries,
    "can_a_reset_skip_records": lambda case: "no" if _settings(case).get("auto.offset.reset") == "latest" else None,
}

TOOLS: dict[str, dict[str, Rule]] = {
    "Kafka's own tools": KAFKA_TOOLS,
    "Burrow": BURROW,
    "klag-exporter": KLAG,
    "kminion": KMINION,
    "published advice": ADVICE,
}
