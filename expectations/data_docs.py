"""Great Expectations' Data Docs for both gates, as pages that open without a network, run nothing and state every verdict in words."""

import copy
import html
import logging
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from expectations.validation import library
from kafka_audit.store.durable_files import read_json, replaced_folder

STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1b1f24;background:#fff}"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}"
    "th,td{border:1px solid #c9d1d9;padding:.35rem .5rem;text-align:left;vertical-align:top}"
    "th,.rule{white-space:nowrap}.facts td,td:last-child{overflow-wrap:anywhere}"
    "th{background:#f3f5f7}h1{font-size:1.5rem}h5,h6{font-size:1.05rem;margin:1.2rem 0 .3rem}"
    ".PASS{color:#116329;font-weight:600}.FAIL,.ERROR,.VACUOUS{color:#a40e26;font-weight:600}"
    "@media print{body{margin:0;max-width:none}}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_KEPT = frozenset(
    {"br", "hr", "b", "em", "code", "small", "span", "strong", "div", "p", "pre", "ol", "ul", "li"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}
)
_VOID = frozenset({"br", "hr"})
# Whole parts of a Data Docs page that only work with scripts or fetched files, or that advertise; so does its side bar ("sticky").
_DROPPED = frozenset(
    {"script", "style", "nav", "footer", "button", "form", "label", "svg", "iframe", "object", "noscript", "head", "title", "template"}
)
# Font Awesome draws the only sign of success or failure; without the font there is none.
_MARKS = {"text-success": "PASS", "text-danger": "FAIL", "text-warning": "ERROR"}
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


def page(title: str, body: str) -> str:
    """A whole HTML document around ``body`` (trusted HTML); a content policy forbids it to load or run anything."""
    policy = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    head = f"{policy}<title>{html.escape(title)}</title><style>{STYLE}</style>"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def mark(status: str) -> str:
    """A status as a word, coloured."""
    return f'<span class="{html.escape(status)}">{html.escape(status)}</span>'


def plain_body(rendered: str) -> str:
    """The text and tables of a rendered page without its links, scripts, styles, images and ids; status icons become words."""
    reader = _Reader()
    reader.feed(rendered)
    reader.close()
    return "".join(reader.parts)


class _Reader(HTMLParser):
    """Copies an allow-list of elements without their attributes (but for spans of cells)."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._dropping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep, replace or drop an element."""
        given = dict(attrs)
        words = (given.get("class") or "").split()
        if self._dropping:
            if tag == self._dropping[-1]:
                self._dropping.append(tag)
        elif tag in _DROPPED or "sticky" in words or ("hidden" in given and tag not in _VOID):
            self._dropping.append(tag)
        elif tag == "i":
            self.parts += [mark(_MARKS[word]) + " " for word in words if word in _MARKS]
        elif tag in _KEPT:
            spans = "".join(f' {name}="{value}"' for name, value in attrs if name in ("colspan", "rowspan") and (value or "").isdigit())
            self.parts.append(f"<{tag}{spans}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """``<br/>`` and the like; a self-closed script or style still opens one, as browsers read it."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close what was kept."""
        if self._dropping:
            if tag == self._dropping[-1]:
                self._dropping.pop()
        elif tag in _KEPT and tag not in _VOID:
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Text between kept elements, escaped again; runs of white space are one space."""
        if not self._dropping:
            words = " ".join(data.split())
            self.parts.append(f"{html.escape(words)} " if words else "\n" if "\n" in data and self.parts[-1:] != ["\n"] else "")
