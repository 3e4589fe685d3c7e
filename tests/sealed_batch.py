"""Writes a batch of a commit history with a manifest that lists its files."""

from pathlib import Path
from typing import Any

from kafka_audit.store.durable_files import write_json
from kafka_audit.store.manifest import MANIFEST, tree_files


def seal(batch: Path, **about: Any) -> None:
    """Write the manifest of a raw or decoded batch over its files; ``about`` are its other fields."""
    write_json(batch / MANIFEST, {**about, "files": tree_files(batch)})
