"""The ``kafka-audit`` command. Exit codes: 0 passed, 1 failure, 2 invalid input, 3 gate failed, 4 incomplete, 5 integrity."""

import atexit
import gc
import signal
import sys
from collections import UserDict
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from kafka_audit import __version__
from kafka_audit.cli.options import printable
from kafka_audit.errors import AuditError
from kafka_audit.store.durable_files import keep_new_files_private

COMMANDS = {
    "audit": "audit:audit",
    "fix": "fix:fix",
    "report": "sealed_audit:report",
    "export": "sealed_audit:export",
    "fleet": "fleet:fleet",
    "snapshot": "snapshot:snapshot",
    "check-clients": "rules:check_client_files",
    "diff": "diff:diff",
    "history": "retention:group_history",
    "demo": "demo:demo",
    "doctor": "doctor:doctor",
    "connections": "connections:connections",
    "ui": "ui:ui",
    "version": "main:version",
    "lag": "lag:lag",
    "retention": "retention:retention",
    "verify": "integrity:verify",
    "root": "root:app",
    "sandbox": "sandbox:app",
    "controls": "rules:controls_app",
    "policy": "rules:policy_app",
    "slas": "slas:app",
    "keys": "integrity:keys_app",
}
"""Where each command is, as ``<module of this folder>:<function or group of commands>``."""


class _Commands(UserDict[str, Any]):
    """The commands by name. A command's module is imported when the command is looked up, so that no command waits for another's."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a command of the click that typer brings along
        module, _, attribute = self.data[name].partition(":")
        found = getattr(import_module(f"kafka_audit.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            group = get_group(found)
            group.name = name
            return group
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        return get_command(alone)


class _LazyGroup(TyperGroup):
    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attributes)
        self.commands = _Commands(COMMANDS)


app = typer.Typer(cls=_LazyGroup, no_args_is_help=True, add_completion=False)


def version() -> None:
    """Print the version."""
    print(__version__)


def _version_only(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def _kafka_audit(
    _version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version_only)] = False,
) -> None:
    """Reliability audit for Apache Kafka: evidence, verdicts and reports."""


def _interrupted(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main(call: Callable[[], None] = app) -> None:
    """Run the command; every expected error becomes one message on standard error and its exit code."""
    # A supervisor's TERM takes the same way out as Ctrl-C, so that brokers and Spark are stopped.
    signal.signal(signal.SIGTERM, _interrupted)
    keep_new_files_private()
    atexit.register(gc.freeze)  # at exit Python looks for cycles in everything once more
    # pyarrow imports numpy where it is installed, for a tenth of a second. No command uses it; None says that it is not installed.
    sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]
    try:
        call()
    except AuditError as problem:
        print(f"kafka-audit: {printable(str(problem))}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        print("kafka-audit: interrupted; everything it started has been stopped", file=sys.stderr)
        sys.exit(130)
