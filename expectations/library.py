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
    from great_expectations.render.renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView
# This one module sets a level of its own when it is imported.
logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)

__all__ = [
    "DataContextConfig",
    "DefaultJinjaPageView",
    "InMemoryStoreBackendDefaults",
    "ValidationResultsPageRenderer",
    "gx",
    "pd",
    "result_schema",
]
