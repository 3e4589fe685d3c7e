"""A package whose own code is put off gives everything that it would give otherwise, from the first time somebody asks."""

import importlib
import sys

import pytest

from kafka_audit.cli.without_clients import put_clients_off


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "some_broker_client"
    folder.mkdir()
    (folder / "__init__.py").write_text("from some_broker_client.client import Client\n\nruns = globals().get('runs', 0) + 1\n")
    (folder / "client.py").write_text("class Client: ...\n")
    (folder / "wire.py").write_text("frame = 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    put_clients_off(folder.name)
    yield folder.name
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_a_module_of_the_package_is_imported_without_the_packages_own_code(package):
    assert importlib.import_module(f"{package}.wire").frame == 4
    assert f"{package}.client" not in sys.modules


def test_asking_for_a_name_of_the_package_runs_its_code_once(package):
    loaded = importlib.import_module(package)

    assert loaded.Client is importlib.import_module(f"{package}.client").Client
    with pytest.raises(AttributeError, match="some_broker_client' has no attribute 'Server'"):
        _ = loaded.Server
    assert loaded.runs == 1


def test_a_package_that_is_loaded_stays_as_it_is_and_one_that_is_missing_stays_missing():
    put_clients_off("json")
    put_clients_off("no_such_package")

    assert sys.modules["json"].dumps(1) == "1"
    assert "no_such_package" not in sys.modules


def test_kafka_pythons_clients_are_there_for_whoever_asks():
    import kafka

    importlib.import_module("kafka_audit.cluster.bootstrap")

    assert kafka.KafkaConsumer is importlib.import_module("kafka.consumer").KafkaConsumer
    assert kafka.__version__
