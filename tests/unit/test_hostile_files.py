"""Whatever stands in a policy, control, client or connection file: it is loaded, or refused in one error with exit code 2, soon."""

import json
import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_catalogue import GOOD
from test_policy import SLAS, TIERS
from test_policy_fit import AT, CLIENT, FRAMEWORK, WAIVER

from kafka_audit.catalogue import Catalogue, load_catalogue
from kafka_audit.clients import effective, start_problems, unknown_settings
from kafka_audit.clients.files import read_clients
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy, load_yaml
from kafka_audit.policy.fit import check_dates, check_policy

POLICY = ("tiers.yaml", "slas.yaml", "clients.yaml", "waivers.yaml", "frameworks/fw.yaml")
CONTROL = "isr_is_whole.yaml"
CLIENTS = ("x.properties", "x.conf")
CONNECTION = ("connection.properties", "connection.json", "connection.yaml")
FILES = (*POLICY, CONTROL, *CLIENTS, *CONNECTION)
YAML_FILES = (*POLICY, CONTROL, "connection.yaml")

VALID: dict[str, Any] = {
    "tiers.yaml": {
        **yaml.safe_load(TIERS),
        "topics": [{"pattern": "pay*", "tier": "no_loss", "unique_keys": True}],
        "groups": [{"pattern": "g[0-9]*", "owner": "Ada"}],
        "declared_topics": ["orders"],
        "history": {"interval_seconds": 3600, "offsets": {"keep_days": 7}},
    },
    "slas.yaml": {
        "version": 1,
        "groups": [
            {
                "pattern": "*",
                "topics": "a*",
                "name": "default",
                "max_lag_seconds": 10,
                "breach": {"samples": 1, "of": 2},
                "availability": {"target_percent": 99.5},
                "quiet_hours": [{"days": ["mon"], "from": "22:00", "to": "06:00", "timezone": "Europe/Berlin"}],
            }
        ],
    },
    "clients.yaml": {"version": 1, "clients": [{**CLIENT, "settings": {"acks": 1, "linger.ms": "5"}}]},
    "waivers.yaml": {"version": 1, "waivers": [WAIVER]},
    "frameworks/fw.yaml": FRAMEWORK,
    CONTROL: GOOD,
    "x.properties": {
        "acks": "1",
        "linger.ms": "5",
        "spring.kafka.consumer.heartbeat-interval": "3s",
        "spring.kafka.properties[acks]": "all",
    },
    "x.conf": {"acks": "1", "enable.idempotence": "true", "message.timeout.ms": "100"},
    "connection.properties": {"bootstrap.servers": "b:9092", "client.id": "a", "request.timeout.ms": "100"},
}
VALID |= dict.fromkeys(CONNECTION, VALID["connection.properties"])


def written(name: str, value: object) -> bytes:
    """A valid file's value, or what became of it, in the file's own format."""
    if name.endswith(".yaml"):
        return yaml.safe_dump(value, allow_unicode=True).encode()
    if name.endswith(".json"):
        return json.dumps(value).encode()
    return "\n".join(f"{key}={text}" for key, text in value.items()).encode() if isinstance(value, dict) else str(value).encode()


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


def load(folder: Path, name: str, raw: bytes) -> str | None:
    """Load the file with the function that the product uses; the refusal's text, or None when it was taken."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "frameworks").mkdir(exist_ok=True)
    policy = {"tiers.yaml": TIERS.encode(), "slas.yaml": SLAS.encode()} if name in POLICY else {}
    for each, content in {**policy, name: raw}.items():
        (folder / each).write_bytes(content)
    try:
        if name in POLICY:
            policy_read = load_policy(folder)
            check_policy(policy_read, catalogue())
            check_dates(policy_read, AT)
        elif name == CONTROL:
            (folder / "frameworks").rmdir()
            load_catalogue([folder])
        elif name in CLIENTS:
            for client in read_clients(folder / name).clients:
                effective(client), unknown_settings(client), start_problems(client)
        else:
            ConnectionSettings.from_file(folder / name)
    except ConfigurationError as problem:
        return str(problem)
    finally:
        for each in {*policy, name}:
            (folder / each).unlink()
    return None


@pytest.mark.parametrize("name", FILES)
def test_the_files_that_are_damaged_here_are_valid_before(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, name, written(name, VALID[name])) is None


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, 10)
)
MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}], k{n}: 1}}\n" for n in range(1, 10))
BAD_YAML = {
    "a template's braces": (b"version: 1\nx: {{ x }}\n", "line 2"),
    "a list as a key": (b"version: 1\n? [a]\n: 1\n", "line 2"),
    "a mapping as a key": (b"version: 1\n? {a: 1}\n: 1\n", "line 2"),
    "deep lists": (b"x: " + b"[" * 100_000, "more than 50"),
    "deep mappings": (b"x: " + b"{a: " * 100_000, "more than 50"),
    "deep blocks": ("".join(" " * n + "a:\n" for n in range(1000)).encode(), "more than 50"),
    "deep lists in a line": (b"- " * 100_000, "more than 50"),
    "5,000 digits": (b"version: " + b"9" * 5000, "64 bits"),
    "20 digits": (b"version: -99999999999999999999", "64 bits"),
    "2**63": (b"version: 9223372036854775808", "64 bits"),
    "an infinite exponent": (b"version: 1.0e+999", "64 bits"),
    "aliases that multiply": (BOMB.encode(), "repetitions counted"),
    "merges that multiply": (MERGES.encode(), "repetitions counted"),
    "an alias inside of what it names": (b"version: 1\nx: &a [*a]\n", "line 2"),
    "a merge inside of what it names": (b"version: 1\nx: &a {<<: *a}\n", "line 2"),
    "an alias of nothing": (b"version: 1\nx: *a\n", "line 2"),
    "a merge of a text": (b"version: 1\n<<: x\n", "line 2"),
    "a key twice": (b"version: 1\nversion: 1\n", "line 2"),
    "two documents": (b"version: 1\n---\nversion: 1\n", "line 2"),
    "a tag of Python": (b"x: !!python/object/apply:os.system [id]\n", "tag"),
    "a tag of YAML": (b"x: !!int abc\n", "tag"),
    "a date's tag": (b"x: !!timestamp soon\n", "tag"),
    "a tag of nobody": (b"x: !y z\n", "tag"),
    "a NUL": (b"version: 1\nx: a\0b\n", ""),
    "control characters": (b"version: 1\nx: \x1b[31m\n", ""),
    "bytes that are no UTF-8": (b"version: 1\nx: \xff\xfe\n", ""),
    "a tab that indents": (b"version: 1\nx:\n\ty: 1\n", "line 3"),
    "an unfinished list": (b"version: [1\n", "line"),
    "a megabyte": (b"# " + b"x" * 1_000_000, "1,000,000 bytes"),
    "300,000 values": (b"x: [" + b"1," * 300_000 + b"]", "100,000 values"),
    "nothing": (b"", ""),
    "a text": (b"version", ""),
    "a key of no text": (b"1: 2\n", ""),
    "a byte order mark and a list": (b"\xef\xbb\xbf- a\n", ""),
}


@pytest.mark.parametrize("name", YAML_FILES)
@pytest.mark.parametrize("case", BAD_YAML)
def test_malformed_yaml_is_refused_within_a_second_with_its_file_and_place(tmp_path: Path, name: str, case: str) -> None:
    raw, place = BAD_YAML[case]
    began = time.process_time()
    refusal = load(tmp_path, name, raw)

    assert time.process_time() - began < 1
    assert refusal is not None and name in refusal
    assert len(refusal) < 20_000 and "\x1b" not in refusal
    if name != "connection.yaml":  # whose lines may hold a password, so that only the place is told
        assert place in refusal


VALUES = {
    "a day that is none": ("waivers.yaml", ("waivers", 0, "expires"), "2026-02-30", "waivers.0.expires"),
    "a month that is none": ("waivers.yaml", ("waivers", 0, "approved_on"), "2026-13-01", "waivers.0.approved_on"),
    "a number for a date": ("waivers.yaml", ("waivers", 0, "approved_on"), 20260101, "is no date: write it like 2026-12-31"),
    "a date for a name": ("waivers.yaml", ("waivers", 0, "owner"), None, "waivers.0.owner"),
    "a day beyond the calendar": ("clients.yaml", ("clients", 0, "declared_on"), "99999-01-01", "clients.0.declared_on"),
    "a limit that milliseconds cannot hold": ("slas.yaml", ("groups", 0, "max_lag_seconds"), 2**31, "groups.0.max_lag_seconds"),
    "more days than there are": ("tiers.yaml", ("history", "offsets", "keep_days"), 2**62, "history.offsets.keep_days"),
    "more replicas than Kafka counts": ("tiers.yaml", ("tiers", "no_loss", "replication_factor"), 2**31, "replication_factor"),
    "a pattern of two thousand characters": ("tiers.yaml", ("topics", 0, "pattern"), "[" * 2000, "topics.0.pattern"),
    "two thousand rules": ("tiers.yaml", ("topics",), [{"pattern": f"t{n}"} for n in range(2000)], "topics"),
    "a key with a line break": ("tiers.yaml", ("a\n\x1b[31mb",), 1, "a\\n\\u001b[31mb"),
}


def changed(value: Any, path: tuple[Any, ...], new: object) -> Any:
    """A copy of nested lists and mappings with another value at a place."""
    if not path:
        return new
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = changed(copy[path[0]] if isinstance(value, list) else copy.get(path[0], {}), path[1:], new)
    return copy


@pytest.mark.parametrize("case", VALUES)
def test_a_value_that_cannot_be_is_refused_with_file_and_field(tmp_path: Path, case: str) -> None:
    name, path, new, field = VALUES[case]
    refusal = load(tmp_path, name, written(name, changed(VALID[name], path, new)))

    assert refusal is not None and f"{name}: " in refusal
    assert field in refusal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("012", "012"),
        ("1:30", "1:30"),
        ("1:30.5", "1:30.5"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("2026-01-31", "2026-01-31"),
        ("2026-02-30", "2026-02-30"),
        (".nan", ".nan"),
        ("-.inf", "-.inf"),
        ("=", "="),
        ("<", "<"),
        ("-", [None]),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("-12", -12),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("'12'", "12"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_plain_value_is_what_it_looks_like(tmp_path: Path, text: str, value: object) -> None:
    (tmp_path / "x.yaml").write_text(f"x: {text}\n" if text != "-" else "x:\n  -\n")
    found = load_yaml(tmp_path / "x.yaml")[0]["x"]

    assert found == value and type(found) is type(value)


def test_anchors_and_merges_of_a_usual_size_are_kept(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a, *a]\n")

    assert load_yaml(tmp_path / "x.yaml")[0] == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": [{"x": 1, "y": 2}] * 2}


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
    load_it = {"tiers.yaml": load_yaml, "x.properties": read_clients, "connection.yaml": ConnectionSettings.from_file}[name]
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
    assert "lies outside of the policy's folder" in refusal or "NUL" in refusal
    assert "secret-value" not in refusal


def test_the_command_ends_with_two_and_one_line_for_an_impossible_date(tmp_path: Path) -> None:
    for name, raw in {"tiers.yaml": TIERS.encode(), "slas.yaml": SLAS.encode()}.items():
        (tmp_path / name).write_bytes(raw)
    bad = changed(VALID["waivers.yaml"], ("waivers", 0, "expires"), "2026-02-30")
    (tmp_path / "waivers.yaml").write_text(yaml.safe_dump(bad).replace("'2026-02-30'", "2026-02-30"))
    command = [str(Path(sys.executable).with_name("kafka-audit")), "policy", "check", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2, done.stderr
    assert "waivers.yaml: waivers.0.expires: " in done.stderr and "Traceback" not in done.stderr


# Generated garbage. The same examples in every run, so that a failure can be repeated.
_BOUNDED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_STRANGE = [
    "",
    "*",
    "[",
    "{{ x }}",
    "\0",
    "\x1b[31m",
    "\u202e",
    "no",
    "1:30",
    "2026-02-30",
    "9" * 400,
    "-1",
    "1e999",
    "../x",
    "/etc/passwd",
    "x" * 3000,
]
_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(_STRANGE)
    | st.text(max_size=20)
    | st.dates()
)
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_STRANGE) | st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
_pieces = st.sampled_from(
    [
        *"[]{}:,-?!&*#|>%@`'\"\\=\n\t ",
        "- ",
        ": ",
        "\n  ",
        "<<: *a",
        "&a ",
        "*a",
        "!!int ",
        "---\n",
        "...\n",
        "[[[[",
        "{{ x }}",
        "12345",
        "~",
        "\0",
        "\\u12",
        "\ufeff",
        "acks",
        "version: 1",
    ]
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in nested lists and mappings."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, each in inner for place in places(each, (*at, key)))]


# What stands in the SQL of a control is not garbled here: its own tests do that.
_SQL = ("applies_when", "pass_when", "not_assessed_reason", "observed", "expected")


@pytest.mark.parametrize("name", FILES)
@_BOUNDED
@given(data=st.data())
def test_a_valid_file_with_other_values_in_it_is_loaded_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    value = VALID[name]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([each for each in places(value) if name != CONTROL or not each or each[0] not in _SQL]))
        new = data.draw(_values)
        value = changed(value, place, new) if place else {**value, data.draw(st.text(max_size=8)): new} if isinstance(value, dict) else new
    try:
        raw = written(name, value)
    except (UnicodeEncodeError, yaml.YAMLError, TypeError):  # not every value can be written in every format
        return
    refusal = load(tmp_path, name, raw)

    assert refusal is None or len(refusal) < 100_000


@pytest.mark.parametrize("name", FILES)
@_BOUNDED
@given(data=st.data())
def test_a_valid_file_with_other_characters_in_it_is_loaded_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    text = written(name, VALID[name]).decode()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        text = text[:start] + data.draw(_pieces | st.text(max_size=3)) + text[start + data.draw(st.integers(0, 5)) :]
    load(tmp_path, name, text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("name", FILES)
@_BOUNDED
@given(raw=st.binary(max_size=200) | st.lists(_pieces, max_size=40).map(lambda pieces: "".join(pieces).encode()))
def test_any_bytes_are_loaded_or_refused(tmp_path: Path, name: str, raw: bytes) -> None:
    load(tmp_path, name, raw)
