"""Runs in compliance-trestle's own environment: reads assessment results with its models, and runs all of its validators on them.

Arguments: the files. Prints one line of JSON: {file: what is wrong, or null}.
"""

import json
import sys
from pathlib import Path

from trestle.core.validator_factory import validator_factory
from trestle.oscal import OSCAL_VERSION
from trestle.oscal.assessment_results import AssessmentResults


def problem(path: Path) -> str | None:
    try:
        model = AssessmentResults.oscal_read(path)
    except Exception as failure:  # noqa: BLE001  # whatever trestle raises is what is wrong
        return str(failure)
    if model is None:
        return "there is no such file"
    names = ("all", "duplicates", "refs", "links")
    failed = [name for name in names if not validator_factory.get(name).model_is_valid(model, True, path.parent)]
    return f"trestle's validator {', '.join(failed)} refuses it" if failed else None


print(json.dumps({"version": OSCAL_VERSION, "problems": {name: problem(Path(name)) for name in sys.argv[1:]}}))  # noqa: T201  # its output
