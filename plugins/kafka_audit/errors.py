"""The errors that this product raises on purpose, each with the exit code of the command.

Exit codes: 0 passed; 1 internal or collection failure; 2 invalid catalogue, policy or arguments;
3 gate failed; 4 incomplete; 5 integrity check failed; 6 nothing to read yet (of a job: its task is skipped).
"""


class AuditError(Exception):
    """Base of every expected failure. The message says what failed, where, and what to do next."""

    exit_code: int = 1


class CollectionError(AuditError):
    """A cluster could not be read at all, or its snapshot could not be written."""


class NothingToReadError(CollectionError):
    """What is to be read does not exist yet, and will without anybody's doing."""

    exit_code = 6


class ConfigurationError(AuditError):
    """A control, a policy file, a connection or an argument is not valid."""

    exit_code = 2


class GateFailedError(AuditError):
    """The audit was complete and its findings fail the policy."""

    exit_code = 3


class IncompleteError(AuditError):
    """Too little could be assessed for a verdict."""

    exit_code = 4


class IntegrityError(AuditError):
    """Stored evidence is missing, changed or not what its manifest says."""

    exit_code = 5


class NotToldError(AuditError):
    """A message was not accepted by everyone who should be told."""


class StoppedError(AuditError):
    """The work was told to stop from outside before it was done; doing it again may succeed."""


class UnforeseenError(AuditError):
    """Something failed that nobody foresaw: a fault of this product, to be reported."""
