"""The process that keeps the seed's consumer groups alive: `python -m kafka_audit.sandbox.workload PLAN`, ended by SIGTERM.

It reads and commits until every group is in the state that the plan asks for, reports that, and then only sends heartbeats.
"""

import logging
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import KafkaException
from kafka.errors import KafkaError

from kafka_audit.errors import AuditError
from kafka_audit.input_files.fields import Strict
from kafka_audit.sandbox import members
from kafka_audit.sandbox.definition import Group
from kafka_audit.store.durable_files import write_json

log = logging.getLogger("kafka_audit.sandbox.workload")


class Plan(Strict):
    """The work of the process; partitions is topic -> partition count. Groups that do not stay leave after they have committed."""

    bootstrap: str
    partitions: dict[str, int]
    groups: tuple[Group, ...]


def report_path(plan: Path) -> Path:
    """Return the file in which the process reports the outcome of each group of this plan."""
    return plan.with_suffix(".done.json")


def run(plan: Plan, report: Path) -> None:
    """Settle all groups in parallel, write the report (group id -> null or the error), and hold the groups that stay until SIGTERM.

    Call this in the main thread, because Python delivers signals there.
    """
    stop = threading.Event()
    outcome: dict[str, str | None] = {group.id: "its thread died, see the log" for group in plan.groups}
    reported = threading.Barrier(len(plan.groups) + 1)
    threads = [threading.Thread(target=_one, args=(group, plan, outcome, reported, stop)) for group in plan.groups]
    for thread in threads:
        thread.start()
    reported.wait()
    # From here on SIGTERM lets the members leave their groups in order; before, it ends the process at once.
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    write_json(report, outcome)
    stop.wait()
    for thread in threads:
        thread.join()


def _one(group: Group, plan: Plan, outcome: dict[str, str | None], reported: threading.Barrier, stop: threading.Event) -> None:
    member = None
    try:
        member = members.create(group, plan.bootstrap, plan.partitions)
        member.settle()
        if not group.stays:
            member.close()
            member = None
        outcome[group.id] = None
    except (AuditError, KafkaError, KafkaException, OSError, ValueError) as error:
        log.exception("group %r", group.id)
        outcome[group.id] = f"{type(error).__name__}: {error}"
    finally:
        reported.wait()
    if member is not None:
        if outcome[group.id] is None:
            member.hold(stop)
        member.close()


def main(arguments: Iterable[str]) -> None:
    """Run the plan named by the only argument."""
    (path,) = map(Path, arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    run(Plan.model_validate_json(path.read_text(encoding="utf-8")), report_path(path))


if __name__ == "__main__":
    main(sys.argv[1:])
