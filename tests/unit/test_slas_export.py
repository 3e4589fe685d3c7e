"""`kafka-audit slas export`: rules for Prometheus over metrics that there are, and OpenSLO v1 documents that refer to each other."""

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from promql_names import label_names, metric_names
from typer.testing import CliRunner

from kafka_audit.cli.main import app
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import shipped_policy_folder
from kafka_audit.policy.slas import LagSla, SlaFile
from kafka_audit.report.metrics import openslo, prometheus_rules
from kafka_audit.report.metrics.definitions import LIVE, label
from kafka_audit.report.metrics.slos import BURN_RATES, quoted, slos_of

HOSTILE = 'a"b\\c {{ printf "x" }}\n# - alert: x\u202e'
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
DURATION = re.compile(r"[1-9][0-9]*[mhdwMQY]")


def rules(*groups: dict[str, Any]) -> list[LagSla]:
    return SlaFile.model_validate({"version": 1, "groups": list(groups)}).groups


def rule(name: str, target: float | None = 99.5, days: int = 30, **about: Any) -> dict[str, Any]:
    wanted = {} if target is None else {"availability": {"target_percent": target, "window_days": days}}
    return {"pattern": f"{sha256(name.encode()).hexdigest()[:8]}-*", "name": name, "max_lag_records": 100, **wanted, **about}


def groups_of(text: str) -> dict[str, list[dict[str, Any]]]:
    return {group["name"]: group["rules"] for group in yaml.safe_load(text)["groups"]}


def documents(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    found = [one for one in yaml.safe_load_all(text) if one is not None]
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in found}
    assert len(by_name) == len(found)
    return by_name


def test_burn_rates_are_those_of_the_workbook() -> None:
    assert [(one.factor, one.long, one.short, one.severity) for one in BURN_RATES] == [
        (14.4, "1h", "5m", "page"),
        (6.0, "6h", "30m", "page"),
        (3.0, "1d", "2h", "ticket"),
        (1.0, "3d", "6h", "ticket"),
    ]


def test_each_slo_has_its_recordings_and_four_alerts_over_two_windows() -> None:
    found = groups_of(prometheus_rules.render(rules(rule("payments"))))
    assert set(found) == {"kafka-audit-evidence", "kafka-audit-slo-payments"}
    made = found["kafka-audit-slo-payments"]
    windows = {one["record"].rpartition("avg")[2] for one in made if one.get("record", "").startswith(prometheus_rules.ERRORS)}
    assert windows == {window for one in BURN_RATES for window in (one.long, one.short)}
    alerts = [one["expr"] for one in made if "alert" in one]
    assert alerts[0] == (
        'kafka_audit:sla_errors:ratio_avg1h{sla="payments"} > 14.4 * 0.005 and kafka_audit:sla_errors:ratio_avg5m{sla="payments"} > 14.4 * 0.005 '
        'and count_over_time(kafka_audit:sla_within_limits:fresh{sla="payments"}[1h:1m]) >= 30'
    )
    assert len(alerts) == 4
    assert "[30d]" in next(one["expr"] for one in made if one.get("record") == prometheus_rules.BUDGET_LEFT)


def test_an_alert_needs_half_of_its_long_window_less_quiet_hours_to_be_known() -> None:
    night = {"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "from": "18:00", "to": "08:00", "timezone": "Europe/Berlin"}
    found = groups_of(prometheus_rules.render(rules(rule("day", quiet_hours=[night]))))
    known = [one["expr"].rpartition(" and ")[2] for one in found["kafka-audit-slo-day"] if "alert" in one]
    assert [re.sub(r".*\[", "[", one) for one in known] == [f"[{window}]) >= 12" for window in ("1h:1m", "6h:6m", "1d:24m", "3d:72m")]


def test_rules_read_only_metrics_and_labels_that_the_page_writes_or_a_rule_before_them_records() -> None:
    known = {metric.name: {"cluster", *metric.labels} for metric in LIVE}
    for made in groups_of(prometheus_rules.render(rules(rule("payments"), rule(HOSTILE), rule("all", 100.0)))).values():
        for one in made:
            names = metric_names(one["expr"])
            assert names
            assert names - known.keys() == set()
            assert label_names(one["expr"]) <= set().union(*(known[name] for name in names))
            if "record" in one:
                known[one["record"]] = {"cluster", "group", "sla"}


def test_no_two_rules_have_the_same_name_and_labels_of_which_promtool_warns() -> None:
    made = groups_of(prometheus_rules.render(rules(rule("payments"), rule("orders"), rule(HOSTILE))))
    keys = [(one.get("record") or one["alert"], *sorted(one["labels"].items())) for group in made.values() for one in group]
    assert len(set(keys)) == len(keys)


def test_offsets_that_are_old_are_no_samples_and_silence_raises_an_alert() -> None:
    found = groups_of(prometheus_rules.render(rules(rule("payments")), 7))
    fresh = next(one["expr"] for one in found["kafka-audit-slo-payments"] if one.get("record") == prometheus_rules.FRESH)
    assert fresh.endswith("and on (cluster) (time() - max by (cluster) (kafka_audit_offsets_timestamp_seconds) <= 420)")
    alerts = {one["alert"]: one["expr"] for one in found["kafka-audit-evidence"]}
    assert alerts["KafkaAuditOffsetsOld"].endswith("> 420")
    assert alerts["KafkaAuditMetricsMissing"] == "absent(kafka_audit_up)"


def test_a_hostile_name_is_a_string_in_a_selector_and_in_no_template() -> None:
    text = prometheus_rules.render(rules(rule(HOSTILE)))
    assert text.isascii()
    made = next(made for name, made in groups_of(text).items() if name != "kafka-audit-evidence")
    selector = next(one["expr"] for one in made if one.get("alert"))
    (string,) = set(re.findall(r'"(?:[^"\\]|\\.)*"', selector))
    assert json.loads(string) == label(HOSTILE)  # escapes of PromQL that are JSON's, too
    assert not any("{{ printf" in text for one in made for text in (*one.get("annotations", {}).values(), *one.get("labels", {}).values()))
    assert not any("alert: x" in line for line in text.splitlines() if not line.startswith(("#", "  - ", "    expr:")))


@pytest.mark.parametrize(("text", "string"), [("a", '"a"'), ('"', '"\\""'), ("\\", '"\\\\"'), ("a\nb", '"a\\nb"')])
def test_a_string_of_promql(text: str, string: str) -> None:
    assert quoted(text) == string


def test_names_that_differ_only_in_characters_that_ids_cannot_have_stay_apart() -> None:
    slos, _ = slos_of(rules(*(rule(name) for name in ("a-b", "a b", "A-b", "\u00e9", HOSTILE, "x" * 100))))
    ids = [slo.id for slo in slos]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "a-b"
    assert all(NAME.fullmatch(one) for one in ids)


def test_an_sla_without_a_target_or_without_a_limit_that_a_sample_can_judge_is_no_slo_and_a_comment_says_so() -> None:
    progress = {"max_lag_records": None, "max_no_progress_seconds": 60}
    given = rules(rule("untargeted", None), rule("progress", **progress), rule("both", max_no_progress_seconds=60))
    for text in (prometheus_rules.render(given), openslo.render(given)):
        comments = [line for line in text.splitlines() if line.startswith("#")]
        assert any("SLA untargeted has no target" in line for line in comments)
        assert any("SLA progress limits only max_no_progress_seconds" in line for line in comments)
        assert any("SLA both: max_no_progress_seconds is not judged here" in line for line in comments)
        assert 'sla="untargeted"' not in text
        assert 'sla="progress"' not in text
    assert "kafka-audit-slo-both" in groups_of(prometheus_rules.render(given))


def test_alerts_that_cannot_fire_are_left_out_and_named() -> None:
    text = prometheus_rules.render(rules(rule("loose", 90.0, 1)))
    assert "# SLA loose: no alert on 14.4x over 1h, 1x over 3d" in text
    windows = [one["labels"]["long_window"] for one in groups_of(text)["kafka-audit-slo-loose"] if "alert" in one]
    assert windows == ["6h", "1d"]


def test_a_target_of_100_percent_alerts_on_any_failure_and_is_no_slo_in_openslo() -> None:
    given = rules(rule("always", 100.0))
    made = groups_of(prometheus_rules.render(given))["kafka-audit-slo-always"]
    assert next(one["expr"].partition(" > ")[2].partition(" and ")[0] for one in made if "alert" in one) == "14.4 * 0"
    assert prometheus_rules.BUDGET_LEFT not in {one.get("record") for one in made}
    text = openslo.render(given)
    assert "# SLA always has a target of 100 %" in text
    assert {kind for kind, _ in documents(text)} == {"DataSource", "Service"}


def test_rules_of_one_name_with_different_targets_are_refused() -> None:
    same = rules(rule("one", pattern="a"), rule("one", pattern="b"))
    assert len(slos_of(same)[0]) == 1
    with pytest.raises(ConfigurationError, match=r"several rules are named 'one' and differ in their availability"):
        slos_of(rules(rule("one", 99.0, pattern="a"), rule("one", 99.5, pattern="b")))
    with pytest.raises(ConfigurationError, match="give each rule its own name"):
        slos_of(rules(rule("one", 99.0, pattern="a"), rule("one", None, pattern="b")))


def test_openslo_documents_have_what_the_specification_requires_and_refer_to_each_other() -> None:
    found = documents(openslo.render(rules(rule("payments"), rule(HOSTILE, 90.0, 1))))
    required = {
        "DataSource": {"type", "connectionDetails"},
        "Service": {"description"},
        "AlertNotificationTarget": {"target"},
        "AlertCondition": {"severity", "condition"},
        "AlertPolicy": {"alertWhenNoData", "alertWhenResolved", "alertWhenBreaching", "conditions", "notificationTargets"},
        "SLI": {"ratioMetric"},
        "SLO": {"service", "indicatorRef", "budgetingMethod", "objectives", "timeWindow", "alertPolicies"},
    }
    assert {kind for kind, _ in found} == set(required)
    for (kind, name), document in found.items():
        assert document["apiVersion"] == "openslo/v1"
        assert NAME.fullmatch(name)
        assert required[kind] <= document["spec"].keys()
    for (kind, _), document in found.items():
        refer(found, kind, document["spec"])


def refer(found: dict[tuple[str, str], Any], kind: str, spec: dict[str, Any]) -> None:
    if kind == "SLO":
        assert ("Service", spec["service"]) in found
        assert ("SLI", spec["indicatorRef"]) in found
        assert spec["alertPolicies"]
        assert {("AlertPolicy", one) for one in spec["alertPolicies"]} <= found.keys()
        assert all(0 <= one["target"] < 1 for one in spec["objectives"])
        assert all(DURATION.fullmatch(one["duration"]) and one["isRolling"] is True for one in spec["timeWindow"])
    if kind == "AlertPolicy":
        assert [("AlertCondition", one["conditionRef"]) in found for one in spec["conditions"]] == [True]
        assert all(("AlertNotificationTarget", one["targetRef"]) in found for one in spec["notificationTargets"])
    if kind == "AlertCondition":
        condition = spec["condition"]
        assert (condition["kind"], condition["op"]) == ("burnrate", "gt")
        assert DURATION.fullmatch(condition["lookbackWindow"])
        assert DURATION.fullmatch(condition["alertAfter"])
    if kind == "SLI":
        sources = [spec["ratioMetric"][part]["metricSource"] for part in ("good", "total")]
        assert all(("DataSource", one["metricSourceRef"]) in found for one in sources)
        written = {metric.name for metric in LIVE}
        assert all(metric_names(one["spec"]["query"]) <= written for one in sources)


def policy(folder: Path, *groups: dict[str, Any]) -> Path:
    folder.mkdir()
    shutil.copy(shipped_policy_folder() / "tiers.yaml", folder)
    (folder / "slas.yaml").write_text(json.dumps({"version": 1, "groups": list(groups)}))
    return folder


def export(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["slas", "export", *arguments])


@pytest.mark.parametrize("form", ["openslo", "prometheus"])
def test_the_command_writes_the_policy_to_a_file_or_to_standard_output(tmp_path: Path, form: str) -> None:
    given = policy(tmp_path / "policy", rule("payments"))
    to = tmp_path / "slos.yaml"
    printed, written = (
        export("--policy", str(given), "--format", form),
        export("--policy", str(given), "--format", form, "--output", str(to)),
    )
    assert (printed.exit_code, written.exit_code, written.output) == (0, 0, "")
    assert to.read_text() == printed.output
    assert 'sla="payments"' in printed.output


def test_the_shipped_policy_has_no_target_and_says_so() -> None:
    text = export("--format", "prometheus").output
    assert "# SLA default has no target, so it is no SLO: give it availability.target_percent in slas.yaml" in text
    assert set(groups_of(text)) == {"kafka-audit-evidence"}


def test_the_command_refuses_to_write_into_the_policy_or_where_it_cannot(tmp_path: Path) -> None:
    given = policy(tmp_path / "policy", rule("payments"))
    inside = export("--policy", str(given), "--format", "prometheus", "--output", str(given / "rules.yaml"))
    assert isinstance(inside.exception, ConfigurationError)
    assert "policy folder" in str(inside.exception)
    nowhere = export("--policy", str(given), "--format", "prometheus", "--output", str(tmp_path / "no" / "rules.yaml"))
    assert isinstance(nowhere.exception, ConfigurationError)
    assert "--output" in str(nowhere.exception)
