"""check-clients: judges the files of a service by the catalogue; the exit code gives the outcome."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.check_clients import main

pytestmark = pytest.mark.spark

DECLARED = """
version: 1
clients:
  - {name: shop, kind: producer, implementation: java, release: "3.9", owner: shop team, declared_on: 2026-11-01, source: repo, topics: [orders],
     settings: {acks: all}, attests: [send_errors_handled]}
"""
CASES = {
    "safe settings": ("clients.yaml", DECLARED, 0, "pass          critical  PRD-02"),
    "a release that nobody named": (
        "p.properties",
        "linger.ms=5\n",
        4,
        "acks unknown (default of the Java client, which depends on its release",
    ),
    "a critical failure": ("p.properties", "acks=1\n", 3, "fail          critical  PRD-02"),
    "a high one": ("c.conf", "group.id=g\nenable.auto.commit=false\n", 3, "fail          high      CON-11"),
    "a critical control that is open": ("p.properties", "acks=${ACKS}\n", 4, "not_assessed  critical  PRD-02"),
    "too little is known": (
        "c.properties",
        "application.id=app\nisolation.level=read_committed\n",
        4,
        "c.properties (consumer): consumer, other",
    ),
    "no client at all": ("log4j2.properties", "rootLogger.level=INFO\n", 4, ""),
    "a broken file": ("p.properties", "acks=\\u12\n", 2, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_the_exit_code_says_what_came_of_it(case: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, text, code, line = CASES[case]
    (tmp_path / name).write_text(text)
    assert main([str(tmp_path)]) == code
    printed = capsys.readouterr()
    assert line in printed.out
    assert bool(printed.err) == (code != 0)


def test_hostile_text_of_a_file_stays_inert(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.properties").write_text("acks=\\u001b[2J\\u202eall\n\\u001b[31mx=1\n")
    assert main([str(tmp_path / "p.properties")]) == 3
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert "acks \\u001b[2J\\u202eall (declared)" in printed


def test_a_tier_may_ask_for_more(spark: SparkSession, tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.mkdir()
    tier = "{replication_factor: 3, min_insync_replicas: 2, retention_ms: 1, parameters: {PRD-03: {min_delivery_timeout_ms: 600000}}}"
    (policy / "tiers.yaml").write_text(f"version: 1\ndefault_tier: strict\ntiers: {{strict: {tier}}}\n")
    (policy / "slas.yaml").write_text("version: 1\n")
    (tmp_path / "clients.yaml").write_text(DECLARED)
    assert main(["--policy", str(policy), str(tmp_path / "clients.yaml")]) == 3
