"""Kafka's own remote store for tests, which is a folder. Its jar is fetched and checked like those of the brokers, but is on no list of theirs."""

from pathlib import Path

import pytest

from kafka_audit.jars import fetch, jar_list

_HERE = Path(__file__).with_name("tiered_storage.xml")
_IN_THE_FOLDER = "kafka-tiered-storage"


class RemoteStore:
    """A folder in which brokers keep their remote segments, and that can be made to fail."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def properties(self) -> dict[str, str]:
        """What brokers are started with that use it, and look twice a second for segments to upload."""
        return {
            "remote.log.storage.system.enable": "true",
            "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
            "remote.log.storage.manager.class.path": str(_jar()),
            "remote.log.metadata.manager.listener.name": "PLAINTEXT",
            "remote.log.manager.task.interval.ms": "500",
            "remote.log.manager.task.retry.backoff.ms": "500",
            "remote.log.manager.task.retry.backoff.max.ms": "500",
            "rsm.config.dir": str(self._folder),
            # Retention would close the segment of an old record, which is then uploaded before a test expects it.
            "log.retention.check.interval.ms": "3600000",
            "log.initial.task.delay.ms": "3600000",
            "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
            "rlmm.config.remote.log.metadata.topic.min.isr": "1",  # as brokers made the topic before KIP-1235
            "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": "500",
        }

    def fail(self) -> None:
        """Refuse everything: a file takes the place of the folder."""
        self._folder.rename(self._folder.with_suffix(".away"))
        self._folder.touch()

    def mend(self) -> None:
        """Be as before."""
        self._folder.unlink()
        self._folder.with_suffix(".away").rename(self._folder)


def _jar() -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch, "IVY_FILE", _HERE)
        patch.setattr(jar_list, "LIST_FILE", _HERE.with_suffix(".sha256"))
        (jar,) = fetch.resolve("tiered-storage", lambda message: None)
    return jar
