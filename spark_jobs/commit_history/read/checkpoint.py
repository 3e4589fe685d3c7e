"""Reads offsets from Spark's streaming checkpoint: the range of each batch, which Spark writes before the batch runs.

Format: a version line, then JSON lines, of Spark 4.2's offset log and of the Kafka source's initial offsets.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from kafka_audit.errors import IntegrityError

Offsets = dict[int, int]

BEGIN_ANEW = "move the checkpoint folder away and run again: reading then goes on after what is kept"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The checkpoint folder of the one query that reads ``topic``."""

    path: Path
    topic: str

    @property
    def query_id(self) -> str:
        """Spark's id of the query, the same after every restart; a new checkpoint has a new one."""
        return str(json.loads((self.path / "metadata").read_text(encoding="utf-8"))["id"])

    def range_of(self, batch: int) -> tuple[Offsets, Offsets]:
        """The offsets from which and up to which a batch reads; IntegrityError when the checkpoint does not hold them."""
        start = self._initial() if batch == 0 else self._batch(batch - 1)
        end = self._batch(batch)
        return {partition: start.get(partition, 0) for partition in end}, end

    def last(self) -> Offsets | None:
        """Up to where the newest planned batch reads; None before the first."""
        planned = [int(path.name) for path in (self.path / "offsets").glob("[0-9]*") if path.name.isdigit()]
        return self._batch(max(planned)) if planned else None

    def _batch(self, number: int) -> Offsets:
        return self._offsets("offsets", str(number))

    def _initial(self) -> Offsets:
        return self._offsets("sources", "0", "0")

    def _offsets(self, *parts: str) -> Offsets:
        path = self.path.joinpath(*parts)
        try:
            text = path.read_bytes().lstrip(b"\0").decode().strip()  # the source writes a zero byte first
            found = json.loads(text.splitlines()[-1])[self.topic]
            return {int(partition): int(offset) for partition, offset in found.items()}
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as problem:
            raise IntegrityError(f"{path}: holds no offsets of {self.topic} ({problem!r}); {BEGIN_ANEW}") from problem
