"""Writes sample audits in a process of its own: ``python -m kafka_audit.cli.sample_history --root R --cluster demo-faulty sample-orders``.

Great Expectations, which judges their gates, needs numpy, and the process of a command says that there is none (cli/main.py).
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from expectations.gate import judge_evidence, judge_findings
from kafka_audit.errors import AuditError
from kafka_audit.sample.story import CLUSTERS
from kafka_audit.sample.template import read_template
from kafka_audit.sample.write import Gates, write_history
from kafka_audit.store.durable_files import keep_new_files_private
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.times import parse_time


def main(given: Sequence[str] | None = None) -> None:
    """Write the sample clusters that are named, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--cluster", required=True, help="the cluster of the audit that the samples are made from")
    parser.add_argument("--audit", required=True, help="the id of that audit")
    parser.add_argument("--now", type=parse_time, required=True, help="the time that the story ends at, with a time zone")
    parser.add_argument("samples", nargs="+", choices=[one.name for one in CLUSTERS])
    arguments = parser.parse_args(given)
    now: datetime = arguments.now
    root, gates = EvidenceRoot(path=arguments.root), Gates(evidence=judge_evidence, findings=judge_findings)
    try:
        template = read_template(root, arguments.cluster, arguments.audit)
        for cluster in CLUSTERS:
            if cluster.name in arguments.samples:
                began = time.monotonic()
                count = write_history(template, root, cluster, gates, now)
                print(f"{cluster.name}: {count} audits written in {time.monotonic() - began:.0f} s", flush=True)
    except AuditError as problem:
        print(f"{problem}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    keep_new_files_private()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as after Ctrl-C, unfinished files are removed
    main()
