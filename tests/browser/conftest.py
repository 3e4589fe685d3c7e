"""A browser for all tests of a module."""

from collections.abc import Iterator
from typing import Any

import pytest
from chromium import CHROMIUM, QUIET


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed, so no browser can be driven")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()
