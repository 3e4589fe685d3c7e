"""Kafka's jars and Spark's connector jars, resolved from Maven Central by the Ivy inside pyspark."""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.sandbox.cache import cache_directory
from kafka_audit.sandbox.lock import exclusive

Configuration = Literal["broker", "spark"]
Progress = Callable[[str], None]

IVY_FILE = Path(__file__).with_name("ivy.xml")
IVY_SETTINGS = Path(__file__).with_name("ivysettings.xml")

_STAMP = "stamp.json"
_DOWNLOADING = re.compile(r"^downloading \S*/(\S+\.jar) \.\.\.")
# Ivy's closing report names what it lacks as ":: org#module;revision: not found" or ":: org#module;revision!artifact.jar(type)".
_MISSING = re.compile(r"^\s*::\s+([\w.\-]+)#([\w.\-]+);([\w.\-]+)(?::|!|\s|$)")


def broker_classpath(progress: Progress) -> str:
    """Return the Java class path of Kafka's broker and tools.

    $KAFKA_HOME/libs wins where KAFKA_HOME is set; else the jars are resolved once and cached.
    Raises ConfigurationError for an unusable KAFKA_HOME, CollectionError when jars cannot be fetched.
    """
    home = os.environ.get("KAFKA_HOME")
    if home:
        libs = Path(home).expanduser().absolute() / "libs"
        if not any(libs.glob("kafka_*.jar")):
            raise ConfigurationError(f"KAFKA_HOME is {home}, but {libs} holds no kafka_*.jar: point it at an unpacked Kafka, or unset it.")
        return f"{libs}/*"
    return f"{resolve('broker', progress)[0].parent}/*"


def spark_connector_jars(progress: Progress) -> list[Path]:
    """Return the jars Spark's Kafka source needs and pyspark lacks, for spark.jars, by name."""
    shipped = {_artifact(jar) for jar in _pyspark_jars().glob("*.jar")}
    return [jar for jar in resolve("spark", progress) if _artifact(jar) not in shipped]


def resolve(configuration: Configuration, progress: Progress) -> list[Path]:
    """Return the jars of one ivy.xml configuration, by name, fetching them only when the cache lacks them.

    Raises CollectionError that names every artifact Maven Central did not give.
    """
    target = cache_directory() / "jars" / f"{configuration}-{_fingerprint()}"
    jars = _cached(target)
    if jars is not None:
        return jars
    with exclusive(target.with_suffix(".lock"), wait=True):
        jars = _cached(target)  # another process may have fetched them meanwhile
        if jars is not None:
            return jars
        progress(f"Fetching the {configuration} jars from Maven Central into {target}")
        with _sibling(target) as fresh:
            _run_ivy(configuration, fresh, progress)
            found = sorted(fresh.glob("*.jar"))
            (fresh / _STAMP).write_text(json.dumps({jar.name: jar.stat().st_size for jar in found}), encoding="utf-8")
            shutil.rmtree(target, ignore_errors=True)
            fresh.rename(target)
    return [target / jar.name for jar in found]


def java() -> str:
    """Return the Java to run: $JAVA_HOME/bin/java, else java on PATH. Raises ConfigurationError when there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME ({home}/bin)" if home else "PATH"
        raise ConfigurationError(
            f"Java was not found in {where}: install Java 17 or newer (apt install openjdk-17-jre-headless, brew install openjdk@17)."
        )
    return found


def _fingerprint() -> str:
    digest = hashlib.sha256(IVY_FILE.read_bytes() + IVY_SETTINGS.read_bytes())
    digest.update(importlib.metadata.version("pyspark").encode())
    return digest.hexdigest()[:12]


def _cached(target: Path) -> list[Path] | None:
    stamp = target / _STAMP
    if not stamp.is_file():
        return None
    sizes: dict[str, int] = json.loads(stamp.read_text(encoding="utf-8"))
    jars = [target / name for name in sorted(sizes)]
    whole = all(jar.is_file() and jar.stat().st_size == sizes[jar.name] for jar in jars)
    return jars if whole and jars else None


@contextmanager
def _sibling(target: Path) -> Iterator[Path]:
    """Give a temporary folder beside the target, so that a rename publishes it whole; removed if it is still there."""
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _pyspark_jars() -> Path:
    # find_spec looks pyspark up without importing it: the import alone costs a second.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError("pyspark is not installed in this environment: run `pip install -r requirements.txt`.")
    return Path(spec.origin).parent / "jars"


def _run_ivy(configuration: Configuration, target: Path, progress: Progress) -> None:
    ivy = next(iter(sorted(_pyspark_jars().glob("ivy-*.jar"))), None)
    if ivy is None:
        raise ConfigurationError(f"{_pyspark_jars()} holds no ivy-*.jar: reinstall pyspark with `pip install --force-reinstall pyspark`.")
    command = [
        *(java(), "-jar", str(ivy), "-settings", str(IVY_SETTINGS), "-ivy", str(IVY_FILE)),
        *("-cache", str(cache_directory() / "ivy"), "-confs", configuration, "-types", "jar", "bundle"),
        *("-retrieve", f"{target}/[artifact]-[revision].[ext]"),
    ]
    missing: dict[str, None] = {}  # a dict keeps Ivy's order
    tail: deque[str] = deque(maxlen=15)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
    )
    try:
        assert process.stdout is not None  # PIPE was asked for
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
    if code != 0 or missing or not any(target.glob("*.jar")):
        raise CollectionError(_explain(configuration, list(missing), list(tail)))


def _explain(configuration: Configuration, missing: list[str], tail: list[str]) -> str:
    what = "\n".join(f"  {name}" for name in missing) if missing else "  (Ivy named none; its last words:)\n  " + "\n  ".join(tail)
    instead = "set KAFKA_HOME to an unpacked Kafka, or " if configuration == "broker" else ""
    return (
        f"The {configuration} jars could not be fetched from Maven Central:\n{what}\n"
        "Check that this machine reaches Maven Central. Behind a proxy or a company certificate, tell Java about it, for example "
        "JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT -Djavax.net.ssl.trustStore=FILE'. "
        f"Or {instead}copy the folder {cache_directory() / 'jars'} from a machine that has it."
    )


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[\w.\-]*$", "", jar.stem)


if __name__ == "__main__":  # `make jars`: everything that would need the network later
    broker_classpath(print)
    spark_connector_jars(print)
