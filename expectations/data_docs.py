"""Great Expectations' Data Docs for both gates, as pages that open without a network and state every verdict in words."""

import copy
import html
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from expectations.offline_html import mark, page, plain_body
from expectations.validation import library
from kafka_audit.store.durable_files import read_json, replaced_folder

_GATES = {"evidence": "Is the evidence fit to be judged?", "findings": "Do the findings pass?"}


def build_docs(out: Path) -> Path:
    """Rebuild ``out/data_docs/`` from the gates that left ``out/<gate>.json`` and ``out/raw/<gate>.json``; returns index.html.

    One page per judged table, rendered by Great Expectations, and an index with what its pages lack: rule ids, severities,
    limits, suite hashes, and the verdicts PASS, FAIL, VACUOUS and ERROR.
    """
    judged = [gate for gate in _GATES if (out / f"{gate}.json").is_file() and (out / "raw" / f"{gate}.json").is_file()]
    with replaced_folder(out / "data_docs") as folder:
        sections: list[str] = []
        for gate in judged:
            result, raw = read_json(out / f"{gate}.json"), read_json(out / "raw" / f"{gate}.json")
            statuses = {row["rule_id"]: row["status"] for row in result["results"]}
            pages = {table: f"{gate}-{table}.html" for table in sorted(raw["tables"])}
            for table, name in pages.items():
                title = f"{raw['suite']}: table {table}"
                body = f'<p><a href="index.html">All rules of both gates</a></p>\n<h1>{html.escape(title)}</h1>\n'
                (folder / name).write_text(page(title, body + plain_body(_render(raw["tables"][table], statuses))), encoding="utf-8")
            sections.append(_section(gate, result, pages))
        body = "<h1>Gates of this audit</h1>\n" + ("\n".join(sections) or "<p>No gate has judged yet.</p>")
        (folder / "index.html").write_text(page("Gates of this audit", body), encoding="utf-8")
    return out / "data_docs" / "index.html"


def _section(gate: str, result: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    suite, coverage, snapshot = result["suite"], result["coverage"], result["snapshot"]
    facts = {
        "Verdict": f"{mark(result['verdict'])}, exit code {int(result['exit_code'])}",
        "Coverage": html.escape(f"{coverage['assessed']} of {coverage['applicable']}"),
        "Suite": html.escape(f"{suite['name']}, {suite['expectations']} rules, sha256 {suite['sha256']}"),
        "Snapshot": html.escape(f"{snapshot['snapshot_id']}, manifest sha256 {snapshot['manifest_sha256']}"),
        "Parameters": html.escape(", ".join(f"{name} = {value}" for name, value in sorted(result["parameters"].items()))),
        "Tables": " · ".join(f'<a href="{html.escape(name)}">{html.escape(table)}</a>' for table, name in pages.items()),
    }
    head = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in facts.items())
    columns = ("severity", "description", "expected", "observed", "detail")
    rows = "\n".join(
        f"<tr><td>{mark(row['status'])}</td><td class='rule'>{html.escape(row['rule_id'])}</td>"
        + "".join(f"<td>{html.escape(str(row[name]))}</td>" for name in columns)
        + "</tr>"
        for row in result["results"]
    )
    titles = "".join(f"<th>{title}</th>" for title in ("Status", "Rule", "Severity", "Rule in words", "Expected", "Observed", "Detail"))
    heading = f"<h2>{html.escape(_GATES[gate])}</h2>"
    return f"{heading}\n<table class='facts'>{head}</table>\n<table><thead><tr>{titles}</tr></thead><tbody>\n{rows}\n</tbody></table>"


def _render(answer: dict[str, Any], statuses: Mapping[str, str]) -> str:
    """One table's result as Great Expectations renders it, every value escaped first, because its templates do not."""
    found = library()
    shown = _escaped(copy.deepcopy(answer))
    for item in shown["results"]:
        # Great Expectations calls a rule that tested nothing a success; here it is shown as what the gate made of it.
        item["success"] = statuses.get(item["expectation_config"]["meta"]["rule_id"]) == "PASS"
    passed = sum(item["success"] for item in shown["results"])
    shown["success"] = passed == len(shown["results"])
    shown["statistics"] = {
        "evaluated_expectations": len(shown["results"]),
        "successful_expectations": passed,
        "unsuccessful_expectations": len(shown["results"]) - passed,
        "success_percent": 100 * passed / len(shown["results"]) if shown["results"] else 0,
    }
    # It logs a full trace for every rule in ERROR, which its page then shows as such anyway.
    logging.getLogger("great_expectations.render").setLevel(logging.CRITICAL)
    document = found.ValidationResultsPageRenderer(run_info_at_end=True).render(found.result_schema.load(shown))
    return str(found.DefaultJinjaPageView().render(document))


def _escaped(value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    if isinstance(value, str):
        return html.escape(value, quote=False)
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    return value
