"""The names and fingerprints by which other tools know a resource, and texts that are inert in other tools' formats."""

import json
import re
from urllib.parse import unquote

import pytest
from report_audit import HOSTILE_GROUPS

from kafka_audit.report.inert_text import json_value, line, markdown, message
from kafka_audit.report.oscal_parts import token, tokens
from kafka_audit.report.resource_names import cluster_segment, encoded, fingerprint, resource_name, uuid_of


@pytest.mark.parametrize(
    ("subject", "resource", "path", "kind"),
    [
        ("topic", "orders", "topic/orders", "topic"),
        ("declared_topic", "orders", "topic/orders", "topic"),
        ("partition", "my-orders-12", "topic/my-orders/partition/12", "partition"),
        ("broker", "3", "broker/3", "broker"),
        ("cluster", "cluster", "cluster", "cluster"),
        ("group", "bil/ling", "group/bil%2Fling", "group"),
        ("declared_group", "billing", "group/billing", "group"),
        ("group_sla", "billing", "group/billing", "group"),
        ("group_sla", "billing [payments]", "group/billing/sla/payments", "sla"),
        ("group_partition", "a:b:my-orders-12", "group/a%3Ab/topic/my-orders/partition/12", "partition"),
        ("producer", "producer shop", "producer/shop", "producer"),
        ("producer", "topic orders", "topic/orders", "topic"),
        ("consumer", "consumer month end", "consumer/month%20end", "consumer"),
        ("consumer", "group billing", "group/billing", "group"),
        ("partition", "not one", "partition/not%20one", "partition"),
        ("a/b", "x", "a%2Fb/x", "a%2Fb"),
    ],
)
def test_a_resource_has_a_kafka_name(subject: str, resource: str, path: str, kind: str) -> None:
    name = resource_name("mk5vR0", subject, resource)
    assert (name.uri, name.kind) == (f"kafka://mk5vR0/{path}", kind)


@pytest.mark.parametrize("name", [*HOSTILE_GROUPS, "", ".", "..", "t" * 249, "\ud800", "a b\u202e"])
def test_a_hostile_name_is_one_segment_of_ascii_from_which_it_can_be_read_back(name: str) -> None:
    segment = encoded(name)
    assert re.fullmatch(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+", segment) and segment not in {".", ".."}
    assert unquote(segment, errors="surrogatepass") == (name or "\x00")


def test_names_that_differ_have_names_and_fingerprints_that_differ() -> None:
    resources = ["a", "A", "a ", "a\u200b", "a%20", "a:b-1", "\ud83d\ude00", "\N{GRINNING FACE}", "\ud83d"]
    for subject in ("topic", "group", "partition", "group_partition"):
        assert len({resource_name("c", subject, one).uri for one in resources}) == len(resources)
        assert len({fingerprint("c", "x", subject, one) for one in resources}) == len(resources)


def test_the_alias_stands_for_a_cluster_whose_id_is_not_known() -> None:
    assert cluster_segment("mk5vR0-9Q", "prod") == "mk5vR0-9Q"
    assert (cluster_segment("", "prod/eu"), cluster_segment("", "")) == ("prod%2Feu", "unknown")


def test_fingerprints_and_uuids_never_change() -> None:
    # Platforms know a finding by these: another value would close every alert and open it again.
    assert (
        fingerprint("mk5vR0", "replication_factor_sufficient", "topic", "orders")
        == "1767249dffd8984144f854b61cc2793e2234182f8926ac5a746e46824e55ad1d"
    )
    assert uuid_of("audit", "20261120T231600Z-0badcafe0badcafe") == "a776ec37-b9b5-518f-bf16-8e4e27a15e4e"


def test_a_text_cannot_become_a_link_a_placeholder_markup_or_two_lines() -> None:
    hostile = "[click](http://198.51.100.9/) {0} <b>&#x202e;\n\x1b[31m \u202e\ud800"
    assert message(hostile) == r"[click] (http://198.51.100.9/) {{0}} <b>&#x202e;\n\u001b[31m \u202e\ud800"
    assert markdown(hostile) == r"[click] (http://198.51.100.9/) {0} &lt;b&gt;&amp;#x202e;\n\u001b[31m \u202e\ud800"
    assert (line(""), line(None, "nobody"), line("  x "), line("x" * 2005)) == (
        "not known",
        "nobody",
        "x",
        "x" * 2000 + " ... 5 more characters",
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ('{"lone": "\\ud800", "\\u202ek": ["\\u001b"]}', {"lone": "\\ud800", "\\u202ek": ["\\u001b"]}),
        ('{"x": 1e999, "y": NaN, "z": 0.5}', {"x": "inf", "y": "nan", "z": 0.5}),
        ("{not json", "{not json"),
    ],
)
def test_evidence_is_json_with_inert_texts_and_finite_numbers(text: str, value: object) -> None:
    assert json_value(text) == value
    json.dumps(json_value(text), allow_nan=False)


def test_evidence_that_is_nested_too_deep_stays_a_text() -> None:
    assert str(json_value("[" * 100_000)).startswith("[[[")


def test_ids_of_requirements_are_written_as_the_catalogues_of_oscal_write_them() -> None:
    assert tokens("SC-5(2), SC-5(3)") == ["sc-5.2", "sc-5.3"]
    assert [token(one) for one in ("A.5.15", "Art. 9(3)(b)", "8.2.3", "<script>", "()")] == [
        "a.5.15",
        "art.9.3.b",
        "_8.2.3",
        "script",
        "unnamed",
    ]
