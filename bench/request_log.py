"""Counts the requests that a client sends, from the brokers' request log (``kafka.request.logger``)."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

_LOGGER = "kafka.request.logger"
_HEAD, _TAIL = "Completed request:", f" ({_LOGGER})"


class Requests:
    """The number of requests by (client id, API, broker)."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def of(self, client: str) -> dict[str, tuple[int, int]]:
        """API -> (total requests, most requests to one broker) of the clients whose id starts with ``client``."""
        found: dict[str, Counter[str]] = {}
        for (name, api, broker), count in self.counts.items():
            if name.startswith(client):
                found.setdefault(api, Counter())[broker] += count
        return {api: (sum(brokers.values()), max(brokers.values())) for api, brokers in sorted(found.items())}


@contextmanager
def counted(bootstrap: str, logs: Path) -> Iterator[Requests]:
    """Count the requests that the brokers complete during the block. Do not measure time there: the log slows the brokers down."""
    files = sorted(logs.glob("broker-*.log"))
    before = {path: path.stat().st_size for path in files}
    found = Requests()
    _set_level(bootstrap, len(files), "DEBUG")
    try:
        yield found
    finally:
        _set_level(bootstrap, len(files), "INFO")
    for path in files:
        with path.open("rb") as stream:
            stream.seek(before[path])
            for line in stream:
                text = line.decode("utf-8", "replace").rstrip("\n")
                if _HEAD in text and text.endswith(_TAIL):
                    header = json.loads(text[text.index(_HEAD) + len(_HEAD) : -len(_TAIL)])["requestHeader"]
                    found.counts[header["clientId"], header["requestApiKeyName"], path.stem] += 1


def _set_level(bootstrap: str, brokers: int, level: str) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap, client_id="bench")) as admin:
        for broker in range(1, brokers + 1):
            admin.alter_configs([ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker), {_LOGGER: level})])
