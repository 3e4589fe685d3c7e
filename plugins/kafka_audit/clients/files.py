"""Finds the files of client settings below a path: properties, ini-like files and clients.yaml. For checks before deployment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_audit.clients.declared import Client, load_client_file
from kafka_audit.clients.defaults import check_release
from kafka_audit.clients.properties import INI_SUFFIXES, JAVA_SUFFIX, read_pairs
from kafka_audit.clients.sections import sections
from kafka_audit.errors import ConfigurationError

CLIENT_FILE = "clients.yaml"
_PASSED_OVER = frozenset({"node_modules", "target", "build", "dist", "venv", "__pycache__"})


@dataclass(frozen=True, kw_only=True)
class FoundClient:
    """A client that was found in files; ``declaration`` is its entry in a clients.yaml, if it has one."""

    name: str
    kind: str
    implementation: str
    release: str | None = None
    settings: Mapping[str, str | int | float | bool]
    source: str
    group: str | None = None
    declaration: Client | None = None

    def __post_init__(self) -> None:
        if self.release is not None:
            check_release(self.implementation, self.release)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The clients found, by name, and the files that were read but contain none, with the reason."""

    clients: tuple[FoundClient, ...]
    without: tuple[str, ...]


def read_clients(path: Path, *, kind: str | None = None, implementation: str | None = None, release: str | None = None) -> Reading:
    """Every client of the file, or of the files below the folder, sorted by name. ``release`` is that of clients in no clients.yaml.

    ConfigurationError (exit 2) lists every broken file: none is silently left out. In a folder, a ``.conf`` that is not a key=value file
    is taken for another program's and only listed.
    """
    if not path.exists():
        raise ConfigurationError(f"{path}: does not exist; give a file of client settings, or a folder that contains such files")
    files = _below(path) if path.is_dir() else [path]
    top = path if path.is_dir() else path.parent
    declared = [one for one in files if one.name == CLIENT_FILE]
    problems: list[str] = []
    found: list[FoundClient] = []
    without: list[str] = []
    used: set[Path] = set()
    for file in declared:
        try:
            clients = load_client_file(file).clients
        except ConfigurationError as problem:
            problems.append(str(problem))
            continue
        used |= {(file.parent / one.settings_file).resolve() for one in clients if one.settings_file is not None}
        same = {"kind", "implementation", "release", "settings", "source", "group"}
        name = _relative(file, top)
        found += [FoundClient(name=f"{name}: {one.name}", declaration=one, **one.model_dump(include=same)) for one in clients]
        if not clients:
            without.append(f"{name}: declares no client")
    for file in files:
        if file.name == CLIENT_FILE or file.resolve() in used:
            continue
        name = _relative(file, top)
        try:
            pairs = read_pairs(file)
        except ConfigurationError as problem:
            if file != path and file.suffix.lower() in INI_SUFFIXES:
                without.append(f"{name}: is no file of key=value lines")
            else:
                problems.append(str(problem))
            continue
        parts = sections(pairs, kind=kind, implementation=implementation)
        if not parts:
            without.append(f"{name}: names no setting that only a producer or only a consumer has")
        for part in parts:
            label = name if len(parts) == 1 else f"{name} ({part.kind})"
            group = part.settings.get("group.id") or part.settings.get("group_id")
            found.append(FoundClient(name=label, source=name, group=group, release=release, **vars(part)))
    if problems:
        raise ConfigurationError("these client files are not valid:\n  " + "\n  ".join(problems))
    return Reading(clients=tuple(sorted(found, key=lambda one: (one.name, one.kind))), without=tuple(sorted(without)))


def _below(folder: Path) -> list[Path]:
    wanted = INI_SUFFIXES | {JAVA_SUFFIX}
    return [
        path
        for path in sorted(folder.rglob("*"))
        if (path.suffix.lower() in wanted or path.name == CLIENT_FILE)
        and not path.is_dir()  # a link to nothing, or a pipe, is a file that cannot be read
        and not any(part.startswith(".") or part in _PASSED_OVER for part in path.relative_to(folder).parts[:-1])
    ]


def _relative(file: Path, top: Path) -> str:
    return file.relative_to(top).as_posix()
