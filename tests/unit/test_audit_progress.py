"""What `kafka-audit audit` shows while it runs: each task with its state and seconds on a terminal, plain lines elsewhere."""

import io
import json

import pytest
from rich.console import Console

from kafka_audit.airflow.run_dag import DATABASE, RUNNING, START, SUCCESS, WAITING, Step, follow
from kafka_audit.cli.audit_progress import Steps, on_terminal, shown_progress

TASKS = ("plan", "snapshot", "gate")
EVENTS = (
    {"event": "phase", "name": DATABASE, "seconds": 9.1},
    {"event": "first task", "tasks": TASKS},
    {"event": "task", "name": "plan", "state": RUNNING, "seconds": None},
    {"event": "task", "name": "plan", "state": SUCCESS, "seconds": 1.2},
    {"event": "task", "name": "snapshot", "state": RUNNING, "seconds": None},
    {"event": "task", "name": "snapshot", "state": "failed", "seconds": 3.0},
    {"event": "end", "verdict": "ERROR"},
)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def told(events):
    steps, seconds = [], {}
    end = follow(map(json.dumps, events), 0.0, seconds, steps.append)
    return steps, seconds, end


def drawn(steps):
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(steps.table())
    return [line.split() for line in console.file.getvalue().splitlines()]


def test_each_step_is_told_when_it_begins_and_when_it_ends():
    steps, seconds, end = told(EVENTS)

    assert [(step.name, step.state) for step in steps] == [
        (DATABASE, SUCCESS),
        (START, RUNNING),
        (START, SUCCESS),
        *((name, WAITING) for name in TASKS),
        ("plan", RUNNING),
        ("plan", SUCCESS),
        ("snapshot", RUNNING),
        ("snapshot", "failed"),
    ]
    assert list(seconds) == [DATABASE, START, "plan", "snapshot"]
    assert end == EVENTS[-1]


def test_a_run_that_dies_has_no_end():
    assert told(EVENTS[:-1])[2] is None


def test_a_running_task_has_a_clock_and_those_after_it_wait():
    clock = Clock()
    steps = Steps(clock=clock)
    for step in told(EVENTS[:5])[0]:
        steps.take(step)
    clock.now += 7.5

    assert drawn(steps)[2:] == [["plan", "success", "1.2", "s"], ["snapshot", "running", "7.5", "s"], ["gate", "waiting"]]
    clock.now += 1
    assert drawn(steps)[3] == ["snapshot", "running", "8.5", "s"]


def test_a_red_gate_is_no_broken_step_and_after_the_end_nothing_waits():
    steps = Steps(clock=Clock())
    for step in (Step(name="report", state=RUNNING), Step(name="other", state=WAITING), Step(name="gate", state="failed", seconds=0.5)):
        steps.take(step)
    steps.has_ended = True

    assert drawn(steps) == [["report", "interrupted", "0.0", "s"], ["other", "not", "run"], ["gate", "red", "0.5", "s"]]


def test_a_terminal_keeps_the_last_state_of_each_task_also_after_ctrl_c():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None, _environ={"TERM": "xterm"})
    with pytest.raises(KeyboardInterrupt), on_terminal(console, clock=Clock()) as progress:
        progress(Step(name="snapshot", state=RUNNING))
        raise KeyboardInterrupt

    last = [line for line in console.file.getvalue().splitlines() if "snapshot" in line][-1]
    assert last.split()[1:] == ["interrupted", "0.0", "s"]


def test_elsewhere_a_line_is_printed_when_a_step_has_ended(capsys):
    with shown_progress() as progress:
        for step in [Step(name=DATABASE, state=RUNNING), *told(EVENTS)[0], Step(name="gate", state="failed", seconds=0.5)]:
            progress(step)
    lines = [line.split("  ", 1)[1] for line in capsys.readouterr().err.splitlines()]

    assert lines[0] == "first run: creating Airflow's database"
    assert lines[1] == "airflow database    9.1 s"
    assert lines[3:] == ["plan                1.2 s", "snapshot            3.0 s  failed", "gate                0.5 s"]
