"""Client and connection files that are malformed, slow to read, not regular files, or outside their folder."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from input_files import CLIENTS, CONTROL, POLICY, VALID, changed, load, written
from test_policy import SLAS, TIERS
from test_policy_fit import CLIENT

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.clients.files import read_clients
from kafka_audit.cluster.connection_file import read_keys
from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.yaml_file import load_yaml
from kafka_audit.policy import load_policy

BAD_JSON = {
    "deep lists": b'{"bootstrap.servers": ' + b"[" * 200_000,
    "deep lists that end": b'{"bootstrap.servers": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "5,000 digits": b'{"request.timeout.ms": ' + b"9" * 5000 + b"}",
    "a key twice": b'{"client.id": "a", "client.id": "b"}',
    "a megabyte": b" " * 1_000_001,
    "no UTF-8": b'{"a": "\xff"}',
    "no number": b'{"request.timeout.ms": NaN}',
    "half a character": b'{"bootstrap.servers": "\\ud800:1"}',
}
LONG = "x" * 5000
BAD_CONNECTION = {
    "a number of 5,000 digits": {"request.timeout.ms": "9" * 5000},
    "a number beyond librdkafka's": {"request.timeout.ms": "2147483648"},
    "digits of another script": {"request.timeout.ms": "\N{ARABIC-INDIC DIGIT FIVE}"},
    "a power for a port": {"bootstrap.servers": "b:\N{SUPERSCRIPT TWO}"},
    "a port of 5,000 digits": {"bootstrap.servers": f"b:{'9' * 5000}"},
    "a file name of 5,000 characters": {"security.protocol": "SSL", "ssl.ca.location": LONG},
    "a file name with a NUL": {"security.protocol": "SSL", "ssl.ca.location": "a\0b"},
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_malformed_json_is_refused(tmp_path: Path, case: str) -> None:
    began = time.process_time()
    refusal = load(tmp_path, "connection.json", BAD_JSON[case])

    assert refusal is not None and "connection.json" in refusal
    assert time.process_time() - began < 1


@pytest.mark.parametrize("case", BAD_CONNECTION)
def test_a_connections_value_that_cannot_be_is_refused_and_not_repeated_at_length(tmp_path: Path, case: str) -> None:
    refusal = load(tmp_path, "connection.json", json.dumps({**VALID["connection.json"], **BAD_CONNECTION[case]}).encode())

    assert refusal is not None and next(reversed(BAD_CONNECTION[case])) in refusal


SLOW_CLIENTS = {
    "a bracket and spaces": b"[" + b" " * 900_000,
    "spaces": b"acks" + b" " * 900_000,
    "a name of a megabyte": b"x" * 900_000 + b"=1\nacks=1",
    "brackets of Spring": b"spring.kafka.properties[" * 40_000 + b"=1\nacks=1",
    "names of Spring": b"\n".join(b"spring.kafka.properties.x%d=1" % n for n in range(30_000)),
    "backslashes": b"\\" * 900_000,
    "continued lines": b"acks=\\\n" * 100_000,
    "long continued lines": (b"acks=" + b"x" * 20_000 + b"\\\n") * 45,
    "continued lines with form feeds": b"k=" + b"a\x0c\\\n" * 20_000,
    "continued lines with line separators": b"k=" + "a\u2028\\\n".encode() * 20_000,
    "many continued values": (b"acks=" + b"x\\\n" * 45 + b"\n") * 4_000,
    "numbers of 5,000 digits": b"acks=1\nlinger.ms=" + b"9" * 5000 + b"\nspring.kafka.consumer.heartbeat-interval=" + b"9" * 5000 + b"s",
    "a fraction of 5,000 digits": b"queue.buffering.max.messages=1\nlinger.ms=" + b"9" * 5000 + b".5",
    "unknown names": b"acks=1\n" + b"\n".join(b"a%d" % n * 30 + b"=1" for n in range(5_000)),
}


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("case", SLOW_CLIENTS)
def test_no_client_file_takes_long(tmp_path: Path, name: str, case: str) -> None:
    began = time.process_time()
    load(tmp_path, name, SLOW_CLIENTS[case])

    assert time.process_time() - began < 3


@pytest.mark.parametrize("name", ["tiers.yaml", "x.properties", "connection.yaml"])
@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a device"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    load_it = {"tiers.yaml": load_yaml, "x.properties": read_clients, "connection.yaml": read_keys}[name]
    if name == "x.properties" and kind == "a folder":
        assert read_clients(path).clients == ()
        return
    with pytest.raises(ConfigurationError, match=r"is not a regular file|cannot be read|does not exist"):
        load_it(path)


@pytest.mark.parametrize("where", ["/etc/passwd", "../secret.properties", "link.properties", "linked/secret.properties", "a\0b"])
def test_a_settings_file_outside_of_the_policys_folder_is_refused_and_not_read(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "policy"
    folder.mkdir()
    (tmp_path / "secret.properties").write_text("acks=secret-value\n")
    (folder / "link.properties").symlink_to(tmp_path / "secret.properties")
    (folder / "linked").symlink_to(tmp_path)
    refusal = load(folder, "clients.yaml", written("clients.yaml", {"version": 1, "clients": [{**CLIENT, "settings_file": where}]}))

    assert refusal is not None and "clients.billing.settings_file: " in refusal
    assert "lies outside of the folder" in refusal or "NUL" in refusal
    assert "secret-value" not in refusal


@pytest.mark.parametrize(("name", "linked"), [*((name, "the file") for name in (*POLICY, CONTROL)), ("frameworks/fw.yaml", "its folder")])
def test_a_policy_or_control_file_that_is_a_link_out_of_its_folder_is_refused_and_not_read(tmp_path: Path, name: str, linked: str) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "folder"
    secret.mkdir()
    (secret / "token").write_text("s3cr3t\n")
    (secret / Path(name).name).write_text("s3cr3t\n")
    for each, text in {"tiers.yaml": TIERS, "slas.yaml": SLAS}.items() if name in POLICY else ():
        (folder / each).parent.mkdir(exist_ok=True)
        (folder / each).write_text(text)
    if linked == "its folder":
        (folder / "frameworks").symlink_to(secret)
    else:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(secret / "token")
    with pytest.raises(ConfigurationError) as problem:
        load_policy(folder) if name in POLICY else load_catalogue([folder])
    assert f"{folder / name}: lies outside of the folder" in str(problem.value)
    assert "s3cr3t" not in str(problem.value)


def test_files_that_are_links_within_their_folder_are_read_as_kubernetes_mounts_them(tmp_path: Path) -> None:
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..data").symlink_to("..2026")
    for name, text in {"tiers.yaml": TIERS, "slas.yaml": SLAS}.items():
        (tmp_path / "..2026" / name).write_text(text)
        (tmp_path / name).symlink_to(f"..data/{name}")
    assert load_policy(tmp_path).tiers


def test_the_command_ends_with_two_and_one_line_for_an_impossible_date(tmp_path: Path) -> None:
    for name, raw in {"tiers.yaml": TIERS.encode(), "slas.yaml": SLAS.encode()}.items():
        (tmp_path / name).write_bytes(raw)
    bad = changed(VALID["waivers.yaml"], ("waivers", 0, "expires"), "2026-02-30")
    (tmp_path / "waivers.yaml").write_text(yaml.safe_dump(bad).replace("'2026-02-30'", "2026-02-30"))
    command = [str(Path(sys.executable).with_name("kafka-audit")), "policy", "check", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2, done.stderr
    assert "waivers.yaml: waivers.0.expires: " in done.stderr and "Traceback" not in done.stderr
