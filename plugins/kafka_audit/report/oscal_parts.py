"""The small objects that OSCAL documents are made of, and texts in the forms that OSCAL allows for them."""

import re
from collections.abc import Iterable
from typing import Any

from kafka_audit.report.inert_text import line, markdown

NAMESPACE = "urn:kafka-audit:oscal:v1"
"""The namespace of the props that OSCAL does not define."""

_NOT_IN_TOKEN = re.compile(r"[^a-z0-9_-]+")


def token(text: str) -> str:
    """An id as OSCAL's catalogues write theirs: ``CP-10(2)`` is ``cp-10.2``, ``Art. 9(3)(b)`` is ``art.9.3.b``; ``_`` before a digit."""
    made = _NOT_IN_TOKEN.sub(".", text.lower()).strip(".") or "unnamed"
    return made if made[0].isalpha() or made[0] == "_" else f"_{made}"


def tokens(requirement: str) -> list[str]:
    """The ids in a requirement that names several, like ``AC-3, AC-6``."""
    return [token(one) for one in requirement.split(",") if one.strip()]


def prop(name: str, value: object, remarks: str = "") -> dict[str, str]:
    """A property of ours; an unknown value is said to be that."""
    made = {"name": name, "ns": NAMESPACE, "value": line(value)}
    return {**made, "remarks": markdown(remarks)} if remarks else made


def props(values: Iterable[tuple[str, object]]) -> list[dict[str, str]]:
    """The properties whose value is known."""
    return [prop(name, value) for name, value in values if value is not None]


def resource(uuid: str, title: str, description: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401  # JSON values
    """A resource of the back matter."""
    return {"uuid": uuid, "title": markdown(title), "description": markdown(description), **more}


def hashed_file(href: str, sha256: str, media_type: str) -> dict[str, Any]:
    """A link to a file of the audit, relative to the root folder, with its hash."""
    return {"href": href, "media-type": media_type, "hashes": [{"algorithm": "SHA-256", "value": line(sha256)}]}
