"""Load a suite file, and refuse one that Great Expectations would quietly weaken; the small tables that suites judge, as plain rows.

Great Expectations drops an expectation of unknown type or severity with a log line and calls an empty suite a success. So
a file says how many rules it has, its rule ids are numbered without a gap, and anything unexpected in it is an error.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from kafka_audit.errors import ConfigurationError

SHIPPED = Path(__file__).parent
Value = int | float | str | None
Kind = Literal["count", "number", "text"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RuleMeta(_Strict):
    """Which rule an expectation is, the table it reads, and the exit code of the gate when it blocks (1, 3 or 4)."""

    rule_id: str = Field(pattern=r"^[A-Z]{3}-[0-9]{2}$")
    table: str = Field(min_length=1)
    exit_code: Literal[1, 3, 4]


class Rule(_Strict):
    """One expectation as it stands in the file; ``severity`` has no default, because Great Expectations' is silent."""

    type: str = Field(min_length=1)
    kwargs: dict[str, Any]
    severity: Literal["critical", "warning", "info"]
    description: str = Field(min_length=1)
    notes: str = Field(min_length=1)
    meta: RuleMeta

    @field_validator("kwargs")
    @classmethod
    def _every_row_counts(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        if "mostly" in kwargs:
            raise ValueError("'mostly' would let rows fail in silence; write the limit as a column of its own")
        return kwargs


class SuiteMeta(_Strict):
    """What the file promises about itself; ``error_exit_code`` is the gate's when a rule could not be computed."""

    about: str
    rule_prefix: str = Field(pattern=r"^[A-Z]{3}$")
    rule_count: int = Field(ge=1)
    error_exit_code: Literal[1, 4]


class Suite(_Strict):
    """A whole suite file; ``sha256`` is the hash of its bytes."""

    name: str = Field(pattern=r"^[a-z][a-z_]*$")
    meta: SuiteMeta
    expectations: tuple[Rule, ...]
    sha256: str

    @model_validator(mode="after")
    def _is_whole(self) -> "Suite":
        promised = [f"{self.meta.rule_prefix}-{number:02d}" for number in range(1, self.meta.rule_count + 1)]
        found = [rule.meta.rule_id for rule in self.expectations]
        if found != promised:
            raise ValueError(f"the file promises the rules {', '.join(promised)} in this order, and holds {', '.join(found) or 'none'}")
        return self


def load_suite(path: Path) -> Suite:
    """Read and check one suite file; ConfigurationError (exit 2) names the file, the field and the reason."""
    try:
        raw = path.read_bytes()
        return Suite(**{**json.loads(raw), "sha256": hashlib.sha256(raw).hexdigest()})
    except OSError as problem:
        raise ConfigurationError(f"suite {path} cannot be read: {problem.strerror or problem}") from problem
    except ValidationError as problem:
        listed = "\n  ".join(f"{'.'.join(str(part) for part in error['loc']) or 'file'}: {error['msg']}" for error in problem.errors())
        raise ConfigurationError(f"suite {path} is not usable; restore it from version control:\n  {listed}") from problem
    except (ValueError, TypeError) as problem:
        raise ConfigurationError(f"suite {path} is not a JSON object: {problem}") from problem


def kinds(columns: Iterable[str], *, texts: Collection[str] = (), numbers: Collection[str] = ()) -> dict[str, Kind]:
    """The kind of each column: a count, but for those that are named as texts or as numbers with decimals."""
    return {name: "text" if name in texts else "number" if name in numbers else "count" for name in columns}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of at most a few hundred rows. ``key`` is the column that names a row to people; None is "not known", never 0.

    ``single`` says that the table is one row about the whole, which needs no name.
    """

    name: str
    key: str
    columns: Mapping[str, Kind]
    rows: Sequence[Mapping[str, Value]]
    single: bool = False

    def column(self, name: str) -> list[Value]:
        """The values of one column, row by row."""
        return [row.get(name) for row in self.rows]

    def unknown(self, names: Sequence[str]) -> list[str]:
        """Keys of the rows in which any of the named columns is not known."""
        return [str(row.get(self.key)) for row in self.rows if any(row.get(name) is None for name in names)]
