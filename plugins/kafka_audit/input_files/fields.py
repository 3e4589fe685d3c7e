"""The fields that files of a policy have in common: names, patterns, dates, and the model that refuses whatever it does not know."""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, timezone
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

Name = Annotated[str, Field(min_length=1, max_length=100)]
Pattern = Annotated[str, Field(min_length=1, max_length=1_000)]
Rules: Any = Field(default_factory=list, max_length=1_000)
"""The limit exists because each ordered rule is compared with all rules before it and becomes a part of Spark's plan."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _like(example: str) -> BeforeValidator:
    """Refuse numbers and texts of digits, which pydantic would read as seconds since 1970."""

    def check(value: Any) -> Any:  # noqa: ANN401 - whatever YAML made of it
        if isinstance(value, date) or (isinstance(value, str) and _DATE.match(value)):
            return value
        raise ValueError(f"is not a date: write it like {example}")

    return BeforeValidator(check)


def _in_utc(moment: datetime) -> datetime:
    """Refuse a time that has no equal in UTC: the year 0 or 10000."""
    try:
        moment.astimezone(timezone.utc)
    except OverflowError as problem:
        raise ValueError("lies outside of the years 1 to 9999 in UTC: write it like 2026-12-31T00:00:00Z") from problem
    return moment


Date = Annotated[date, _like("2026-12-31"), Field(strict=False)]
Moment = Annotated[AwareDatetime, _like("2026-12-31T00:00:00Z"), AfterValidator(_in_utc), Field(strict=False)]
Code = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}-\d{2}$")]


class Strict(BaseModel):
    """A part of such a file: unknown fields and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def repeated(names: Iterable[str]) -> list[str]:
    """The names that appear more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)
