"""Fetches all jars (`make jars`), or downloads them again and records their sha256 (`make lock-jars`)."""

import sys

from kafka_audit.errors import AuditError
from kafka_audit.jars.fetch import broker_classpath, record, spark_connector_jars
from kafka_audit.jars.jar_list import LIST_FILE


def _main(arguments: list[str]) -> int:
    """Fetch all jars for later use without network (`make jars`), or record their hashes (`make lock-jars`); return the exit code."""
    try:
        if arguments == ["--record"]:
            print(f"{record(print)} jars are recorded in {LIST_FILE}")  # noqa: T201  (output of a command)
        else:
            broker_classpath(print)
            spark_connector_jars(print)
    except AuditError as problem:
        print(problem, file=sys.stderr)  # noqa: T201
        return problem.exit_code
    return 0


sys.exit(_main(sys.argv[1:]))
