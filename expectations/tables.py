"""The small tables that the suites judge, as plain rows: built with pyarrow, handed to Great Expectations as pandas frames."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Value = int | float | str | None
Kind = Literal["count", "number", "text"]


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
