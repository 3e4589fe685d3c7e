"""Random states of a topic and the group that reads it, and the verdicts on them, computed one by one by rules written from Kafka's own.

Sources: Partition.effectiveMinIsr (min.insync.replicas is bounded by the assigned replicas since KAFKA-15583), ReplicaManager's refusal of
acks=all below it (NotEnoughReplicasException), PartitionReassignmentReplicas (adding and removing replicas, KIP-455),
GroupCoordinator (offsets that were never committed are -1), and UnifiedLog (log start and log end). Nothing here is used by the product.
"""

from dataclasses import dataclass, field, replace
from random import Random

ALIVE, BROKERS = (1, 2, 3, 4), (1, 2, 3, 4, 5)
"""Broker 5 is dead."""
PASS, FAIL, OPEN, NOT_APPLICABLE = "pass", "fail", "not_assessed", "not_applicable"


@dataclass(frozen=True)
class Part:
    """One partition. ``adding`` and ``removing`` are replicas of a reassignment that is running, both empty where none is."""

    replicas: tuple[int, ...] = (1, 2, 3)
    isr: tuple[int, ...] = (1, 2, 3)
    leader: int = 1
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


@dataclass(frozen=True)
class State:
    """One topic, and one group that may read its partition 0. None: it could not be read."""

    parts: tuple[Part, ...] = field(default=(Part(),))
    configs_read: bool = True
    min_insync: int = 2
    unclean: bool = False
    unclean_is_of_topic: bool = True
    log: tuple[int, int] | None = (0, 100)
    committed: int | None = 100
    commit_refused: bool = False
    has_member: bool = True


def random_state(random: Random) -> State:
    """A state such as clusters have: mostly healthy, with one or several things odd."""

    def odd(chance: float = 0.25) -> bool:
        return random.random() < chance

    def part() -> Part:
        replicas = tuple(random.sample(BROKERS, random.choice((1, 2, 3, 3, 3, 4)))) if odd(0.5) else (1, 2, 3)
        adding = tuple(one for one in replicas if odd(0.4)) if odd() else ()
        adding = adding if len(adding) < len(replicas) else ()
        removing = tuple(one for one in replicas if one not in adding and odd(0.4)) if odd() else ()
        removing = removing if len(removing) < len(replicas) else ()
        living = [one for one in replicas if one in ALIVE]
        isr = tuple(one for one in living if not odd()) if odd(0.5) else tuple(living)
        leader = random.choice(isr) if isr and not odd(0.1) else -1
        return Part(replicas=replicas, isr=isr, leader=leader, adding=adding, removing=removing)

    start = random.choice((0, 0, 0, 10, 50))
    end = start + random.choice((0, 1, 50, 50))
    return State(
        parts=tuple(part() for _ in range(random.choice((1, 1, 2, 3)))),
        configs_read=not odd(0.1),
        min_insync=random.choice((1, 2, 2, 2, 3)),
        unclean=odd(),
        unclean_is_of_topic=odd(0.5),
        log=None if odd(0.1) else (start, end),
        committed=None if odd() else random.choice((0, 5, start, end, end, end, end + 7)),
        commit_refused=odd(0.1),
        has_member=odd(0.7),
    )


def simpler(state: State) -> list[State]:
    """States that are simpler in one thing each, for finding the simplest state that shows a difference."""
    plain = State()
    ones = [
        replace(state, parts=state.parts[:index] + state.parts[index + 1 :]) for index in range(len(state.parts)) if len(state.parts) > 1
    ]
    for index, part in enumerate(state.parts):
        for name in ("replicas", "isr", "leader", "adding", "removing"):
            changed = replace(part, **{name: getattr(Part(), name)})
            if consistent(changed):
                ones.append(replace(state, parts=(*state.parts[:index], changed, *state.parts[index + 1 :])))
    for name in ("configs_read", "min_insync", "unclean", "unclean_is_of_topic", "log", "committed", "commit_refused", "has_member"):
        ones.append(replace(state, **{name: getattr(plain, name)}))
    return [one for one in ones if one != state]


def consistent(part: Part) -> bool:
    """Whether a broker could answer this: in-sync, added and removed replicas are replicas, and the leader is in sync."""
    inside = {*part.isr, *part.adding, *part.removing} <= set(part.replicas)
    return inside and (part.leader == -1 or part.leader in part.isr) and len(part.adding) < len(part.replicas) > len(part.removing)


def verdicts(state: State) -> dict[tuple[str, str], str]:
    """(control, resource) -> status; a resource is ``topic``, ``topic-N`` or ``group``."""
    found = {("TOP-04", "topic"): _unclean(state)}
    now = [len(part.replicas) - len(part.adding) for part in state.parts]
    later = [len(part.replicas) - len(part.removing) for part in state.parts]
    fewest, most = min(*now, *later, 99), max(*(min(pair) for pair in zip(now, later, strict=True)), 0)
    found["TOP-01", "topic"] = _status(fewest >= 3 and fewest == most)
    # Writes go on as long as in-sync replicas are not fewer than this; the topic's least is that of its smallest partition.
    of_topic = min(state.min_insync, *later) if state.configs_read else None
    found["TOP-02", "topic"] = OPEN if of_topic is None else _status(of_topic >= 2)
    found["TOP-03", "topic"] = OPEN if of_topic is None else _status(fewest > of_topic)
    for number, part in enumerate(state.parts):
        found |= {
            (code, f"topic-{number}"): status
            for code, status in _of_partition(part, state.min_insync if state.configs_read else None).items()
        }
    return found | {(code, "group"): status for code, status in _of_group(state).items()}


def _status(good: bool) -> str:
    return PASS if good else FAIL


def _unclean(state: State) -> str:
    if not state.configs_read:
        return OPEN
    # A value that the topic does not set itself is the brokers', which is false on all of them here.
    return FAIL if state.unclean else PASS


def _of_partition(part: Part, configured: int | None) -> dict[str, str]:
    found = {"REP-01": _status(part.leader >= 0 and part.leader in ALIVE)}
    if part.leader < 0:
        return found | dict.fromkeys(("REP-02", "REP-03", "REP-04"), NOT_APPLICABLE)
    in_sync, assigned = len(part.isr), len(part.replicas)
    if configured is None:
        found |= {"REP-02": OPEN, "REP-03": OPEN}
    else:
        least = min(configured, assigned)
        found["REP-02"] = _status(in_sync >= least)
        found["REP-03"] = NOT_APPLICABLE if assigned <= configured else _status(in_sync > least)
    behind = [one for one in part.replicas if one not in part.isr and one not in part.adding]
    # How long a reassignment has been running, a first snapshot cannot tell.
    found["REP-04"] = FAIL if behind else OPEN if part.adding or part.removing else PASS
    return found


def _of_group(state: State) -> dict[str, str]:
    if state.commit_refused:
        beyond = below = OPEN
        unread = NOT_APPLICABLE if not state.has_member else OPEN
        if state.has_member and state.log is not None and state.log[0] == state.log[1]:
            unread = NOT_APPLICABLE  # nothing can be skipped
        return {"CON-03": below, "CON-04": beyond, "CON-07": unread}
    if state.committed is None:
        found = {"CON-03": NOT_APPLICABLE, "CON-04": NOT_APPLICABLE}
    elif state.log is None:
        found = {"CON-03": OPEN, "CON-04": OPEN}
    else:
        start, end = state.log
        found = {"CON-03": _status(state.committed >= start), "CON-04": _status(state.committed <= end)}
    if not state.has_member:
        found["CON-07"] = NOT_APPLICABLE
    elif state.log is None:
        found["CON-07"] = OPEN
    elif state.log[0] == state.log[1]:
        found["CON-07"] = NOT_APPLICABLE
    else:
        found["CON-07"] = _status(state.committed is not None)
    return found
