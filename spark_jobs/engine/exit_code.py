"""How a job ends: with an exit code, and one line on stderr for a failure."""

import sys
import traceback
from collections.abc import Callable

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException

from kafka_audit.errors import AuditError, CollectionError, UnforeseenError
from kafka_audit.store.durable_files import keep_new_files_private


def failure_of(job: str, run: Callable[[], object]) -> AuditError | None:
    """Call ``run``; return its AuditError (a CollectionError where Spark or the file system failed), or None on success.

    Any other exception is a fault of this product: an UnforeseenError, after its traceback on stderr, which the report of it needs.
    """
    try:
        run()
    except AuditError as problem:
        return problem
    except (PySparkException, Py4JError) as problem:
        return CollectionError(f"{job}: Spark failed: {str(problem)[:1000]}")
    except (OSError, MemoryError, pa.ArrowException) as problem:
        return CollectionError(f"{job}: {problem}")
    except Exception as problem:  # noqa: BLE001 - it ends the job as any other failure, and what else the job does is kept
        traceback.print_exception(problem)
        text = f"{type(problem).__name__}: {str(problem)[:1000]}"
        return UnforeseenError(f"{job}: {text}. This is a fault of kafka-audit: report it with the lines above and the snapshot's id")
    return None


def say(problem: AuditError) -> None:
    """One line, however many problems the message lists: callers read the last line."""
    print(f"kafka-audit: {' '.join(str(problem).split())}", file=sys.stderr, flush=True)  # noqa: T201 - the job's interface


def exit_code_of(job: str, run: Callable[[], object]) -> int:
    """Run a job: 0, or the exit code of its error (kafka_audit.errors), which is said."""
    keep_new_files_private()
    problem = failure_of(job, run)
    if problem is None:
        return 0
    say(problem)
    return problem.exit_code
