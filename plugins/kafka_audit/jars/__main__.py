"""Fetches all jars (`make jars`), or records their sha256 anew (`make lock-jars`)."""

import sys

from kafka_audit.errors import AuditError
from kafka_audit.jars.fetch import broker_classpath, record, spark_connector_jars
from kafka_audit.jars.jar_list import LIST_FILE


def _main(arguments: list[str]) -> int:
    """Fetch everything that would need the network later (`make jars`), or record it anew (`make lock-jars`); return the exit code."""
    try:
        if arguments == ["--record"]:
            print(f"{record(print)} jars are recorded in {LIST_FILE}")  # noqa: T201  (a command of its own)
        else:
            broker_classpath(print)
            spark_connector_jars(print)
    except AuditError as problem:
        print(problem, file=sys.stderr)  # noqa: T201
        return problem.exit_code
    return 0


sys.exit(_main(sys.argv[1:]))
