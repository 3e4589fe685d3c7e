"""The content of the HTML page, and that names from a cluster are shown as text only."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

from lag_rows import group_sla, lag_bucket, series_table, sla_table
from report_audit import HOSTILE_GROUPS, FakeAudit, control, finding, group_partition, summary

from kafka_audit.catalogue.remediation import Change, Remediation
from kafka_audit.report import read_report
from kafka_audit.report.html import _environment, render
from kafka_audit.report.json_report import as_json

TOPIC = control("replication_factor_sufficient", "TOP-01")
GROUP = control(
    "lag_within_sla",
    "CON-01",
    subject="group",
    remediation=control("x", "XXX-01").remediation.model_copy(update={"commands": ("kafka-consumer-groups.sh --group {group}",)}),
)


class Page(HTMLParser):
    """Collects what a browser would act on: tags, attributes, and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._hidden = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def hostile_page(root: Path) -> str:
    fake = FakeAudit(root, (GROUP, TOPIC))
    rows = [{"group_id": group, "group_type": "classic", "state": "Stable"} for group in HOSTILE_GROUPS]
    problems = [
        {"dataset": "members", "api": "DescribeGroups", "group_id": group, "error": group, "message": group} for group in HOSTILE_GROUPS
    ]
    fake.take_snapshot({"groups": rows, "errors": problems}, "20261120T231501Z-ab12cd35ab12cd35")
    fake.settings([finding(TOPIC, "orders", "not_assessed", reason=reason) for reason in HOSTILE_GROUPS])
    failures = [finding(GROUP, group, observed=group, expected=group, evidence=group, tier=group) for group in HOSTILE_GROUPS]
    words = ("status", "status_reason", "burrow", "time_to_loss_by", "lag_ms_method")
    partitions = [
        group_partition(group, "orders", 0, lag=3, lost=1, time_to_loss_ms=1, **dict.fromkeys(words, group)) for group in HOSTILE_GROUPS
    ]
    slas = sla_table([group_sla(group, sla=group) for group in HOSTILE_GROUPS])
    fake.lag(failures, partitions, group_slas=slas, lag_series=series_table([lag_bucket(group, 0) for group in HOSTILE_GROUPS]))
    fake.gates(reasons=list(HOSTILE_GROUPS))
    return render(read_report(*fake.inputs.args, **fake.inputs.kwargs))


def plain_page(root: Path, failures: int = 1, gates: bool = True, **options: int) -> str:
    fake = FakeAudit(root, (GROUP, TOPIC))
    fake.settings([finding(TOPIC, f"t{number:04}") for number in range(failures)])
    fake.lag([finding(GROUP, "billing", "pass")], [group_partition("billing", "orders", 0)])
    if gates:
        fake.gates()
    return render(read_report(*fake.inputs.args, **fake.inputs.kwargs, **options))


def test_hostile_names_add_no_tag_no_handler_and_no_link(tmp_path: Path) -> None:
    page = Page(hostile_page(tmp_path))
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "img", "iframe", "object", "link", "base", "form"})
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on") or name == "style"]
    links = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert all(link and link.startswith(("#", "https://cwiki.apache.org/")) for link in links)


def test_hostile_names_are_neither_ids_nor_classes(tmp_path: Path) -> None:
    page = Page(hostile_page(tmp_path))
    values = [attributes.get(name) or "" for _, attributes in page.tags for name in ("id", "class", "for", "aria-labelledby")]
    assert all(re.fullmatch(r"[a-z0-9 -]*", value) for value in values)


def test_no_invisible_character_reaches_the_page(tmp_path: Path) -> None:
    page = hostile_page(tmp_path)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u034f\U000e0100\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", page)
    assert r'<span class="esc">\u202e</span>' in page
    assert r'<span class="esc">\n</span>' in page


def test_long_names_are_cut_on_the_page_and_say_so(tmp_path: Path) -> None:
    page = hostile_page(tmp_path)
    outside_commands = re.sub(r"<pre>.*?</pre>", "", page, flags=re.DOTALL)
    assert max(len(run) for run in re.findall("x+", outside_commands)) <= 500
    assert "721 more characters" in page


def test_the_page_loads_nothing_and_its_policy_allows_only_its_own_style(tmp_path: Path) -> None:
    text = plain_page(tmp_path)
    page = Page(text)
    policy = next(attributes["content"] for _, attributes in page.tags if attributes.get("http-equiv") == "Content-Security-Policy") or ""
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    assert not [attributes for _, attributes in page.tags if "src" in attributes or "srcset" in attributes]
    assert not re.search(r"url\(|@import", style[1])


def test_the_verdict_comes_first(tmp_path: Path) -> None:
    text = Page(plain_page(tmp_path)).text
    order = [
        "FAILED",
        "The policy is not met",
        "Loss that has happened",
        "About to be lost",
        "Since the previous audit",
        "The worst thing",
        "Contents",
        "Snapshot taken",
        "Lost counts records",
        "Worst partitions",
        "so nothing is called new or resolved",
        "Each line says what should be true and is not",
        "Where it fails",
        "A result is a pass or a failure only if its evidence was complete",
        "What each tier demands",
        "How to verify this report",
    ]
    places = [text.index(words, text.index("Skip to")) for words in order]
    assert places == sorted(places)


def test_a_gate_that_did_not_run_is_said_to_have_passed_nothing(tmp_path: Path) -> None:
    text = Page(plain_page(tmp_path, gates=False)).text
    assert "VOID" in text
    assert text.count("There is no result of this gate for this evidence, so nothing has passed it.") == 2


def test_an_audit_that_assessed_nothing_shows_dashes_and_no_zero_failures(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    fake.settings([finding(TOPIC, "orders", "not_applicable")])
    fake.gates(("FAIL", 4))
    text = Page(render(read_report(*fake.inputs.args, **fake.inputs.kwargs))).text
    assert "critical \u2013 1 control, nothing assessed" in text
    assert "Nothing was assessed No result applies: 1 do not, and are not counted." in text
    assert "verify left no lag results, so lag and loss are not known." in text


def test_a_title_with_hidden_characters_is_spelled_out_even_where_a_template_prints_it_plainly(tmp_path: Path) -> None:
    odd = control("odd", "ODD-01", title="a\u202etitle", rationale="a\u200bb\u034f\U000e0100", expected="x" * 5000)
    fake = FakeAudit(tmp_path, (odd,))
    fake.settings([finding(odd, "orders")])
    page = render(read_report(*fake.inputs.args, **fake.inputs.kwargs))
    assert not re.search("[\u200b\u202e\u034f\U000e0100]", page)
    assert r'a<span class="esc">\u202e</span>title' in page


def test_a_bounded_list_says_how_many_there_are(tmp_path: Path) -> None:
    text = Page(plain_page(tmp_path, failures=30, limit=20)).text
    assert "First 20 of 30 failures" in text
    assert "All 20 topics with their evidence" in text


def test_a_card_shows_loss_evidence_fix_impact_and_rule(tmp_path: Path) -> None:
    text = Page(plain_page(tmp_path)).text
    for part in (
        TOPIC.failure_scenario,
        TOPIC.rationale,
        "Expected everywhere: at least 3",
        "replicas [1]",
        'kafka-topics.sh --bootstrap-server "$BOOTSTRAP" --describe --topic t0000',
        TOPIC.remediation_impact,
        TOPIC.false_positives[0],
        TOPIC.pass_when,
    ):
        assert part in text


def test_a_javascript_reference_is_text_and_not_a_link(tmp_path: Path) -> None:
    page = plain_page(tmp_path)
    assert "javascript:alert(1)" in page
    assert 'href="javascript' not in page


def test_secrets_among_the_run_parameters_stay_out(tmp_path: Path) -> None:
    assert "s3cret" not in plain_page(tmp_path)


def test_a_control_that_is_not_in_the_catalogue_gets_a_card_without_text(tmp_path: Path) -> None:
    gone = control("old_control", "OLD-01")
    fake = FakeAudit(tmp_path, (TOPIC,))
    rows = [finding(gone, "orders")]
    fake.catalogue = type(fake.catalogue)(controls=(), sha256="ca" * 32)
    fake.settings(rows, [summary(gone, rows)])
    fake.lag([])
    assert "The catalogue that made this report does not contain this control" in render(
        read_report(*fake.inputs.args, **fake.inputs.kwargs)
    )


def test_every_mark_has_a_shape_of_its_own() -> None:
    icon = _environment().get_template("parts.j2").module.icon  # type: ignore[attr-defined]
    kinds = ("pass", "fail", "error", "gap", "none", "critical", "high", "medium", "low", "info")
    shapes = {re.sub(r'class="icon [a-z]+"', "", str(icon(kind))) for kind in kinds}
    assert len(shapes) == len(kinds)


RAISED = control(
    "retention_floor_kept",
    "TOP-06",
    remediation=Remediation(
        text="Raise it.",
        changes=(Change(command="set --entity-name {topic} --add-config retention.ms={retention_ms}", does="Raises it."),),
        values={"retention_ms": "1"},
    ),
)


def test_commands_hold_the_values_of_each_failing_resource(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (RAISED,))
    fake.settings(
        [
            finding(RAISED, "events", remediation='{"retention_ms": "86400000"}'),
            finding(RAISED, "orders", remediation='{"retention_ms": "-1"}'),
            finding(RAISED, "payments", remediation='{"retention_ms": null}'),
        ]
    )
    fake.lag([], [])
    fake.gates()
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    text = Page(render(report)).text
    assert "set --entity-name events --add-config retention.ms=86400000" in text
    assert "set --entity-name orders --add-config retention.ms=-1" in text
    assert "--entity-name payments" not in text
    assert "For 1 failing resource no changing command follows from the values that were read" in text
    assert [one["remediation"] for one in as_json(report)["findings"]] == [{"retention_ms": "86400000"}, {"retention_ms": "-1"}, {}]
