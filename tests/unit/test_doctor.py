"""``kafka-audit doctor``: what it calls ok, missing and not known, the fix beside it, and the exit code."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import typer
from fake_brokers import FakeCluster

from kafka_audit.cli import doctor_installation
from kafka_audit.cli.doctor import doctor
from kafka_audit.cli.doctor_cluster import cluster
from kafka_audit.cli.doctor_installation import MISSING, NOT_KNOWN, OK, Check
from kafka_audit.cluster.connection import ConnectionSettings

READ, DESCRIBE, DESCRIBE_CONFIGS = 3, 8, 10


def by_name(checks) -> dict[str, Check]:
    return {one.name: one for one in checks}


def looked_at(fake: FakeCluster) -> dict[str, Check]:
    return by_name(cluster(lambda: ConnectionSettings.from_mapping({"bootstrap.servers": fake.bootstrap}, where="prod.properties")))


def outcome(capsys: pytest.CaptureFixture[str], **options) -> tuple[int, str]:
    try:
        doctor(**options)
    except typer.Exit as end:
        return end.exit_code, capsys.readouterr().out
    return 0, capsys.readouterr().out


def test_rights_that_are_there_are_ok_and_those_that_lack_are_named_with_an_example() -> None:
    with FakeCluster() as fake:
        fake.add_topic("orders", [1])
        fake.add_topic("payments", [2])
        fake.topics[0].authorized_operations = {READ, DESCRIBE, DESCRIBE_CONFIGS}
        fake.topics[1].authorized_operations = {DESCRIBE}
        found = looked_at(fake)
    assert found["cluster"].state == OK and found["cluster"].detail.startswith("3 brokers answer")
    assert (found["rights: cluster"].state, found["rights: cluster"].detail) == (MISSING, "without DescribeConfigs")
    topics = found["rights: topics"]
    assert (topics.state, topics.detail) == (MISSING, "1 of 2 topics lack some, such as payments: DescribeConfigs, Read")
    assert topics.fix.startswith("Grant Describe, DescribeConfigs, Read on all topics")


def test_rights_that_the_brokers_do_not_tell_are_not_known() -> None:
    with FakeCluster() as fake:
        assert looked_at(fake)["rights: topics"].state == NOT_KNOWN


def test_a_cluster_that_does_not_answer_and_a_file_that_is_wrong_are_missing_with_the_fix(tmp_path: Path) -> None:
    (only,) = cluster(lambda: ConnectionSettings.from_mapping({"bootstrap.servers": "127.0.0.1:1"}, where="prod.properties"))
    assert only.state == MISSING and "127.0.0.1:1" in only.fix
    (only,) = cluster(lambda: ConnectionSettings.from_mapping({"bootstrap.server": "x:1"}, where="prod.properties"))
    assert (only.state, only.detail) == (MISSING, "the connection cannot be used") and "bootstrap.server: " in only.fix


def test_the_exit_code_says_whether_something_is_missing_or_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor_installation, "programs", lambda: iter([Check("Java", OK, "21")]))
    monkeypatch.setattr(doctor_installation, "packages", lambda: iter(()))
    code, text = outcome(capsys, root=str(tmp_path / "new"))
    assert code == 0 and "(will be made)" in text and "not asked  cluster" in text
    code, text = outcome(capsys, root="ftp://bucket/audits")
    assert code == 2 and "missing    root" in text and "s3://" in text
    (tmp_path / "file").touch()
    code, text = outcome(capsys, root=str(tmp_path / "file" / "root"))
    assert code == 2 and "Name another folder by --root or KAFKA_AUDIT_ROOT" in text
    code, text = outcome(capsys, root=str(tmp_path), policy=tmp_path / "none")
    assert code == 2 and "there is no folder" in text
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders")
    assert "missing    clusters" in outcome(capsys, root=str(tmp_path))[1]


def test_each_variable_and_each_policy_of_a_listed_cluster_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tmp_path / "clusters.yaml"
    entries = [f"{{name: {name}, connection: c, policy: {tmp_path / 'none'}}}" for name in ("orders", "payments")]
    listed.write_text(f"version: 1\nclusters: [{', '.join(entries)}]")
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", str(listed))
    policies = by_name(doctor_installation.rules(None, []))
    assert {name: one.state for name, one in policies.items()} == {"policy": OK, "policy: orders": MISSING}  # one line for one folder
    assert f"there is no folder {tmp_path / 'none'}" in policies["policy: orders"].fix
    monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", "")
    assert [one.state for one in doctor_installation.settings()] == [OK]
    monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", "chat")
    for name in ("SHARDS", "STALE_HOURS", "SIGNING_KEY", "SCHEDULE"):  # the hours are read twice and told once
        monkeypatch.setenv(f"KAFKA_AUDIT_{name}", "none")
    found = list(doctor_installation.settings())
    assert [one.state for one in found] == [MISSING] * 4
    assert any("KAFKA_AUDIT_SCHEDULE: 'none' is not usable: write one of @hourly" in one.fix for one in found)
    assert [one.fix.split(":")[0] for one in found][:2] == ["KAFKA_AUDIT_SHARDS", "KAFKA_AUDIT_STALE_HOURS"]


def test_where_tasks_look_for_the_root_and_whether_a_split_snapshot_fits_it_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.delenv("KAFKA_AUDIT_ROOT", raising=False)
    assert f"tasks use {tmp_path / 'audit-root'}" in doctor_installation.root_folder(str(tmp_path)).detail
    monkeypatch.setenv("KAFKA_AUDIT_ROOT", str(tmp_path))
    assert doctor_installation.root_folder(str(tmp_path)).detail == str(tmp_path)
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setenv("KAFKA_AUDIT_SHARDS", "2")
    found = doctor_installation.root_folder("s3://bucket/audits")
    assert found.state == MISSING and "KAFKA_AUDIT_SHARDS: a snapshot that several tasks read needs a root in a local folder" in found.fix


def test_a_package_outside_of_its_range_is_missing_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["typer>=0.15", 'pyspark<4.3,>=4.2; extra == "spark"', 'marshmallow<4,>=3.26; extra == "airflow"']
    versions = {"typer": "0.29.1", "pyspark": "4.1.0"}

    def version(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor_installation, "requires", lambda _: wanted)
    monkeypatch.setattr(doctor_installation, "version", version)
    monkeypatch.delenv("KAFKA_AUDIT_NOTIFY", raising=False)
    found = by_name(doctor_installation.packages())
    assert (found["packages"].state, found["packages"].detail) == (OK, "typer 0.29.1")
    assert found["packages: spark"].detail == "pyspark is 4.1.0 and must be <4.3,>=4.2"
    assert found["packages: spark"].fix == "pip install 'kafka-audit[spark]'"
    assert found["packages: airflow"].detail == "marshmallow is not installed"
    assert found["packages: notify"].state == OK
