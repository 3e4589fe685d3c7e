"""The demo's brokers end when the demo ends, however it ends."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from kafka_audit.sandbox.state import Folder

# A demo whose one broker is a process that sleeps, in a session of its own.
DEMO = """
import sys, time
from pathlib import Path
from kafka_audit.sandbox import processes
from kafka_audit.sandbox.state import Folder, State
from kafka_audit.sandbox.watch import stopped_when_killed
folder = Folder(Path(sys.argv[1]))
folder.claim()
folder.data.mkdir()
with stopped_when_killed(folder.path):
    argument = str(folder.properties(1))
    command = [sys.executable, "-c", "import time; time.sleep(600)", argument]
    record = processes.launch("broker-1", command, argument=argument, log=folder.log("broker-1"), cwd=folder.data)
    folder.save(State(seed="none", cluster_id="", bootstrap="", brokers=(), processes=(record,)))
    print(record.pid, flush=True)
    if sys.argv[2] == "wait":
        time.sleep(600)
"""


def demo(folder: Path, then: str) -> tuple["subprocess.Popen[bytes]", psutil.Process]:
    process = subprocess.Popen([sys.executable, "-c", DEMO, str(folder), then], stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, psutil.Process(int(process.stdout.readline()))


def runs(process: psutil.Process) -> bool:
    """A zombie does not: it has ended, and its parent, here the machine's first process, may ask for its exit code seconds later."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def watchers(folder: Path) -> list[int]:
    """The processes that wait for the end of a demo, or that stop its brokers then."""
    words = {one.pid: set(one.info["cmdline"] or ()) for one in psutil.process_iter(["pid", "cmdline"])}
    modules = {"kafka_audit.sandbox.watch", "kafka_audit.sandbox.lifecycle"}
    return [pid for pid, said in words.items() if str(folder) in said and said & modules]


def test_a_killed_demo_leaves_no_broker_no_data_and_no_watcher(tmp_path: Path) -> None:
    process, broker = demo(tmp_path / "demo", "wait")
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 300
    while (runs(broker) or watchers(tmp_path / "demo")) and time.monotonic() < end:
        time.sleep(0.05)
    assert not runs(broker)
    assert watchers(tmp_path / "demo") == []
    assert not Folder(tmp_path / "demo").data.exists()


def test_a_demo_that_ends_by_itself_stops_its_brokers_itself(tmp_path: Path) -> None:
    process, broker = demo(tmp_path / "demo", "end")
    assert process.wait() == 0
    assert broker.is_running()
    assert watchers(tmp_path / "demo") == []
    broker.kill()
