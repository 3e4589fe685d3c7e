"""Collection of ACLs, the principal's own permissions, and the topics that members of groups subscribe to."""

import json
import struct

import pytest
from fake_answers import ABSENT, described, listed
from kafka.protocol.admin.acl import DescribeAclsResponse
from kafka.protocol.admin.client_quotas import DescribeClientQuotasResponse
from kafka.protocol.admin.groups import DescribeGroupsResponse
from snapshot_taking import failed, fake_cluster, rows, snapshot_taker  # noqa: F401  (fixtures)

from kafka_audit.cluster.groups import ConsumerGroupDescribeResponse
from kafka_audit.collect.scope import Scope

SECURITY_DISABLED, CLUSTER_DENIED, GROUP_DENIED = 54, 31, 30
READ, WRITE, DESCRIBE, FROM_THE_FUTURE = 3, 4, 8, 30


def subscription(*topics):
    return struct.pack(">hi", 1, len(topics)) + b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics) + struct.pack(">i", -1)


def classic(fake, **group):
    fake.answers["ListGroups"] = lambda b, _: listed(("g", "classic", "Stable")) if b == 1 else listed()
    fake.answers["DescribeGroups"] = lambda *_: DescribeGroupsResponse(throttle_time_ms=0, groups=[described("g", **group)])


def consumer(fake, *, topics=(), regex=None, operations=None, assignor="uniform"):
    group = ConsumerGroupDescribeResponse.DescribedGroup
    nothing = group.Member.Assignment(topic_partitions=[])
    member = group.Member(
        member_id="m",
        client_id="c",
        client_host="/h",
        member_epoch=1,
        subscribed_topic_names=list(topics),
        subscribed_topic_regex=regex,
        assignment=nothing,
        target_assignment=nothing,
        member_type=1,
    )
    found = group(
        error_code=0,
        group_id="g",
        group_state="Stable",
        group_epoch=1,
        assignment_epoch=1,
        assignor_name=assignor,
        members=[member],
        authorized_operations=operations,
    )
    fake.answers["ListGroups"] = lambda b, _: listed(("g", "consumer", "Stable")) if b == 1 else listed()
    fake.answers["ConsumerGroupDescribe"] = lambda *_: ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=[found])


def test_acls_are_stored_in_the_words_of_kafka_acls(fake, take):
    resource = DescribeAclsResponse.DescribeAclsResource
    acls = [
        resource.AclDescription(principal="User:a", host="*", operation=11, permission_type=3),
        resource.AclDescription(principal="User:=cmd|' /C calc'!A0", host="10.0.0.1", operation=FROM_THE_FUTURE, permission_type=2),
    ]
    found = [resource(resource_type=2, resource_name="orders-", pattern_type=4, acls=acls)]
    fake.answers["DescribeAcls"] = lambda *_: DescribeAclsResponse(throttle_time_ms=0, error_code=0, error_message=None, resources=found)

    assert [tuple(row.values()) for row in rows(take(), "acls")] == [
        ("User:=cmd|' /C calc'!A0", "10.0.0.1", "Unknown", "Deny", "Topic", "orders-", "Prefixed"),
        ("User:a", "*", "AlterConfigs", "Allow", "Topic", "orders-", "Prefixed"),
    ]
    assert fake.asked("DescribeAcls").total() == 1


@pytest.mark.parametrize(
    ("code", "error", "capability"),
    [(SECURITY_DISABLED, "SECURITY_DISABLED", "unknown"), (CLUSTER_DENIED, "CLUSTER_AUTHORIZATION_FAILED", "denied")],
)
def test_acls_that_were_not_told_are_an_error_and_never_an_empty_list_without_one(fake, take, code, error, capability):
    fake.answers["DescribeAcls"] = lambda *_: DescribeAclsResponse(throttle_time_ms=0, error_code=code, error_message="no", resources=[])
    result = take()

    assert rows(result, "acls") == []
    assert failed(result, "acls") == [(None, None, None, None, error)]
    assert result.manifest["capabilities"]["DescribeAcls"] == capability


def test_quotas_are_stored_by_entity_and_key_and_the_default_has_no_name(fake, take):
    entry = DescribeClientQuotasResponse.EntryData
    of = [entry.EntityData(entity_type="user", entity_name=None), entry.EntityData(entity_type="client-id", entity_name='a", "x')]
    limits = [entry.ValueData(key="request_percentage", value=0.5), entry.ValueData(key="producer_byte_rate", value=1024.0)]
    found = [entry(entity=of, values=limits)]
    answer = DescribeClientQuotasResponse(throttle_time_ms=0, error_code=0, error_message=None, entries=found)
    fake.answers["DescribeClientQuotas"] = lambda *_: answer

    name = json.dumps([["client-id", 'a", "x'], ["user", None]])
    assert [tuple(row.values()) for row in rows(take(), "client_quotas")] == [
        (name, "producer_byte_rate", 1024.0),
        (name, "request_percentage", 0.5),
    ]
    assert [request.components for request in fake.requests("DescribeClientQuotas")] == [[]]


def test_refused_quotas_are_an_error(fake, take):
    answer = DescribeClientQuotasResponse(throttle_time_ms=0, error_code=CLUSTER_DENIED, error_message="no", entries=None)
    fake.answers["DescribeClientQuotas"] = lambda *_: answer
    result = take()

    assert rows(result, "client_quotas") == []
    assert failed(result, "client_quotas") == [(None, None, None, None, "CLUSTER_AUTHORIZATION_FAILED")]


def test_brokers_without_an_api_leave_a_reason_and_the_rest_is_collected(fake, take):
    fake.add_topic("t", [1])
    fake.max_versions = {"DescribeAcls": ABSENT, "Fetch": 3}
    result = take()

    for dataset in ("acls", "last_batches"):
        assert failed(result, dataset) == [(None, None, None, None, "UNSUPPORTED_VERSION")]
    assert result.manifest["capabilities"]["DescribeAcls"] == "unsupported"
    assert rows(result, "offsets")[0]["log_end"] == 100


def test_the_principals_own_operations_are_named_on_cluster_topics_and_groups(fake, take):
    fake.add_topic("t", [1])
    fake.add_topic("u", [1])
    fake.topics[0].authorized_operations = {DESCRIBE, READ, WRITE}
    classic(fake, operations={DESCRIBE})
    result = take()

    assert rows(result, "cluster")[0]["authorized_operations"] == ["Describe"]
    assert [row["authorized_operations"] for row in rows(result, "topics")] == [["Describe", "Read", "Write"], None]
    assert rows(result, "groups")[0]["authorized_operations"] == ["Describe"]
    assert [request.include_topic_authorized_operations for request in fake.requests("Metadata") if request.topics is None] == [True]


def test_the_assignor_is_the_classic_protocol_or_the_brokers_choice_and_null_when_there_is_none(fake, take):
    classic(fake, assignor="cooperative-sticky")
    assert rows(take(), "groups")[0]["assignor"] == "cooperative-sticky"


@pytest.mark.parametrize(("assignor", "stored"), [("uniform", "uniform"), ("", None)])
def test_the_assignor_of_a_consumer_group_is_the_brokers(fake, take, assignor, stored):
    consumer(fake, assignor=assignor, operations={READ})
    group = rows(take(), "groups")[0]

    assert (group["assignor"], group["authorized_operations"]) == (stored, ["Read"])


def test_a_classic_subscription_is_read_from_the_members_metadata_as_far_as_it_is_in_scope(fake, take):
    classic(fake, assignments=(b"",), subscription=subscription("payments", "orders"))
    members = rows(take(scope=Scope.from_text(topics="ord*")), "members")

    assert [row["subscribed_topics"] for row in members] == [["orders"]]


@pytest.mark.parametrize("data", [b"\x00\x01\x00\x00\x00\x02\x00\x01t", b"\x00"])
def test_a_classic_subscription_that_cannot_be_decoded_is_null_with_a_reason(fake, take, data):
    classic(fake, assignments=(b"",), subscription=data)
    result = take()

    assert rows(result, "members")[0]["subscribed_topics"] is None
    assert failed(result, "members") == [(None, None, None, "g", "INVALID_RESPONSE")]


def test_a_member_without_metadata_has_no_known_subscription(fake, take):
    classic(fake, assignments=(b"",))
    assert rows(take(), "members")[0]["subscribed_topics"] is None


@pytest.mark.parametrize(
    ("topics", "regex", "stored"),
    [(("b", "a"), None, ["a", "b"]), ((), "", []), ((), "orders.*", None), (("a",), "orders.*", None)],
)
def test_a_subscription_by_expression_is_not_known_and_does_not_look_like_none(fake, take, topics, regex, stored):
    consumer(fake, topics=topics, regex=regex)
    assert rows(take(), "members")[0]["subscribed_topics"] == stored


def group_config(fake, name, *, code=0):
    def answer(broker_id, request):
        response = fake._DescribeConfigs(broker_id, request)
        for result in response.results:
            if result.resource_type == 32:
                result.configs[0].name = name
                result.error_code, result.configs = code, [] if code else result.configs
        return response

    fake.answers["DescribeConfigs"] = answer


def test_groups_of_the_new_protocols_are_asked_for_the_keys_of_their_type_many_in_one_request(fake, take):
    kinds = [(f"c{n}", "consumer", "Empty") for n in range(300)] + [("s", "share", "Empty"), ("old", "classic", "Empty")]
    fake.answers["ListGroups"] = lambda b, _: listed(*kinds) if b == 1 else listed()
    group_config(fake, "consumer.session.timeout.ms")
    result = take()
    asked = [request for request in fake.requests("DescribeConfigs") if request.resources[0].resource_type == 32]

    assert {row["group_id"] for row in rows(result, "group_configs")} == {f"c{n}" for n in range(300)}
    assert sorted(len(request.resources) for request in asked) == [1, 50, 250]
    assert {key.partition(".")[0] for request in asked for r in request.resources for key in r.configuration_keys} == {"consumer", "share"}


def test_a_group_whose_configuration_was_refused_has_an_error_and_no_row(fake, take):
    fake.answers["ListGroups"] = lambda b, _: listed(("g", "consumer", "Empty")) if b == 1 else listed()
    group_config(fake, "consumer.session.timeout.ms", code=GROUP_DENIED)
    result = take()

    assert rows(result, "group_configs") == []
    assert failed(result, "group_configs") == [(None, None, None, "g", "GROUP_AUTHORIZATION_FAILED")]
