"""Which error budgets burn too fast, by two windows of which enough is known."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared_audits import TOPIC, Shop, row
from news_overviews import NOON, burn

from kafka_audit.index.burns import find_burns
from kafka_audit.index.read import open_index
from kafka_audit.index.write import write_report_and_index
from kafka_audit.policy.burn_rates import BURN_WINDOWS, MINUTES
from kafka_audit.store.layout import seal_audit

TARGET = 99.0


def share(group_id: str, outside: float | dict[int, float], known: float | dict[int, float] = 1.0, **more: object) -> dict[str, object]:
    """A row of sla_burns: the share of each window (minutes -> share) that was outside of the SLA, and the share that is known."""
    found: dict[str, object] = {"group_id": group_id, "sla": "interactive", "target_percent": TARGET}
    for minutes in MINUTES:
        out = outside[minutes] if isinstance(outside, dict) else outside
        of = known[minutes] if isinstance(known, dict) else known
        whole = minutes * 60_000
        measured = {"counted": whole, "out": round(whole * out * of), "in": round(whole * (1 - out) * of)}
        found |= {f"{kind}_ms_{minutes}": value for kind, value in measured.items()}
    return {**found, **more}


def write(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "sla_burns.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


@pytest.mark.parametrize("pair", BURN_WINDOWS, ids=lambda pair: f"{pair.minutes} min")
def test_a_budget_burns_when_both_windows_reach_the_rate(tmp_path: Path, pair) -> None:
    enough, less = pair.threshold * 0.0101, pair.threshold * 0.0099
    # The other windows were outside for too little time to burn; the window of six hours was outside whenever a shorter one was.
    both = dict.fromkeys(MINUTES, 0.0001) | {pair.minutes: enough, pair.short_minutes: enough}
    (found,) = find_burns(write(tmp_path, share("billing", both)), ())
    assert (found.window_hours, found.short_window_hours, found.threshold) == (pair.minutes / 60, pair.short_minutes / 60, pair.threshold)
    assert found.burn == pytest.approx(pair.threshold * 1.01, rel=1e-3)
    for window in (pair.minutes, pair.short_minutes):
        slower = share("billing", {**both, window: less})
        assert [one for one in find_burns(write(tmp_path, slower), ()) if one.threshold == pair.threshold] == []


def test_the_fastest_pair_that_burns_is_the_one_that_is_named_and_the_worst_comes_first(tmp_path: Path) -> None:
    path = write(tmp_path, share("slow", 0.02), share("fast", 0.5), share("faster", 0.9), share("fine", 0.0))
    assert [(one.group_id, one.threshold, one.burn) for one in find_burns(path, ())] == [
        ("faster", 14.4, 90.0),
        ("fast", 14.4, 50.0),
        ("slow", 1.0, 2.0),
    ]


def test_a_window_of_which_too_little_is_known_burns_nothing(tmp_path: Path) -> None:
    assert len(find_burns(write(tmp_path, share("billing", 0.5, known=0.91)), ())) == 1
    assert find_burns(write(tmp_path, share("billing", 0.5, known=0.89)), ()) == ()
    short_unknown = dict.fromkeys(MINUTES, 1.0) | {5: 0.5}
    (found,) = find_burns(write(tmp_path, share("billing", 0.5, known=short_unknown)), ())
    assert found.threshold == 6.0


def test_a_target_of_all_the_time_and_quiet_hours_without_time_that_counts_have_no_rate(tmp_path: Path) -> None:
    assert find_burns(write(tmp_path, share("billing", 0.5, target_percent=100.0)), ()) == ()
    quiet = {f"{kind}_ms_{minutes}": 0 for minutes in MINUTES if minutes <= 60 for kind in ("counted", "in", "out")}
    assert [one.threshold for one in find_burns(write(tmp_path, share("billing", 0.5, **quiet)), ())] == [3.0]


def test_what_burned_before_stays_as_not_known_until_its_windows_are_known(tmp_path: Path) -> None:
    before = (burn(9.0),)
    unknown = (before[0].model_copy(update={"burn": None}),)
    assert find_burns(None, before) == unknown
    assert find_burns(tmp_path / "sla_burns.parquet", before) == unknown
    assert find_burns(write(tmp_path, share("billing", 0.0, known=0.5)), before) == unknown
    assert find_burns(write(tmp_path, share("billing", 0.0)), before) == ()
    assert find_burns(write(tmp_path, share("other", 0.0)), before) == (), "its group or SLA is gone"


def test_the_index_of_an_audit_names_what_burns_and_the_next_one_what_is_not_known_of_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path)

    def sealed(*rows: dict[str, object]) -> tuple[tuple[str, float | None], ...]:
        made = shop.judge([row(TOPIC, "orders")])
        if rows:
            write(made.audit.lag, *rows)
        write_report_and_index(*made.inputs, generated_at=NOON, formats=("html",))
        seal_audit(shop.root, made.audit.path.parent.name, made.id, {"snapshot": {"snapshot_id": made.snapshot.snapshot_id}})
        return tuple((one.group_id, one.burn) for one in open_index(made.audit).overview.burns)

    assert sealed(share("billing", 0.5)) == (("billing", 50.0),)
    assert sealed() == (("billing", None),)
    assert sealed(share("billing", 0.0)) == ()
