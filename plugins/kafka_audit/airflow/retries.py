"""Decides which task failures Airflow retries."""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowFailException

from kafka_audit.audit.installation import snapshot_retries
from kafka_audit.errors import AuditError, CollectionError, ConfigurationError, IntegrityError, NotToldError, StoppedError

_STOPPED = RetryRule(exception=StoppedError, action=RetryAction.RETRY, reason="another worker may do what this one was told to stop")

# Only reading the cluster depends on something that may be better in a minute. Every other step is a function of files.
# What cannot get better (refused credentials, a full disk) never comes here: final_errors raises AirflowFailException for it.
SNAPSHOT_RETRIES = ExceptionRetryPolicy(
    rules=[
        RetryRule(exception=[ConfigurationError, IntegrityError], action=RetryAction.FAIL, reason="trying again cannot help"),
        _STOPPED,
        RetryRule(exception=CollectionError, action=RetryAction.RETRY, reason="the cluster may be reachable again in a moment"),
    ],
    default=RetryAction.FAIL,
)

NO_ERROR_TWICE = ExceptionRetryPolicy(rules=[_STOPPED], default=RetryAction.FAIL)
"""No error of a task's own is worth another try. One whose worker is told to stop, or is gone, is tried as often as ``retries`` says."""

_REFUSALS = ("authentication failed", "authenticationexception", "may not be read", "does not accept the credentials", "no right to do so")
"""What the messages of refused credentials and missing rights hold, in lower case: this project's own and those of Kafka's Java client."""


def once_more_if_lost() -> dict[str, Any]:
    """The arguments of a task that runs once more after its worker was lost or told to stop, and not after an error of its own.

    Every step can be repeated: it keeps what is sealed, and replaces what is not.
    """
    return {"retries": 1, "retry_delay": timedelta(seconds=10), "retry_policy": NO_ERROR_TWICE}


def while_unreachable() -> dict[str, Any]:
    """The arguments of a task that reads a cluster: it is tried again while the cluster is unreachable."""
    return {"retries": snapshot_retries(), "retry_delay": timedelta(seconds=30), "retry_policy": SNAPSHOT_RETRIES}


def expected_error(problem: BaseException | None) -> AuditError | None:
    """The AuditError that the exception is or was raised from; None for a bug."""
    return problem if problem is None or isinstance(problem, AuditError) else expected_error(problem.__cause__)


def worth_retrying(problem: BaseException) -> bool:
    """True when the same step may succeed a little later without anyone doing anything.

    An unreachable cluster may come back. Refused credentials stay refused (and repeated attempts lock accounts), a right that is
    missing stays missing, a full disk stays full, a wrong parameter stays wrong. A message that was refused may
    be accepted later. What was told to stop did not fail.
    """
    if isinstance(problem, NotToldError | StoppedError):
        return True
    if not isinstance(problem, CollectionError) or isinstance(problem.__cause__, OSError):
        return False
    said = str(problem).lower()
    return not any(refusal in said for refusal in _REFUSALS)


@contextlib.contextmanager
def final_errors() -> Iterator[None]:
    """Fail the task for good, with the error's own message, when an AuditError in the block is not worth another try."""
    try:
        yield
    except Exception as problem:
        expected = expected_error(problem)
        if expected is not None and not worth_retrying(expected):
            raise AirflowFailException(str(expected)) from problem
        raise
