"""Manifests: the list of a folder's files with their sha256, written last, and the check that nothing was changed since."""

from pathlib import Path
from typing import Any

from kafka_audit.durable_files import read_json, sha256_of
from kafka_audit.errors import IntegrityError

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1


def tree_files(folder: Path) -> dict[str, dict[str, Any]]:
    """sha256 and size in bytes of every file below a folder, by its name there; the manifest itself and hidden files are left out."""
    files: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if not path.is_file() or relative == Path(MANIFEST) or any(part.startswith(".") for part in relative.parts):
            continue
        files[relative.as_posix()] = {"sha256": sha256_of(path), "bytes": path.stat().st_size}
    return files


def problems_of(folder: Path) -> list[str]:
    """Every difference between a sealed folder and its manifest, as sentences; empty when it is intact."""
    manifest = read_json(folder / MANIFEST)
    recorded = manifest.get("files")
    if not isinstance(recorded, dict):
        return [f"{MANIFEST}: has no list of files"]
    found: list[str] = []
    for name, entry in sorted(recorded.items()):
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            found.append(f"{name}: the manifest names a file outside the folder")
        elif not path.is_file():
            found.append(f"{name}: is missing")
        elif sha256_of(path) != entry.get("sha256"):
            found.append(f"{name}: its sha256 differs from the manifest's, so it was changed after it was written")
    found += [f"{name}: is not in the manifest, so it was added later" for name in sorted(set(tree_files(folder)) - set(recorded))]
    previous = manifest.get("previous")
    if previous:
        link = folder.parent / str(previous.get("audit_id")) / MANIFEST
        if not link.is_file():
            found.append(f"previous audit {previous.get('audit_id')}: its manifest is missing, so the chain is broken")
        elif sha256_of(link) != previous.get("manifest_sha256"):
            found.append(f"previous audit {previous.get('audit_id')}: its manifest was changed after this audit was sealed")
    return found


def verify(folder: Path) -> dict[str, Any]:
    """Recompute every hash of a snapshot or audit folder and return its manifest; IntegrityError (exit 5) lists all differences."""
    if not (folder / MANIFEST).is_file():
        raise IntegrityError(f"{folder} has no {MANIFEST}: name the folder of one snapshot or one audit")
    found = problems_of(folder)
    if found:
        listed = "\n  ".join(found)
        raise IntegrityError(f"{folder} does not match its manifest:\n  {listed}\nDo not use it as evidence; restore it from a copy")
    return read_json(folder / MANIFEST)
