"""Complete audits of real brokers: exactly the seeded faults are found, the result can be verified later, and bad input is refused."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pyarrow.dataset as ds
import pytest
from airflow_processes import processes_of
from command_line import AirflowDatabase, kafka_audit, only_audit
from faulty_shop import CLUSTER, OF_OUR_TOPIC, UNKNOWN_OF_OUR_TOPIC
from own_control import CODE as OWN_CODE

from kafka_audit.airflow.environment import airflow_home
from kafka_audit.audit.outcome import FAILED, INCOMPLETE, PASSED
from kafka_audit.cli.demo import POLICIES
from kafka_audit.sandbox.definition import load
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.sandbox.seeded_findings import compare_failures, compare_not_assessed
from kafka_audit.store.durable_files import sha256_of
from kafka_audit.store.layout import Audit, EvidenceRoot

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.airflow]


def test_exactly_the_seeded_faults_are_found_none_missed_and_none_extra(faulty_audit: Audit) -> None:
    compared = compare_failures(faulty_audit, "faulty")
    assert (compared.missed, set(compared.extra)) == ((), OF_OUR_TOPIC)
    assert compared.agreed == len(load("faulty").faults) > 40


def test_exactly_what_cannot_be_known_is_not_assessed_and_each_has_a_reason(faulty_audit: Audit) -> None:
    compared = compare_not_assessed(faulty_audit, "faulty")
    assert (compared.missed, set(compared.extra)) == ((), UNKNOWN_OF_OUR_TOPIC)
    for step in (faulty_audit.settings, faulty_audit.lag):
        unknown = ds.dataset(step / "findings.parquet").to_table(filter=ds.field("status") == "not_assessed")
        assert all(unknown["reason"].to_pylist())


def test_the_report_names_the_verdict_and_holds_the_same_figures_in_every_format(faulty_audit: Audit) -> None:
    report = json.loads((faulty_audit.report / "report.json").read_text())
    page = (faulty_audit.report / "report.html").read_text()
    suites = ET.parse(faulty_audit.report / "junit.xml").getroot()
    assert (report["verdict"], report["exit_code"]) == (FAILED, 3)
    failed = report["totals"]["failed"]
    assert failed == len(load("faulty").faults) + len(OF_OUR_TOPIC)
    assert f"{FAILED}" in page
    (ours,) = [control["counts"] for control in report["controls"] if control["code"] == OWN_CODE]
    assert (ours["population"], ours["passed"]) == (3, 3), "a control of our own, in a folder of its own"
    assert "<script>alert(1)" not in page
    reported = [
        case for suite in suites.iter("testsuite") if suite.get("name") != "gate" for case in suite if case.find("failure") is not None
    ]
    assert len(reported) == failed
    pages = re.search(rb"/Type/Pages/Count (\d+)", (faulty_audit.report / "report.pdf").read_bytes())
    assert pages and int(pages[1]) <= 40, "the PDF of the faulty cluster is short enough to be read"


def test_loss_and_remaining_lag_are_two_figures(faulty_audit: Audit) -> None:
    rows = ds.dataset(faulty_audit.lag / "group_partitions.parquet").to_table().to_pylist()
    by_name = {row["resource"]: row for row in rows}
    billing, fraud = by_name["billing:invoices-0"], by_name["fraud-check:payments-0"]
    assert (billing["committed"], billing["log_start"], billing["lost"]) == (10, 60, 50)
    assert billing["lag"] == billing["log_end"] - billing["log_start"]
    assert fraud["beyond_end"] == 250
    assert fraud["lag"] == 0
    assert {row["committed"] for row in rows if row["group_id"] == "newsletter"} == {None}


def test_verify_accepts_the_audit_and_its_snapshot_and_names_an_edited_file(faulty_audit: Audit, tmp_path: Path) -> None:
    run = faulty_audit.run()
    snapshot = EvidenceRoot(path=faulty_audit.path.parents[2]).snapshot(CLUSTER, run["snapshot_id"])
    root = faulty_audit.path.parents[2]
    said = kafka_audit("verify", str(faulty_audit.path), code=0).stdout
    for named in (
        f"intact   snapshot {snapshot.snapshot_id}",
        "intact   earlier snapshot",
        "intact   policy",
        "intact   controls",
        "intact: audit",
    ):
        assert named in said, said
    head = sha256_of(faulty_audit.path / "manifest.json")
    chain = kafka_audit("verify", "--chain", CLUSTER, "--root", str(root), "--head", head, "--deep", code=0).stdout
    assert "is as its run told, the newest" in chain
    assert "intact: snapshot" in kafka_audit("verify", str(snapshot.path), code=0).stdout
    manifest = json.loads((faulty_audit.path / "manifest.json").read_text())
    assert snapshot.manifest_sha256 in json.dumps(manifest)

    copy = tmp_path / "copy"
    copy.mkdir()
    for file in snapshot.path.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    with (copy / "topics.parquet").open("r+b") as stream:
        stream.seek(20)
        stream.write(b"\x00\x01\x02")
    assert sha256_of(copy / "topics.parquet") != sha256_of(snapshot.dataset("topics"))
    assert "topics.parquet: its sha256 differs" in kafka_audit("verify", str(copy), code=5).stderr


def test_the_demo_of_a_healthy_cluster_ends_green_and_leaves_no_process(tmp_path: Path) -> None:
    root = tmp_path / "root"
    done = kafka_audit("demo", "--seed", "healthy", "--root", str(root), code=0)
    report = json.loads((only_audit(root, "demo-healthy").report / "report.json").read_text())
    assert report["verdict"] == PASSED
    assert report["coverage"]["ratio"] == 1.0
    assert (report["totals"]["failed"], report["totals"]["not_assessed"], report["totals"]["still_open"]) == (0, 3, 3)
    assert "none missed, none extra" in done.stdout
    left = [process for process in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(process.info["cmdline"] or [])]
    assert left == []


def test_an_unreachable_cluster_is_one_clear_error_and_no_evidence(tmp_path: Path, airflow_database: AirflowDatabase) -> None:
    root = tmp_path / "root"
    airflow_database.give(root)
    done = kafka_audit("audit", "--bootstrap", "127.0.0.1:1", "--cluster", "gone", "--root", str(root), code=1)
    said = done.stdout + done.stderr
    assert "ERROR (exit code 1)" in done.stdout
    _, *reasons = done.stdout.split("\n  - ")
    (reason,) = reasons
    assert "127.0.0.1:1" in reason
    assert not any(word in said for word in (INCOMPLETE, PASSED, "Report:", "Sealed:"))
    assert re.search(r"^\S+  snapshot .* failed$", done.stderr, re.MULTILINE)
    assert not list(root.glob("evidence/*/*"))
    assert len(list(airflow_home(root).glob("runs/*.log"))) == 1
    assert processes_of(airflow_home(root)) == []


def test_an_invalid_policy_or_control_stops_the_audit_with_file_and_field(
    faulty_cluster: Sandbox, tmp_path: Path, airflow_database: AirflowDatabase
) -> None:
    airflow_database.give(tmp_path / "one")
    policy = tmp_path / "policy"
    policy.mkdir()
    for name in ("tiers.yaml", "slas.yaml"):
        (policy / name).write_text((POLICIES / "faulty" / name).read_text().replace("min_insync_replicas", "min_irs"))
    base = ["audit", "--bootstrap", faulty_cluster.bootstrap, "--cluster", "bad"]
    done = kafka_audit(*base, "--root", str(tmp_path / "one"), "--policy", str(policy), code=2)
    assert "tiers.yaml: tiers.no_loss.min_irs" in done.stdout + done.stderr

    controls = tmp_path / "controls"
    controls.mkdir()
    (controls / "mine.yaml").write_text("id: other\n")
    said = kafka_audit("controls", "check", str(controls), code=2).stderr
    assert "mine.yaml" in said
    assert "pass_when" in said
