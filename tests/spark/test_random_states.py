"""Random cluster states: the product's verdicts equal those of a second, naive implementation of Kafka's rules (naive_kafka.py)."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from naive_kafka import Part, State, consistent, random_state, simpler, verdicts
from pyspark.sql import SparkSession
from snapshot_builder import READ_AT, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.policy import load_policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

STATES, SEED = 10_000, 20261123
KEPT = {
    "a reassignment adds what is not in sync yet": State(parts=(Part(replicas=(1, 2, 3), isr=(1,), leader=1, adding=(2, 3)),)),
    "an in-sync replica is being removed": State(parts=(Part(replicas=(1, 2, 3, 4), isr=(1, 2, 3, 4), leader=1, removing=(4,)),)),
    "one replica, and more asked for than there are": State(parts=(Part(replicas=(1,), isr=(1,), leader=1),), min_insync=2),
    "nothing was ever committed, and nothing written": State(log=(50, 50), committed=None),
}
"""States that once made a difference, or were thought to, as simple as they could be made."""


@pytest.mark.usefixtures("large_clusters")
def test_the_verdicts_on_random_states_are_those_of_kafkas_rules(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(SEED)
    states = [*KEPT.values(), *(random_state(random) for _ in range(STATES))]
    assert all(consistent(part) for state in states for part in state.parts)
    wrong = differences(spark, tmp_path / "all", states)
    if wrong:
        number = next(iter(wrong))
        least = simplest(spark, tmp_path, states[number])
        said = differences(spark, tmp_path / "least", [least])
        pytest.fail(f"{len(wrong)} of {len(states)} states differ; the first, made as simple as it can be, is {least}: {said}")
    expected = {status for state in states for status in verdicts(state).values()}
    assert expected == {"pass", "fail", "not_assessed", "not_applicable"}


def differences(spark: SparkSession, folder: Path, states: Sequence[State]) -> dict[int, dict[tuple[str, str], tuple[str | None, str]]]:
    """By the number of the state, (control, resource) -> (the product's status, the naive one) where the two differ."""
    found = judged(spark, folder, states)
    wrong: dict[int, dict[tuple[str, str], tuple[str | None, str]]] = {}
    for number, state in enumerate(states):
        for (code, resource), status in verdicts(state).items():
            name = f"g{number}:t{number}-0" if resource == "group" else f"t{number}{resource.removeprefix('topic')}"
            got = found.get((code, name))
            # Without a member and a commit that was told, nothing names a partition of the group: there is no row, and CON-01 says why.
            unnamed = resource == "group" and not state.has_member and (state.commit_refused or state.committed is None)
            if got != status and not (got is None and unnamed):
                wrong.setdefault(number, {})[code, resource] = (got, status)
    return wrong


def simplest(spark: SparkSession, folder: Path, state: State) -> State:
    """The state, simplified step by step as long as there is a difference."""
    for step in range(30):
        candidates = simpler(state)
        if not candidates:
            return state
        wrong = differences(spark, folder / str(step), candidates)
        if not wrong:
            return state
        state = candidates[next(iter(wrong))]
    return state


def judged(spark: SparkSession, folder: Path, states: Sequence[State]) -> dict[tuple[str, str], str]:
    """(control, resource) -> status, of one cluster that has a topic and a group for each state."""
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c", 4: "d"})
    for number, state in enumerate(states):
        add(one, f"t{number}", f"g{number}", state)
    evidence, policy = Evidence(spark=spark, snapshot=one.write(folder)), load_policy()
    columns = PolicyColumns(policy=policy, at=READ_AT)
    wanted = {code for code, _ in verdicts(State())}
    found = {}
    for subject in ("topic", "partition", "group_partition"):
        controls = [control for control in load_catalogue().of_subject(subject) if control.code in wanted]
        for row in judge(wide_rows(subject, evidence, policy), controls, None, columns).select("code", "resource", "status").collect():
            found[row.code, row.resource] = row.status
    return found


def add(one: Synthetic, topic: str, group: str, state: State) -> None:
    one.add("topics", topic=topic, topic_id=f"id-{topic}", is_internal=False, partition_count=len(state.parts))
    for number, part in enumerate(state.parts):
        place = {"topic": topic, "partition": number}
        about = {"leader": part.leader, "leader_epoch": 0, "replicas": list(part.replicas), "isr": list(part.isr), "offline_replicas": []}
        one.add("partitions", **place, **about, confirmed=False, read_at=READ_AT)
        if part.adding or part.removing:
            moves = {"adding_replicas": list(part.adding), "removing_replicas": list(part.removing)}
            one.add("reassignments", **place, replicas=list(part.replicas), **moves)
    config = {"cleanup.policy": ("delete", True), "min.insync.replicas": (str(state.min_insync), True)}
    config["unclean.leader.election.enable"] = (str(state.unclean).lower(), state.unclean_is_of_topic or state.unclean)
    for name, (value, own) in config.items() if state.configs_read else ():
        source = "DYNAMIC_TOPIC_CONFIG" if own else "DEFAULT_CONFIG"
        one.add("topic_configs", topic=topic, name=name, value=value, source=source, is_sensitive=False, synonyms=[])
    if not state.configs_read:
        one.error("topic_configs", "TOPIC_AUTHORIZATION_FAILED", topic=topic)
    if state.log is None:
        one.error("offsets", "LEADER_NOT_AVAILABLE", topic=topic, partition=0)
    else:
        one.offsets(topic, 0, log_start=state.log[0], log_end=state.log[1], last_stable=state.log[1])
    one.group(
        group, state="Stable" if state.has_member else "Empty", assigned=[(topic, 0)] if state.has_member else None, subscribed=[topic]
    )
    if state.commit_refused:
        one.error("committed_offsets", "GROUP_AUTHORIZATION_FAILED", group_id=group)
    else:
        one.commit(group, topic, state.committed)
