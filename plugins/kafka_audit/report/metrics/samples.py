"""The samples of the metrics page: what is known of a cluster's audit and offsets, as gauges."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.audit.outcome import VERDICTS
from kafka_audit.report.metrics import definitions as metrics
from kafka_audit.report.metrics.audits import AuditFigures
from kafka_audit.report.metrics.definitions import LIVE, OF_SLAS, STATUSES, Metric, add, unless_unknown
from kafka_audit.report.metrics.offsets import OffsetsFigures
from kafka_audit.report.report_times import moment

_BY_TARGET = (("has_target", "descending"), ("group_id", "ascending"), ("sla", "ascending"))
_OF_GROUPS: tuple[tuple[Metric, str, float], ...] = (
    (metrics.GROUP_LAG, "lag", 1),
    (metrics.GROUP_UNKNOWN, "unknown", 1),
    (metrics.GROUP_SECONDS, "age_s", 1),
    (metrics.GROUP_LOST, "lost", 1),
    (metrics.TIME_TO_LOSS, "time_to_loss_ms", 0.001),
    (metrics.EXPIRY, "expires_in_ms", 0.001),
    (metrics.MEMBERS, "members", 1),
)


class Samples:
    """The gauges by their definition, in the order of ``LIVE``."""

    def __init__(self) -> None:
        self.families = {metric: metric.family() for metric in LIVE}

    def add(self, metric: Metric, value: float | None, cluster: str, *labels: str) -> None:
        """Add one sample unless its value is not known."""
        add(self.families[metric], value, cluster, *labels)

    def take(self, others: "Samples") -> None:
        """Add all samples of another collection."""
        for metric, family in others.families.items():
            self.families[metric].samples += family.samples

    def add_all(self, metric: Metric, values: pa.ChunkedArray, cluster: str, labels: Sequence[pa.ChunkedArray], factor: float = 1) -> None:
        """Add a sample for each value that is known; ``labels`` are columns beside it, a NULL among them is an empty text."""
        for value, *texts in _rows(values, *labels):
            self.add(metric, None if value is None else value * factor, cluster, *("" if text is None else str(text) for text in texts))


def _rows(*columns: pa.ChunkedArray) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in columns), strict=True)


def add_audit(samples: Samples, cluster: str, audit: AuditFigures, limit: int) -> None:
    """The samples of an audit; of one that is void or in which a step failed only how it ended and when its evidence was taken."""
    for word in VERDICTS:
        samples.add(metrics.VERDICT, float(audit.verdict == word), cluster, word)
    samples.add(metrics.JUDGED_LESS, audit.judged_less, cluster)
    samples.add(metrics.EXIT_CODE, audit.exit_code, cluster)
    begun = moment(audit.report.collection.started_at or "")
    samples.add(metrics.EVIDENCE_TIME, begun.timestamp() if begun else None, cluster)
    if audit.counted:
        _add_results(samples, cluster, audit)
    lag = audit.report.lag
    if audit.fit and lag.ran:
        samples.add(metrics.LOST, unless_unknown(lag.loss.records, not lag.loss.known or bool(lag.unknown_count)), cluster)
        unsure = not lag.loss.known or bool(lag.unknown_count or lag.loss.rates_unknown)
        samples.add(metrics.LOSING, unless_unknown(lag.loss.within_a_day, unsure), cluster)
    slas = audit.slas.append_column("has_target", pc.is_valid(audit.slas["target_percent"])).sort_by(list(_BY_TARGET)).slice(0, limit)
    for metric, column, factor in OF_SLAS:
        samples.add_all(metric, slas[column], cluster, [slas["group_id"], slas["sla"]], factor)


def _add_results(samples: Samples, cluster: str, audit: AuditFigures) -> None:
    report = audit.report
    share = report.coverage
    samples.add(metrics.COVERAGE, share.assessed / share.applicable if share.applicable else None, cluster)
    for severity, found in report.totals.failed_by_severity.items():
        samples.add(metrics.FAILED, found.results - found.waived if found.assessed else None, cluster, severity)
        samples.add(metrics.WAIVED, found.waived if found.assessed else None, cluster, severity)
    for status in STATUSES:
        samples.add(metrics.RESULTS, getattr(report.totals, status), cluster, status)


def add_offsets(samples: Samples, cluster: str, offsets: OffsetsFigures, limit: int) -> None:
    """The samples of the newest snapshot with offsets.

    SLAs are not cut to the worst: a series that is there only while it is bad would have no good minutes. Those with a target come first.
    """
    slas = offsets.slas.sort_by(list(_BY_TARGET)).slice(0, limit)
    for metric, value in (
        (metrics.OFFSETS_TIME, offsets.taken_ms / 1000),
        (metrics.GROUPS, offsets.group_count),
        (metrics.GROUPS_LEFT_OUT, offsets.groups_left_out),
        (metrics.TOPICS_LEFT_OUT, offsets.topics_left_out),
        (metrics.SLAS_LEFT_OUT, offsets.slas.num_rows - slas.num_rows),
    ):
        samples.add(metric, value, cluster)
    groups, topics = offsets.groups, offsets.topics
    for metric, column, factor in _OF_GROUPS:
        samples.add_all(metric, groups[column], cluster, [groups["group_id"]], factor)
    stable = pc.cast(pc.equal(groups["state"], "Stable"), pa.int64())
    described = ("group_id", "protocol", "protocol_type", "state", "coordinator_id")
    samples.add_all(metrics.INFO, stable, cluster, [groups[name] for name in described])
    of_topics = [topics["group_id"], topics["topic"]]
    samples.add_all(metrics.TOPIC_LAG, topics["behind"], cluster, of_topics)
    samples.add_all(metrics.TOPIC_OFFSETS, topics["committed"], cluster, of_topics)
    samples.add_all(metrics.WITHIN, pc.cast(slas["within"], pa.int64()), cluster, [slas["group_id"], slas["sla"]])
