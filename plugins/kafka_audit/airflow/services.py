"""``airflow standalone`` without its log servers: ``python -m kafka_audit.airflow.services``. Started by standalone.py.

The servers by which workers and the triggerer show their logs to other machines listen on every address, and no setting of Airflow's
says otherwise. On one machine they are of no use: the UI reads the same files.
"""

import sys
from typing import Any

from airflow.__main__ import main as airflow_command
from airflow.cli.commands import standalone_command

_WITH_LOG_SERVER = ("scheduler", "triggerer")


class _WithoutLogServer(standalone_command.SubCommand):
    def __init__(self, parent: Any, name: str, command: list[str], env: dict[str, str]) -> None:  # noqa: ANN401  (as Airflow has it)
        super().__init__(parent, name, [*command, "--skip-serve-logs"] if name in _WITH_LOG_SERVER else command, env)


def main() -> None:
    """Run all of Airflow until SIGINT."""
    standalone_command.SubCommand = _WithoutLogServer  # type: ignore[misc]
    sys.argv = ["airflow", "standalone"]
    airflow_command()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
