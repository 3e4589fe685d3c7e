"""What an audit asked of a resource beside the rule of the control (``catalogue/rule.py``): parameters, and what the policy demands."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_audit.audit.inputs import policy_files
from kafka_audit.policy import Policy
from kafka_audit.store.durable_files import sha256_of

_NO_ASK = re.compile(r"waivers\.yaml|frameworks/[^/]+\.yaml")
"""Policy files that change no verdict. A client's settings file may have any other name, also in these folders."""
_PREFIXES = ("policy", "parameters", "isolation")
"""What the names of such values begin with; isolation is what clients.yaml declares, and decides which unread records count as lag."""
_ENCODER = json.JSONEncoder(sort_keys=True)


def policy_hashes(policy: Policy | Path) -> dict[str, str]:
    """The sha256 of every file of a policy, or of an audit's copy of it, by name."""
    if isinstance(policy, Path):
        files = {path.relative_to(policy).as_posix(): path for path in policy.rglob("*") if path.is_file()}
    else:
        files = policy_files(policy)
    return {name: sha256_of(path) for name, path in sorted(files.items())}


def changes_verdicts(name: str) -> bool:
    """Whether a policy file of that name can change what is asked."""
    return _NO_ASK.fullmatch(name) is None


def asked_of(evidence: str | None) -> str | None:
    """What a finding's evidence says that the policy and the parameters asked of the resource, as JSON; None if it does not say."""
    try:
        value = json.loads(evidence or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    asked = {name: one for name, one in value.items() if name.startswith(_PREFIXES) and name.split(".")[0] in _PREFIXES}
    return _ENCODER.encode(asked) if asked else "{}"


def differences(before: str, now: str) -> list[str]:
    """What two askings differ in, by name: ``parameters.max_skew_ms was 5000 and is 3000``."""
    old, new = json.loads(before), json.loads(now)
    names = sorted(name for name in {*old, *new} if name not in old or name not in new or old[name] != new[name])
    return [f"{name} was {_shown(old, name)} and is {_shown(new, name)}" for name in names]


def lost_in(evidence: str | None) -> int | None:
    """The number of lost records in a finding's evidence; None if it does not say."""
    try:
        value = json.loads(evidence or "").get("lost")
    except (ValueError, RecursionError, AttributeError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(values: Mapping[str, Any], name: str) -> str:
    return json.dumps(values[name], ensure_ascii=False)[:80] if name in values else "not asked"
