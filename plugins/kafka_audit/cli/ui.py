"""``kafka-audit ui``: Airflow with its UI, on a real cluster to audit and on a history to look at."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from kafka_audit.airflow.environment import chosen
from kafka_audit.airflow.run_dag import run_audit_through_airflow
from kafka_audit.airflow.standalone import running_airflow
from kafka_audit.cli.audit_progress import shown_progress
from kafka_audit.cli.demo import POLICIES
from kafka_audit.cli.options import Root, need_java, say
from kafka_audit.errors import AuditError, CollectionError, ConfigurationError
from kafka_audit.sample.story import CLUSTERS, SampleCluster
from kafka_audit.sample.template import newest_with_results
from kafka_audit.sample.write import has_history
from kafka_audit.sandbox import lifecycle
from kafka_audit.sandbox.definition import SEEDS
from kafka_audit.sandbox.earlier_snapshots import make_past
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.sandbox.watch import stopped_when_killed
from kafka_audit.shipped import with_shipped
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.mirrors import need_local

FAULTY = "faulty"
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What Airflow's DAGs read: the sandbox, under the name that ``kafka-audit demo`` gives the cluster of that seed, by its policy."""

    sandbox: Sandbox
    started: bool
    """Whether this command started the sandbox, so that it stops it, too."""

    @property
    def cluster(self) -> str:
        return f"demo-{self.sandbox.seed}"

    @property
    def policy(self) -> Path | None:
        """The policy of the seed; None, which is the shipped one, for a sandbox without a seed."""
        return POLICIES / self.sandbox.seed if (SEEDS / f"{self.sandbox.seed}.yaml").is_file() else None


def ui(
    root: Root = Path("audit-root"),
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port of 127.0.0.1 on which the UI listens.")] = 8080,
    sample: Annotated[
        bool, typer.Option("--sample/--no-sample", help="Write three weeks of made-up audits of clusters named sample-..., once.")
    ] = True,
) -> None:
    """Run Airflow with its UI until Ctrl-C. First starts the sandbox cluster and audits it once, where that was not done before."""
    need_java()
    check_free(port)
    place = root.resolve()
    need_local(place, "--root: the demo's UI")
    place.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with sandbox_up(place) as demo:
        if newest_with_results(EvidenceRoot(path=place), [demo.cluster]) is None:
            _step("audit", f"no audit of {demo.cluster} is below {place}: auditing it once", lambda: _audit(demo, place))
        if sample:
            sample_histories(place, demo.cluster)
        say("Starting Airflow (half a minute)")
        starting = time.monotonic()
        with running_airflow(
            root=place,
            connection=demo.sandbox.audit_connection,
            port=port,
            settings=chosen(cluster=demo.cluster, policy=demo.policy, controls=()),
        ) as process:
            say(f"Airflow is up after {time.monotonic() - starting:.0f} s; everything together took {time.monotonic() - began:.0f} s")
            print(what_to_see(place, demo, port), flush=True)
            try:
                process.wait()
            except KeyboardInterrupt:
                say("Stopping Airflow" + (" and the sandbox" if demo.started else ""))
                return
            raise CollectionError(f"Airflow ended by itself: {place.parent / '.airflow' / 'standalone.log'} says why")


def check_free(port: int) -> None:
    """ConfigurationError if something listens on the port; said before anything is started."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError as problem:
            raise ConfigurationError(f"--port: 127.0.0.1:{port} cannot be used ({problem.strerror}): name another port") from problem


@contextlib.contextmanager
def sandbox_up(root: Path) -> Iterator[Demo]:
    """The sandbox in its usual folder: one that is up is used and left as it is, else one is started, and stopped at the end."""
    found = lifecycle.status()
    if found.condition == "up" and found.bootstrap and found.seed:
        say(f"The sandbox is up at {found.bootstrap} (seed {found.seed})")
        yield Demo(sandbox=Sandbox(directory=found.directory, bootstrap=found.bootstrap, seed=found.seed), started=False)
        return
    with stopped_when_killed(found.directory):
        sandbox = _step("sandbox", f"starting three Kafka brokers with the seed '{FAULTY}'", lambda: lifecycle.start(FAULTY, progress=say))
        demo = Demo(sandbox=sandbox, started=True)
        try:
            _step("earlier snapshots", "reading the cluster before some of its faults happen", lambda: _past(demo, root))
            yield demo
        finally:
            sandbox.stop(say)


def _past(demo: Demo, root: Path) -> None:
    make_past(demo.sandbox, demo.sandbox.seed, root=root, cluster=demo.cluster, progress=say)


def _audit(demo: Demo, root: Path) -> None:
    with shown_progress() as progress:
        outcome = run_audit_through_airflow(
            connection=demo.sandbox.audit_connection, cluster=demo.cluster, root=root, policy_dir=demo.policy, progress=progress
        )
    if outcome.report is None:
        raise CollectionError("\n".join(("the audit left no report:", *outcome.reasons)))
    say(f"The audit ended {outcome.verdict}")


def sample_histories(root: Path, cluster: str, run: Callable[[Sequence[Sequence[str]]], None] | None = None) -> None:
    """Write the sample history of each sample cluster that has none, and say what is done; a failure costs only the samples.

    ``run``: runs commands at the same time, by default as processes.
    """
    place = EvidenceRoot(path=root)
    due = [one for one in CLUSTERS if not has_history(place, one)]
    template = newest_with_results(place, list(dict.fromkeys((f"demo-{FAULTY}", cluster)))) if due else None
    if not due:
        say("The sample history is there (to write it anew, delete audits/sample-* and evidence/sample-* below the root)")
    elif template is None:
        say(f"No sample history: it is made from an audit of demo-{FAULTY}, and there is none. Run `make demo` first")
    else:
        try:
            commands = [_command(root, template, names) for names in shares(due)]
            _step("sample history", "writing three weeks of made-up audits (half a minute)", lambda: (run or _run_all)(commands))
        except AuditError as problem:
            say(f"No sample history: {problem}")


def shares(clusters: Sequence[SampleCluster]) -> list[list[str]]:
    """The clusters' names for two processes, so that both have about as many audits to write."""
    made: list[list[SampleCluster]] = [[], []]
    for one in sorted(clusters, key=lambda cluster: -len(cluster.days)):
        min(made, key=lambda share: sum(len(cluster.days) for cluster in share)).append(one)
    return [[one.name for one in share] for share in made if share]


def _command(root: Path, template: tuple[str, str], names: Sequence[str]) -> list[str]:
    cluster, audit_id = template
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    module = [sys.executable, "-m", "kafka_audit.cli.sample_history"]
    return [*module, "--root", str(root), "--cluster", cluster, "--audit", audit_id, "--now", now, *names]


def _run_all(commands: Sequence[Sequence[str]]) -> None:
    """Run the commands at the same time; CollectionError with what the first that failed wrote last. None outlives the call."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, env=with_shipped(os.environ), **pipes) for command in commands]
    try:
        for process in running:
            told, wrong = process.communicate()
            for line in told.splitlines():
                say(line)
            if process.returncode:
                raise CollectionError((wrong.strip().splitlines() or [f"it ended with status {process.returncode}"])[-1])
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _step(name: str, what: str, work: Callable[[], Answer]) -> Answer:
    """Say what begins, do it, and say how long it took."""
    say(f"{name}: {what}")
    began = time.monotonic()
    result = work()
    say(f"{name}: done in {time.monotonic() - began:.0f} s")
    return result


def what_to_see(root: Path, demo: Demo, port: int) -> str:
    """The last lines before the command waits: address, login, and where to look."""
    samples = [one.name for one in CLUSTERS if has_history(EvidenceRoot(path=root), one)]
    return "\n".join(
        (
            "",
            f"  http://127.0.0.1:{port}   user admin, password admin; Ctrl-C stops it",
            "",
            f"  - Browse > Kafka reliability opens a new tab: {demo.cluster} is a real cluster on this machine",
            *([f"    {', '.join(samples)}: sample data, made up, no cluster was read"] if samples else []),
            "    Click a cluster, then Groups, a group, a topic, a control. Matrix, Waivers and Audits cover all clusters",
            "  - Dags > kafka_reliability_audit > Trigger audits the real cluster once more (about a minute).",
            "    Its report is then in the tab Audit report of the run",
            f"  - Snapshots, audits and reports are files below {root}",
            "",
        )
    )
