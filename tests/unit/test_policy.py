"""Policy files are validated as a whole, and every problem is named with its file and field."""

from pathlib import Path

import pytest
import yaml

from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.policy.tiers import STRICT_REQUIREMENTS

TIERS = """
version: 1
default_tier: no_loss
tiers:
  no_loss: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 86400000}
"""
SERVICE = TIERS + "managed_service: {name: Cloud, documentation: https://cloud.example/limits, hides: [log_dirs]}\n"
SLAS = "version: 1\ngroups: [{pattern: '*', name: default, max_lag_records: 10}]\n"


def folder(tmp_path: Path, tiers: str = TIERS, slas: str = SLAS) -> Path:
    (tmp_path / "tiers.yaml").write_text(tiers)
    (tmp_path / "slas.yaml").write_text(slas)
    return tmp_path


def test_the_shipped_policy_is_strict_unless_somebody_decides_otherwise() -> None:
    policy = load_policy()
    assert list(policy.tiers) == ["no_loss", "standard", "best_effort"]
    assert policy.default_tier == "no_loss"
    assert {rule.tier for rule in (*policy.topics, *policy.groups)} <= {"no_loss"}
    assert not policy.tiers["no_loss"].severities
    assert not policy.tiers["no_loss"].parameters
    assert all(getattr(policy.tiers["no_loss"], field) >= value for field, value in STRICT_REQUIREMENTS.items())
    assert policy.slas[-1].pattern == "*"
    assert policy.waivers == []


def test_the_hash_follows_the_content(tmp_path: Path) -> None:
    first = load_policy(folder(tmp_path)).sha256
    assert load_policy(folder(tmp_path)).sha256 == first
    assert load_policy(folder(tmp_path, slas=SLAS.replace("10", "11"))).sha256 != first


@pytest.mark.parametrize(
    ("tiers", "slas", "said"),
    [
        (TIERS + "declared_topic: [a]\n", SLAS, r"tiers\.yaml: declared_topic: is not a known field"),
        (TIERS.replace("retention_ms: 86400000", "retention_ms: long"), SLAS, r"tiers\.yaml: tiers\.no_loss\.retention_ms: .*integer"),
        (
            TIERS.replace("default_tier: no_loss", "default_tier: gold"),
            SLAS,
            "default_tier 'gold' is not one of the tiers: write one of no_loss",
        ),
        (TIERS + "topics: [{pattern: 'a*', tier: gold}]\n", SLAS, "pattern 'a\\*' names tier 'gold'"),
        (TIERS.replace("min_insync_replicas: 2", "min_insync_replicas: 4"), SLAS, "no topic could ever pass"),
        (TIERS + "declared_groups: [a, a]\n", SLAS, "declared_groups: \\['a'\\] appear twice"),
        (TIERS + "default_tier: other\n", SLAS, r"tiers\.yaml: is not valid YAML: key 'default_tier' stands there twice"),
        (TIERS, "version: 1\ngroups: [{pattern: x, max_lag_records: 1}]\n", r"slas\.yaml: groups\.0\.name: is missing: add it"),
        (
            TIERS + "topics: [{pattern: 'a*'}, {pattern: 'ab?', tier: no_loss}]\n",
            SLAS,
            "topics: pattern 'ab\\?' can never decide, because 'a\\*' before it matches the same names: put the narrower one first",
        ),
        (TIERS + "groups: [{pattern: '*'}, {pattern: g}]\n", SLAS, "groups: pattern 'g' can never decide"),
        (TIERS, SLAS.replace("]", ", {pattern: x, name: y, max_lag_records: 1}]"), "groups: pattern 'x' can never decide"),
        (TIERS + "topics: [{pattern: a, unique_keys: 1}]\n", SLAS, r"topics\.0\.unique_keys: Input should be a valid boolean"),
        (
            TIERS + "topics: [{pattern: a, cleanup_policy: compacted}]\n",
            SLAS,
            r"topics\.0\.cleanup_policy: Input should be 'delete', 'compact'",
        ),
        (TIERS + "history: {interval_seconds: 0}\n", SLAS, r"history\.interval_seconds: Input should be greater than or equal to 1"),
        (TIERS.replace("86400000}", "1, severities: {TOP-1: low}}"), SLAS, r"severities\.TOP-1\.\[key\]: String should match pattern"),
        (TIERS.replace("86400000}", "1, severities: {TOP-01: urgent}}"), SLAS, r"severities\.TOP-01: Input should be 'critical'"),
        (TIERS.replace("86400000}", "1, parameters: {TOP-01: {n: '1'}}}"), SLAS, r"parameters\.TOP-01\.n.*: Input should be a valid"),
        (TIERS.replace("2, retention_ms", "true, retention_ms"), SLAS, r"min_insync_replicas: Input should be a valid integer"),
        (SERVICE.replace("[log_dirs]", "[groups]"), SLAS, r"managed_service\.hides: .*'groups' is not one of acls, broker_configs"),
        (
            SERVICE.replace("[log_dirs]", "[quorum.x]"),
            SLAS,
            r"'quorum.x': only broker_configs and topic_configs have settings: write 'quorum'",
        ),
        (SERVICE.replace("[log_dirs]", "[acls, acls]"), SLAS, r"managed_service\.hides: .*\['acls'\] appear twice: keep one"),
        (SERVICE.replace("https", "ftp"), SLAS, r"tiers\.yaml: managed_service\.documentation: String should match pattern"),
        (TIERS + "managed_service: msk\n", SLAS, r"tiers\.yaml: managed_service: "),
        (TIERS, "version: 2\n", r"slas\.yaml: version"),
        (TIERS, "version: [1\n", r"slas\.yaml: is not valid YAML"),
    ],
)
def test_a_bad_file_is_refused_with_file_field_and_fix(tmp_path: Path, tiers: str, slas: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        load_policy(folder(tmp_path, tiers, slas))
    assert caught.value.exit_code == 2


def test_the_problems_of_both_files_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)tiers\.yaml.*slas\.yaml"):
        load_policy(folder(tmp_path, "version: 9\n", "version: 9\n"))


def test_a_missing_folder_and_a_misspelt_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no folder .*nowhere: name a policy folder"):
        load_policy(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match=r"cannot be read \(File name too long\); name a policy folder"):
        load_policy(tmp_path / ("x" * 300))
    with pytest.raises(ConfigurationError, match=r"tiers\.yaml: the file is missing"):
        load_policy(tmp_path)
    folder(tmp_path)
    (tmp_path / "sla.yaml").write_text(SLAS)
    with pytest.raises(ConfigurationError, match=r"sla\.yaml: is not a policy file"):
        load_policy(tmp_path)


@pytest.mark.parametrize("name", ["tiers.yaml", "slas.yaml"])
def test_rules_that_would_take_seconds_to_hold_against_each_other_are_refused(tmp_path: Path, name: str) -> None:
    patterns = ["*" + "*".join("abcdefghijklmnopqrstuvwxyz"[(index + n) % 26] for n in range(49)) + str(index) for index in range(1_000)]
    limits = {"tiers.yaml": {}, "slas.yaml": {"max_lag_records": 1}}[name]
    rules = [{"pattern": pattern, **({"name": str(index)} if limits else {}), **limits} for index, pattern in enumerate(patterns)]
    field = {"tiers.yaml": "topics", "slas.yaml": "groups"}[name]
    text = yaml.safe_dump({**yaml.safe_load({"tiers.yaml": TIERS, "slas.yaml": SLAS}[name]), field: rules})
    place = folder(tmp_path, **{name.removesuffix(".yaml"): text})
    with pytest.raises(
        ConfigurationError, match=rf"{name}: .*{field}: the patterns have 10[0-9],[0-9]+ characters together, allowed are 50,000"
    ):
        load_policy(place)


def test_the_isolation_level_of_a_group_is_what_all_its_consumers_are_declared_to_use(tmp_path: Path) -> None:
    about = "kind: consumer, owner: o, declared_on: 2025-01-01, source: s"
    clients = {
        "by its setting": "group: a, implementation: java, settings: {isolation.level: read_committed}",
        "by the client's default": "group: b, implementation: java",
        "by librdkafka's default": "group: c, implementation: librdkafka, release: '2.16'",
        "one of two": "group: d, implementation: java",
        "the other of two": "group: d, implementation: librdkafka, release: '2.16'",
        "of a client nobody knows": "group: e, implementation: other",
        "with a word that is no level": "group: f, implementation: other, settings: {isolation.level: READ_COMMITTED}",
    }
    place = folder(tmp_path)
    lines = "\n".join(f"  - {{name: {name}, {about}, {rest}}}" for name, rest in clients.items())
    (place / "clients.yaml").write_text(f"version: 1\nclients:\n{lines}\n")

    assert load_policy(place).isolation_levels() == {"a": "read_committed", "b": "read_uncommitted", "c": "read_committed"}
