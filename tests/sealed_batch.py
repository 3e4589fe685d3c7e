"""A batch of a commit history as tests make it: its manifest names the files that are there."""

from pathlib import Path
from typing import Any

from kafka_audit.batch_files import file_hashes
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.manifest import MANIFEST


def seal(batch: Path, **about: Any) -> None:
    """Write the manifest of a raw or decoded batch over its files; ``about`` are its other fields."""
    write_json(batch / MANIFEST, {**about, "files": file_hashes(batch)})
