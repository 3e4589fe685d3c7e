"""Every generated policy, control, client or connection file is either loaded or refused with one error and exit code 2."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from input_files import CONTROL, FILES, VALID, changed, load, written

# The same examples in every run, so that a failure can be repeated.
_BOUNDED = settings(
    max_examples=25,
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
