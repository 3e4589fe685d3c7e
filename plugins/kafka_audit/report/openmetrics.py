"""Writes the report's figures in OpenMetrics text, for a textfile collector; a figure that is not known is left out, never 0."""

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from kafka_audit.audit.outcome import VERDICTS
from kafka_audit.report.control_status import is_fit
from kafka_audit.report.lag_groups import GroupLag
from kafka_audit.report.metrics import definitions as metrics
from kafka_audit.report.metrics.definitions import OF_SLAS, STATUSES, Metric, add, unless_unknown
from kafka_audit.report.model import Report
from kafka_audit.report.report_times import moment


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

    def _sample(self, gauge: GaugeMetricFamily, value: float | None, *labels: str) -> GaugeMetricFamily:
        add(gauge, value, self._report.cluster, *labels)
        return gauge

    def _of_audit(self) -> Iterator[GaugeMetricFamily]:
        report = self._report
        verdict = metrics.VERDICT.family()
        for word in VERDICTS:
            self._sample(verdict, float(report.outcome.verdict == word), word)
        yield verdict
        yield self._sample(metrics.EXIT_CODE.family(), report.outcome.exit_code)
        yield from self._of_results() if not report.missing and is_fit(report) else ()
        begun = moment(report.collection.started_at or "")
        yield self._sample(metrics.EVIDENCE_TIME.family(), begun.timestamp() if begun else None)

    def _of_results(self) -> Iterator[GaugeMetricFamily]:
        """Counts of results; of an audit in which a part was not verified no count is known."""
        report = self._report
        counts = report.counts
        ratio = counts.assessed / counts.applicable if counts.applicable else None
        yield self._sample(metrics.COVERAGE.family(), ratio)
        failed, waived = metrics.FAILED.family(), metrics.WAIVED.family()
        for one in report.by_severity():
            self._sample(failed, one.failed - one.waived if one.assessed else None, one.name)
            self._sample(waived, one.waived if one.assessed else None, one.name)
        yield from (failed, waived)
        results = metrics.RESULTS.family()
        for status in STATUSES:
            self._sample(results, getattr(counts, status), status)
        yield results

    def _of_loss(self) -> Iterator[GaugeMetricFamily]:
        lag, loss = self._report.lag, self._report.lag.loss
        if lag.ran:
            yield self._sample(metrics.LOST.family(), unless_unknown(loss.records, not loss.known or bool(lag.unknown_count)))
            unsure = not loss.known or bool(lag.unknown_count or loss.rates_unknown)
            yield self._sample(metrics.LOSING.family(), unless_unknown(loss.within_a_day, unsure))

    def _of_groups(self) -> Iterator[GaugeMetricFamily]:
        groups = self._report.lag.groups
        if self._report.lag.ran:
            yield self._sample(metrics.GROUPS.family(), self._report.lag.group_count)
        for metric, value in _OF_GROUPS:
            gauge = metric.family()
            for group in groups:
                self._sample(gauge, value(group), group.group_id)
            yield gauge

    def _of_slas(self) -> Iterator[GaugeMetricFamily]:
        for metric, column, factor in OF_SLAS:
            gauge = metric.family()
            for group in self._report.lag.groups:
                for sla in group.slas:
                    value: float | None = getattr(sla, column)
                    self._sample(gauge, None if value is None else value * factor, group.group_id, sla.sla)
            yield gauge


def _lag(group: GroupLag) -> int | None:
    """The sum; not known if no partition's lag is."""
    return group.lag if group.known else None


def _lost(group: GroupLag) -> int | None:
    return unless_unknown(group.lost, group.unknown > 0 or not group.known)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


_OF_GROUPS: tuple[tuple[Metric, Callable[[GroupLag], float | None]], ...] = (
    (metrics.GROUP_LAG, _lag),
    (metrics.GROUP_UNKNOWN, lambda one: one.unknown),
    (metrics.GROUP_SECONDS, lambda one: _seconds(one.lag_ms)),
    (metrics.GROUP_LOST, _lost),
    (metrics.TIME_TO_LOSS, lambda one: _seconds(one.time_to_loss_ms)),
)
