"""Writes a plan as a POSIX shell script: every name is quoted, every comment is one line, and what a person decides is commented out."""

from collections.abc import Iterator

from kafka_audit.report.fix_plan import Left, Plan, Step
from kafka_audit.safe_text import shortened, visible

_LONGEST_TEXT = 1_000
_LISTED = 10


def render(plan: Plan) -> str:
    """The script; the same plan gives the same text."""
    ready = [step for step in plan.steps if step.decide is None]
    decisions = [step for step in plan.steps if step.decide is not None]
    return "\n".join([*_head(plan, len(ready), len(decisions)), *_steps(ready, 1), *_decisions(decisions, len(ready)), *_rest(plan)]) + "\n"


def _head(plan: Plan, ready: int, decisions: int) -> Iterator[str]:
    yield "#!/bin/sh"
    yield _comment(f"Plan to repair the failures of audit {plan.audit_id} of cluster {plan.cluster} (snapshot {plan.snapshot_id}).")
    yield _comment(
        f"Written by kafka-audit fix, which changes nothing. Commands to run: {ready}. Commented out, for a person to decide: {decisions}."
    )
    yield "# Values are computed from the snapshot: if the cluster has changed since, audit it again before you run this."
    yield "# Kafka's bin folder must be on the PATH. Set BOOTSTRAP to HOST:PORT of a broker. For a cluster with authentication, set"
    yield "# OPTIONS='--command-config FILE', where FILE has the settings of an administrator."
    yield "# The first command that fails ends the script."
    yield "set -eu"
    yield ': "${BOOTSTRAP:?set it to HOST:PORT of a broker of the cluster}" "${OPTIONS:=}"'


def _decisions(steps: list[Step], before: int) -> Iterator[str]:
    if steps:
        yield ""
        yield "# ---- Decisions: remove the '# ' before a command once you have decided for it."
        yield from _steps(steps, before + 1)


def _steps(steps: list[Step], first: int) -> Iterator[str]:
    for number, step in enumerate(steps, first):
        yield ""
        for place, reason in enumerate(step.reasons[:_LISTED]):
            start = f"{number}. " if place == 0 else "   also "
            yield _comment(f"{start}{reason.code} ({reason.severity}) {reason.resource}: {reason.title}")
            yield _comment(f"   Present: {reason.observed}")
        if len(step.reasons) > _LISTED:
            yield _comment(f"   and {len(step.reasons) - _LISTED} more failures")
        yield _comment(f"   Does: {step.does}")
        for impact in dict.fromkeys(reason.impact for reason in step.reasons):
            yield _comment(f"   Risk: {impact}")
        if step.decide is None:
            yield step.command
        else:
            yield _comment(f"   Decide first: {step.decide}")
            yield "\n".join(f"# {line}" for line in step.command.split("\n"))


def _rest(plan: Plan) -> Iterator[str]:
    if plan.left:
        yield ""
        yield "# ---- Failures without a command: the text says what to do."
        for one in plan.left:
            yield from _left(one)
    if plan.waived:
        yield ""
        yield _comment(f"---- Failures that are waived, and left out: {plan.waived}.")


def _left(one: Left) -> Iterator[str]:
    more = len(one.resources) - _LISTED
    listed = ", ".join(one.resources[:_LISTED]) + (f" and {more} more" if more > 0 else "")
    yield _comment(f"{one.code} {listed}: {one.title}")
    yield _comment(f"   {one.text}")


def _comment(text: str) -> str:
    """A comment of one line; whatever would end the line or hide a part of it is spelled out."""
    kept, cut = shortened(visible(" ".join(text.split(" "))), _LONGEST_TEXT)
    return f"# {kept}{f'... ({cut} more characters)' if cut else ''}".rstrip()
