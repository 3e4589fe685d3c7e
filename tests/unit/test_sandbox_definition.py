"""Seed files: the shipped ones cover every control; wrong ones are refused with file, field and reason."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.cli.demo import run_demo
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import EvidenceClass
from kafka_audit.input_files.yaml_file import read_model
from kafka_audit.sandbox.definition import SEEDS, Seed, Verdict, load

CONTROLS = {control.code for control in load_catalogue().controls}
MANUAL = {control.code for control in load_catalogue().controls if control.evidence is EvidenceClass.MANUAL}


def faulty(**changes: object) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((SEEDS / "faulty.yaml").read_text(encoding="utf-8"))
    return {**data, **changes}


def test_the_faulty_seed_makes_every_control_fail_that_a_minute_can_show() -> None:
    left_out = {
        "TOP-18",
        "REP-09",
        "REP-10",
        "BRK-12",
        "CON-14",
        "QTA-01",
        "TXN-05",
        "QRM-02",
        "QRM-03",
        *MANUAL,
    }  # the seed's first lines say why
    assert {verdict.control for verdict in load("faulty").faults} == CONTROLS - left_out


def test_the_demo_of_an_unknown_seed_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no seed 'foo': write --seed faulty or --seed healthy \(make demo: SEED=\.\.\.\)"):
        run_demo("foo", tmp_path / "root")
    assert list(tmp_path.iterdir()) == []


def test_the_healthy_seed_expects_no_finding_but_what_only_a_person_can_attest() -> None:
    seed = load("healthy")
    assert seed.faults == ()
    assert {verdict.control for verdict in seed.not_assessed} == MANUAL


def test_only_the_doomed_replicas_are_named_for_the_failing_log_dirs() -> None:
    first, second = load("faulty").log_dir_failures()
    assert (first.broker, set(first.replicas)) == (3, {"settlements-0", "shipments-0", "legacy-import-0", "wishlists-0"})
    assert (second.broker, set(second.replicas)) == (1, {"vouchers-0", "wishlists-0"})


def test_another_kafka_gets_nothing_that_would_change_how_its_brokers_run() -> None:
    seed = load("faulty")
    other = seed.for_another_kafka()
    assert {topic.name for topic in seed.topics} - {topic.name for topic in other.topics} == {"__remote_log_metadata"}
    assert {one.client_id for one in seed.producers} - {one.client_id for one in other.producers} == {"refund-service"}
    left_out = {(verdict.control, verdict.resource) for verdict in seed.faults if verdict.needs_own_brokers}
    assert left_out >= {("TOP-11", "__remote_log_metadata"), ("TXN-01", "refund-requests-0")}


def test_an_unknown_seed_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="'flawed': choose one of faulty, healthy"):
        load("flawed")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, "colour: is not a known field"),
        ({"delete_records": {"orders-9": 1}}, "delete_records: unknown orders-9"),
        ({"producers": [{"client": "kafka-python", "client_id": "x", "mode": "idempotent", "records": {"nope": 1}}]}, "unknown nope"),
        (
            {"producers": [{"client": "kafka-python", "client_id": "x", "mode": "acks=1", "records": {"orders": 1}}]},
            "kafka-python writes mode",
        ),
        ({"groups": [{"id": "g", "client": "admin", "topics": ["orders"]}]}, "joins no group"),
        ({"groups": [{"id": "g", "client": "kafka-python", "protocol": "consumer", "topics": ["orders"]}]}, "need client: confluent-kafka"),
        ({"groups": [{"id": "", "client": "kafka-python", "topics": ["orders"]}]}, "at least 1 character"),
        ({"preferred_leaders": {"orders-9": 1}}, "unknown orders-9"),
        ({"preferred_leaders": {"clickstream-0": 3}}, "preferred_leaders, clickstream-0: unknown 3"),
        ({"log_dir_failure": {"broker": 2, "replicas": ["orders-0"]}}, "only log dir fails"),
        ({"change": {"elect_uncleanly": ["orders-9"]}}, "unknown orders-9"),
        ({"change": {"reassign": {"orders-0": [4]}}}, "reassign orders-0: unknown 4"),
        ({"groups": [{"id": "g", "client": "confluent-kafka", "topics": ["orders"], "stuck": True}]}, "stuck needs client: kafka-python"),
        ({"log_dir_failure": {"broker": 3, "replicas": ["clickstream-0"]}}, "unknown clickstream-0"),
        ({"faults": [{"control": "TOP-01", "resource": "a"}] * 2}, "twice"),
    ],
)
def test_a_wrong_seed_is_an_error_that_names_file_and_reason(changes: dict[str, object], words: str, tmp_path: Path) -> None:
    seed = tmp_path / "my-seed.yaml"
    seed.write_text(yaml.safe_dump(faulty(**changes)), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=words) as caught:
        read_model(seed, Seed)
    assert str(caught.value).startswith(f"{seed}: ")


def test_what_depends_on_the_brokers_own_settings_is_known() -> None:
    needing = {code for code in CONTROLS if Verdict(control=code, resource="x").needs_own_brokers}
    assert {code.split("-")[0] for code in needing} == {"BRK", "QRM", "REP", "AUD", "SEC", "TXN"}
