"""Makes the tables of ``docs/scale.md`` from the points that were measured: what was measured, and a straight line through it.

    .venv/bin/python bench/scale_model.py               prints the tables
    .venv/bin/python bench/scale_model.py --write       puts them into docs/scale.md

``bench/scale.py`` measures the points and keeps them in ``scale_points.json``. A figure is continued only from three sizes on.
"""

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

POINTS = Path(__file__).with_name("scale_points.json")
DOCUMENT = Path(__file__).parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- from bench/scale_model.py -->\n", "<!-- end -->\n"
Point = Mapping[str, Any]
Value = Callable[[Point], float]

LARGE = 1_000_000
FLEET, OF_FLEET = 200, 10_000
"""Clusters of a fleet, and partitions of each; every cluster has as many group partitions as partitions."""
STORED = ("files of the snapshot", "findings and lag tables", "report, index and gates")
LEAST_SIZES = 3
DAYS = 365
_MB, _GB = 10**6, 10**9


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A figure of one step: ``value`` of a point, ``size`` of what it is taken to grow with.

    ``per_partition``: by how much the size grows with each partition of a cluster that has as many group partitions.
    """

    name: str
    unit: str
    points: Sequence[Point]
    size: Value
    value: Value
    per_partition: int = 1

    def known(self) -> dict[float, float]:
        """The values that were measured, by size."""
        found = {}
        for point in self.points:
            with contextlib.suppress(KeyError):
                found[self.size(point)] = self.value(point)
        return dict(sorted(found.items()))

    def at(self, size: float) -> float | None:
        """The straight line through the points, at another size; None where fewer than three sizes were measured.

        Least squares of what the line misses in proportion: in seconds the largest size would outweigh the small ones, and bend the line
        below zero for them.
        """
        known = self.known()
        if len(known) < LEAST_SIZES:
            return None
        sizes, values = (np.array([*each]) for each in (known.keys(), known.values()))
        slope, start = np.polyfit(sizes, values, 1, w=1 / values)
        return float(start + slope * size)

    def of_cluster(self, partitions: int) -> float | None:
        """The figure of a cluster with so many partitions, and as many group partitions."""
        return self.at(partitions * self.per_partition)


def partitions(point: Point) -> float:
    return float(point["partitions"])


def items(point: Point) -> float:
    """Partitions and group partitions together: most findings are of one or the other."""
    return float(point["partitions"] + point["group_partitions"])


def of(*path: str, per: float = 1) -> Value:
    """A value by its place in the JSON of a point, in units of ``per``."""

    def value(point: Point) -> float:
        found: Any = point
        for name in path:
            found = found[name]
        return float(found) / per

    return value


def snapshot_quantities(measured: Mapping[str, Any]) -> list[Quantity]:
    points = measured["snapshots"]
    named = {
        "one process: requests": ("", of("whole", "requests")),
        "one process: bytes received": ("MB", of("whole", "received_bytes", per=_MB)),
        "one process: CPU": ("s", of("whole", "cpu_seconds")),
        "one process: peak memory": ("MB", of("whole", "peak_mb")),
        "the dearest of the parts: CPU": ("s", of("parts", "cpu_seconds")),
        "the dearest of the parts: peak memory": ("MB", of("parts", "peak_mb")),
        "join: CPU": ("s", of("join", "cpu_seconds")),
        "join: peak memory": ("MB", of("join", "peak_mb")),
        "files of the snapshot": ("MB", of("bytes", per=_MB)),
    }
    return [Quantity(name=name, unit=unit, points=points, size=partitions, value=value) for name, (unit, value) in named.items()]


def audit_quantities(measured: Mapping[str, Any]) -> list[Quantity]:
    steps = ("evidence_gate", "verify", "findings_gate", "report", "seal")
    found = []
    points = measured["audits"]
    for step in steps:
        for name, unit, field in (("CPU", "s", "cpu_seconds"), ("peak memory", "MB", "peak_mb")):
            found.append(_of_items(f"`{step}`: {name}", unit, points, of("steps", step, field)))
    results = of("bytes", "settings", per=_MB), of("bytes", "lag", per=_MB)
    found.append(_of_items("findings and lag tables", "MB", points, _sum(*results)))
    pages = of("bytes", "report", per=_MB), of("bytes", "index", per=_MB), of("bytes", "gate", per=_MB)
    found.append(_of_items("report, index and gates", "MB", points, _sum(*pages)))
    return found


def _of_items(name: str, unit: str, points: Sequence[Point], value: Value) -> Quantity:
    return Quantity(name=name, unit=unit, points=points, size=items, value=value, per_partition=2)


def listing_quantities(measured: Mapping[str, Any]) -> list[Quantity]:
    named = {
        "list of topics: bytes received": ("MB", of("received_bytes", per=_MB)),
        "list of topics: CPU": ("s", of("cpu_seconds")),
        "list of topics: peak memory": ("MB", of("peak_mb")),
    }
    points = measured["listings"]
    return [Quantity(name=name, unit=unit, points=points, size=partitions, value=value) for name, (unit, value) in named.items()]


def _sum(*values: Value) -> Value:
    return lambda point: sum(value(point) for value in values)


def folder_quantities(measured: Mapping[str, Any]) -> list[Quantity]:
    named = {"first list": "first_s", "the same list again": "again_s", "list of sealed folders": "sealed_s"}
    points = measured["folders"]
    return [Quantity(name=name, unit="s on the clock", points=points, size=of("names"), value=of(field)) for name, field in named.items()]


def shown(number: float | None) -> str:
    """Three digits that count; whole numbers from 100 on; a dash for what is not known."""
    if number is None:
        return "-"
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def measured_table(title: str, unit: str, quantities: Sequence[Quantity]) -> Iterator[str]:
    """What was measured, one column per size."""
    sizes = sorted({size for quantity in quantities for size in quantity.known()})
    yield f"{title}\n"
    yield from table(
        [unit, *(f"{one:,.0f}" for one in sizes)], [[_named(q), *(shown(q.known().get(one)) for one in sizes)] for q in quantities]
    )


def _named(quantity: Quantity) -> str:
    return f"{quantity.name}, {quantity.unit}" if quantity.unit else quantity.name


def extrapolated_table(quantities: Sequence[Quantity]) -> Iterator[str]:
    """The lines at a large cluster, and at a fleet of usual ones: costs that add up are those of all, memory that of one."""
    rows = []
    for one in (quantity for quantity in quantities if quantity.of_cluster(LARGE) is not None):
        times = 1 if "memory" in one.name else FLEET
        rows.append([_named(one), shown(one.of_cluster(LARGE)), shown(_times(times, one.of_cluster(OF_FLEET)))])
    stored = [one for one in quantities if one.name in STORED]
    year = DAYS * _MB / _GB
    large, fleet = (_total([one.of_cluster(size) for one in stored]) for size in (LARGE, OF_FLEET))
    rows.append(["files of a year of daily audits, GB", shown(_times(year, large)), shown(_times(year * FLEET, fleet))])
    unknown = [_named(quantity) for quantity in quantities if quantity.of_cluster(LARGE) is None]
    yield "**Extrapolated: one audit**, by the straight lines through these points.\n"
    yield from table(["", f"one cluster of {LARGE:,} partitions", f"{FLEET} clusters of {OF_FLEET:,}: all, of memory one"], rows)
    if unknown:
        yield f"Not extrapolated, because fewer than three sizes were measured: {'; '.join(unknown)}.\n"


def _times(factor: float, number: float | None) -> float | None:
    return None if number is None else factor * number


def _total(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def model(measured: Mapping[str, Any]) -> str:
    """The text between BEGIN and END in the document."""
    snapshots, listings, audits = snapshot_quantities(measured), listing_quantities(measured), audit_quantities(measured)
    folders = folder_quantities(measured)
    kinds = (
        ("snapshots", "one snapshot** of three brokers", "partitions, and as many group partitions", snapshots),
        ("listings", "the list of all topics**, which every process of a snapshot reads", "partitions", listings),
        ("audits", "the steps of an audit** of generated snapshots", "partitions and group partitions", audits),
        ("folders", "the list of a cluster's snapshots**, one folder each", "folders", folders),
    )
    lines: list[str] = []
    for kind, title, unit, quantities in kinds:
        lines += measured_table(f"**Measured: {title} ({measured['machines'][kind]}).", unit, quantities)
    lines += extrapolated_table([*snapshots, *listings, *audits])
    return "\n".join(lines)


def write_document() -> None:
    """Put the tables into the document."""
    tables = model(json.loads(POINTS.read_text(encoding="utf-8")))
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}{tables}{END}{rest.partition(END)[2]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.name}")
    if parser.parse_args().write:
        write_document()
    else:
        print(model(json.loads(POINTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
