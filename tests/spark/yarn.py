"""A YARN cluster: a resource manager and a node manager, with HDFS, where applications put their files for the containers."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import psutil
from hadoop_jars import hadoop_jars, readable
from process_words import words_of
from standalone import executors_python, process_of_nobody, said

from kafka_audit.jars.fetch import java
from kafka_audit.sandbox.brokers import free_ports

_HADOOP = "org.apache.hadoop"
_LOG = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c{2}: %m%n
"""
_JAVA_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-opens=java.base/java.lang=ALL-UNNAMED")


@dataclass(frozen=True)
class YarnCluster:
    """``conf``: the folder for ``HADOOP_CONF_DIR``. ``python`` and ``folder``: as those of a SparkCluster.

    As root the containers run as another user, who cannot read tests' folders.
    """

    conf: Path
    python: Path
    folder: Path
    node: psutil.Process

    @property
    def executors(self) -> list[psutil.Process]:
        """The executors that run."""
        children = self.node.children(recursive=True)
        return [
            one for one in children if any("YarnCoarseGrainedExecutorBackend" in word for word in words_of(one)) and one.name() == "java"
        ]

    @property
    def started(self) -> int:
        """How many executors were started so far, lost ones included. The first container of an application asks YARN for them."""
        return len([one for one in self.folder.glob("logs/*/container_*") if not one.name.endswith("_000001")])


@contextmanager
def yarn_cluster() -> Iterator[YarnCluster]:
    """Start it and stop it with all its processes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="yarn-cluster-", ignore_cleanup_errors=True)))
        folder.chmod(0o777)
        jars = hadoop_jars("yarn", folder)
        conf, program = _conf(folder), Path(java())
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "JAVA_HOME": str(program.resolve().parents[1])}

        def daemon(name: str, main: str, *arguments: str) -> psutil.Process:
            command = [str(program), *_JAVA_OPTIONS, "-cp", f"{conf}:{jars}/*", f"{_HADOOP}.{main}", *arguments]
            return stack.enter_context(process_of_nobody(command, folder, name, environment))

        assert daemon("format", "hdfs.server.namenode.NameNode", "-format", "-nonInteractive").wait() == 0
        started = {
            "names": (daemon("names", "hdfs.server.namenode.NameNode"), "registerDatanode"),
            "data": (daemon("data", "hdfs.server.datanode.DataNode"), "Successfully sent block report"),
            "resources": (daemon("resources", "yarn.server.resourcemanager.ResourceManager"), r"NodeManager from node .* registered"),
            "node": (daemon("node", "yarn.server.nodemanager.NodeManager"), "Registered with ResourceManager"),
        }
        for name, (process, message) in started.items():
            said(process, folder / f"{name}.log", message)
        yield YarnCluster(conf=conf, python=executors_python(folder), folder=folder, node=started["node"][0])


def _conf(folder: Path) -> Path:
    """Settings for one small node on 127.0.0.1. A port that others ask for is chosen here, all others are 0."""
    conf = folder / "conf"
    for page in ("hdfs", "datanode"):  # the daemons do not start without the folders of their pages
        (conf / "webapps" / page).mkdir(parents=True)
    (conf / "log4j.properties").write_text(_LOG)
    names, resources, scheduler, tracker, admin = (f"127.0.0.1:{port}" for port in free_ports(5))
    _site(conf / "core-site.xml", {"fs.defaultFS": f"hdfs://{names}", "hadoop.tmp.dir": folder / "tmp"})
    _site(
        conf / "hdfs-site.xml",
        {
            "dfs.replication": 1,
            "dfs.permissions.enabled": "false",  # there are no folders of users
            **{f"dfs.{what}": "127.0.0.1:0" for what in ("namenode.http-address", "datanode.address", "datanode.http.address")},
            "dfs.datanode.ipc.address": "127.0.0.1:0",
        },
    )
    manager, node = "yarn.resourcemanager", "yarn.nodemanager"
    _site(
        conf / "yarn-site.xml",
        {
            f"{manager}.hostname": "127.0.0.1",
            f"{manager}.address": resources,
            f"{manager}.scheduler.address": scheduler,
            f"{manager}.resource-tracker.address": tracker,
            f"{manager}.admin.address": admin,
            f"{manager}.webapp.address": "127.0.0.1:0",
            f"{manager}.scheduler.class": f"{_HADOOP}.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler",
            **{f"{node}.{what}address": "127.0.0.1:0" for what in ("", "localizer.", "webapp.", "collector-service.")},
            f"{node}.resource.memory-mb": 4096,
            f"{node}.resource.cpu-vcores": 4,
            f"{node}.vmem-check-enabled": "false",
            f"{node}.disk-health-checker.enable": "false",  # a disk that is 90% full would do for these tests
            f"{node}.local-dirs": folder / "local",
            f"{node}.log-dirs": folder / "logs",
            "yarn.scheduler.minimum-allocation-mb": 128,
        },
    )
    return readable(conf)


def _site(path: Path, values: Mapping[str, object]) -> None:
    found = "".join(f"<property><name>{name}</name><value>{escape(str(value))}</value></property>" for name, value in values.items())
    path.write_text(f"<configuration>{found}</configuration>")
