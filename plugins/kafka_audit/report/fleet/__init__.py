"""The newest audit of each cluster below a root, as one matrix of controls by clusters: HTML, PDF, CSV.

A cluster without an audit that can be used keeps its place and says why.
"""

from kafka_audit.report.fleet.files import FORMATS, read_formats, write_fleet
from kafka_audit.report.fleet.matrix import Cell, Fleet, FleetCluster, read_fleet

__all__ = ["FORMATS", "Cell", "Fleet", "FleetCluster", "read_fleet", "read_formats", "write_fleet"]
