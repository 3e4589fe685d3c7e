"""Scores this project and other tools on all cases and writes the result as Markdown: ``python -m conformance.score docs/conformance.md``."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.adapters import TOOLS
from conformance.cases import Answer, Case, load_cases, load_questions
from conformance.ours import answers

from spark_jobs.engine.session import spark_session

OURS = "kafka-audit"
_HEAD = Path(__file__).parent / "head.md"


def render(cases: Sequence[Case], ours: Mapping[str, Answer]) -> str:
    """The page: a table of right, wrong and no answer by tool, then what each says wrong."""
    given: dict[str, dict[str, Answer]] = {OURS: dict(ours)}
    for tool, rules in TOOLS.items():
        said = {case.id: rules[case.question](case) for case in cases if case.question in rules}
        given[tool] = {name: answer for name, answer in said.items() if answer is not None}
    questions = load_questions()
    counts = f"{len(cases)} cases on {len({case.question for case in cases})} questions"
    lines = [_HEAD.read_text().replace("{counts}", counts), "## Score", "", "| tool | right | wrong | no answer |", "|---|---|---|---|"]
    wrong = {tool: [case for case in cases if case.id in said and not case.is_right(said[case.id])] for tool, said in given.items()}
    for tool, said in given.items():
        lines.append(f"| {tool} | {len(said) - len(wrong[tool])} | {len(wrong[tool])} | {len(cases) - len(said)} |")
    lines += ["", "## Answers on which a tool is wrong"]
    for tool, said in given.items():
        lines += ["", f"### {tool}", ""]
        if not wrong[tool]:
            lines.append("None.")
            continue
        lines += ["| case | what happens | question | right | its answer | why |", "|---|---|---|---|---|---|"]
        for case in wrong[tool]:
            cells = (f"`{case.id}`", case.title, questions[case.question]["asks"], case.answer, said[case.id], case.why)
            lines.append(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def main(target: Path) -> None:
    cases = load_cases()
    spark = spark_session("conformance")
    try:
        with tempfile.TemporaryDirectory() as folder:
            ours = answers(spark, Path(folder), cases)
    finally:
        spark.stop()
    target.write_text(render(cases, ours))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
