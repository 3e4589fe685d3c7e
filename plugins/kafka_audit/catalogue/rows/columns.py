"""The description of a wide row's column, and the columns that every subject has."""

from collections.abc import Mapping
from dataclasses import dataclass

CONFIG = "map<string,struct<value:string,source:string,synonyms:array<struct<name:string,value:string,source:string>>>>"
INTS = "array<int>"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a wide row: Spark SQL type and meaning."""

    type: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One kind of thing that is judged: its wide row and the part of a verification that builds it."""

    name: str
    part: str
    about: str
    columns: Mapping[str, Column]

    @property
    def ddl(self) -> str:
        """The row's schema as a Spark DDL string."""
        return ", ".join(f"`{name}` {column.type}" for name, column in self.columns.items())


def columns(table: str) -> dict[str, Column]:
    """Columns from a table of lines with name, type (without spaces) and meaning; a line indented by eight continues the line before."""
    rows: list[str] = []
    for line in table.splitlines():
        if line.startswith(" " * 8):
            rows[-1] += f" {line.strip()}"
        elif line.strip():
            rows.append(line.strip())
    return {name: Column(type=kind, meaning=meaning) for name, kind, meaning in (row.split(maxsplit=2) for row in rows)}


RESOURCE = "resource string name of the judged thing, unique within the subject"
ERRORS = "errors map<string,string> dataset -> why its evidence for this row is missing; empty when nothing is missing"
SNAPSHOTS = "snapshots int snapshots that show this thing, this one and the earlier ones of the history together"
HISTORY_MS = "history_ms bigint time from the first of these snapshots to this one, in milliseconds; 0 when there is only this one"
IS_NEW = "is_new boolean it came after the last audit's snapshot, which had the same scope and read every topic and partition"

_TOPIC_POLICY = (
    "struct<tier:string,owner:string,rpo_ms:bigint,replication_factor:int,min_insync_replicas:int,retention_ms:bigint,"
    "cleanup_policy:string,unique_keys:boolean,producer_clocks_attested:boolean,power_domains_attested:boolean>"
)
TOPIC_POLICY = f"policy {_TOPIC_POLICY} what the topic's tier asks for, and what its owner declares; a NULL field is not declared"
