"""One process of ``snapshot_size.py``: reads a cluster, or one part of it, or joins the parts; prints its requests as JSON."""

import json
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

# The tasks and commands run without numpy, too. Before pyarrow is imported.
sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]

from processes import own_peak_mb  # noqa: E402

from kafka_audit.cluster import channel  # noqa: E402
from kafka_audit.cluster.connection import ConnectionSettings  # noqa: E402
from kafka_audit.collect import parts  # noqa: E402
from kafka_audit.collect.part import parts_of  # noqa: E402
from kafka_audit.collect.scope import Scope  # noqa: E402
from kafka_audit.collect.snapshot import take_snapshot  # noqa: E402
from kafka_audit.store.layout import EvidenceRoot, new_id  # noqa: E402

AT = datetime(2026, 11, 20, tzinfo=timezone.utc)
received: Counter[str] = Counter()


class Counting(channel._ReadOnlyManager):
    """Connections that count their requests and the bytes of the answers."""

    def __init__(self, net: Any, counts: "Counter[tuple[str, int | str]]", **arguments: object) -> None:
        super().__init__(net, counts, **arguments)
        self.requests = counts
        everybody.append(self)

    async def _build_transport(self, *args: object, **kwargs: object) -> Any:
        transport = await super()._build_transport(*args, **kwargs)
        receive = transport._sock_recv

        def counted() -> tuple[bytes, Exception | None]:
            data, error = receive()
            received["bytes"] += len(data or b"")
            return data, error

        transport._sock_recv = counted
        return transport


everybody: list[Counting] = []


def main(bootstrap: str, root: str, what: str, count: str = "1") -> None:
    channel._ReadOnlyManager = Counting  # type: ignore[misc]
    where: dict[str, Any] = {"root": EvidenceRoot(path=Path(root)), "cluster": "bench", "snapshot_id": new_id(AT, count)}
    about: dict[str, Any] = {**where, "scope": Scope(), "now": lambda: datetime.now(timezone.utc)}
    settings = ConnectionSettings.from_mapping({"bootstrap.servers": bootstrap})
    if what == "whole":
        take_snapshot(settings=settings, **about)
    elif what == "join":
        parts.join_parts(int(count), **about)
    else:
        parts.read_part(next(part for part in parts_of(int(count)) if part.name == what), settings=settings, **about)
    requests = sum(sum(one.requests.values()) for one in everybody)
    print(json.dumps({"requests": requests, "received_bytes": received["bytes"], "peak_mb": own_peak_mb()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
