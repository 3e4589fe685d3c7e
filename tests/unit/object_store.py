"""An S3 server for tests: versitygw, with buckets that keep versions and have Object Lock. It is built once, into the cache of the tools."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil
import pytest

from kafka_audit.jars.fetch import cache_directory, exclusive

_VERSION = "1.8.0"
_USER, _KEY = "test", "testtesttest"
EVERYWHERE = pytest.mark.parametrize("store", ["object_store", "azure_store", "google_store"], indirect=True, ids=["s3", "azure", "google"])
"""A test that asks for the fixture ``store`` runs on each."""


class Store(Protocol):
    """A server that runs, of any cloud."""

    @property
    def endpoint(self) -> str:
        """Its address."""
        ...

    def new_root(self) -> str:
        """The URL of an empty root in a bucket or container of its own."""
        ...

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use it."""
        ...


@dataclass(frozen=True)
class ObjectStore:
    """A server that runs, and its program."""

    endpoint: str
    program: Path

    def new_root(self) -> str:
        """The URL of an empty root in a bucket of its own."""
        bucket = f"evidence-{uuid.uuid4().hex[:12]}"
        account = ["--access", _USER, "--secret", _KEY, "--endpoint-url", self.endpoint]
        made = ["create-bucket", "--owner", _USER, "--bucket", bucket, "--object-lock-enabled-for-bucket"]
        subprocess.run([self.program, "admin", *account, *made], check=True, capture_output=True)
        return f"s3://{bucket}/root"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use it."""
        keys = {"AWS_ACCESS_KEY_ID": _USER, "AWS_SECRET_ACCESS_KEY": _KEY, "AWS_REGION": "us-east-1"}
        return {**keys, "KAFKA_AUDIT_STORE_OPTIONS": f"endpoint={self.endpoint}"}


@contextlib.contextmanager
def served() -> Iterator[ObjectStore]:
    """A server for the block; the test is skipped where it cannot be built."""
    program = built("github.com/versity/versitygw/cmd/versitygw", _VERSION)
    with tempfile.TemporaryDirectory(prefix="kafka-audit-store-") as folder:
        data, versions = Path(folder) / "data", Path(folder) / "versions"
        data.mkdir()
        versions.mkdir()
        line = [
            program,
            "--access",
            _USER,
            "--secret",
            _KEY,
            "--port",
            "127.0.0.1:0",
            "--quiet",
            "posix",
            "--versioning-dir",
            versions,
            data,
        ]
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield ObjectStore(endpoint=f"http://127.0.0.1:{port_of(process)}", program=program)
        finally:
            process.terminate()
            process.wait()


def port_of(process: "subprocess.Popen[bytes]") -> int:
    """The port that a server listens on, as soon as it does."""
    for _ in range(600):
        assert process.poll() is None, f"{process.args} ended at once"
        for one in psutil.Process(process.pid).net_connections(kind="tcp"):
            if one.status == psutil.CONN_LISTEN:
                return int(one.laddr.port)
        time.sleep(0.05)
    raise AssertionError(f"{process.args} does not listen")


def built(module: str, version: str) -> Path:
    """A program that Go builds, of the module's last name; the test is skipped where Go is missing."""
    name = module.rpartition("/")[2]
    if shutil.which("go") is None:
        pytest.skip(f"go is not installed: it builds {name}, a server of these tests")
    folder = cache_directory() / "tools" / f"{name}-{version}"
    with exclusive(folder.parent / f"{name}.lock", wait=True):
        if not (folder / name).is_file():
            environment = {**os.environ, "GOBIN": str(folder)}
            # Compiled without optimization, which takes a third less: 100 CPU seconds instead of 150. No test waits for the server's CPU.
            line = ["go", "install", "-gcflags=all=-N -l", "-ldflags=-s -w", f"{module}@v{version}"]
            done = subprocess.run(line, check=False, env=environment, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"go could not build {name}: {done.stderr.strip()[-300:]}")
    return folder / name
