"""Makes the archive of Kafka's classes that the sandbox's brokers and Kafka's tools start from. ``make jars`` runs it once.

Half of such a start is reading and checking classes. From an archive of loaded classes (class-data sharing, JEP 350) a JVM maps them into
memory instead. The archive serves the JVM and the jars that it was made with. A different JVM ignores it and starts as it does without one.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kafka_audit.errors import CollectionError
from kafka_audit.jars.fetch import broker_classpath
from kafka_audit.sandbox import brokers, processes
from kafka_audit.sandbox.definition import Brokers, Node
from kafka_audit.sandbox.state import Folder

_WRITE_TIMEOUT_S = 60.0


def make_class_data() -> None:
    """Write the archive of the jars that brokers start from, unless there is one; CollectionError if the broker wrote none."""
    classpath = broker_classpath(print)
    archive = brokers.class_data(classpath)
    if archive.is_file():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=archive.parent) as name:
        written, folder = Path(name, archive.name), Folder(Path(name, "sandbox"))
        one = Brokers(config={"offsets.topic.replication.factor": "1"}, nodes=(Node(id=1, rack="rack-a"),))
        planned = brokers.plan(one, folder)
        brokers.write_properties(brokers.properties(one, planned, planned[0], folder), folder.properties(1))
        brokers.format_storage(classpath, brokers.new_cluster_id(), planned, folder)
        # -Xlog:disable: it would list the classes that cannot be archived, such as generated ones.
        started = brokers.launch(classpath, planned[0], folder, f"-XX:ArchiveClassesAtExit={written}", "-Xlog:disable")
        try:
            brokers.wait_until_registered(planned, [started], folder)
        finally:
            processes.stop(folder.processes(), grace=_WRITE_TIMEOUT_S)  # the JVM writes the archive when it ends
        if not written.is_file():
            raise CollectionError("the broker ended and wrote no archive of classes")
        written.replace(archive)


if __name__ == "__main__":
    try:
        make_class_data()
    except CollectionError as problem:
        sys.exit(f"kafka-audit: {problem}")
