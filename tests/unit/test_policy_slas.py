"""Lag SLAs: which rule decides for a partition of a group, when quiet hours apply, and what ``slas.yaml`` may not contain."""

from datetime import datetime
from pathlib import Path

import pytest
from test_policy import TIERS, folder

from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.policy.slas import LagSla

TWO_TIERS = """
version: 1
default_tier: gold
tiers:
  gold: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 86400000}
  tin: {replication_factor: 2, min_insync_replicas: 1, retention_ms: 3600000}
topics: [{pattern: "logs*", tier: tin}, {pattern: "later*"}]
groups: [{pattern: "batch-*", tier: tin}]
"""
SLAS = """
version: 1
groups:
  - {pattern: "billing", topics: "pay*", name: payments, max_lag_seconds: 60}
  - {pattern: "batch-*", tier: tin, name: slow, max_lag_records: 100000}
  - {pattern: "b*", name: default, max_lag_records: 10}
"""


@pytest.mark.parametrize(
    ("group", "topic", "decides"),
    [
        ("billing", "payments", "payments"),
        ("billing", "orders", "default"),
        ("batch-1", "logs-eu", "slow"),
        ("batch-1", "payments", "default"),  # the topic is gold, which is the stricter of the two
        ("batch-1", "later-on", "default"),  # a rule without a tier is one of the default tier
        ("audit", "payments", None),
    ],
)
def test_the_first_rule_whose_patterns_and_tier_match_decides(tmp_path: Path, group: str, topic: str, decides: str | None) -> None:
    found = load_policy(folder(tmp_path, TWO_TIERS, SLAS)).lag_sla(group, topic)
    assert (found.name if found else None) == decides


def rule(**fields: str) -> str:
    written = {"pattern": "'*'", "name": "n", "max_lag_records": "1", **fields}
    return "version: 1\ngroups: [{" + ", ".join(f"{name}: {value}" for name, value in written.items() if value) + "}]\n"


def two(first: str, second: str) -> str:
    return f"version: 1\ngroups:\n  - {{{first}, max_lag_records: 1}}\n  - {{{second}, max_lag_records: 1}}\n"


@pytest.mark.parametrize(
    ("slas", "said"),
    [
        (rule(max_lag_records=""), r"groups\.0: limits nothing: add max_lag_records, max_lag_seconds or max_no_progress_seconds"),
        (rule(name="'a[b]'"), r"groups\.0\.name: contains a bracket"),
        (rule(tier="silver"), r"slas\.yaml: groups\.0\.tier: 'silver' is not one of the tiers: write one of no_loss"),
        (rule(breach="{samples: 3, of: 2}"), r"groups\.0\.breach: samples 3 is above of 2, so nothing could ever breach it"),
        (rule(availability="{target_percent: 101}"), r"availability\.target_percent: Input should be less than or equal to 100"),
        (rule(availability="{window_days: 30}"), r"availability\.target_percent: is missing: add it"),
        (rule(quiet_hours="[{days: [mon], from: 2200, to: '06:00'}]"), r"quiet_hours\.0\.from: Input should be a valid string"),
        (rule(max_lag_seconds="1:30"), r"groups\.0\.max_lag_seconds: Input should be a valid integer.*found '1:30'"),
        (rule(max_lag_seconds="9000000000000000000"), r"groups\.0\.max_lag_seconds: Input should be less than or equal to"),
        (rule(quiet_hours="[{days: [mon], from: '24:00', to: '06:00'}]"), r"quiet_hours\.0\.from: String should match pattern"),
        (rule(quiet_hours="[{days: [monday], from: '22:00', to: '06:00'}]"), r"quiet_hours\.0\.days\.0: Input should be 'mon'"),
        (rule(quiet_hours="[{days: [mon, mon], from: '22:00', to: '06:00'}]"), r"quiet_hours\.0: days: a day appears twice"),
        (
            rule(quiet_hours="[{days: [mon], from: '22:00', to: '06:00', timezone: CEST}]"),
            r"quiet_hours\.0\.timezone: is not an IANA time zone",
        ),
        (
            two("pattern: a*, name: x", "pattern: ab, topics: t, name: y"),
            "pattern 'ab' with topics 't' can never decide, because pattern 'a\\*'",
        ),
        (two("pattern: a*, topics: t*, name: x", "pattern: ab, topics: tt, tier: no_loss, name: y"), "can never decide"),
        (two("pattern: a, topics: t, name: x", "pattern: a, topics: u, name: x"), r"\['x'\] name several rules with topics or a tier"),
    ],
)
def test_a_mistake_is_refused_with_file_field_and_fix(tmp_path: Path, slas: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_policy(folder(tmp_path, TIERS, slas))


@pytest.mark.parametrize(
    "slas",
    [
        two("pattern: a*, topics: t, name: x", "pattern: ab, name: y"),
        two("pattern: a*, tier: no_loss, name: x", "pattern: ab, name: y"),
        two("pattern: a, name: x", "pattern: b, name: x"),
    ],
)
def test_a_narrower_rule_before_a_wider_one_is_fine(tmp_path: Path, slas: str) -> None:
    assert len(load_policy(folder(tmp_path, TIERS, slas)).slas) == 2


def test_days_cannot_go_before_the_snapshots_they_were_made_of(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"history\.offsets: rolled_up_keep_days is below keep_days"):
        load_policy(folder(tmp_path, TIERS + "history: {offsets: {keep_days: 30, rolled_up_keep_days: 7}}\n"))


def spans(first: str, last: str, *hours: dict[str, object]) -> list[tuple[str, str]]:
    sla = LagSla.model_validate({"pattern": "*", "name": "n", "max_lag_records": 1, "quiet_hours": list(hours)})
    found = sla.quiet_spans(datetime.fromisoformat(f"{first}+00:00"), datetime.fromisoformat(f"{last}+00:00"))
    return [(f"{begins:%dT%H:%M}", f"{ends:%dT%H:%M}") for begins, ends in found]


BERLIN = {"days": ["fri"], "from": "22:00", "to": "04:00", "timezone": "Europe/Berlin"}


def test_quiet_hours_go_over_midnight_by_the_clocks_of_their_time_zone() -> None:
    assert spans("2026-03-02T00:00", "2026-03-09T00:00", BERLIN) == [("06T21:00", "07T03:00")]
    assert spans("2026-06-29T00:00", "2026-07-06T00:00", BERLIN) == [("03T20:00", "04T02:00")]


def test_quiet_hours_are_cut_at_the_ends_of_the_window() -> None:
    assert spans("2026-03-06T23:00", "2026-03-07T01:00", BERLIN) == [("06T23:00", "07T01:00")]
    assert spans("2026-03-07T03:00", "2026-03-13T21:00", BERLIN) == []


def test_quiet_hours_that_overlap_count_once_and_a_whole_day_ends_when_it_began() -> None:
    saturday = {"days": ["sat"], "from": "00:00", "to": "00:00"}
    assert spans("2026-03-02T00:00", "2026-03-09T00:00", saturday, BERLIN) == [("06T21:00", "08T00:00")]
