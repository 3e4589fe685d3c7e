"""Kafka's jars and Spark's connector jars, resolved from Maven Central by the Ivy inside pyspark and checked by their sha256."""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.jars.jar_list import LIST_FILE, differences, expected_hashes, write_list

Configuration = Literal["broker", "broker-3.9", "broker-4.4", "spark"]
Progress = Callable[[str], None]

RELEASES: Mapping[str, Configuration] = {"3.9": "broker-3.9", "4.3": "broker", "4.4": "broker-4.4"}
"""The releases of Kafka whose brokers the sandbox can start. Command line tools come with the default, 4.3, alone."""
RELEASE = "KAFKA_AUDIT_SANDBOX_KAFKA"
"""The environment variable that chooses one."""

IVY_FILE = Path(__file__).with_name("ivy.xml")
IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")

_DOWNLOADING = re.compile(r"^downloading \S*/(\S+\.jar) \.\.\.")
# Ivy's final report names missing artifacts as ":: org#module;revision: not found" or ":: org#module;revision!artifact.jar(type)".
_MISSING = re.compile(r"^\s*::\s+([\w.\-]+)#([\w.\-]+);([\w.\-]+)(?::|!|\s|$)")


def broker_classpath(progress: Progress) -> str:
    """Return the Java class path of Kafka's broker and tools.

    If KAFKA_HOME is set, the jars are those of $KAFKA_HOME/libs, unchecked: they are the operator's. Otherwise the jars of the release
    that $KAFKA_AUDIT_SANDBOX_KAFKA names (default: 4.3) are fetched once, cached and checked. Raises ConfigurationError for an unusable
    KAFKA_HOME or an unknown release, CollectionError if jars cannot be fetched,
    IntegrityError if Maven Central returned other bytes than were recorded.
    """
    home = os.environ.get("KAFKA_HOME")
    if home:
        libs = Path(home).expanduser().absolute() / "libs"
        if not any(libs.glob("kafka_*.jar")):
            raise ConfigurationError(f"KAFKA_HOME is {home}, but {libs} holds no kafka_*.jar: point it at an unpacked Kafka, or unset it.")
        return f"{libs}/*"
    release = os.environ.get(RELEASE) or "4.3"
    if release not in RELEASES:
        known = ", ".join(RELEASES)
        raise ConfigurationError(f"{RELEASE} is {release!r:.40}: write one of {known}, or set KAFKA_HOME to an unpacked Kafka")
    return f"{resolve(RELEASES[release], progress)[0].parent}/*"


def spark_connector_jars(progress: Progress) -> list[Path]:
    """Return the jars that Spark's Kafka source needs beyond those in pyspark, for spark.jars, sorted by name."""
    shipped = {_artifact(jar) for jar in _pyspark_jars().glob("*.jar")}
    return [jar for jar in resolve("spark", progress) if _artifact(jar) not in shipped]


def resolve(configuration: Configuration, progress: Progress) -> list[Path]:
    """Return the jars of one ivy.xml configuration, sorted by name, each with the recorded sha256 (jar_list.py).

    They are fetched if a jar is missing from the cache, was changed, or is not on the list. Raises CollectionError with every artifact that
    Maven Central did not return, IntegrityError with every jar whose sha256 differs; such jars are not kept.
    """
    target = cache_directory() / "jars" / f"{configuration}-{_fingerprint()}"
    expected = expected_hashes(configuration)
    jars = [target / name for name in sorted(expected)]
    if not differences(target, expected):
        return jars
    with exclusive(target.with_suffix(".lock"), wait=True):
        changed = differences(target, expected)
        if not changed:  # another process has fetched them meanwhile
            return jars
        if target.exists():
            progress(f"The cached {configuration} jars are not those that were recorded ({changed[0]}): they are fetched again")
        progress(f"Fetching the {configuration} jars from Maven Central into {target}")
        # Beside the target, so that a rename publishes the folder as a whole; what was not renamed is removed.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent, ignore_cleanup_errors=True) as name:
            fresh = Path(name)
            _run_ivy(configuration, cache_directory() / "ivy", f"{fresh}/[artifact]-[revision].[ext]", progress)
            wrong = differences(fresh, expected)
            if wrong:
                raise IntegrityError(_explain_difference(configuration, wrong))
            shutil.rmtree(target, ignore_errors=True)
            fresh.rename(target)
    return jars


def record(progress: Progress, path: Path = LIST_FILE) -> int:
    """Download the jars of all configurations again, without any cache, and write the list of their hashes; return the number of jars.

    The bytes that Maven Central returns now are trusted from then on: compare the list with the previous one.
    """
    with tempfile.TemporaryDirectory(prefix="kafka-audit-jars-") as name:
        folders = [Path(name) / configuration for configuration in get_args(Configuration)]
        for folder, configuration in zip(folders, get_args(Configuration), strict=True):
            progress(f"Fetching the {configuration} jars from Maven Central")
            pattern = f"{folder}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"
            _run_ivy(configuration, Path(name) / "ivy", pattern, progress)
        return write_list(folders, path)


def java() -> str:
    """Return the Java to run: $JAVA_HOME/bin/java, else java on PATH. Raises ConfigurationError if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME ({home}/bin)" if home else "PATH"
        raise ConfigurationError(
            f"Java was not found in {where}: install Java 17 or newer (apt install openjdk-17-jre-headless, brew install openjdk@17)."
        )
    return found


def cache_directory() -> Path:
    """Return the cache folder: $KAFKA_AUDIT_CACHE, else kafka-audit under $XDG_CACHE_HOME or ~/.cache.

    The folder may not exist yet. The path does not depend on the working directory.
    """
    own = os.environ.get("KAFKA_AUDIT_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a relative value.
    base = Path(xdg) if Path(xdg).is_absolute() else Path.home() / ".cache"
    return base / "kafka-audit"


@contextmanager
def exclusive(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock file at path for the length of the block. The kernel releases it when the holder dies.

    With wait=False, raises ConfigurationError if another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise ConfigurationError(
                f"Another process is starting or stopping the sandbox in {path.parent}: wait for it, or choose another --dir."
            ) from None
        yield


def _fingerprint() -> str:
    digest = hashlib.sha256(IVY_FILE.read_bytes() + IVY_SETTINGS.read_bytes())
    digest.update(importlib.metadata.version("pyspark").encode())
    return digest.hexdigest()[:12]


def _pyspark_jars() -> Path:
    # find_spec finds pyspark without importing it, which would take a second.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError("pyspark is not installed in this environment: run `make install`.")
    return Path(spec.origin).parent / "jars"


def _run_ivy(configuration: Configuration, cache: Path, pattern: str, progress: Progress) -> None:
    ivy = next(iter(sorted(_pyspark_jars().glob("ivy-*.jar"))), None)
    if ivy is None:
        raise ConfigurationError(f"{_pyspark_jars()} holds no ivy-*.jar: reinstall pyspark with `pip install --force-reinstall pyspark`.")
    command = [
        *(java(), "-jar", str(ivy), "-settings", str(IVY_SETTINGS), "-ivy", str(IVY_FILE)),
        *("-cache", str(cache), "-confs", configuration, "-types", "jar", "bundle"),
        *("-retrieve", pattern),
    ]
    missing: dict[str, None] = {}  # a dict, to keep Ivy's order
    tail: deque[str] = deque(maxlen=15)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
    )
    try:
        assert process.stdout is not None  # not None, because of PIPE
        for line in process.stdout:
            if downloading := _DOWNLOADING.match(line):
                progress(f"  {downloading.group(1)}")
            if found := _MISSING.match(line):
                missing[":".join(found.groups())] = None
            tail.append(line.rstrip()[:300])
        code = process.wait()
    finally:
        if process.poll() is None:  # Ctrl-C while Ivy works
            process.kill()
            process.wait()
    if code != 0 or missing:
        raise CollectionError(_explain_missing(configuration, list(missing), list(tail)))


def _explain_difference(configuration: Configuration, wrong: list[str]) -> str:
    what = "\n".join(f"  {line}" for line in wrong)
    return (
        f"The {configuration} jars that were fetched differ from those recorded in {LIST_FILE.name}:\n{what}\n"
        f"None is used. Remove {cache_directory() / 'ivy'}, which may hold older files, and try again. If they differ again, "
        "something between this machine and Maven Central changes the files: find out what. After a change of ivy.xml: `make lock-jars`."
    )


def _explain_missing(configuration: Configuration, missing: list[str], tail: list[str]) -> str:
    what = "\n".join(f"  {name}" for name in missing) if missing else "  (Ivy named none; the end of its output:)\n  " + "\n  ".join(tail)
    instead = "set KAFKA_HOME to an unpacked Kafka, or " if configuration != "spark" else ""
    return (
        f"The {configuration} jars could not be fetched from Maven Central:\n{what}\n"
        "Check that this machine reaches Maven Central. Behind a proxy or a company certificate, tell Java about it, for example "
        "JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT -Djavax.net.ssl.trustStore=FILE'. "
        f"Or {instead}copy the folder {cache_directory() / 'jars'} from a machine that has these jars."
    )


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[\w.\-]*$", "", jar.stem)
