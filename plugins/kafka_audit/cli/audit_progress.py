"""What a person sees while an audit runs: on a terminal each task with its state and a running clock, else a line when a task has ended."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kafka_audit.airflow.run_dag import DATABASE, RUNNING, SUCCESS, WAITING, Step
from kafka_audit.cli.options import say
from kafka_audit.cli.terminal import terminal_of

GATE = "gate"
_STYLES = {WAITING: "dim", RUNNING: "bold cyan", SUCCESS: "green", "skipped": "yellow"}
_NOT_RUN = "not run"
_REDRAWN_PER_SECOND = 4


@contextmanager
def shown_progress() -> Iterator[Callable[[Step], None]]:
    """What :func:`run_audit_through_airflow` tells its steps to; on standard error, so that standard output has the result alone."""
    console = terminal_of(sys.stderr)
    if console is None:
        yield lambda step: _say_step(step, say)
    else:
        with on_terminal(console) as progress:
            yield progress


@contextmanager
def on_terminal(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[Step], None]]:
    """Draw the steps in place. ``clock`` counts seconds."""
    steps = Steps(clock=clock)
    with Live(get_renderable=steps.table, console=console, redirect_stdout=False, refresh_per_second=_REDRAWN_PER_SECOND) as live:

        def told(step: Step) -> None:
            steps.take(step)
            live.refresh()

        try:
            yield told
        finally:
            steps.has_ended = True


@dataclass(kw_only=True)
class Steps:
    """The newest state of each step, in the order in which they were first told, and when those that run began."""

    clock: Callable[[], float]
    has_ended: bool = False
    _steps: dict[str, Step] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)

    def take(self, step: Step) -> None:
        """Keep the state of a step."""
        if step.state == RUNNING:
            self._began[step.name] = self.clock()
        self._steps[step.name] = step

    def table(self) -> Table:
        """One line for each step. After the end no step waits or runs any more: it did not run, or was interrupted."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, show_header=False)
        for justify in ("left", "left", "right"):
            table.add_column(justify=justify, no_wrap=True)
        for step in list(self._steps.values()):
            seconds = step.seconds
            if step.state == RUNNING:
                seconds = self.clock() - self._began[step.name]
            word, style = self._word(step)
            table.add_row(Text(step.name), Text(word, style=style), Text("" if seconds is None else f"{seconds:.1f} s"))
        return table

    def _word(self, step: Step) -> tuple[str, str]:
        if self.has_ended and step.state in {WAITING, RUNNING}:
            return (_NOT_RUN, "dim") if step.state == WAITING else ("interrupted", "bold red")
        # A red gate is the audit's answer and not a broken step.
        if step.name == GATE and step.state == "failed":
            return "red", "bold red"
        return step.state, _STYLES.get(step.state, "bold red")


def _say_step(step: Step, tell: Callable[[str], None]) -> None:
    """The step as one line; nothing before it has ended, but that the first run takes longer."""
    if step.seconds is not None:
        state = "" if step.state == SUCCESS or step.name == GATE else step.state
        tell(f"{step.name:<16} {step.seconds:6.1f} s  {state}".rstrip())
    elif step.name == DATABASE:
        tell("first run: creating Airflow's database")
