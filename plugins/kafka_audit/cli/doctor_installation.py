"""The checks of ``kafka-audit doctor`` that look at this machine: programs, packages, settings, folders. None imports Airflow or Spark."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from kafka_audit.audit.cluster_file import is_schedule
from kafka_audit.audit.clusters import COMMITS_SCHEDULE_VARIABLE, OFFSETS_SCHEDULE_VARIABLE, SCHEDULE_VARIABLE, dag_clusters
from kafka_audit.audit.installation import (
    ROOT_VARIABLE,
    audit_root,
    finish_minutes,
    open_folders,
    snapshot_retries,
    snapshot_shards,
    stale_after,
    start_minutes,
)
from kafka_audit.audit.notification import NOTIFY_VARIABLE, WATCH_SCHEDULE_VARIABLE, notifies, notify_settings
from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.audit.review_settings import review_settings
from kafka_audit.catalogue.load import Catalogue, load_catalogue, shipped_controls
from kafka_audit.errors import AuditError, ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.prerequisites import PYTHON_HELP, installed_java
from kafka_audit.store.mirrors import remote_at
from kafka_audit.store.mirrors import root_folder as mirror_of
from kafka_audit.store.signing_key import signing_key

OK, MISSING, NOT_KNOWN = "ok", "missing", "not known"
_CODECS = {"snappy": "snappy", "lz4": "lz4.frame", "zstd": "zstandard"}
_NEWEST_PYTHON = (3, 13)
_SCHEDULES = (SCHEDULE_VARIABLE, OFFSETS_SCHEDULE_VARIABLE, COMMITS_SCHEDULE_VARIABLE, WATCH_SCHEDULE_VARIABLE)


def _schedule(variable: str) -> None:
    text = os.environ.get(variable, "")
    try:
        if text and not text.startswith("@"):  # Airflow has more presets than the file of clusters may name
            is_schedule(text)
    except ValueError as problem:
        raise ConfigurationError(f"{variable}: {text!r:.80} is not usable: {problem}") from None


_SETTINGS: tuple[Callable[[], object], ...] = (
    open_folders,
    snapshot_retries,
    snapshot_shards,
    start_minutes,
    finish_minutes,
    stale_after,
    review_settings,
    signing_key,
    *(partial(_schedule, variable) for variable in _SCHEDULES),
)
"""What reads the variables that no other check reads."""


@dataclass(frozen=True)
class Check:
    """One line: the name of what was looked at, ``ok``, ``missing`` or ``not known``, what was found, and the fix of what is missing."""

    name: str
    state: str
    detail: str
    fix: str = ""


def programs() -> Iterator[Check]:
    """Python, Java, Spark and its jars, and the libraries of the codecs."""
    python = ".".join(map(str, sys.version_info[:3]))
    recent = (3, 11) <= sys.version_info[:2] <= _NEWEST_PYTHON
    yield Check("Python", OK if recent else MISSING, python, "" if recent else f"Use Python 3.11, 3.12 or 3.13. {PYTHON_HELP}")
    major, problem = installed_java()
    yield Check("Java", MISSING if problem else OK, str(major or "not found"), problem)
    yield _spark()
    for codec, module in _CODECS.items():
        try:
            import_module(module)
        except ImportError as failure:
            yield Check(f"codec {codec}", MISSING, f"{module} cannot be imported ({failure})", "pip install --force-reinstall kafka-audit")
        else:
            yield Check(f"codec {codec}", OK, f"topics compressed with {codec} can be read")


def _spark() -> Check:
    fix = "pip install 'kafka-audit[spark]'"
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        return Check("Spark", MISSING, "pyspark is not installed", fix)
    jars = len(list(Path(found.submodule_search_locations[0], "jars").glob("spark-core_*.jar")))
    if not jars:
        home = os.environ.get("SPARK_HOME")
        if home and any(Path(home, "jars").glob("spark-core_*.jar")):
            return Check("Spark", OK, f"the jars of SPARK_HOME {home}")
        return Check("Spark", MISSING, "pyspark has no jars", fix)
    if _installed("pyspark-client"):
        return Check("Spark", MISSING, "pyspark-client has overwritten files of pyspark", f"pip uninstall pyspark-client pyspark; {fix}")
    return Check("Spark", OK, f"pyspark {version('pyspark')} with its jars")


def packages() -> Iterator[Check]:
    """The packages that kafka-audit itself and each of its extras ask for, and the entry point of the plugin."""
    try:
        listed = [Requirement(text) for text in requires("kafka-audit") or []]
    except PackageNotFoundError:
        yield Check("packages", NOT_KNOWN, "kafka-audit is not installed as a package, so its requirements are not known")
        return
    for extra, name in (("", "packages"), ("airflow", "packages: airflow"), ("spark", "packages: spark"), ("notify", "packages: notify")):
        if extra == "notify" and not notifies():
            yield Check(name, OK, f"not needed: {NOTIFY_VARIABLE} is not set")
        else:
            yield _requirements(name, extra, [one for one in listed if _belongs(one, extra)])
    if _installed("apache-airflow"):
        plugin = any(point.value.startswith("kafka_audit.") for point in entry_points(group="airflow.plugins"))
        fix = "" if plugin else "Install kafka-audit with pip, so that Airflow finds the plugin by its entry point"
        yield Check("Airflow plugin", OK if plugin else MISSING, "registered" if plugin else "has no entry point", fix)


def _belongs(one: Requirement, extra: str) -> bool:
    if one.marker is None:
        return not extra
    return one.marker.evaluate({"extra": extra}) and (not extra or not one.marker.evaluate({"extra": ""}))


def _requirements(name: str, extra: str, wanted: Sequence[Requirement]) -> Check:
    lacking, present = [], []
    for one in wanted:
        found = _installed(one.name)
        present.append(f"{one.name} {found}")
        if found is None:
            lacking.append(f"{one.name} is not installed")
        elif not one.specifier.contains(found, prereleases=True):
            lacking.append(f"{one.name} is {found} and must be {one.specifier}")
    install = f"pip install 'kafka-audit[{extra}]'" if extra else "pip install kafka-audit"
    return Check(name, MISSING, "; ".join(lacking), install) if lacking else Check(name, OK, ", ".join(present))


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def clusters() -> Check:
    """The clusters that the DAGs of this environment read."""
    try:
        names = [one.name for one in dag_clusters()]
    except AuditError as problem:
        return Check("clusters", MISSING, "the list cannot be used", str(problem))
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return Check("clusters", OK, f"{len(names)}: {shown}")


def settings() -> Iterator[Check]:
    """One line for each variable of this environment that cannot be used; one in all if every one can."""
    problems = {}
    for read in (*_SETTINGS, notify_settings) if notifies() else _SETTINGS:
        try:
            read()
        except AuditError as problem:
            problems[str(problem)] = Check("settings", MISSING, "a variable cannot be used", str(problem))
    yield from problems.values() or [Check("settings", OK, "the other KAFKA_AUDIT_ variables can be used")]


def rules(policy: Path | None, controls: Sequence[Path]) -> Iterator[Check]:
    """The policy and the controls, and whether they fit each other; then each policy that the list of clusters names."""
    try:
        catalogue = load_catalogue([shipped_controls(), *controls])
    except AuditError as problem:
        yield Check("controls", MISSING, "they cannot be used", str(problem))
        return
    yield _policy("policy", policy, catalogue)
    for name, listed in _listed_policies():
        yield _policy(f"policy: {name}", listed, catalogue)


def _listed_policies() -> Iterator[tuple[str, Path]]:
    """Each policy folder of the list of clusters once, with the first cluster that has it; none of a list that cannot be read."""
    try:
        own = [one for one in dag_clusters() if one.policy is not None]
    except AuditError:
        return
    first = {Path(str(one.policy)): one.name for one in reversed(own)}
    yield from sorted((name, folder) for folder, name in first.items())


def _policy(name: str, policy: Path | None, catalogue: Catalogue) -> Check:
    try:
        found = load_policy(policy)
        check_policy(found, catalogue)
    except AuditError as problem:
        return Check(name, MISSING, "it cannot be used", str(problem))
    return Check(name, OK, f"{found.folder} ({len(catalogue.controls)} controls)")


def root_folder(root: str) -> Check:
    """Whether files can be written below a root folder, or could be once it is made; of a URL, whether its store can be listed."""
    if "://" in root:
        return _store(root)
    try:
        folder = mirror_of(root, "--root or KAFKA_AUDIT_ROOT")
    except AuditError as problem:
        return Check("root", MISSING, f"{root} cannot be used", str(problem))
    place = next(place for place in (folder, *folder.parents) if place.exists())
    if not place.is_dir():
        return Check("root", MISSING, f"{place} is not a folder", "Name another folder by --root or KAFKA_AUDIT_ROOT")
    if not os.access(place, os.W_OK | os.X_OK):
        return Check(
            "root",
            MISSING,
            f"{place} cannot be written by this user",
            f"Give this user the right to write, or name another folder: {folder}",
        )
    made = "" if place == folder else " (will be made)"
    elsewhere = "" if os.environ.get(ROOT_VARIABLE) else f"; {ROOT_VARIABLE} is not set, so Airflow's tasks use {audit_root()}"
    return Check("root", OK, f"{folder}{made}{elsewhere}")


def _store(url: str) -> Check:
    try:
        mirror = mirror_of(url, "--root or KAFKA_AUDIT_ROOT")
        remote = remote_at(mirror)
        if remote is not None:
            next(iter(remote.objects.names("manifests")), None)
    except AuditError as problem:
        return Check("root", MISSING, f"{url} cannot be used", str(problem))
    return Check("root", OK, f"{url} can be read; kafka-audit root check {url} tries out whether it can hold evidence")
