"""The newest audit of each cluster below a root, as one matrix of controls by clusters: HTML, CSV.

A cluster without an audit that can be used keeps its place and says why.
"""

from kafka_audit.report.fleet.matrix import Cell, Fleet, FleetCluster, read_fleet
from kafka_audit.report.fleet.render import as_csv, as_html

__all__ = ["Cell", "Fleet", "FleetCluster", "as_csv", "as_html", "read_fleet"]
