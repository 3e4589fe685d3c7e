"""The Grafana dashboard asks for metrics and labels that the page has, and has what Grafana needs to show it."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from promql_names import label_names, metric_names

from kafka_audit.policy.slas import LagSla
from kafka_audit.report.metrics.definitions import LIVE
from kafka_audit.report.metrics.prometheus_rules import ERRORS, render

FILE = Path(__file__).parents[2] / "docs" / "grafana" / "kafka-reliability.json"
BOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
WIDTH = 24
LABELS = {metric.name: {"cluster", *metric.labels} for metric in LIVE}


def expressions() -> list[str]:
    asked = [target["expr"] for panel in PANELS for target in panel["targets"]]
    variables = [one["definition"] for one in BOARD["templating"]["list"] if one["type"] == "query"]
    return [*asked, *(re.fullmatch(r"label_values\((.+), \w+\)", one)[1] for one in variables)]  # type: ignore[index]


def recorded() -> set[str]:
    sla = LagSla.model_validate({"pattern": "*", "name": "x", "max_lag_records": 1, "availability": {"target_percent": 99.0}})
    return set(re.findall(r"record: (\S+)", render([sla])))


@pytest.mark.parametrize("expression", expressions())
def test_a_query_asks_for_metrics_and_labels_that_there_are(expression: str) -> None:
    names = metric_names(expression)
    assert names
    assert names - LABELS.keys() - recorded() == set()
    labels = set().union(*(LABELS.get(name, {"cluster", "group", "sla"}) for name in names))
    assert label_names(expression) - labels == set()


def test_every_metric_of_the_page_but_the_exit_code_and_the_whole_budget_is_on_the_dashboard() -> None:
    shown = set().union(*map(metric_names, expressions()))
    assert {metric.name for metric in LIVE} - shown == {"kafka_audit_exit_code", "kafka_audit_sla_error_budget_seconds"}
    assert f"{ERRORS}1h" in shown


def test_the_names_in_an_expression_are_told_from_everything_else() -> None:
    text = 'topk(20, max by (cluster) (a_metric{b="c_d{e}", f=~"x"}[5m]) / on (cluster) group_left () (1e3 - k:rule:x)) and g_h > 0'
    assert metric_names(text) == {"a_metric", "k:rule:x", "g_h"}
    assert label_names(text) == {"cluster", "b", "f"}


def test_panels_have_ids_of_their_own_titles_and_places_in_the_grid_that_do_not_overlap() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in BOARD["panels"]:
        assert panel["title"]
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= WIDTH
        for cell in itertools.product(range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])):
            assert taken.setdefault(cell, panel["title"]) == panel["title"], cell
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_every_panel_and_query_uses_the_chosen_data_source() -> None:
    sources = [panel["datasource"] for panel in PANELS] + [target["datasource"] for panel in PANELS for target in panel["targets"]]
    assert {(one["type"], one["uid"]) for one in sources} == {("prometheus", "${datasource}")}
    variables = {one["name"]: one["type"] for one in BOARD["templating"]["list"]}
    assert variables == {"datasource": "datasource", "cluster": "query", "group": "textbox"}
    for panel in PANELS:
        assert panel["description"]
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)


def test_the_file_is_a_dashboard_that_grafana_imports() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", BOARD["uid"])
    assert BOARD["title"] == "Kafka reliability"
    assert BOARD["schemaVersion"] == 39  # Grafana 11; newer ones migrate it when they load it
    assert "__inputs" not in BOARD
    assert {panel["type"] for panel in PANELS} <= {"stat", "timeseries", "table"}
