"""What holds for every test run: Ctrl-C works in the tests and in what they start, their Spark session has enough memory, and
what one process must run is kept together when several share the tests."""

import os
import signal
from pathlib import Path

import pytest

# A shell without job control starts background jobs with SIGINT ignored, and children inherit that; a CI runner may be one.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One Spark session lives through all tests: what a thousand plans leave behind is more than a job ever holds.
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell")

_TESTS = Path(__file__).parent
_LONGEST_FIRST = ("spark", "integration")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``-n``, a module stays in one process, and so does all that shares the Spark session; the longest parts start first."""
    for item in items:
        folder = item.path.relative_to(_TESTS).parts[0]
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark" if folder == "spark" else item.path.stem))
    items.sort(key=lambda item: [folder not in item.path.parts for folder in _LONGEST_FIRST])
