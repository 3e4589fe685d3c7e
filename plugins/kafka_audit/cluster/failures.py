"""Failures: what could not be read, with Kafka's name of the error; and how many items were answered and refused."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import kafka.errors as kafka_errors

# Codes after which the same question may be answered a moment later, perhaps by another broker
# (https://kafka.apache.org/protocol#protocol_error_codes).
COORDINATOR_MOVING = frozenset({14, 15, 16})  # COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
# LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE
LEADER_MOVING = frozenset({5, 6, 74, 75, 78})
LEADER_NOT_AVAILABLE = 5

# Failures of ours, named in Kafka's style: they stand in the same column.
BROKER_NOT_AVAILABLE = "BROKER_NOT_AVAILABLE"
REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
INVALID_RESPONSE = "INVALID_RESPONSE"
NO_BATCH = "NO_BATCH"
OLD_FORMAT = "OLD_FORMAT"
RECORD_BATCH_TOO_LARGE = "RECORD_BATCH_TOO_LARGE"

# Kafka's own names, for what is found out on this side.
CORRUPT_MESSAGE = "CORRUPT_MESSAGE"
UNSUPPORTED_COMPRESSION_TYPE = "UNSUPPORTED_COMPRESSION_TYPE"
OFFSET_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"

TRANSPORT_ERRORS = frozenset({BROKER_NOT_AVAILABLE, REQUEST_TIMED_OUT})


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """One thing that could not be read: the API that was asked, the item, Kafka's name of the error, and a sentence."""

    api: str
    error: str
    message: str
    broker_id: int | None = None
    topic: str | None = None
    partition: int | None = None
    group_id: str | None = None


# kafka-python 3.0.12 keeps an old name for one code and a short one for another.
_RENAMED = {-1: "UNKNOWN_SERVER_ERROR", 6: "NOT_LEADER_OR_FOLLOWER"}


def error_name(code: int) -> str:
    """Kafka's name of an error code, such as TOPIC_AUTHORIZATION_FAILED; UNKNOWN_ERROR_<code> for codes newer than the client."""
    if code in _RENAMED:
        return _RENAMED[code]
    known = kafka_errors.kafka_errors.get(code)
    name = getattr(known, "message", None)
    return str(name) if name else f"UNKNOWN_ERROR_{code}"


_HINTS = {
    "CLUSTER_AUTHORIZATION_FAILED": "the audit's principal lacks Describe (or DescribeConfigs) on the cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "the audit's principal lacks Describe on this transactional id",
    "LEADER_NOT_AVAILABLE": "the partition has no leader, so no broker can answer for it",
    "GROUP_ID_NOT_FOUND": "the group was gone when it was described",
    "UNKNOWN_TOPIC_OR_PARTITION": "the topic was gone when it was asked for, or may not be seen",
}
_RESOURCES = {"TOPIC_AUTHORIZATION_FAILED": "topic", "GROUP_AUTHORIZATION_FAILED": "group"}
_NEEDS = {
    "DescribeConfigs": "DescribeConfigs",
    "DescribeProducers": "Read",
    "Fetch": "Read",
}


def refused(api: str, code: int, message: str | None = None) -> Failure:
    """The failure for an error code that a broker answered."""
    name = error_name(code)
    hint = _HINTS.get(name, "")
    if name in _RESOURCES:
        hint = f"the audit's principal lacks {_NEEDS.get(api, 'Describe')} on this {_RESOURCES[name]}"
    text = "; ".join(part for part in (message, hint) if part)
    return Failure(api=api, error=name, message=text or f"{api} answered error {code}")


def unsupported(api: str, since: str) -> Failure:
    """The failure of a whole dataset on a cluster that is too old for its API."""
    return Failure(api=api, error=UNSUPPORTED_VERSION, message=f"a broker of this cluster does not know {api}; it came with Kafka {since}")


class Outcomes:
    """What brokers answered so far, by API: the measured half of the capability matrix."""

    def __init__(self, answered: Mapping[str, int] | None = None, denied: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self._answered: Counter[str] = Counter(answered)
        self._denied = {api: Counter(errors) for api, errors in (denied or {}).items()}

    def note(self, api: str, code: int, count: int = 1) -> None:
        """Record that ``count`` items of ``api`` came back with this error code. Codes other than success and denial tell nothing here."""
        if code == 0:
            self._answered[api] += count
        elif error_name(code).endswith("_AUTHORIZATION_FAILED"):
            self._denied.setdefault(api, Counter())[error_name(code)] += count

    def counts(self) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        """Items answered, and items refused for lack of permission, by API."""
        return dict(self._answered), {api: dict(errors) for api, errors in self._denied.items()}

    def answered(self, api: str) -> int:
        """Items that were answered without an error."""
        return self._answered[api]

    def denied(self, api: str) -> dict[str, int]:
        """Items that were refused for lack of permission, by Kafka's name of the error."""
        return dict(self._denied.get(api, {}))
