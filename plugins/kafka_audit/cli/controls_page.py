"""The control catalogue as one Markdown page, written from the files that the audit runs."""

import re
from collections.abc import Iterator, Sequence

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue
from kafka_audit.policy.frameworks import Framework
from kafka_audit.safe_text import paragraphs

_BACKTICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`*_<>\[\]|])")
_LINK = re.compile(r"(\bhttps?://[A-Za-z0-9][A-Za-z0-9.:/?#&=%@~+,;_-]*)")
_INTRO = """\
# Controls

Written by `kafka-audit controls docs` from the files in `spark_jobs/controls/` and the frameworks of the policy; edit those, then run
`make docs`. A rule is Spark SQL on one row of its subject: true passes, false fails, and null, which is missing evidence, is not
assessed. Severities and parameters are the catalogue's; a tier of the policy may set others. Commands are for reading first: an audit
prints them and runs none."""


def as_markdown(catalogue: Catalogue, frameworks: Sequence[Framework]) -> str:
    """One section per control, in the order of the codes, after a table of all; the same input gives the same text."""
    parts = [_INTRO, _contents(catalogue)]
    parts += ["\n".join(_section(control, frameworks)).strip() for control in catalogue.controls]
    return "\n\n".join(parts) + "\n"


def _contents(catalogue: Catalogue) -> str:
    rows = ["| code | control | subject | severity | evidence |", "|---|---|---|---|---|"]
    for control in catalogue.controls:
        link = f"[{_inline(control.title)}](#{control.code.lower()})"
        rows.append(f"| {control.code} | {link} | {_name(control.subject)} | {control.severity.value} | {control.evidence.value} |")
    return "\n".join(rows)


def _section(control: Control, frameworks: Sequence[Framework]) -> Iterator[str]:
    yield f'<a id="{control.code.lower()}"></a>\n\n## {control.code} {_inline(control.title)}\n'
    yield f"`{control.id}` · {control.severity.value} · {control.evidence.value} evidence · subject: {_name(control.subject)}\n"
    if control.applies_when:
        yield f"Applies when\n\n{_fenced(control.applies_when, 'sql')}\n"
    yield f"Passes when\n\n{_fenced(control.pass_when, 'sql')}\n"
    if control.expected_sql:
        yield f"Expected, as computed for each {_name(control.subject)}\n\n{_fenced(control.expected_sql, 'sql')}\n"
    else:
        yield f"Expected: {_inline(control.expected)}\n"
    if control.baseline_when:
        yield f"Not applicable in the first audit of a cluster, which takes the baseline, when\n\n{_fenced(control.baseline_when, 'sql')}\n"
    if control.undeclared_when:
        yield f"Not applicable, because PRD-05 asks for the declaration, when\n\n{_fenced(control.undeclared_when, 'sql')}\n"
    if control.evidence_of_row:
        yield f"The evidence class of one row\n\n{_fenced(control.evidence_of_row, 'sql')}\n"
    if control.parameters:
        yield "| parameter | default | stricter | meaning |\n|---|---|---|---|"
        for name, one in control.parameters.items():
            yield f"| `{name}` | {one.default} | {one.stricter} | {_inline(one.meaning)} |"
        yield ""
    yield f"**Why it matters.** {_prose(control.rationale)}\n"
    yield f"**What is lost, and when.** {_prose(control.failure_scenario)}\n"
    yield f"**The fix.** {_prose(control.remediation.text)}\n"
    if control.remediation.commands:
        yield _fenced("\n".join(control.remediation.commands), "sh") + "\n"
    for change in control.remediation.changes:
        decide = f" Decide first: {_inline(change.decide)}" if change.decide else ""
        yield f"{_inline(change.does)}{decide}\n\n{_fenced(change.command, 'sh')}\n"
    for name, sql in control.remediation.values.items():
        yield f"`{{{name}}}`, as computed for each {_name(control.subject)}; without a value there is no command\n\n{_fenced(sql, 'sql')}\n"
    yield f"**What the fix itself does.** {_prose(control.remediation_impact)}\n"
    if control.false_positives:
        yield f"**When this is not a fault.** {_prose(' '.join(control.false_positives))}\n"
    yield from _list("References", control.references)
    yield from _list("Frameworks it supports", [line for framework in frameworks for line in _requirements(control, framework)])


def _requirements(control: Control, framework: Framework) -> list[str]:
    ids = [requirement.id for requirement in framework.requirements if control.code in requirement.supported_by]
    return [f"{framework.title} ({framework.edition}): {'; '.join(ids)}"] if ids else []


def _list(heading: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"**{heading}**\n"
        yield "\n".join(f"- {_inline(item)}" for item in items) + "\n"


def _name(subject: str) -> str:
    return subject.replace("_", " ")


def _inline(text: str) -> str:
    """One line of prose with Markdown's own characters escaped; plain web links stay links, and nothing else becomes one."""
    parts = _LINK.split(" ".join(text.split()))
    return "".join(part if number % 2 else _SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts))


def _prose(text: str) -> str:
    return "\n\n".join(_inline(paragraph) for paragraph in paragraphs(text))


def _fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip()}\n{fence}"
