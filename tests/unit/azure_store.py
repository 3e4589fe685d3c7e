"""An Azure store for tests: Azurite, with an account of its own. It is installed once, pinned by hashes, into the cache of the tools."""

import base64
import contextlib
import hashlib
import hmac
import os
import shutil
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from object_store import port_of

from kafka_audit.jars.fetch import cache_directory, exclusive

_LOCKED = Path(__file__).parent / "tools" / "azurite"
_ACCOUNT, KEY = "audits", base64.b64encode(b"a key of tests").decode()
_VERSION, _END = "2021-12-02", "2100-01-01T00:00:00Z"


@dataclass(frozen=True)
class AzureStore:
    """A server that runs."""

    endpoint: str

    def new_root(self) -> str:
        """The URL of an empty root in a container of its own."""
        container = f"evidence-{uuid.uuid4().hex[:12]}"
        asked = urllib.request.Request(f"{self.endpoint}/{container}?restype=container&{signature('c')}", method="PUT")
        with urllib.request.urlopen(asked):
            return f"abfss://{container}@{_ACCOUNT}.dfs.core.windows.net/root"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use it."""
        return {"AZURE_STORAGE_ACCOUNT_KEY": KEY, "KAFKA_AUDIT_STORE_OPTIONS": f"endpoint={self.endpoint}"}


def signature(rights: str) -> str:
    """A shared access signature for every container, with the letters of Azure's rights, such as ``rl``: read and list."""
    signed = "\n".join((_ACCOUNT, rights, "b", "co", "", _END, "", "", _VERSION, "", ""))
    digest = hmac.digest(base64.b64decode(KEY), signed.encode(), "sha256")
    return urlencode({"sv": _VERSION, "ss": "b", "srt": "co", "sp": rights, "se": _END, "sig": base64.b64encode(digest).decode()})


@contextlib.contextmanager
def served() -> Iterator[AzureStore]:
    """A server for the block; the test is skipped where it cannot be installed."""
    program = _program()
    line = ["node", program, "--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", "0"]
    environment = {**os.environ, "AZURITE_ACCOUNTS": f"{_ACCOUNT}:{KEY}"}
    process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield AzureStore(endpoint=f"http://127.0.0.1:{port_of(process)}/{_ACCOUNT}")
    finally:
        process.terminate()
        process.wait()


def _program() -> Path:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed (apt-get install nodejs npm): it fetches Azurite, the Azure server of these tests")
    digest = hashlib.sha256((_LOCKED / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = cache_directory() / "tools" / f"azurite-{digest}"
    with exclusive(folder.parent / "azurite.lock", wait=True):
        if not (folder / ".complete").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(_LOCKED, folder)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            (folder / ".complete").touch()
    return folder / "node_modules/azurite/dist/src/blob/main.js"
