"""Malformed YAML and impossible values are refused quickly, with file and place; plain values mean what they look like."""

import time
from pathlib import Path

import pytest
from input_files import FILES, VALID, YAML_FILES, changed, load, written

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.yaml_file import load_yaml


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
    "a number for a date": ("waivers.yaml", ("waivers", 0, "approved_on"), 20260101, "is not a date: write it like 2026-12-31"),
    "a date for a name": ("waivers.yaml", ("waivers", 0, "owner"), None, "waivers.0.owner"),
    "a day beyond the calendar": ("clients.yaml", ("clients", 0, "declared_on"), "99999-01-01", "clients.0.declared_on"),
    "a day of an attestation that is none": (
        "attestations.yaml",
        ("attestations", 0, "attested_on"),
        "2026-02-30",
        "attestations.0.attested_on",
    ),
    "an attested file's name with a NUL": ("attestations.yaml", ("attestations", 0, "file"), "a\0b", "file"),
    "an attested file's name that no disk can hold": (
        "attestations.yaml",
        ("attestations", 0, "file"),
        "x" * 400,
        "attestations.restore-1.file",
    ),
    "an attested file that is a folder": ("attestations.yaml", ("attestations", 0, "file"), "frameworks", "attestations.restore-1.file"),
    "a limit that milliseconds cannot hold": ("slas.yaml", ("groups", 0, "max_lag_seconds"), 2**31, "groups.0.max_lag_seconds"),
    "more days than there are": ("tiers.yaml", ("history", "offsets", "keep_days"), 2**62, "history.offsets.keep_days"),
    "more replicas than Kafka counts": ("tiers.yaml", ("tiers", "no_loss", "replication_factor"), 2**31, "replication_factor"),
    "a pattern of two thousand characters": ("tiers.yaml", ("topics", 0, "pattern"), "[" * 2000, "topics.0.pattern"),
    "two thousand rules": ("tiers.yaml", ("topics",), [{"pattern": f"t{n}"} for n in range(2000)], "topics"),
    "a tier's name with a line break": ("tiers.yaml", ("tiers", "a\n\x1b[31mb"), {}, "a\\n\\u001b[31mb"),
    "a key with a line break": ("tiers.yaml", ("a\n\x1b[31mb",), 1, "a\\n\\u001b[31mb"),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_value_that_cannot_be_is_refused_with_file_and_field(tmp_path: Path, case: str) -> None:
    name, path, new, field = VALUES[case]
    refusal = load(tmp_path, name, written(name, changed(VALID[name], path, new)))

    assert refusal is not None and f"{name}: " in refusal
    assert field in refusal and "\x1b" not in refusal


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


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("version: 1\ntiers:\n\t- name: x\n", "line 3, column 1; indent with spaces: YAML does not allow tabs"),
        ("version: '1'\nversion: 1\n", "keep one: line 2"),
    ],
)
def test_a_message_says_the_line_and_the_fix_without_the_parsers_own_names(text: str, fix: str, tmp_path: Path) -> None:
    path = tmp_path / "tiers.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_yaml(path)
    assert fix in str(caught.value)
    assert "<byte string>" not in str(caught.value)
