"""The place of a sealed folder below the root, which decides the kind, cluster and name that its manifest must have.

What a manifest says of itself decides nothing: whoever forges one would choose the kind that is checked least.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_audit.ids import is_id
from kafka_audit.times import parse_time, stamp

AUDIT = "audit"
_KINDS = {"audits": AUDIT, "evidence": "snapshot", "offsets": "offsets"}
_DAY, _BEHAVIOUR = "lag_day", "commit_behaviour"
_NAMES = {AUDIT: "audit_id", "snapshot": "snapshot_id", "offsets": "snapshot_id", _DAY: "day", _BEHAVIOUR: "end"}
"""Each kind, and the field of its manifest that is the name of the folder."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """What belongs into a folder: a kind, of a cluster, below ``root``."""

    kind: str
    cluster: str
    root: Path


def place_of(folder: Path) -> Place | None:
    """The place of a folder by its absolute path; None for one that lies in no root, such as a copy."""
    parts = folder.parts
    if not is_id(folder.name):  # clusters may have the names of our folders, too
        if parts[-4:-3] == ("history",) and parts[-2:-1] == ("lag",):
            return Place(kind=_DAY, cluster=parts[-3], root=folder.parents[3])
        if parts[-5:-4] == ("history",) and parts[-3:-1] == ("commits", "behaviour"):
            return Place(kind=_BEHAVIOUR, cluster=parts[-4], root=folder.parents[4])
    kind = _KINDS.get(parts[-3]) if len(parts) > 3 else None
    return Place(kind=kind, cluster=parts[-2], root=folder.parents[2]) if kind else None


def identity_problems(manifest: Mapping[str, Any], name: str, place: Place | None) -> list[str]:
    """Whether a manifest is of what belongs into the place, as sentences; without a place, whether it is of a kind that there is."""
    kind, cluster = manifest.get("kind"), manifest.get("cluster")
    if not isinstance(kind, str) or kind not in _NAMES:
        return [f"its manifest is of the kind {kind!r:.80}, which this release does not know"]
    if place is None:
        return []
    said = _name_in(kind, manifest)
    named = said == name and (is_id(name) or kind in (_DAY, _BEHAVIOUR))
    if kind == place.kind and named and (cluster == place.cluster or kind == _BEHAVIOUR):  # behaviour tables name the Kafka cluster's id
        return []
    return [f"its manifest is of {kind} {said!r:.80} of cluster {cluster!r:.80}, and {place.kind} {name} of {place.cluster} belongs here"]


def _name_in(kind: str, manifest: Mapping[str, Any]) -> object:
    """The name that the folder has by its manifest."""
    said = manifest.get(_NAMES[kind])
    if kind != _BEHAVIOUR:
        return said
    try:
        return stamp(parse_time(said))
    except (ValueError, OverflowError):
        return said
