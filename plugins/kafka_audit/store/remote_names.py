"""Names of objects in a root in a store, and which names from a listing or a manifest may be names of files here.

Whoever may write to the bucket chooses names: one that is not ours is passed over, and never becomes a path outside of its folder.
"""

import re
from datetime import datetime, timedelta, timezone

from kafka_audit.store.unfinished import PARTS
from kafka_audit.times import is_id, stamp

_DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}T[0-9]{6}Z|[0-9]{8}")
"""Names of sealed folders that are no ids: a rolled-up day, the end of the window of behaviour tables, the number of a batch of commits."""
_REPLACED = re.compile(r"history/[^/]+/lag")
_PLACE = re.compile(
    r"(?:(?!history/)[^/]+/[^/]+|history/[^/]+/lag|history/[^/]+/commits/(?:behaviour|(?:transactions/)?(?:raw|decoded)))/[^/]+"
)
_PARTS_OF_A_SNAPSHOT = re.compile(rf"evidence/[^/]+/\.[^/]+{re.escape(PARTS)}")
_OUT_OF_ORDER = timedelta(days=1)
"""Between whole listings only names from so long before the newest one are listed: a run may end long after the time in its id."""
_LONGEST = 255
"""The bytes of the longest name that a file system of this machine takes."""


def object_name(name: str, sha256: str) -> str:
    """The name of a sealed file's object in its folder: what two writers make of one file are two objects."""
    folder, slash, last = name.rpartition("/")
    stem, dot, kind = last.rpartition(".")
    return f"{folder}{slash}{stem}.{sha256[:16]}{dot}{kind}" if dot else f"{name}.{sha256[:16]}"


def is_place(folder: str) -> bool:
    """Whether a folder below the root is where a sealed folder or a part of a snapshot lies, and not one inside of it."""
    parent, _, name = folder.rpartition("/")
    if _PARTS_OF_A_SNAPSHOT.fullmatch(parent):
        return not name.startswith(".")
    return _PLACE.fullmatch(folder) is not None and not any(one.startswith(".") for one in folder.split("/"))


def files_of(folder: str) -> str:
    """The folder of the objects that are the files of a sealed folder; those of a part of a snapshot are removed, so they lie in work/."""
    return f"work/{folder}" if _PARTS_OF_A_SNAPSHOT.fullmatch(folder.rpartition("/")[0]) else folder


def manifests_of(parent: str) -> str:
    """The folder of the manifests of the sealed folders in ``parent``. Those of parts lie beside the parts."""
    if _PARTS_OF_A_SNAPSHOT.fullmatch(parent):
        return f"work/{parent}"
    return f"{'work/' if _REPLACED.fullmatch(parent) else ''}manifests/{parent}"


def sealed_name(folder: str, manifest: str) -> str | None:
    """The name of the sealed folder that an object in a folder of manifests is of; None for a signature and for what is not ours."""
    name = manifest.removeprefix(f"{folder}/").removesuffix(".json")
    return name if manifest == f"{folder}/{name}.json" and (is_id(name) or _DATED.fullmatch(name)) else None


def is_inside(name: str) -> bool:
    """Whether a name from a manifest or a listing stays in its folder, and can be that of a file here."""
    parts = name.split("/")
    return name.isprintable() and not {"", ".", ".."} & {*parts} and all(len(one.encode()) <= _LONGEST for one in parts)


def listed_after(name: str) -> str:
    """The earliest name that may have come since a listing whose newest was ``name``."""
    try:
        return stamp(datetime.strptime(name[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc) - _OUT_OF_ORDER)
    except (ValueError, OverflowError):
        return ""
