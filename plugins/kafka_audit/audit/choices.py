"""The folders that a trigger form can offer as policy and as controls; found while Airflow reads a DAG file, so within tight limits."""

import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kafka_audit.audit.installation import (
    CONTROLS_VARIABLE,
    FOLDERS_VARIABLE,
    POLICY_VARIABLE,
    control_folders,
    open_folders,
    policy_folder,
)
from kafka_audit.errors import ConfigurationError
from kafka_audit.safe_text import is_invisible

MOST_LOOKED_AT = 200
"""Folders that are looked at, those of KAFKA_AUDIT_FOLDERS included."""
MOST_ENTRIES = 500
"""Entries of one folder that are looked at."""
MOST_OFFERED = 40
_DEEPEST = 3
_MOST_BYTES = 65_536
_POLICY_FILES = frozenset({"tiers.yaml", "slas.yaml"})
_RULE = re.compile(r"^pass_when:", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Absolute paths in order. ``notes``: what was not looked at or could not be read, in sentences."""

    policies: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def offered_choices() -> Choices:
    """The folders of policies and controls below ``KAFKA_AUDIT_FOLDERS``, and the installation's own.

    A form is made for each cluster and kind of run: within one process and for the same settings, folders are looked at once. Never an
    error: an installation whose settings are wrong gets a note here, and the error when a run is checked.
    """
    return _offered(*(os.environ.get(name) for name in (FOLDERS_VARIABLE, POLICY_VARIABLE, CONTROLS_VARIABLE)))


@lru_cache(maxsize=1)
def _offered(*_settings: str | None) -> Choices:
    try:
        own_policy, own_controls, tops = policy_folder(), control_folders(), open_folders()
    except ConfigurationError as problem:
        return Choices(notes=(f"No folders are listed: {problem}.",))
    return find_choices(tops, [own_policy] if own_policy else [], own_controls)


def find_choices(tops: Sequence[Path], own_policies: Sequence[Path] = (), own_controls: Sequence[Path] = ()) -> Choices:
    """What lies in ``tops`` and up to three folders below, never behind a link; ``own_*`` are offered whatever they contain."""
    policies, controls, notes = list(map(str, own_policies)), list(map(str, own_controls)), []
    waiting = [(top, 0) for top in tops]
    looked_at = 0
    while waiting:
        if looked_at == MOST_LOOKED_AT:
            notes.append(f"Only the first {MOST_LOOKED_AT} folders were looked at; any other folder can be typed.")
            break
        folder, depth = waiting.pop(0)
        looked_at += 1
        try:
            files, folders, cut = _entries(folder)
        except OSError as problem:
            notes.append(f"`{_plain(str(folder))}` could not be read ({problem.strerror}).")
            continue
        if cut:
            notes.append(f"Only the first {MOST_ENTRIES} entries of `{_plain(str(folder))}` were looked at.")
        if not _is_offerable(str(folder)):
            notes.append(f"`{_plain(str(folder))}` and what is in it are not offered: the name has a character that this form cannot show.")
            continue
        if files.keys() >= _POLICY_FILES:
            policies.append(str(folder))
            continue  # what is in a policy folder belongs to the policy
        if "," not in str(folder) and _has_controls(files):
            controls.append(str(folder))
        if depth < _DEEPEST:
            waiting += [(below, depth + 1) for below in folders]
    return Choices(
        policies=_first(policies, "policies", notes), controls=_first(controls, "folders of controls", notes), notes=tuple(notes)
    )


def _entries(folder: Path) -> tuple[dict[str, Path], list[Path], bool]:
    """(YAML files by name, folders, whether there is more), each in order and without links and hidden names."""
    with os.scandir(folder) as scanned:
        found = list(itertools.islice(scanned, MOST_ENTRIES + 1))
    shown = sorted((one for one in found[:MOST_ENTRIES] if not one.name.startswith(".")), key=lambda one: one.name)
    files = {one.name: Path(one.path) for one in shown if one.name.endswith(".yaml") and one.is_file(follow_symlinks=False)}
    return files, [Path(one.path) for one in shown if one.is_dir(follow_symlinks=False)], len(found) > MOST_ENTRIES


def _has_controls(files: dict[str, Path]) -> bool:
    """Whether the first of the YAML files is a control: it has a rule. An unreadable one is none."""
    first = next(iter(files.values()), None)
    if first is None:
        return False
    try:
        with first.open("rb") as stream:
            return _RULE.search(stream.read(_MOST_BYTES).decode("utf-8", "replace")) is not None
    except OSError:
        return False


def _is_offerable(path: str) -> bool:
    return path.isprintable() and "`" not in path and not any(map(is_invisible, path))


def _plain(path: str) -> str:
    """The path without what would end its code span or be invisible."""
    return "".join("?" if not _is_offerable(character) else character for character in path)


def _first(found: list[str], noun: str, notes: list[str]) -> tuple[str, ...]:
    """Each once and in order; ``notes`` gets a sentence when there are more than 40."""
    once = list(dict.fromkeys(found))
    if len(once) > MOST_OFFERED:
        notes.append(f"{len(once)} {noun} were found and {MOST_OFFERED} are offered; any other can be typed.")
    return tuple(once[:MOST_OFFERED])
