"""Measure all points of the model in ``docs/scale.md``, keep them in ``scale_points.json``, and write the document's tables.

    .venv/bin/python bench/scale.py                 everything; needs a machine with nothing else to do, 35 minutes for the audits alone
    .venv/bin/python bench/scale.py --only folders  only these points; the others stay as they are

What was measured is kept after each step, so a run that is ended loses only its last step.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import scale_model
from run import machine

STEPS: Mapping[str, Sequence[Sequence[str]]] = {
    "snapshots": [["snapshot_size.py", "--partitions", "2000", "6000", "18000"]],
    "listings": [["listing_size.py", "--partitions", "20000", "200000", "1000000"]],
    "folders": [["folder_names.py", "--names", "1000", "10000", "100000"]],
    "audits": [["audit_steps.py", "--scales", "0.25", "1", "4", "16", "--driver-memory", "12g"]],
}
"""The commands that measure the points of each kind; each prints one line of JSON per point."""


def measure(commands: Sequence[Sequence[str]]) -> list[object]:
    points = []
    for script, *options in commands:
        print(f"{script} {' '.join(options)}", flush=True)
        command = [sys.executable, str(Path(__file__).with_name(script)), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                print(f"  {line.rstrip()}", flush=True)
                if line.startswith("{"):
                    points.append(json.loads(line))
        if process.returncode:
            raise SystemExit(f"{script} ended with {process.returncode}")
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(STEPS), help="a kind of points, may be repeated; default: all")
    for kind in parser.parse_args().only or STEPS:
        load = os.getloadavg()[0]
        points = measure(STEPS[kind])
        recorded = json.loads(scale_model.POINTS.read_text(encoding="utf-8"))
        recorded[kind] = points
        recorded["machines"][kind] = f"{machine()}, load average {load:.1f} before"
        scale_model.POINTS.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        scale_model.write_document()


if __name__ == "__main__":
    main()
