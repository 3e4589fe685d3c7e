"""Rolls offsets snapshots up into the lag history: one folder for each UTC day that is over."""

import argparse
import sys
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path

from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sweep import sweep
from spark_jobs.engine.exit_code import exit_code_of
from spark_jobs.engine.session import spark_session
from spark_jobs.lag.days import roll_up

NAME = "roll_up_offsets"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code; a failure is one line on stderr."""
    parser = argparse.ArgumentParser(prog=NAME, description="Roll the offsets snapshots of finished days up.")
    parser.add_argument("--root", required=True, help="folder or URL below which all evidence is kept")
    parser.add_argument("--cluster", required=True, help="name of the cluster")
    parser.add_argument("--until", type=date.fromisoformat, required=True, help="last UTC day to roll up, like 2026-11-20; it must be over")
    parser.add_argument("--policy", type=Path, help="folder with tiers.yaml and slas.yaml (default: the shipped one)")
    asked = parser.parse_args(argv)
    return exit_code_of(NAME, lambda: _run(asked.root, asked.cluster, asked.until, asked.policy))


def _run(root: str, cluster: str, until: date, policy: Path | None) -> None:
    if until >= datetime.now(timezone.utc).date():
        raise ConfigurationError(f"--until {until}: this day is not over (UTC): write an earlier one")
    offsets = load_policy(policy).history.offsets
    evidence = EvidenceRoot.at(root, "--root")
    sweep(evidence, cluster, print)
    made = roll_up(spark_session(f"kafka_audit {NAME}"), evidence, cluster, until, offsets.interval_seconds)
    print(f"rolled up {len(made)} days{': ' if made else ''}{', '.join(day.isoformat() for day in made)}")  # noqa: T201 - the job's interface


if __name__ == "__main__":
    sys.exit(main())
