"""Writes the fleet as CSV: one row for each cluster and control, which a spreadsheet opens without running anything."""

import csv
import io

from kafka_audit.report.csv_findings import cell
from kafka_audit.report.fleet.matrix import Fleet, FleetCluster, FleetControl
from kafka_audit.report.fleet.states import state_of

COLUMNS = (
    *("cluster", "cluster_id", "audit_id", "evidence_at", "verdict", "why", "code", "control_id", "title", "severity", "status"),
    *("worst_failure", "failed", "waived", "errored", "not_assessed", "not_applicable", "passed"),
)
"""The columns. ``status`` is a state of the matrix; counts are empty where the control did not run or nothing is known."""

_COUNTED = ("failed", "waived", "errored", "not_assessed", "not_applicable", "passed")
_NO_CONTROL = FleetControl(control_id="", code="", title="", severity="")


def as_csv(fleet: Fleet) -> bytes:
    """UTF-8 with a byte order mark, so that spreadsheets read names that are not ASCII. The same fleet gives the same bytes.

    If no audit of the fleet can be used there are no controls: then each cluster has one row without a control.
    """
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for cluster in fleet.clusters:
        rows.writerows(_row(cluster, control) for control in fleet.controls or (_NO_CONTROL,))
    return b"\xef\xbb\xbf" + text.getvalue().encode("utf-8", "replace")


def _row(cluster: FleetCluster, control: FleetControl) -> list[str]:
    found = cluster.cells.get(control.control_id)
    counts = found.counts if found else None
    said = (
        *(cluster.name, cluster.cluster_id, cluster.audit_id, cluster.evidence_at, cluster.verdict, " ".join(cluster.why)),
        *(control.code, control.control_id, control.title, control.severity, state_of(cluster, control), found.worst if found else None),
    )
    return [*(cell(one or "") for one in said), *("" if counts is None else str(getattr(counts, name)) for name in _COUNTED)]
