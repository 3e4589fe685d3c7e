"""Great Expectations and pandas as the gates use them, imported quietly and without what no gate uses.

Importing this module takes six seconds and 290 MB.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_NOT_USED = ("pyspark", "rfc3987_syntax")
"""Optional to Great Expectations and what it imports: for tables in Spark, and for checking that a text is an internationalised address,
for which 38 grammars are compiled. Together a quarter of the time that importing it takes."""


@contextmanager
def _not_installed(*names: str) -> Iterator[None]:
    """Importing one of these packages meanwhile fails as if it were not installed; one that is imported already is left alone."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None is Python's own mark for it
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


os.environ["GX_ANALYTICS_ENABLED"] = "False"
logging.getLogger("great_expectations").setLevel(logging.WARNING)
with _not_installed(*_NOT_USED):
    import great_expectations as gx
    import pandas as pd
    from great_expectations.core.expectation_validation_result import expectationSuiteValidationResultSchema as result_schema
    from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults
    from great_expectations.expectations.expectation import Expectation
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.render.renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView
# This one module sets a level of its own when it is imported.
logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)


@contextmanager
def configurations_made_once() -> Iterator[None]:
    """Inside the block, each Expectation computes its configuration once.

    Otherwise ``Expectation.configuration`` computes it from all fields each time it is read. A validation only reads it, but some ten times
    for each metric of each rule, which takes a third of the validation's time.
    """
    made: dict[int, tuple[Expectation, ExpectationConfiguration]] = {}
    original = Expectation.configuration

    def configuration(self: Expectation) -> ExpectationConfiguration:
        if id(self) not in made:
            made[id(self)] = self, original.fget(self)  # the Expectation is kept, so no other one gets its id
        return made[id(self)][1]

    Expectation.configuration = property(configuration)
    try:
        yield
    finally:
        Expectation.configuration = original


__all__ = [
    "DataContextConfig",
    "DefaultJinjaPageView",
    "InMemoryStoreBackendDefaults",
    "ValidationResultsPageRenderer",
    "configurations_made_once",
    "gx",
    "pd",
    "result_schema",
]
