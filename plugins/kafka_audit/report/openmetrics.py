"""Writes the report's figures in OpenMetrics text, for a textfile collector; a figure that is not known is left out, never 0."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from kafka_audit.audit.outcome import VERDICTS
from kafka_audit.report.control_status import is_fit
from kafka_audit.report.lag_groups import GroupLag
from kafka_audit.report.model import Report
from kafka_audit.report.report_times import moment
from kafka_audit.safe_text import visible


def render(report: Report) -> str:
    """Render the metrics. Every one has the label ``cluster``; those of groups have ``group``, those of SLAs also ``sla``.

    As in the other formats, groups are those that the report lists, the worst first; ``kafka_audit_groups`` counts all.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(report))
    made: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return made.decode("utf-8")


class _Figures(Collector):
    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._of_audit()
        if is_fit(self._report):  # of evidence that is not fit to judge no figure is known
            yield from self._of_loss()
            yield from self._of_groups()
            yield from self._of_slas()

    def _gauge(self, name: str, about: str, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"kafka_audit_{name}", about, labels=("cluster", *labels))

    def _sample(self, gauge: GaugeMetricFamily, value: float | None, *labels: str) -> GaugeMetricFamily:
        if value is not None:
            gauge.add_metric([_label(text) for text in (self._report.cluster, *labels)], value)
        return gauge

    def _of_audit(self) -> Iterator[GaugeMetricFamily]:
        report = self._report
        verdict = self._gauge("verdict", "1 for how the audit ended, 0 for the other verdicts.", ("verdict",))
        for word in VERDICTS:
            self._sample(verdict, float(report.outcome.verdict == word), word)
        yield verdict
        yield self._sample(self._gauge("exit_code", "Exit code of the audit: 0 if the gate passed."), report.outcome.exit_code)
        yield from self._of_results() if not report.missing and is_fit(report) else ()
        taken = self._gauge("evidence_timestamp_seconds", "When the snapshot was begun, in Unix time.")
        begun = moment(report.collection.started_at or "")
        yield self._sample(taken, begun.timestamp() if begun else None)

    def _of_results(self) -> Iterator[GaugeMetricFamily]:
        """Counts of results; of an audit in which a part was not verified no count is known."""
        report = self._report
        counts = report.counts
        ratio = counts.assessed / counts.applicable if counts.applicable else None
        yield self._sample(self._gauge("coverage_ratio", "Assessed results divided by those that apply."), ratio)
        failed = self._gauge("failed_results", "Results that fail and are not waived, by severity.", ("severity",))
        waived = self._gauge("waived_results", "Results that fail and are waived, by severity.", ("severity",))
        for one in report.by_severity():
            self._sample(failed, one.failed - one.waived if one.assessed else None, one.name)
            self._sample(waived, one.waived if one.assessed else None, one.name)
        yield from (failed, waived)
        results = self._gauge("results", "Results in each status.", ("status",))
        for status in ("passed", "failed", "errored", "not_assessed", "not_applicable"):
            self._sample(results, getattr(counts, status), status)
        yield results

    def _of_loss(self) -> Iterator[GaugeMetricFamily]:
        lag, loss = self._report.lag, self._report.lag.loss
        if lag.ran:
            lost = self._gauge("lost_records", "Records that retention deleted before a group read them, where that is known.")
            yield self._sample(lost, _unless_unknown(loss.records, not loss.known or bool(lag.unknown_count)))
            within = self._gauge("partitions_losing_within_a_day", "Partitions that lose unread records within a day at the rates seen.")
            yield self._sample(within, _unless_unknown(loss.within_a_day, not loss.known or bool(lag.unknown_count or loss.rates_unknown)))

    def _of_groups(self) -> Iterator[GaugeMetricFamily]:
        groups = self._report.lag.groups
        if self._report.lag.ran:
            yield self._sample(self._gauge("groups", "Consumer groups of the cluster."), self._report.lag.group_count)
        figures = (
            ("group_lag_records", "Records behind the log end, over the partitions whose lag is known.", _lag),
            ("group_lag_unknown_partitions", "Partitions with a commit whose lag is not known.", lambda one: one.unknown),
            ("group_lag_seconds", "The largest known lag in time.", lambda one: _seconds(one.lag_ms)),
            (
                "group_lost_records",
                "Records that retention deleted before the group read them, over the partitions of which that is known.",
                lambda one: _unless_unknown(one.lost, one.unknown > 0 or not one.known),
            ),
            (
                "group_time_to_loss_seconds",
                "Until the first unread record is deleted, at the rates seen.",
                lambda one: _seconds(one.time_to_loss_ms),
            ),
        )
        for name, about, value in figures:
            gauge = self._gauge(name, about, ("group",))
            for group in groups:
                self._sample(gauge, value(group), group.group_id)
            yield gauge

    def _of_slas(self) -> Iterator[GaugeMetricFamily]:
        figures = (
            ("sla_availability_ratio", "Share of the judged time within the SLA.", "availability_percent", 0.01),
            ("sla_target_ratio", "Share of the time that the SLA demands.", "target_percent", 0.01),
            ("sla_error_budget_seconds", "Time that may be outside of the SLA in its window.", "budget_allowed_minutes", 60.0),
            ("sla_error_budget_left_seconds", "What is left of it; negative if it is used up.", "budget_left_minutes", 60.0),
        )
        for name, about, column, factor in figures:
            gauge = self._gauge(name, about, ("group", "sla"))
            for group in self._report.lag.groups:
                for sla in group.slas:
                    value: float | None = getattr(sla, column)
                    self._sample(gauge, None if value is None else value * factor, group.group_id, sla.sla)
            yield gauge


def _label(text: str) -> str:
    """The text with invisible characters spelled out; two different texts stay different."""
    return visible(text.replace("\\", "\\\\"))


def _lag(group: GroupLag) -> int | None:
    """The sum; not known if no partition's lag is."""
    return group.lag if group.known else None


def _unless_unknown(number: int, incomplete: bool) -> int | None:
    """A count; None for a 0 that is one only because not everything is known."""
    return None if not number and incomplete else number


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
