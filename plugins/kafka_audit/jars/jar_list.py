"""Reads jars.sha256, the list of jars with their sha256: a jar goes on a class path only if it is on the list, byte for byte.

One line per jar, as sha256sum writes it: the hash, two spaces, ``<configuration>/<organisation>/<module>/<version>/<file>``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from kafka_audit.errors import ConfigurationError
from kafka_audit.store.durable_files import sha256_of

LIST_FILE = Path(__file__).with_name("jars.sha256")
_PLACE = ("configuration", "organisation", "module", "version", "file")


@dataclass(frozen=True, kw_only=True)
class ListedJar:
    """One recorded jar of one ivy.xml configuration."""

    configuration: str
    organisation: str
    module: str
    version: str
    file: str
    sha256: str


def listed_jars(path: Path) -> tuple[ListedJar, ...]:
    """Read the list, in its order. Raises ConfigurationError with the number of a malformed line."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        sha256, _, place = line.partition("  ")
        parts = PurePosixPath(place).parts
        if len(sha256) != 64 or len(parts) != len(_PLACE):
            raise ConfigurationError(f"{path}, line {number}: is not a sha256 and a jar's path; regenerate the list with `make lock-jars`.")
        found.append(ListedJar(sha256=sha256, **dict(zip(_PLACE, parts, strict=True))))
    return tuple(found)


def expected_hashes(configuration: str) -> dict[str, str]:
    """Return file name -> sha256 of exactly the jars of a configuration. Raises ConfigurationError if the list has none."""
    expected = {jar.file: jar.sha256 for jar in listed_jars(LIST_FILE) if jar.configuration == configuration}
    if not expected:
        raise ConfigurationError(f"{LIST_FILE} lists no {configuration} jar; regenerate it with `make lock-jars`.")
    return expected


def differences(folder: Path, expected: dict[str, str]) -> list[str]:
    """Return how the jars in a folder differ from the expected ones, one sentence per jar; empty: the same files, byte for byte.

    Java's ``folder/*`` loads every .jar and .JAR there, so an additional jar is a difference too.
    """
    present = {path.name: path for path in folder.iterdir() if path.suffix.lower() == ".jar"} if folder.is_dir() else {}
    told = []
    for name in sorted(present.keys() | expected.keys()):
        if name not in present:
            told.append(f"{name}: missing")
        elif name not in expected:
            told.append(f"{name}: not on the list")
        elif (found := _sha256_now(present[name])) != expected[name]:
            told.append(f"{name}: sha256 is {found}, {expected[name]} was recorded")
    return told


def write_list(folders: Iterable[Path], path: Path) -> int:
    """Write the list from folders named like the configurations, each containing organisation/module/version/file; return the count."""
    lines = sorted(
        (jar.relative_to(folder.parent).as_posix(), sha256_of(jar)) for folder in folders for jar in folder.rglob("*.jar") if jar.is_file()
    )
    path.write_text("".join(f"{sha256}  {place}\n" for place, sha256 in lines), encoding="utf-8")
    return len(lines)


def _sha256_now(jar: Path) -> str:
    state = jar.stat()
    return _sha256(jar, (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))


@cache
def _sha256(jar: Path, _written: tuple[int, int, int, int]) -> str:
    """Hash a file once per process and version of it; resetting the modification time does not hide a change, because it changes ctime."""
    return sha256_of(jar)
