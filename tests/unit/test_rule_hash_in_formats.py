"""Each format that lists results names the rule that judged them, by the hash that the job wrote."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from report_audit import FakeAudit, control, finding, summary

from kafka_audit.audit.formats import REPORT_FILES
from kafka_audit.catalogue.load import Catalogue
from kafka_audit.catalogue.rule import rule_of
from kafka_audit.report import Report, read_report
from kafka_audit.report.formats import RENDERERS, write_formats

TOPIC = control("replication_factor_sufficient", "TOP-01")
ELECTION = control("unclean_leader_election_disabled", "TOP-04", pass_when="replication_factor_min >= 2")
LAG = control("lag_within_sla", "CON-01", subject="group")
OF_JOB = "0b" * 32
"""The hash that the job wrote for TOP-01; no format may compute another one from the catalogue."""
HASHES = {"TOP-01": OF_JOB, "TOP-04": rule_of(ELECTION).sha256, "CON-01": rule_of(LAG).sha256}
RULE_SET = Catalogue(controls=(TOPIC, ELECTION, LAG), sha256="").rule_set_sha256


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> FakeAudit:
    """Two controls judged, of which one has another rule than the catalogue; the third did not run."""
    made = FakeAudit(tmp_path_factory.mktemp("audit"), (TOPIC, ELECTION, LAG))
    rows = [
        *(finding(TOPIC, name, status, rule_sha256=OF_JOB) for name, status in (("a", "fail"), ("b", "pass"), ("c", "error"))),
        finding(ELECTION, "a", "not_assessed", reason="TIMEOUT"),
    ]
    made.settings(rows, [{**summary(TOPIC, rows), "rule_sha256": OF_JOB}, summary(ELECTION, rows)])
    made.gates()
    return made


@pytest.fixture(scope="module")
def report(fake: FakeAudit) -> Report:
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def written(report: Report, name: str) -> Any:
    return json.loads(RENDERERS[name](report))


def test_json_names_the_rule_of_each_control_and_finding_and_the_rule_set(report: Report) -> None:
    value = written(report, "json")
    assert {one["code"]: one["rule_sha256"] for one in value["controls"]} == HASHES
    assert [(one["code"], one["resource"], one["rule_sha256"]) for one in value["findings"]] == [
        ("TOP-01", "a", OF_JOB),
        ("TOP-01", "c", OF_JOB),
        ("TOP-04", "a", HASHES["TOP-04"]),
    ]
    assert value["rule_set_sha256"] == RULE_SET


def test_csv_names_the_rule_of_each_row(fake: FakeAudit, report: Report, tmp_path: Path) -> None:
    write_formats(report, fake.audit.path, ["csv"], tmp_path)
    rows = duckdb.sql(f"select code, rule_sha256 from read_csv('{tmp_path / REPORT_FILES['csv'].file}', all_varchar = true)").fetchall()
    assert sorted(rows) == [*[("TOP-01", OF_JOB)] * 3, ("TOP-04", HASHES["TOP-04"])]


def test_sarif_names_it_in_the_rule_of_each_result_and_the_rule_set_in_the_run(report: Report) -> None:
    [run] = written(report, "sarif")["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert {one["id"]: one["properties"]["ruleSha256"] for one in rules} == HASHES
    assert {one["ruleId"] for one in run["results"]} == set(HASHES)
    assert run["properties"]["hashes"]["ruleSet"] == RULE_SET


def test_ocsf_names_it_in_each_event_and_the_rule_set_in_the_verdict(report: Report) -> None:
    verdict, *events = written(report, "ocsf")
    said = {(one["compliance"]["control"].split()[0], one["unmapped"]["sha256_of_rule"]) for one in events}
    assert said == set(HASHES.items())
    assert verdict["unmapped"]["sha256_of_rule_set"] == RULE_SET


def test_oscal_names_it_in_each_finding_and_observation_and_the_rule_set_in_the_result(report: Report) -> None:
    [result] = written(report, "oscal")["assessment-results"]["results"]

    def prop(of: Any, name: str) -> str | None:
        return next((one["value"] for one in of["props"] if one["name"] == name), None)

    assert {prop(one, "code"): prop(one, "rule-sha256") for one in result["findings"]} == HASHES
    listed = [one for one in result["observations"] if prop(one, "fingerprint")]
    assert [prop(one, "rule-sha256") for one in listed] == [OF_JOB, OF_JOB, HASHES["TOP-04"]]
    assert prop(result, "rule-set-sha256") == RULE_SET


def test_the_page_shows_the_hash_of_the_rules(report: Report) -> None:
    assert f"<code>{RULE_SET}</code>" in str(RENDERERS["html"](report))
