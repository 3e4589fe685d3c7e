"""Dedicated controllers are asked for their own settings at their own listener; one that does not tell them is an error of its own."""

import socket
import threading

import pytest
from fake_brokers import SILENCE, FakeCluster
from snapshot_taking import failed, rows, snapshot_taker, voters  # noqa: F401  (a fixture)

from kafka_audit.cluster import controllers
from kafka_audit.collect.config_keys import CONTROLLER_KEYS

CONTROLLER = 9
DENIED = 31


@pytest.fixture(name="fake")
def fake_cluster():
    """Three brokers and, at an address of its own, a controller that no Metadata lists."""
    with FakeCluster((1, 2, 3, CONTROLLER)) as cluster:
        voters(cluster, CONTROLLER, listeners={CONTROLLER: [("CONTROLLER", "127.0.0.1", cluster.ports[CONTROLLER])]})

        def metadata(broker_id, request):
            response = cluster._Metadata(broker_id, request)
            response.brokers = [broker for broker in response.brokers if broker.node_id != CONTROLLER]
            return response

        cluster.answers["Metadata"] = metadata
        yield cluster


def of_the_controller(fake, answer):
    fake.answers["DescribeConfigs"] = lambda node, request: (
        answer(request) if node == CONTROLLER else FakeCluster._DescribeConfigs(fake, node, request)
    )


def test_a_controllers_settings_come_from_the_controller_itself(fake, take):
    def unclean(request):
        response = FakeCluster._DescribeConfigs(fake, CONTROLLER, request)
        (config,) = response.results[0].configs
        config.name, config.value, config.config_source = "unclean.leader.election.enable", "true", 4
        return response

    of_the_controller(fake, unclean)
    result = take()

    (row,) = rows(result, "controller_configs")
    assert (row["controller_id"], row["name"], row["value"]) == (CONTROLLER, "unclean.leader.election.enable", "true")
    assert row["source"] == "STATIC_BROKER_CONFIG"
    assert failed(result, "controller_configs") == []
    (asked,) = [request for node, request in fake.received if node == CONTROLLER and type(request).__name__ == "DescribeConfigsRequest"]
    assert [(one.resource_type, one.resource_name, set(one.configuration_keys)) for one in asked.resources] == [(4, "9", CONTROLLER_KEYS)]
    assert {type(request).__name__ for node, request in fake.received if node == CONTROLLER} <= {
        "ApiVersionsRequest",
        "DescribeConfigsRequest",
    }
    assert result.requests["DescribeConfigs", CONTROLLER] == 1


def test_voters_that_are_brokers_are_not_asked_as_controllers(fake, take):
    voters(fake, 1, 2, 3)
    result = take()

    assert rows(result, "controller_configs") == failed(result, "controller_configs") == []
    assert fake.asked("DescribeConfigs") == {1: 1, 2: 1, 3: 1}


def test_a_controller_whose_address_no_broker_tells_is_an_error(fake, take):
    voters(fake, CONTROLLER)
    result = take()

    assert rows(result, "controller_configs") == []
    assert failed(result, "controller_configs") == [(CONTROLLER, None, None, None, "UNSUPPORTED_VERSION")]
    assert CONTROLLER not in fake.asked("DescribeConfigs")


def test_a_controller_that_refuses_is_an_error_and_says_nothing_of_the_brokers(fake, take):
    def refuse(request):
        response = FakeCluster._DescribeConfigs(fake, CONTROLLER, request)
        response.results[0].error_code, response.results[0].configs = DENIED, []
        return response

    of_the_controller(fake, refuse)
    result = take()

    assert failed(result, "controller_configs") == [(CONTROLLER, None, None, None, "CLUSTER_AUTHORIZATION_FAILED")]
    assert failed(result, "broker_configs") == []
    assert result.manifest["capabilities"]["DescribeConfigs"] == "allowed"


def test_a_controller_that_stays_silent_is_asked_once_and_costs_no_broker_its_answer(fake, take, monkeypatch):
    monkeypatch.setattr(controllers, "_ALL_SECONDS", 1.0)
    monkeypatch.setattr(controllers, "_LEAST_SECONDS", 0.1)
    of_the_controller(fake, lambda request: SILENCE)
    result = take()

    assert failed(result, "controller_configs") == [(CONTROLLER, None, None, None, "REQUEST_TIMED_OUT")]
    assert [row["answered"] for row in rows(result, "brokers")] == [True] * 3
    assert fake.asked("DescribeConfigs")[CONTROLLER] == 1


def test_each_of_several_controllers_has_its_own_row_or_error(fake, take):
    with closed_port() as port:
        voters(
            fake,
            CONTROLLER,
            10,
            11,
            listeners={CONTROLLER: [("CONTROLLER", "127.0.0.1", fake.ports[CONTROLLER])], 10: [("CONTROLLER", "127.0.0.1", port)]},
        )
        result = take()

    assert {row["controller_id"] for row in rows(result, "controller_configs")} == {CONTROLLER}
    errors = [(row[0], row[4]) for row in failed(result, "controller_configs")]
    assert errors == [(10, "BROKER_NOT_AVAILABLE"), (11, "UNSUPPORTED_VERSION")]
    (said,) = [row["message"] for row in rows(result, "errors") if row["broker_id"] == 10]
    assert said.startswith("controller 10 cannot be reached")
    assert f"(listener CONTROLLER at 127.0.0.1:{port})" in said


class closed_port:
    """A port where nobody listens, for as long as the block lasts."""

    def __enter__(self):
        self.taken = socket.socket()
        self.taken.bind(("127.0.0.1", 0))
        return self.taken.getsockname()[1]

    def __exit__(self, *_):
        self.taken.close()


@pytest.mark.parametrize("slow", [False, True])
def test_a_controller_whose_name_is_not_known_here_does_not_hold_up_the_snapshot(fake, take, monkeypatch, slow):
    whole, released = socket.getaddrinfo, threading.Event()

    def resolve(host, *arguments, **named):
        if host != "controller.internal":
            return whole(host, *arguments, **named)
        if slow:
            released.wait(60)
        raise socket.gaierror("not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(controllers, "_ALL_SECONDS", 0.3)
    monkeypatch.setattr(controllers, "_LEAST_SECONDS", 0.2)
    voters(fake, CONTROLLER, listeners={CONTROLLER: [("CONTROLLER", "controller.internal", 9093)]})
    result = take()
    released.set()

    assert failed(result, "controller_configs") == [(CONTROLLER, None, None, None, "BROKER_NOT_AVAILABLE")]
    (said,) = [row["message"] for row in rows(result, "errors") if row["broker_id"] == CONTROLLER]
    assert "was not resolved in time" in said if slow else "has no address here" in said


def test_of_several_listeners_the_one_that_is_named_after_the_connections_protocol_is_asked(fake, take):
    address = ("127.0.0.1", fake.ports[CONTROLLER])
    voters(fake, CONTROLLER, listeners={CONTROLLER: [("CONTROLLER", "127.0.0.1", 1), ("PLAINTEXT", *address)]})

    assert {row["controller_id"] for row in rows(take(), "controller_configs")} == {CONTROLLER}
