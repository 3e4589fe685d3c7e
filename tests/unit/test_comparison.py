"""What is new, worse, resolved and unchanged since the previous audit, and what cannot be compared."""

import json

import pytest
from compared_audits import BROKER, GROUP, LOST, NO_AUTHORIZER, TOPIC, Shop, only, row
from report_audit import HOSTILE_GROUPS, control

from kafka_audit.catalogue.control import Parameter
from kafka_audit.catalogue.rows import LAG, SETTINGS
from kafka_audit.findings import Severity
from kafka_audit.report.comparison import Change


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


def since(shop, before, now, *, then=None, **about):
    """The one changed finding between two audits; ``then`` describes the first, ``about`` both."""
    shop.audit(before, **{**about, **(then or {})})
    return only(shop.judge(now, **about).comparison())


def fails(of=TOPIC, resource="orders", **changes):
    return row(of, resource, "fail", **changes)


def passes(of=TOPIC, resource="orders", **changes):
    return row(of, resource, "pass", **changes)


def test_the_first_audit_has_nothing_to_compare_with(shop):
    report = shop.judge([fails()]).read()
    assert report.comparison is None
    assert [point.verdict for point in report.trend] == ["FAILED"]


def test_a_failure_is_new_if_the_same_control_passed_there_before(shop):
    found = since(shop, [passes()], [fails()])
    assert (found.change, found.code, found.severity, found.severity_before) == (Change.NEW, "TOP-01", "high", None)
    assert (found.observed, found.observed_before) == ("1", "1")


def test_a_failure_that_passes_now_is_resolved(shop):
    found = since(shop, [fails()], [passes()])
    assert (found.change, found.why, found.severity, found.severity_before) == (Change.RESOLVED, None, None, "high")


def test_a_failure_that_still_fails_is_unchanged(shop):
    shop.audit([fails(), passes(BROKER, "1")])
    now = shop.judge([fails(), passes(BROKER, "1")])
    found = now.comparison()
    assert dict(found.counts) == {"new": 0, "worse": 0, "unchanged": 1, "resolved": 0, "incomparable": 0}
    assert found.not_shown_old == 0
    assert found.change_of("topic_replicated", "orders") is Change.UNCHANGED
    assert found.change_of("racks_set", "1") is None


@pytest.mark.parametrize("status", ["not_assessed", "error", "not_applicable"])
def test_nothing_is_resolved_that_was_not_assessed_again(shop, status):
    found = since(shop, [fails()], [row(TOPIC, "orders", status, reason="TIMEOUT")])
    assert found.change is Change.INCOMPARABLE
    assert found.why.startswith("in this audit it ")
    assert found.why.endswith(": TIMEOUT")


@pytest.mark.parametrize("status", ["not_assessed", "error", "not_applicable"])
def test_a_failure_that_was_not_assessed_before_is_not_called_new(shop, status):
    found = since(shop, [row(TOPIC, "orders", status, reason="no rights")], [fails()])
    assert found.change is Change.INCOMPARABLE
    assert found.why.startswith("in the previous audit it ")


def test_a_higher_severity_is_worse_and_a_lower_one_is_not(shop):
    worse = since(shop, [fails(severity="medium")], [fails(severity="high")])
    assert (worse.change, worse.why) == (Change.WORSE, "its severity was medium and is high")
    shop.audit([fails(severity="high")])
    assert only(shop.judge([fails(severity="low")]).comparison()).change is Change.UNCHANGED


def test_a_failure_whose_waiver_ended_is_worse(shop):
    found = since(shop, [fails(waiver="W-1")], [fails()])
    assert (found.change, found.why) == (Change.WORSE, "waiver W-1 covered it in the previous audit and does not any more")


def lost(number):
    return fails(LOST, "billing:orders-0", topic="orders", partition=0, group_id="billing", evidence=json.dumps({"lost": number}))


@pytest.mark.parametrize(("before", "now", "change"), [(10, 11, Change.WORSE), (10, 10, Change.UNCHANGED), (None, 11, Change.UNCHANGED)])
def test_more_lost_records_are_worse_if_both_audits_counted_them(shop, before, now, change):
    assert since(shop, [lost(before)], [lost(now)]).change is change


def test_a_topic_that_no_longer_exists_is_resolved_if_the_snapshot_shows_it(shop):
    found = since(shop, [fails()], [], topics={"payments": 1})
    assert (found.change, found.why) == (Change.RESOLVED, "the topic no longer exists, and nothing was assessed")


HIDDEN = {"dataset": "topics", "api": "Metadata", "topic": "orders", "error": "TOPIC_HIDDEN", "message": "Describe is missing"}
UNLISTED = {"dataset": "topics", "api": "Metadata", "error": "TIMEOUT", "message": "no answer"}


@pytest.mark.parametrize(
    "about",
    [{"errors": [NO_AUTHORIZER, HIDDEN]}, {"errors": [NO_AUTHORIZER, UNLISTED]}, {"errors": []}, {"topics": {"orders": 1}}],
    ids=["hidden", "not listed", "disks not read", "still there"],
)
def test_a_topic_that_may_still_exist_is_not_resolved(shop, about):
    found = since(shop, [fails()], [], **{"topics": {"payments": 1}, **about})
    assert (found.change, "was not assessed again" in found.why) == (Change.INCOMPARABLE, True)


def disks(*alive, holding=()):
    """What a cluster with an authorizer tells: its brokers with their disks, and the brokers that have a replica of orders."""
    return {
        "brokers": [{"broker_id": one, "alive": True, "answered": True} for one in alive],
        "log_dirs": [{"broker_id": one, "path": "/data"} for one in alive],
        "replica_sizes": [{"broker_id": one, "path": "/data", "topic": "orders", "partition": 0} for one in holding],
        "partitions": [{"topic": "orders", "partition": 0, "replicas": list(holding)}] if holding else [],
    }


def test_a_topic_is_gone_if_the_brokers_that_held_it_have_it_no_more(shop):
    then = {"topics": {"orders": 1}, "datasets": disks(1, 2, holding=[2])}
    found = since(shop, [fails()], [], errors=[], datasets=disks(1, 2), then=then)
    assert (found.change, found.why) == (Change.RESOLVED, "the topic no longer exists, and nothing was assessed")
    empty = {"topics": {}, "datasets": disks(1, 2)}
    new = since(shop, [], [fails()], errors=[], topics={"orders": 1}, datasets=disks(1, 2, holding=[2]), then=empty)
    assert (new.change, new.why) == (Change.NEW, "the topic did not exist in the previous audit")


def test_a_hidden_topic_on_a_dead_broker_that_no_list_names_does_not_pass_for_deleted(shop):
    then = {"topics": {"orders": 1}, "datasets": disks(1, 2, holding=[2])}
    assert since(shop, [fails()], [], errors=[], datasets=disks(1), then=then).change is Change.INCOMPARABLE
    shop.audit([], errors=[], datasets=disks(1))
    new = shop.judge([fails()], errors=[], topics={"orders": 1}, datasets=disks(1, 2, holding=[2])).comparison()
    assert only(new).change is Change.INCOMPARABLE


RECREATED = "the topic was deleted and created again under the same name"
AGAIN = {"topics": {"orders": 1}, "topic_ids": {"orders": "new"}, "then": {"topic_ids": {"orders": "old"}}}
OF_ORDERS = {"topic": "orders", "partition": 0}


def on(of, status):
    return row(of, "billing:orders-0" if of is LOST else "orders", status, **(OF_ORDERS if of is LOST else {}))


@pytest.mark.parametrize("of", [TOPIC, LOST], ids=["topic", "group_partition"])
def test_a_topic_that_was_created_again_is_another_topic(shop, of):
    resolved = since(shop, [on(of, "fail")], [on(of, "pass")], **AGAIN)
    assert (resolved.change, resolved.why) == (Change.RESOLVED, f"{RECREATED}, and the new one passes")
    failing = since(shop, [on(of, "fail")], [on(of, "fail")], **AGAIN)
    assert (failing.change, failing.why) == (Change.NEW, f"{RECREATED}; the one before it failed, too")
    for before in ([on(of, "pass")], [on(of, "not_assessed")], []):
        new = since(shop, before, [on(of, "fail")], **AGAIN)
        assert (new.change, new.why) == (Change.NEW, RECREATED)


@pytest.mark.parametrize("of", [TOPIC, LOST], ids=["topic", "group_partition"])
def test_a_failure_is_not_resolved_if_the_topic_was_created_again_and_the_new_one_was_not_assessed(shop, of):
    for now in ([on(of, "not_assessed")], []):
        found = since(shop, [on(of, "fail")], now, **AGAIN)
        assert (found.change, found.why.startswith(RECREATED)) == (Change.INCOMPARABLE, True)


def test_topics_are_the_same_where_their_ids_are_the_same_or_not_known(shop):
    for ids in ({"then": {"topic_ids": {"orders": "new"}}}, {"topic_ids": {}}, {"then": {"topic_ids": {}}}):
        assert since(shop, [fails()], [fails()], **{**AGAIN, **ids}).change is Change.UNCHANGED


def test_a_group_that_is_gone_is_not_resolved(shop):
    found = since(shop, [fails(GROUP, "billing")], [])
    assert (found.change, found.why) == (Change.INCOMPARABLE, "the group no longer exists, so it was not assessed again")


def test_a_failure_on_something_that_did_not_exist_is_new_and_says_so(shop):
    new_topic = since(shop, [], [fails()], topics={"orders": 1}, then={"topics": {}})
    assert (new_topic.change, new_topic.why) == (Change.NEW, "the topic did not exist in the previous audit")
    shop.audit([], topics={"orders": 1})
    new_group = only(shop.judge([fails(GROUP, "billing")], groups=["billing"]).comparison())
    assert (new_group.change, new_group.why) == (Change.NEW, "the group did not exist in the previous audit")


def test_a_failure_without_an_earlier_result_is_not_called_new_if_nothing_shows_that_it_is(shop):
    assert since(shop, [], [fails()], topics={"orders": 1}).change is Change.INCOMPARABLE
    shop.audit([])
    assert only(shop.judge([fails(BROKER, "4")]).comparison()).change is Change.INCOMPARABLE


def test_a_narrower_scope_resolves_nothing(shop):
    shop.audit([fails(), fails(TOPIC, "payments"), fails(BROKER, "1")])
    found = shop.judge([passes(TOPIC, "payments"), passes(BROKER, "1")], scope=("payments", "*"), topics={"payments": 1}).comparison()
    assert {one.resource: (one.change, one.why) for one in found.listed} == {
        "orders": (Change.INCOMPARABLE, "the topic is outside the scope of this audit"),
        "payments": (Change.RESOLVED, None),
        "1": (Change.INCOMPARABLE, "the two audits cover other topics, on which this result depends"),
    }
    assert "The scope differs: topics were * and are payments." in found.notes


def test_a_changed_rule_makes_only_its_own_control_incomparable(shop):
    shop.audit([fails(), fails(BROKER, "1")])
    stricter = control("topic_replicated", "TOP-01", severity=Severity.HIGH, pass_when="isr_min >= 2")
    found = shop.judge([passes(), passes(BROKER, "1")], controls=(stricter, GROUP, LOST, BROKER)).comparison()
    assert {one.code: one.change for one in found.listed} == {"TOP-01": Change.INCOMPARABLE, "BRK-05": Change.RESOLVED}
    assert "Controls whose rule was changed: TOP-01." in found.notes


def test_other_words_of_a_control_change_nothing(shop):
    shop.audit([fails()])
    reworded = control("topic_replicated", "TOP-01", severity=Severity.HIGH, title="Three replicas", rationale="Because.")
    assert only(shop.judge([passes()], controls=(reworded, GROUP, LOST, BROKER)).comparison()).change is Change.RESOLVED


def test_a_control_that_was_removed_or_added_is_incomparable(shop):
    shop.audit([fails()])
    removed = shop.judge([], controls=(GROUP, LOST, BROKER)).comparison()
    assert only(removed).why == "the control is not in the catalogue of this audit"
    assert "Controls that this audit does not have: TOP-01." in removed.notes
    shop.audit([], controls=(GROUP, LOST, BROKER))
    assert only(shop.judge([fails()]).comparison()).why == "the control is not in the catalogue of the previous audit"


def asked(status, **values):
    return row(TOPIC, "orders", status, evidence=json.dumps({"replicas": [1], **values}))


def test_a_changed_requirement_of_the_policy_is_incomparable_and_named(shop):
    shop.audit([asked("pass", **{"policy.replication_factor": 2})])
    folder = shop.own_policy()
    (folder / "tiers.yaml").write_text((folder / "tiers.yaml").read_text() + "# stricter\n")
    shop.load(folder)
    found = shop.judge([asked("fail", **{"policy.replication_factor": 3})]).comparison()
    assert only(found).why == "the two audits asked different things: policy.replication_factor was 2 and is 3"
    assert "The policy differs in tiers.yaml." in found.notes


def test_a_changed_policy_that_asks_the_same_of_a_resource_changes_nothing_for_it(shop):
    shop.audit([asked("fail", **{"policy.replication_factor": 3})])
    folder = shop.own_policy()
    (folder / "slas.yaml").write_text((folder / "slas.yaml").read_text() + "# other groups\n")
    shop.load(folder)
    assert only(shop.judge([asked("fail", **{"policy.replication_factor": 3})]).comparison()).change is Change.UNCHANGED


def test_without_evidence_of_what_was_asked_a_changed_policy_is_incomparable(shop):
    shop.audit([row(TOPIC, "orders", evidence=None)])
    folder = shop.own_policy()
    (folder / "tiers.yaml").write_text((folder / "tiers.yaml").read_text() + "# other\n")
    shop.load(folder)
    assert only(shop.judge([row(TOPIC, "orders", evidence=None)]).comparison()).change is Change.INCOMPARABLE


def test_a_changed_default_of_a_parameter_is_incomparable_and_named(shop):
    def with_default(number):
        parameter = Parameter(default=number, stricter="lower", meaning="allowed skew")
        return (control("topic_replicated", "TOP-01", parameters={"max_skew": parameter}), GROUP, LOST, BROKER)

    shop.audit([asked("fail", **{"parameters.max_skew": 5})], controls=with_default(5))
    found = shop.judge([asked("pass", **{"parameters.max_skew": 9})], controls=with_default(9)).comparison()
    assert only(found).why == "the two audits asked different things: parameters.max_skew was 5 and is 9"
    assert "Parameters whose default was changed: TOP-01.max_skew 5 to 9." in found.notes


def test_a_part_that_was_not_judged_resolves_nothing(shop):
    shop.audit([fails(GROUP, "billing")])
    found = shop.judge([], parts=(SETTINGS,)).comparison()
    assert only(found).why == "this audit judged nothing about consumer groups"
    assert "This audit judged nothing about consumer groups." in found.notes
    shop.audit([], parts=(LAG,))
    assert only(shop.judge([fails()]).comparison()).change is Change.INCOMPARABLE


def test_two_verdicts_on_one_resource_are_not_compared(shop):
    assert since(shop, [passes()], [fails(), passes()]).change is Change.INCOMPARABLE
    shop.audit([fails(), fails()])
    assert only(shop.judge([fails()]).comparison()).change is Change.INCOMPARABLE


def test_hostile_names_are_compared_as_they_are(shop):
    shop.audit([fails(GROUP, name) for name in HOSTILE_GROUPS])
    found = shop.judge([row(GROUP, name, "pass" if place % 2 else "fail") for place, name in enumerate(HOSTILE_GROUPS)]).comparison()
    assert (found.counts["unchanged"], found.counts["resolved"]) == (4, 3)
    assert {one.resource for one in found.listed} == set(HOSTILE_GROUPS)


def test_all_results_are_counted_and_the_worst_are_listed_first(shop):
    before = shop.judge([])
    before.replace_findings(TOPIC, ["fail", "pass"] * 40_000, ["high"] * 80_000)
    before.seal()
    now = shop.judge([])
    now.replace_findings(TOPIC, (["pass"] + ["fail"] * 3) * 20_000, ["high"] * 79_998 + ["critical"] * 2)
    found = now.comparison()
    assert dict(found.counts) == {"new": 40_000, "worse": 1, "unchanged": 19_999, "resolved": 20_000, "incomparable": 0}
    assert [one.resource for one in found.listed if one.change is Change.RESOLVED][:2] == ["topic-000000", "topic-000004"]
    assert [one.resource for one in found.listed if one.change is Change.NEW][:2] == ["topic-079999", "topic-000001"]
    assert len(found.listed) == 301
    assert found.not_shown_old == 40_001


def test_a_report_is_the_same_when_it_is_rendered_again_after_later_audits(shop):
    shop.audit([passes()])
    second = shop.audit([fails()])
    first_time = second.read()
    shop.audit([passes()])
    again = second.read()
    assert (again.comparison, again.trend) == (first_time.comparison, first_time.trend)
    assert first_time.comparison.counts["new"] == 1
