"""Runs in compliance-trestle's own environment: reads assessment results with its models, and runs all of its validators on them.

Arguments: the files. Prints one line of JSON: {file: what is wrong, or null}.
"""

import json
import sys
from argparse import Namespace
from pathlib import Path

from trestle.common.const import VAL_MODE_ALL
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
    everything = validator_factory.get(Namespace(mode=VAL_MODE_ALL))
    return None if everything.model_is_valid(model, True, path.parent) else everything.error_msg()


print(json.dumps({"version": OSCAL_VERSION, "problems": {name: problem(Path(name)) for name in sys.argv[1:]}}))  # noqa: T201  # its output
