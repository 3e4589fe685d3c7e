"""Reports are valid by validators that others wrote: Microsoft's for SARIF, compliance-trestle for OSCAL, OCSF's own schema for OCSF."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import ocsf_json_schema
import pytest
from report_documents import reports
from validators import multitool, oscal_problems, sarif_problems

from kafka_audit.report import Report, ocsf, oscal, sarif

# No public page describes this program, and an invented address would be worse than none.
WITHOUT_ADDRESS = ("SARIF2005", "runs[0].tool.driver", "kafka-audit")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    return reports(tmp_path_factory.mktemp("audits"))


def rendered(made: dict[str, Report], render: Callable[[Report], str], suffix: str) -> dict[str, str]:
    return {f"{name}{suffix}": render(report) for name, report in made.items()}


def broken(text: str, change: Callable[[Any], None]) -> str:
    value = json.loads(text)
    change(value)
    return json.dumps(value)


def test_sarif_is_valid_by_microsofts_multitool_also_for_github(made: dict[str, Report], tmp_path: Path) -> None:
    texts = rendered(made, sarif.render, ".sarif")
    texts["no-rule.sarif"] = broken(texts["passed.sarif"], lambda log: log["runs"][0]["results"][0].update(ruleIndex=999))
    texts["no-place.sarif"] = broken(texts["passed.sarif"], lambda log: log["runs"][0]["results"][0].pop("locations"))
    texts["no-tool.sarif"] = broken(texts["passed.sarif"], lambda log: log["runs"][0].pop("tool"))
    texts["no-such-property.sarif"] = broken(texts["passed.sarif"], lambda log: log["runs"][0]["results"][0].update(surprise=1))
    found = sarif_problems(texts, tmp_path)
    refused = {name: {one[0] for one in found.pop(name)} for name in list(found) if name.startswith("no-")}
    assert {name: [one for one in problems if one != WITHOUT_ADDRESS] for name, problems in found.items()} == {
        f"{name}.sarif": [] for name in made
    }
    assert "SARIF1009" in refused["no-rule.sarif"]
    assert "GH1015" in refused["no-place.sarif"]
    assert "JSON1002" in refused["no-tool.sarif"]
    assert "JSON1005" in refused["no-such-property.sarif"]


def test_sarif_is_valid_by_the_schema_of_the_standard(made: dict[str, Report]) -> None:
    # The Multitool 5.7.0 carries this schema, but says nothing at all of a file with a kind or level that does not exist.
    schema = json.loads((multitool() / "sarif-2.1.0.json").read_text(encoding="utf-8-sig"))
    validator = jsonschema.Draft4Validator(schema)
    for name, text in rendered(made, sarif.render, "").items():
        assert [(name, one.json_path, one.message) for one in validator.iter_errors(json.loads(text))] == []
    bad = broken(sarif.render(made["complete"]), lambda log: log["runs"][0]["results"][0].update(kind="bad"))
    assert [one.json_path for one in validator.iter_errors(json.loads(bad))] == ["$.runs[0].results[0].kind"]


def test_oscal_is_valid_by_compliance_trestle(made: dict[str, Report], tmp_path: Path) -> None:
    def result(document: Any) -> Any:
        return document["assessment-results"]["results"][0]

    texts = rendered(made, oscal.render, ".json")
    texts["no-method.json"] = broken(texts["complete.json"], lambda value: result(value)["observations"][0].pop("methods"))
    texts["no-status.json"] = broken(
        texts["complete.json"], lambda value: result(value)["findings"][0]["target"]["status"].update(state="green")
    )
    texts["no-zone.json"] = broken(texts["complete.json"], lambda value: result(value).update(start="2026-11-20T23:15:04"))
    twice = lambda value: result(value)["findings"].append(result(value)["findings"][0])  # noqa: E731
    texts["no-identity.json"] = broken(texts["complete.json"], twice)
    found = oscal_problems(texts, tmp_path)
    refused = {name: found.pop(name) for name in list(found) if name.startswith("no-")}
    assert found == {f"{name}.json": None for name in made}
    assert all(refused.values()), refused
    assert "methods" in refused["no-method.json"]


def test_ocsf_is_valid_by_the_schema_that_its_server_publishes(made: dict[str, Report]) -> None:
    schema = ocsf_json_schema.OcsfJsonSchemaEmbedded(ocsf_json_schema.get_ocsf_schema(version=ocsf.OCSF_VERSION))
    assert (
        max(ocsf_json_schema.get_packaged_versions(), key=lambda version: tuple(map(int, version.split("-")[0].split("."))))
        == ocsf.OCSF_VERSION
    )
    validator = jsonschema.Draft202012Validator(schema.get_class_schema("compliance_finding"))
    for name, text in rendered(made, ocsf.render, "").items():
        assert [(name, one.json_path, one.message) for event in json.loads(text) for one in validator.iter_errors(event)] == []
    event = json.loads(ocsf.render(made["complete"]))[1]
    for wrong in ({"status_id": 7}, {"time": "now"}, {"surprise": 1}, {"class_uid": 2002}, {"finding_info": {}}):
        assert list(validator.iter_errors({**event, **wrong})), wrong
