"""Names that other tools know a result by: ``kafka://`` names of resources, stable fingerprints, and UUIDs computed from names.

All depend on the cluster's id, the control and the resource alone: the next audit of the same cluster computes the same ones.
"""

import hashlib
import json
from dataclasses import dataclass
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

_NAMESPACE = uuid5(NAMESPACE_URL, "urn:kafka-audit:report:v1")
_NOUNS = {"declared_topic": "topic", "declared_group": "group", "group_sla": "group", "group_partition": "group"}
"""The nouns of subjects that are not named like what they judge."""


@dataclass(frozen=True, kw_only=True)
class ResourceName:
    """One resource of one cluster: ``path`` like ``topic/orders/partition/3``, percent-encoded; ``kind``: its last noun, ``partition``."""

    cluster: str
    path: str
    kind: str

    @property
    def uri(self) -> str:
        """``kafka://<cluster-id>/<path>``, in ASCII."""
        return f"kafka://{self.cluster}/{self.path}"


def encoded(name: str) -> str:
    """A name as one segment of a URI: all but letters, digits and ``-._~`` percent-encoded as UTF-8; never ``.``, ``..`` or empty.

    A lone surrogate, which has no UTF-8, is encoded like any other code point, so that two names never become one.
    """
    segment = quote(name, safe="", errors="surrogatepass")
    return segment.replace(".", "%2E") if segment in {".", ".."} else segment or "%00"


def cluster_segment(cluster_id: str, alias: str) -> str:
    """The cluster's id as a segment; its alias if the id is not known."""
    return encoded(cluster_id or alias or "unknown")


def resource_name(cluster: str, subject: str, resource: str) -> ResourceName:
    """The name of a finding's resource; ``cluster`` is a :func:`cluster_segment`. Any subject and any text has one."""
    parts = _parts(subject, resource)
    path = "/".join(part if number % 2 == 0 else encoded(part) for number, part in enumerate(parts))
    return ResourceName(cluster=cluster, path=path, kind=parts[-2] if len(parts) > 1 else parts[0])


def _parts(subject: str, resource: str) -> tuple[str, ...]:
    """Nouns and names in turn, as the resource's text has them. Topics cannot contain a colon, and partitions are numbers."""
    kind, space, name = resource.partition(" ")
    group, colon, partition = resource.rpartition(":")
    if subject == "cluster":
        return ("cluster",)
    if subject == "partition":
        return _partition(resource)
    if subject == "group_partition" and colon:
        return "group", group, *_partition(partition)
    if subject == "group_sla" and resource.endswith("]") and " [" in resource:  # one of several SLAs of the group
        group, _, sla = resource[:-1].rpartition(" [")
        return "group", group, "sla", sla
    if subject in {"producer", "consumer"} and space and kind in {"producer", "consumer", "topic", "group"}:
        return kind, name  # a declared client, or a topic or group that nobody declared one for
    return _NOUNS.get(subject, encoded(subject)), resource


def _partition(resource: str) -> tuple[str, ...]:
    topic, dash, number = resource.rpartition("-")
    return ("topic", topic, "partition", number) if dash and number.isdecimal() else ("partition", resource)


def fingerprint(cluster: str, control_id: str, subject: str, resource: str) -> str:
    """64 hex digits that depend on these four only, not on time, order, status or severity."""
    named = json.dumps([cluster, control_id, subject, resource], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()


def uuid_of(*names: str) -> str:
    """A UUID (version 5) computed from names, in this order."""
    return str(uuid5(_NAMESPACE, json.dumps(names, ensure_ascii=True)))
