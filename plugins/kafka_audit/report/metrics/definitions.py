"""The metrics: names, meanings and labels, for the file of one audit (``report.openmetrics``) and for the page of all clusters."""

from dataclasses import dataclass
from hashlib import sha256

from prometheus_client.core import GaugeMetricFamily

from kafka_audit.safe_text import visible


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One gauge. ``labels`` come after ``cluster``, which all have."""

    name: str
    about: str
    labels: tuple[str, ...] = ()

    def family(self) -> GaugeMetricFamily:
        """The gauge without samples."""
        return GaugeMetricFamily(self.name, self.about, labels=("cluster", *self.labels))


LONGEST_LABEL = 1_000
"""Longer texts are cut: the id of a group may have 32,767 bytes, and stands in a dozen samples."""


def label(text: str) -> str:
    """The text with invisible characters spelled out; a long one is cut and ends with a hash, so two different texts stay different."""
    shown = visible(text[:LONGEST_LABEL].replace("\\", "\\\\"))
    if len(text) <= LONGEST_LABEL and len(shown) <= LONGEST_LABEL:
        return shown
    return f"{shown[:LONGEST_LABEL]}\N{HORIZONTAL ELLIPSIS}{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def add(family: GaugeMetricFamily, value: float | None, *labels: str) -> None:
    """Add one sample unless its value is not known; ``labels`` are shown by :func:`label`, the cluster first.

    OverflowError for a whole number that is none of ours.
    """
    if value is not None:
        family.add_metric([label(text) for text in labels], float(value))


def unless_unknown(number: int, incomplete: bool) -> int | None:
    """A count; None for a 0 that is one only because not everything is known."""
    return None if not number and incomplete else number


def _ours(name: str, about: str, *labels: str) -> Metric:
    return Metric(name=f"kafka_audit_{name}", about=about, labels=labels)


def _kminion(name: str, about: str, *labels: str) -> Metric:
    """A metric that kminion writes too, with its name and labels, because it means the same."""
    return Metric(name=f"kminion_kafka_{name}", about=about, labels=labels)


VERDICT = _ours("verdict", "1 for how the audit ended, 0 for the other verdicts.", "verdict")
JUDGED_LESS = _ours(
    "judged_less",
    "Parameters by which the audit judged less than one with the defaults; above 0, its figures are not of the whole cluster.",
)
EXIT_CODE = _ours("exit_code", "Exit code of the audit: 0 if the gate passed.")
COVERAGE = _ours("coverage_ratio", "Assessed results divided by those that apply.")
FAILED = _ours("failed_results", "Results that fail and are not waived, by severity.", "severity")
WAIVED = _ours("waived_results", "Results that fail and are waived, by severity.", "severity")
RESULTS = _ours("results", "Results in each status.", "status")
EVIDENCE_TIME = _ours("evidence_timestamp_seconds", "When the snapshot that was audited was begun, in Unix time.")
LOST = _ours("lost_records", "Records that retention deleted before a group read them, where that is known.")
LOSING = _ours("partitions_losing_within_a_day", "Partitions that lose unread records within a day at the rates seen.")
GROUPS = _ours("groups", "Consumer groups of the cluster.")
GROUP_LAG = _ours("group_lag_records", "Records behind the log end, over the partitions whose lag is known.", "group")
GROUP_UNKNOWN = _ours("group_lag_unknown_partitions", "Partitions with a commit whose lag is not known.", "group")
GROUP_SECONDS = _ours("group_lag_seconds", "The largest known lag in time.", "group")
GROUP_LOST = _ours(
    "group_lost_records", "Records that retention deleted before the group read them, over the partitions of which that is known.", "group"
)
TIME_TO_LOSS = _ours(
    "group_time_to_loss_seconds", "From the audited snapshot until the first unread record is deleted, at the rates seen.", "group"
)
AVAILABILITY = _ours("sla_availability_ratio", "Share of the judged time within the SLA.", "group", "sla")
TARGET = _ours("sla_target_ratio", "Share of the time that the SLA demands.", "group", "sla")
BUDGET = _ours("sla_error_budget_seconds", "Time that may be outside of the SLA in its window.", "group", "sla")
BUDGET_LEFT = _ours("sla_error_budget_left_seconds", "What is left of it; negative if it is used up.", "group", "sla")

UP = _ours("up", "1 if the newest evidence of this kind could be read and is as it was sealed, 0 if not or if there is none.", "evidence")
OFFSETS_TIME = _ours("offsets_timestamp_seconds", "When the newest snapshot with offsets was begun, in Unix time: lag is of that time.")
GROUPS_LEFT_OUT = _ours("groups_left_out", "Consumer groups that have no series, because there are too many.")
TOPICS_LEFT_OUT = _ours("group_topics_left_out", "Pairs of a group and a topic that have no series, because there are too many.")
SLAS_LEFT_OUT = _ours("slas_left_out", "Pairs of a group and an SLA that have no series, because there are too many.")
EXPIRY = _ours(
    "group_offsets_expire_seconds", "From the audited snapshot until Kafka removes the first of the group's committed offsets.", "group"
)
WITHIN = _ours(
    "sla_within_limits",
    "1 if the newest offsets are within the SLA's limits of records and seconds, 0 if not; none in quiet hours, or if it is not known.",
    *("group", "sla"),
)
MEMBERS = _kminion("consumer_group_members", "Members of the consumer group.", "group_id")
INFO = _kminion(
    "consumer_group_info",
    "1 if the consumer group is Stable, else 0.",
    *("group_id", "protocol", "protocol_type", "state", "coordinator_id"),
)
TOPIC_LAG = _kminion(
    "consumer_group_topic_lag",
    "Log end less commit, over the partitions of the topic where both are known; counts lost records.",
    *("group_id", "topic_name"),
)
TOPIC_OFFSETS = _kminion(
    "consumer_group_topic_offset_sum",
    "Sum of the group's committed offsets over the same partitions.",
    *("group_id", "topic_name"),
)

LIVE: tuple[Metric, ...] = (
    *(UP, VERDICT, JUDGED_LESS, EXIT_CODE, COVERAGE, FAILED, WAIVED, RESULTS, EVIDENCE_TIME, OFFSETS_TIME, LOST, LOSING),
    *(GROUPS, GROUPS_LEFT_OUT, TOPICS_LEFT_OUT, SLAS_LEFT_OUT, GROUP_LAG, GROUP_UNKNOWN, GROUP_SECONDS, GROUP_LOST, TIME_TO_LOSS, EXPIRY),
    *(MEMBERS, INFO, TOPIC_LAG, TOPIC_OFFSETS, AVAILABILITY, TARGET, BUDGET, BUDGET_LEFT, WITHIN),
)
"""Every metric of the page of all clusters, in its order."""

STATUSES = ("passed", "failed", "errored", "not_assessed", "not_applicable")
"""The values of the label ``status``."""

OF_SLAS = (
    (AVAILABILITY, "availability_percent", 0.01),
    (TARGET, "target_percent", 0.01),
    (BUDGET, "budget_allowed_minutes", 60.0),
    (BUDGET_LEFT, "budget_left_minutes", 60.0),
)
"""The metrics of SLAs, the column of group_slas that each shows, and what it is multiplied with."""
