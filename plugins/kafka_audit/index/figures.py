"""The types of the figures and words of an overview: numbers that a column of a table can hold, verdicts and severities."""

from collections.abc import Collection
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field

from kafka_audit.audit.outcome import VERDICTS
from kafka_audit.findings import Severity

LONG = 2**63 - 1
"""The largest number that a column of a table can hold (int64)."""


def _one_of(words: Collection[str], value: str) -> str:
    if value not in words:
        raise ValueError(f"is none of {', '.join(words)}")
    return value


Count = Annotated[int, Field(ge=0, le=LONG)]
Milliseconds = Annotated[int, Field(ge=-LONG, le=LONG)]
VerdictWord = Annotated[str, AfterValidator(partial(_one_of, VERDICTS))]
SeverityWord = Annotated[str, AfterValidator(partial(_one_of, [one.value for one in Severity]))]
