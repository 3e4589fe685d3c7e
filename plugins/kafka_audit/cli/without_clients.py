"""Lets kafka-python's protocol and network be imported without its clients, which its package imports first.

Importing any module of a package runs the package's own code. That of ``kafka`` imports the consumer, the producer and the admin client
with their codecs: a tenth of the CPU time of ``kafka-audit snapshot``, which uses none of them. Python has no other way around it than an
entry in ``sys.modules``. Can go when ``kafka/__init__.py`` imports its clients lazily.
"""

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

_LOADING = threading.RLock()


class _Package(ModuleType):
    """A package whose own code runs when somebody asks for a name that only this code gives, such as a client."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the package has under that name
        spec = self.__spec__
        with _LOADING:
            if spec is not None and spec.loader is not None and spec.loader_state is None:
                spec.loader_state = "loaded"
                spec.loader.exec_module(self)
        if name in vars(self):
            return vars(self)[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def put_clients_off(package: str) -> None:
    """From now on the code of a package runs when it is needed; nothing changes for a package that is loaded or not installed."""
    spec = None if package in sys.modules else importlib.util.find_spec(package)
    if spec is not None:
        module = importlib.util.module_from_spec(spec)
        module.__class__ = _Package
        sys.modules[package] = module
