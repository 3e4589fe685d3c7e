"""The command `kafka-audit lag` itself on a terminal, with recorded readings in the place of a cluster's."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from pseudo_terminal import PseudoTerminal

SCRIPT = """
import sys
from lag_readings import Made
from kafka_audit.cli import lag
from kafka_audit.cli.main import main
from kafka_audit.errors import CollectionError

def reading(committed):
    made = Made().topic().log(50, 100)
    made.group("orders").member(("t", 0), group="orders", name="consumer-orders-1").commit(committed, group="orders")
    made.group("billing").commit(100, group="billing")
    return made.reading()

reads = iter([reading(100), reading(40), CollectionError("no broker answered")])

def take_reading(*given):
    one = next(reads, None) or CollectionError("still no broker")
    if isinstance(one, Exception):
        raise one
    return one

lag.take_reading = take_reading
sys.argv = ["kafka-audit", "lag", "--bootstrap", "127.0.0.1:1", *sys.argv[1:]]
main()
"""


@pytest.fixture
def run() -> Iterator[Callable[..., PseudoTerminal]]:
    started: list[PseudoTerminal] = []

    def start(*arguments: str, **about: object) -> PseudoTerminal:
        started.append(PseudoTerminal(SCRIPT, *arguments, **about))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_watching_redraws_marks_changes_follows_the_size_and_leaves_the_last_table(run: Callable[..., PseudoTerminal]) -> None:
    terminal = run("--watch", "0.1", columns=80)
    terminal.read_until("\x1b[?1049h", "was OK", "Not read again", "still no broker")
    narrow = terminal.read_until("Too narrow for")
    assert "consumer-orders-1" not in narrow
    terminal.resize(200)
    terminal.read_until("consumer-orders-1")
    terminal.process.send_signal(signal.SIGINT)
    left = terminal.read_to_end().split("\x1b[?1049l")[-1]

    assert "orders" in left
    assert "Ctrl-C" not in left
    assert "Traceback" not in terminal.written
    assert terminal.process.returncode == 0


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}])
def test_one_reading_is_a_line_for_each_group_in_colours_unless_nobody_wants_them(
    run: Callable[..., PseudoTerminal], env: dict[str, str]
) -> None:
    terminal = run(columns=100, env=env)
    text = terminal.read_to_end()

    assert terminal.process.returncode == 0
    assert "2 groups" in text
    assert "CONSUMER-ID" not in text.splitlines()[1]
    assert ("\x1b[32mOK" in text) is not bool(env)


def test_a_pipe_gets_the_columns_of_kafka_consumer_groups() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    piped = subprocess.run([sys.executable, "-c", SCRIPT, "--partitions"], env=env, capture_output=True, text=True, check=True)

    assert piped.stdout.splitlines()[0].split()[:3] == ["GROUP", "TOPIC", "PARTITION"]
    assert "\x1b" not in piped.stdout
    assert len(piped.stdout.splitlines()) == 3
