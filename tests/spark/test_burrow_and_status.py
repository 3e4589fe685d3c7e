"""Burrow's evaluator and ours on the same histories, compared with the table in docs/lag.md."""

from pathlib import Path

import pytest
from lag_histories import HISTORIES

from kafka_audit.catalogue.rows.groups import STATUSES

pytestmark = pytest.mark.spark

_TABLE = (Path(__file__).parents[2] / "docs" / "lag.md").read_text().split("## Burrow")[1]
_SAME = {
    **dict.fromkeys(STATUSES),
    "OK": "OK",
    "GROWING": "WARN",
    "SLOW": "WARN",
    "STALLED": "STALL",
    "STOPPED": "STOP",
    "REWOUND": "REWIND",
}
"""Burrow's word for a status, where it has one."""
COMPARED = {
    cells[0].strip("| `"): (cells[2], cells[3]) for cells in (line.split(" | ") for line in _TABLE.splitlines() if line.startswith("| `"))
}


@pytest.mark.parametrize("history", COMPARED)
def test_the_document_shows_what_both_say_of_a_history(history: str, lag_rows) -> None:
    row = lag_rows[history]
    assert (row["status"], row["burrow"] or "-") == COMPARED[history], row["status_reason"]


def test_the_document_has_every_history_on_which_they_differ(lag_rows) -> None:
    differ = {name for name in HISTORIES if lag_rows[name]["burrow"] and lag_rows[name]["burrow"] != _SAME[lag_rows[name]["status"]]}
    assert {name for name in differ if not name.startswith("timed-")} == {
        name for name, said in COMPARED.items() if said[1] != _SAME[said[0]]
    }


def test_all_that_burrow_can_say_of_a_partition_is_seen(lag_rows) -> None:
    assert {row["burrow"] for row in lag_rows.values()} == {None, "OK", "WARN", "STOP", "STALL", "REWIND"}
