"""Where the shipped folders ``spark_jobs``, ``expectations`` and ``dags`` are, and how a process comes to import them.

In a checkout they lie at its top; in an installed wheel below ``kafka_audit/_bundled``, because names so plain must not appear among
everybody's packages. A process of ours finds them by PYTHONPATH (:func:`with_shipped`), a process that is shared by :func:`provide`.
"""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kafka_audit.errors import ConfigurationError

_PACKAGE = Path(__file__).resolve().parent
_BUNDLED = _PACKAGE / "_bundled"
HOME = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parents[1]
"""The folder that holds ``spark_jobs``, ``expectations`` and ``dags``."""


def shipped_folder(name: str) -> Path:
    """The folder of that name, such as ``spark_jobs/controls``; ConfigurationError when it is not there."""
    folder = HOME / name
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {folder}: install kafka-audit again")
    return folder


def with_shipped(environment: Mapping[str, str]) -> dict[str, str]:
    """That environment for a process that imports ``spark_jobs`` or ``expectations``: they come first in its PYTHONPATH."""
    path = os.pathsep.join(filter(None, (str(HOME), environment.get("PYTHONPATH"))))
    return {**environment, "PYTHONPATH": path}


def provide(name: str) -> None:
    """Let this process import the shipped package ``name``, whatever else of that name lies on its path.

    ConfigurationError when the process has imported another package of that name already: a DAG file has, or a plugin.
    """
    file = HOME / name / "__init__.py"
    loaded = sys.modules.get(name)
    if loaded is not None:
        place = getattr(loaded, "__file__", None) or next(iter(getattr(loaded, "__path__", [])), "")
        if Path(place).resolve() != file:
            raise ConfigurationError(
                f"this process has imported another package {name}, from {place or 'an unknown place'}: "
                "keep its import out of the file of these DAGs, or rename it"
            )
        return
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(file.parent)])
    if spec is None or spec.loader is None or not file.is_file():
        raise ConfigurationError(f"there is no file {file}: install kafka-audit again")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
