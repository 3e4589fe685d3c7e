"""``kafka-audit diff``: its table, its JSON and its exit codes."""

import json

import pytest
from compared_audits import CLUSTER, GROUP, TOPIC, Shop, row
from report_audit import HOSTILE_GROUPS
from typer.testing import CliRunner

from kafka_audit.cli.main import app
from kafka_audit.errors import ConfigurationError, IntegrityError


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


def run(shop, *arguments, check=True):
    found = CliRunner().invoke(app, ["diff", *map(str, arguments), "--root", str(shop.root.path), "--cluster", CLUSTER])
    if check and found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def test_two_audits_without_new_failures_end_with_exit_code_0(shop):
    first = shop.audit([row(TOPIC, "orders"), row(TOPIC, "audit")])
    second = shop.audit([row(TOPIC, "orders"), row(TOPIC, "audit", "pass")])
    found = run(shop, first.id, second.id)
    assert found.exit_code == 0
    assert "Failures: 0 new, 0 worse, 0 incomparable, 1 resolved, 1 unchanged" in found.output
    assert "audit" in found.output


def test_a_new_failure_ends_with_exit_code_3(shop):
    first, second = shop.audit([row(TOPIC, "orders", "pass")]), shop.audit([row(TOPIC, "orders")])
    assert run(shop, first.audit.path, second.audit.path).exit_code == 3


def test_a_failure_that_cannot_be_compared_ends_with_exit_code_3_and_says_why(shop):
    first, second = shop.audit([row(TOPIC, "orders", "not_assessed")]), shop.audit([row(TOPIC, "orders")])
    found = run(shop, first.id, second.id)
    assert found.exit_code == 3
    assert "was not assessed" in found.output


def test_a_failure_that_was_not_assessed_again_is_listed_and_is_no_new_one(shop):
    first, second = shop.audit([row(TOPIC, "orders")]), shop.audit([row(TOPIC, "orders", "not_assessed")])
    found = run(shop, first.id, second.id)
    assert found.exit_code == 0
    assert "1 incomparable" in found.output


def test_json_holds_counts_notes_and_findings(shop):
    first, second = shop.audit([row(TOPIC, "orders", "pass")]), shop.audit([row(TOPIC, "orders")])
    found = json.loads(run(shop, first.id, second.id, "--json").output)
    assert (found["previous_audit_id"], found["audit_id"], found["exit_code"], found["counts"]["new"]) == (first.id, second.id, 3, 1)
    assert [(one["change"], one["code"], one["resource"]) for one in found["listed"]] == [("new", "TOP-01", "orders")]


def test_hostile_names_cannot_act_on_a_terminal(shop):
    first = shop.audit([row(GROUP, name, "pass") for name in HOSTILE_GROUPS])
    second = shop.audit([row(GROUP, name, observed=name) for name in HOSTILE_GROUPS])
    for arguments in ((), ("--json",)):
        output = run(shop, first.id, second.id, *arguments).output
        assert not [character for character in output if character != "\n" and not character.isprintable()]
        assert not set("\x1b\u202e\u2066\u200b\x85\u034f\U000e0100") & set(output)


def test_a_changed_file_is_an_error_of_integrity(shop):
    first, second = shop.audit([row(TOPIC, "orders")]), shop.audit([row(TOPIC, "orders")])
    (first.audit.path / "report" / "report.html").write_text("<p>PASSED</p>")
    with pytest.raises(IntegrityError, match=r"report\.html"):
        run(shop, first.id, second.id)


def test_audits_of_different_kafka_clusters_are_refused(shop):
    first, second = shop.audit([row(TOPIC, "orders")]), shop.audit([row(TOPIC, "orders")], cluster_id="two")
    with pytest.raises(ConfigurationError, match=r"different clusters, orders-prod \(Kafka cluster one\) and .*two"):
        run(shop, first.id, second.id)


@pytest.mark.parametrize("named", ["20260101T000000Z-ab12cd34ab12cd34", "nowhere"])
def test_an_audit_that_is_not_there_is_refused(shop, named):
    first = shop.audit([row(TOPIC, "orders")])
    with pytest.raises(ConfigurationError, match=r"with --root and --cluster|check the id"):
        run(shop, first.id, named)


def test_comparing_backwards_says_so(shop):
    first, second = shop.audit([row(TOPIC, "orders")]), shop.audit([row(TOPIC, "orders", "pass")])
    assert "A was sealed after B" in run(shop, second.id, first.id).output


def test_comparing_an_audit_with_itself_says_so(shop):
    first = shop.audit([row(TOPIC, "orders")])
    found = run(shop, first.id, first.audit.path)
    assert (found.exit_code, "A and B are the same audit" in found.output) == (0, True)


@pytest.mark.parametrize("less", [{"evidence": ("FAIL", 4)}, {"parts": ("settings",)}, {"parts": ()}])
def test_an_audit_that_was_void_or_cut_short_never_ends_as_if_it_had_no_failures(shop, less):
    first = shop.audit([row(TOPIC, "orders")])
    second = shop.audit([row(TOPIC, "orders", "pass")], **less)
    found = run(shop, first.id, second.id)
    assert found.exit_code == 4
    assert "This audit was void" in found.output or "This audit judged nothing about" in found.output
    assert run(shop, second.id, first.id).exit_code == 3
