"""``kafka-audit slas``: the policy's lag SLAs for other tools."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.cli.options import PolicyFolder
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.policy.slas import LagSla
from kafka_audit.report.metrics import openslo, prometheus_rules
from kafka_audit.report.metrics.slos import FRESH_MINUTES

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Write the policy's lag SLAs for Prometheus or as OpenSLO.")


class Format(StrEnum):
    """What the SLAs are written as."""

    OPENSLO = "openslo"
    PROMETHEUS = "prometheus"


_RENDER: Mapping[Format, Callable[[Sequence[LagSla], int], str]] = {
    Format.OPENSLO: openslo.render,
    Format.PROMETHEUS: prometheus_rules.render,
}


@app.callback()
def _slas() -> None:
    """Write the policy's lag SLAs for Prometheus or as OpenSLO."""


@app.command()
def export(
    form: Annotated[Format, typer.Option("--format", help="openslo: OpenSLO v1 documents; prometheus: recording rules and alerts.")],
    policy: PolicyFolder = None,
    output: Annotated[Path | None, typer.Option(help="File to write instead of standard output.")] = None,
    fresh_minutes: Annotated[int, typer.Option(min=1, help="Offsets older than this count as not known.")] = FRESH_MINUTES,
) -> None:
    """Write slas.yaml as OpenSLO v1, or as Prometheus rules with multi-window burn-rate alerts. Comments name SLAs without a target."""
    rules = load_policy(policy)
    text = _RENDER[form](rules.slas, fresh_minutes)
    if output is None:
        typer.echo(text, nl=False)
        return
    if output.resolve().parent == rules.folder.resolve():
        raise ConfigurationError(f"--output {output}: lies in the policy folder, which may hold only policy files: name another place")
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ConfigurationError(f"--output {output}: cannot be written ({problem.strerror}): name another file") from problem
