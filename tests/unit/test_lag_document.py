"""docs/lag.md covers every status and every method."""

from pathlib import Path

from kafka_audit.catalogue.rows.groups import STATUSES

LAG_DOC = (Path(__file__).parents[2] / "docs" / "lag.md").read_text()


def test_it_names_every_status() -> None:
    assert [status for status in STATUSES if f"`{status}`" not in LAG_DOC] == []


def test_it_names_every_method_of_lag_in_seconds() -> None:
    methods = ("caught up", "record timestamp", "interpolated", "at least")
    assert [method for method in methods if f"`{method}`" not in LAG_DOC] == []
