"""Proposes the waivers of a risk that a reviewer accepted, as a ``waivers.yaml`` for the policy's repository.

At most :data:`MOST` waivers: one for each failing control and resource; where that would be more, one for a control with a glob that
matches no other resource of the audit. Nothing is made wider than what failed: what has no such glob is left out, and said.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timezone
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from kafka_audit.audit.review_answer import Answer
from kafka_audit.audit.review_record import NOT_IDENTIFIED
from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.fields import Code
from kafka_audit.policy.waivers import WaiverFile
from kafka_audit.report.tally import rank
from kafka_audit.report.unwaived import OfControl, Unwaived, read_unwaived, wider
from kafka_audit.safe_text import visible
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.layout import Audit

MOST = 200
"""The largest number of waivers that one review proposes."""
_LONGEST_PATTERN = 1_000
_SPECIAL = re.compile(r"[*?]|\[(?=[*?\[])")
_CODE: TypeAdapter[str] = TypeAdapter(Code)


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """``text``: the file. ``count``: its waivers. ``left_out``: what failed and has none, in sentences."""

    text: str
    count: int
    left_out: tuple[str, ...]


def literal(resource: str) -> str:
    """A resource as a waiver names exactly this one: what a waiver reads as a pattern is in brackets (kafka_audit.policy.waivers)."""
    return _SPECIAL.sub(lambda found: f"[{found[0]}]", resource)


def propose(audit: Audit, answer: Answer, review_id: str, reviewed: Seal) -> Proposed:
    """The waivers of an accepted answer that was checked. IntegrityError when the audit's results cannot be read."""
    unwaived = read_unwaived(audit, shown=0, kept=MOST)
    patterns, left_out = _patterns(audit, unwaived)
    reviewer = answer.reviewer.text if answer.reviewer else ""
    shared = {
        "owner": answer.owner,
        "approver": reviewer,
        "ticket": answer.ticket,
        "justification": answer.reason,
        "approved_on": answer.decided_at.astimezone(timezone.utc).date().isoformat(),
        "expires": answer.expires_at.isoformat().replace("+00:00", "Z"),
    }
    waivers = [
        {"id": f"{review_id}-{number:03}", "control": code, "resource": pattern, **shared}
        for number, (code, pattern) in enumerate(patterns, 1)
    ]
    try:
        WaiverFile.model_validate({"version": 1, "waivers": waivers})
    except ValidationError as problem:
        told = "; ".join(f"{'.'.join(map(str, one['loc'][2:]))}: {one['msg']}" for one in problem.errors(include_url=False)[:3])
        raise ConfigurationError(
            f"the answer makes no valid waivers ({told}). Nothing was recorded: clear the task `review` with its "
            "downstream tasks, and correct it"
        ) from problem
    known = answer.reviewer is not None and answer.reviewer.is_known
    head = _head(reviewed, len(waivers), unwaived.total, left_out, known=known)
    return Proposed(text=head + _yaml({"version": 1, "waivers": waivers}), count=len(waivers), left_out=tuple(left_out))


def _patterns(audit: Audit, unwaived: Unwaived) -> tuple[list[tuple[str, str]], list[str]]:
    """(code, pattern) of each waiver, worst control first, and what was left out. Controls with few failures are named one by one first."""
    usable = [one for one in unwaived.controls.values() if _is_code(one.code)]
    left_out = [f"{one.count} failures of a control without a valid code" for one in unwaived.controls.values() if not _is_code(one.code)]
    chosen: list[tuple[OfControl, list[str]]] = []
    globs, room = [], MOST
    ordered = sorted(usable, key=lambda one: (one.count, one.code))
    for number, one in enumerate(ordered):
        after = len(ordered) - number - 1
        if one.count <= room - after:
            names = [literal(name) for name in sorted(one.resources)]
            chosen.append((one, [name for name in names if _is_pattern(name)]))
            room -= len(names)
            if unnamed := [name for name in names if not _is_pattern(name)]:
                left_out.append(f"{one.code}: {len(unnamed)} resources whose names are too long for a waiver")
        else:
            globs.append(one)
            room -= 1
    prefixes = {one.code: one.prefix for one in globs if one.prefix}
    too_wide = wider(audit, prefixes)
    for one in globs:
        pattern = f"{literal(prefixes.get(one.code, ''))}*"
        if one.code not in prefixes or one.code in too_wide or not _is_pattern(pattern):
            left_out.append(f"{one.code}: {one.count} failures are more than fit here, and no glob names these and no other resource")
        else:
            chosen.append((one, [pattern]))
    chosen.sort(key=lambda of: (rank(of[0].worst), of[0].code))
    return [(one.code, pattern) for one, patterns in chosen for pattern in patterns], left_out


def _is_code(code: str) -> bool:
    try:
        _CODE.validate_python(code)
    except ValidationError:
        return False
    return True


def _is_pattern(pattern: str) -> bool:
    """Whether a waiver can hold it: the field ``resource`` has a limit."""
    return 0 < len(pattern) <= _LONGEST_PATTERN


def _head(reviewed: Seal, count: int, total: int, left_out: list[str], *, known: bool) -> str:
    lines = [
        "Proposed waivers: they have no effect until they are in the waivers.yaml of the policy (kafka-audit policy check).",
        f"From the review of {reviewed}.",
        f"{count} waivers for {total} failures that had none. A glob (with *) also matches resources that are made later.",
        *([] if known else [NOT_IDENTIFIED]),
        *(f"Left out: {one}." for one in left_out),
    ]
    return "".join(f"# {visible(line)}\n" for line in lines)


class _Quoted(str):
    """A text that is written in quotes, so that no reader takes it for a number, a date or a reference."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Quoted, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"'))


def _yaml(content: Mapping[str, Any]) -> str:
    """YAML in ASCII: characters that draw nothing or turn the line around are spelled out."""
    waivers = [dict(_quoted(one)) for one in content["waivers"]]
    return yaml.dump({**content, "waivers": waivers}, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=10_000)


def _quoted(waiver: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in waiver.items():
        yield name, _Quoted(text)
