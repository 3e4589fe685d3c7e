"""No line of a private key in a file of client settings is shown: neither as the name of a setting nor in a refusal."""

from pathlib import Path

import pytest
from test_clients_settings import producer

from kafka_audit.clients.declared import settings_row
from kafka_audit.clients.files import read_clients
from kafka_audit.clients.settings import unknown_settings
from kafka_audit.errors import ConfigurationError

LINES = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "q2/Xn+abcDEF012=", "mgEAAoIBAQ==")
BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"


def client_file(folder: Path, *lines: str, name: str = "a.properties", end: str = "\n") -> Path:
    (folder / name).write_bytes((end.join(("acks=all", "linger.ms=5", *lines)) + end).encode())
    return folder / name


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (("ssl.keystore.key=" + BEGIN, *LINES, END), 7),
        (("ssl.keystore.key=\\", "  " + BEGIN, *LINES, "  " + END), 8),
        ((BEGIN, *LINES, END), 3),
        (("# the key", "", "ssl.keystore.key=", BEGIN), 6),
    ],
)
def test_a_key_whose_lines_stand_alone_is_refused_with_its_line(tmp_path: Path, lines: tuple[str, ...], number: int, end: str) -> None:
    path = client_file(tmp_path, *lines, end=end)
    with pytest.raises(ConfigurationError) as refused:
        read_clients(path)
    said = str(refused.value)
    assert refused.value.exit_code == 2
    assert f"{path} line {number}: begins with BEGIN or END of a key or certificate" in said
    assert "leave the setting out, or write the whole value in one line" in said
    assert not [line for line in (*LINES, "PRIVATE") if line in said]


def test_so_is_one_in_a_file_of_librdkafka(tmp_path: Path) -> None:
    path = client_file(tmp_path, "ssl.key.pem=" + BEGIN, LINES[2], END, name="a.conf")
    with pytest.raises(ConfigurationError, match=r"a\.conf line 5: begins with BEGIN or END") as refused:
        read_clients(path)
    assert LINES[2] not in str(refused.value)


@pytest.mark.parametrize(
    "lines",
    [
        ("ssl.keystore.key=" + "\\n".join((BEGIN, *LINES, END)),),
        ("ssl.keystore.key=" + BEGIN + "\\", *(line + "\\" for line in LINES), END),
        ("ssl.keystore.key=${KEY}", "# " + BEGIN, "# " + END),
    ],
)
def test_a_key_that_is_one_value_is_a_setting_like_any_other(tmp_path: Path, lines: tuple[str, ...]) -> None:
    (found,) = read_clients(client_file(tmp_path, *lines)).clients
    assert set(found.settings) == {"acks", "linger.ms", "ssl.keystore.key"}
    assert not [line for line in LINES if line in repr(found)]


def test_the_rest_of_a_key_without_its_end_is_counted_and_not_shown(tmp_path: Path) -> None:
    (found,) = read_clients(client_file(tmp_path, "ssl.keystore.key=" + BEGIN, *LINES, "ack=1")).clients
    assert unknown_settings(found) == ["ack (acks?)", "3 names that do not look like settings"]
    row = settings_row(found, source="a.properties")
    assert row["declaration"].endswith("settings it does not have: ack (acks?), 3 names that do not look like settings")
    assert not [line for line in LINES if line[:12] in repr(row)]


@pytest.mark.parametrize("name", ["MIIEvQ", "q2/Xn", "1.of.digits", "-dash", "with space", "ünknown", "a" * 81, 'password="hunter2";'])
def test_a_name_that_does_not_look_like_one_is_counted(name: str) -> None:
    assert unknown_settings(producer({name: "x"})) == ["1 name that does not look like a setting"]


@pytest.mark.parametrize("name", ["ack", "schema.registry.url", "my_setting-2", "a" * 80])
def test_a_name_that_looks_like_one_is_shown(name: str) -> None:
    (shown,) = unknown_settings(producer({name: "x"}))
    assert shown.startswith(name)


def test_twenty_names_are_shown_beside_those_that_are_counted() -> None:
    shown = unknown_settings(producer({f"x{number:02}": "x" for number in range(30)} | {"A": 1, "B": 2}))
    assert (len(shown), shown[0], shown[-1]) == (21, "x00", "2 names that do not look like settings")
