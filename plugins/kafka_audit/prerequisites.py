"""Checks the prerequisites of a machine: Python 3.11+ and Java 17+.

Runs on Python 3.6 and later with nothing installed, so ``make`` can call it first and give a clear message.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

JAVA_HELP = """Java 17 or newer is needed (Spark and the Kafka sandbox run on it). Install it, for example:
  Debian, Ubuntu   apt-get install openjdk-17-jre-headless
  Fedora, RHEL     dnf install java-17-openjdk-headless
  macOS            brew install openjdk@17
then make sure that `java -version` prints 17 or newer, or set JAVA_HOME."""

PYTHON_HELP = """Python 3.11 or newer is needed, with its venv module. Install it, for example:
  Debian, Ubuntu   apt-get install python3 python3-venv
  Fedora, RHEL     dnf install python3
  macOS            brew install python@3.12
and name it: make PYTHON=python3.12 ..."""


def java_major(text: str) -> "int | None":
    """Major version from the output of ``java -version``, or None: '17.0.15' -> 17, '1.8.0_402' -> 8."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not found:
        return None
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major


def missing_prerequisites() -> "list[str]":
    """Sentences about what is missing, each with how to install it; empty when all is there."""
    problems: list[str] = []
    if sys.version_info < (3, 11):
        problems.append(f"This is Python {sys.version_info[0]}.{sys.version_info[1]}. {PYTHON_HELP}")
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        problems.append(f"This Python has no venv module. {PYTHON_HELP}")
    _, problem = installed_java()
    return [*problems, problem] if problem else problems


def installed_java() -> "tuple[int | None, str]":
    """(the major version of this machine's Java, what is wrong and how to mend it); the latter is empty when it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return None, ("JAVA_HOME points to no Java. " if home else "No `java` was found. ") + JAVA_HELP
    try:
        done = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return None, f"`{java} -version` failed ({problem}). {JAVA_HELP}"
    major = java_major(done.stdout.decode("utf-8", "replace"))
    if major is None or major < 17:
        return major, f"Java {major or 'of an unknown version'} was found. {JAVA_HELP}"
    return major, ""


if __name__ == "__main__":
    missing = missing_prerequisites()
    if missing:
        sys.exit("\n\n".join(missing))
