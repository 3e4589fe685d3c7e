"""The settings that an Airflow process of this project reads from its environment: folders, retries and time limits."""

import math
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from kafka_audit.errors import ConfigurationError
from kafka_audit.store.mirrors import root_folder

ROOT_VARIABLE = "KAFKA_AUDIT_ROOT"
RETRIES_VARIABLE = "KAFKA_AUDIT_SNAPSHOT_RETRIES"
POLICY_VARIABLE = "KAFKA_AUDIT_POLICY"
CONTROLS_VARIABLE = "KAFKA_AUDIT_CONTROLS"
FOLDERS_VARIABLE = "KAFKA_AUDIT_FOLDERS"
START_VARIABLE = "KAFKA_AUDIT_START_WITHIN"
FINISH_VARIABLE = "KAFKA_AUDIT_FINISH_WITHIN"
STALE_VARIABLE = "KAFKA_AUDIT_STALE_HOURS"
POOL_VARIABLE = "KAFKA_AUDIT_POOL"
SHARDS_VARIABLE = "KAFKA_AUDIT_SHARDS"

_START_MINUTES = 30
_FINISH_MINUTES = 90  # half an hour before the run's own time limit ends it
_MOST_MINUTES = 7 * 24 * 60
_STALE_HOURS = 26  # a daily audit and two hours for it to run
_MOST_STALE_HOURS = 10 * 366 * 24
_MOST_SHARDS = 64
_RETRIES = 2
_MOST_RETRIES = 100


def audit_root() -> Path:
    """The folder of all evidence and audits: ``KAFKA_AUDIT_ROOT``, else ``audit-root`` beside ``AIRFLOW_HOME``; of a URL its mirror.

    Every Airflow component that runs or shows audits must see the same folder or URL. ConfigurationError (exit 2) for a URL that cannot
    be used.
    """
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return root_folder(named, ROOT_VARIABLE)
    return Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser().resolve().parent / "audit-root"


def policy_folder() -> Path | None:
    """The installation's policy, that of every run whose Params name none: the folder ``KAFKA_AUDIT_POLICY``, without links.

    None when that is not set: the shipped policy holds. ConfigurationError (exit 2) when it is not the absolute path of a folder.
    """
    return next(iter(_folders(POLICY_VARIABLE, os.environ.get(POLICY_VARIABLE) or "", several=False)), None)


def control_folders() -> tuple[Path, ...]:
    """The installation's own controls, those of every run whose Params name none: the folders ``KAFKA_AUDIT_CONTROLS``, without links.

    Several are separated by the platform's path separator (``:``). ConfigurationError (exit 2) as above.
    """
    found = _folders(CONTROLS_VARIABLE, os.environ.get(CONTROLS_VARIABLE) or "")
    for folder in found:
        if "," in str(folder):
            raise ConfigurationError(
                f"{CONTROLS_VARIABLE}: {folder} holds a comma, which separates folders in the Params of a run: rename it"
            )
    return found


def open_folders() -> tuple[Path, ...]:
    """The folders below which a run's Params may name a policy and controls: ``KAFKA_AUDIT_FOLDERS``, separated as in a PATH.

    ConfigurationError (exit 2) when one is not an absolute path of a folder.
    """
    return _folders(FOLDERS_VARIABLE, os.environ.get(FOLDERS_VARIABLE) or "")


def allowed_folder(name: str, own: Sequence[Path], variable: str) -> Path:
    """The folder of that absolute path, without links, when it is one of ``own`` or lies below one of ``KAFKA_AUDIT_FOLDERS``.

    ``own`` are the installation's defaults, which ``variable`` names. ValueError otherwise. The list is asked before the disk, so that
    the answer for any other path tells nothing about what is there.
    """
    if not Path(name).is_absolute():
        raise ValueError("it is relative; write an absolute path, as it is on the machine that runs the tasks")
    try:
        folder = Path(name).resolve()
    except (OSError, RuntimeError, ValueError):  # a circle of links, a name that is too long, a null character
        folder = None
    opened = open_folders()
    if folder is None or not (folder in own or any(folder.is_relative_to(top) for top in opened)):
        places = [f"below {', '.join(map(str, opened))} ({FOLDERS_VARIABLE})"] if opened else []
        places += [f"{', '.join(map(str, own))} ({variable})"] if own else []
        allowed = f"allowed are folders {' and '.join(places)}" if places else f"neither {FOLDERS_VARIABLE} nor {variable} is set"
        raise ValueError(
            f"this installation does not let a run use that folder; {allowed}. Leave the parameter empty for the installation's own, "
            f"or let {FOLDERS_VARIABLE} name a folder above it in the environment of every Airflow component"
        )
    if not folder.is_dir():
        raise ValueError("there is no such folder on the machine that runs the tasks")
    return folder


def _folders(variable: str, value: str, *, several: bool = True) -> tuple[Path, ...]:
    named = [Path(part) for part in (value.split(os.pathsep) if several else [value]) if part]
    for folder in named:
        if not folder.is_absolute() or not folder.is_dir():
            raise ConfigurationError(f"{variable}: {folder} is not the absolute path of a folder on this machine: correct it or unset it")
    return tuple(folder.resolve() for folder in named)


def snapshot_retries() -> int:
    """How often an unreachable cluster is tried again: ``KAFKA_AUDIT_SNAPSHOT_RETRIES``, else 2.

    ConfigurationError (exit 2) unless it is a whole number from 0 to 100.
    """
    return _whole_number(RETRIES_VARIABLE, _RETRIES, least=0, most=_MOST_RETRIES)


def snapshot_shards() -> int:
    """Over how many tasks a whole snapshot is split: ``KAFKA_AUDIT_SHARDS``, else 1, which splits nothing.

    ConfigurationError (exit 2) unless it is a whole number from 1 to 64.
    """
    return _whole_number(SHARDS_VARIABLE, 1, least=1, most=_MOST_SHARDS)


def _whole_number(variable: str, default: int, *, least: int, most: int) -> int:
    text = (os.environ.get(variable) or str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10) or not least <= int(text) <= most:
        raise ConfigurationError(f"{variable}: {text!r:.40} is not usable: write a whole number from {least} to {most}")
    return int(text)


def start_minutes() -> int:
    """How long an audit may wait in the queue before people are told: ``KAFKA_AUDIT_START_WITHIN`` in minutes, else 30; 0: they are not.

    ConfigurationError (exit 2) unless it is a whole number of minutes, at most 10,080 (a week).
    """
    return _minutes(START_VARIABLE, _START_MINUTES)


def finish_minutes() -> int:
    """How long an audit may take, from the queue on, before people are told: ``KAFKA_AUDIT_FINISH_WITHIN``, else 90; as above."""
    return _minutes(FINISH_VARIABLE, _FINISH_MINUTES)


def _minutes(variable: str, default: int) -> int:
    text = (os.environ.get(variable) or "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text[:6]) > _MOST_MINUTES:
        raise ConfigurationError(f"{variable}: {text!r} is not usable: write whole minutes, at most {_MOST_MINUTES}; 0 switches it off")
    return int(text)


def stale_after() -> timedelta:
    """The age from which an audit and its evidence are stale: ``KAFKA_AUDIT_STALE_HOURS``, else 26 hours.

    ConfigurationError (exit 2) unless it is a number of hours above 0, at most 87,840 (ten years).
    """
    text = os.environ.get(STALE_VARIABLE) or str(_STALE_HOURS)
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not 0 < hours <= _MOST_STALE_HOURS:
        raise ConfigurationError(
            f"{STALE_VARIABLE}: {text!r:.80} is not usable: write a number of hours above 0, at most {_MOST_STALE_HOURS}, or unset it"
        )
    return timedelta(hours=hours)
