"""The expected figures of a cluster, from Kafka's own tools and a counting consumer, without any code of the auditor."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kafka_tools import KafkaTools
from lag_clients import records


@dataclass(frozen=True)
class Row:
    """A row of ``kafka-consumer-groups --describe``; None where the tool prints a dash."""

    committed: int | None
    end: int
    lag: int | None
    consumer_id: str | None
    client_id: str | None


@dataclass(frozen=True)
class Counts:
    """Offsets by topic as ``kafka-get-offsets`` prints them, rows by (group, topic), and (offset, timestamp) of all records by topic.

    ``visible`` is how many records of a topic a reader with read_committed gets; ``refusal`` what ``kafka-consumer-groups`` printed when
    it was asked about a group with offsets on a deleted topic.
    """

    starts: dict[str, int]
    ends: dict[str, int]
    described: dict[tuple[str, str], Row]
    records: dict[str, list[tuple[int, int]]]
    visible: int
    refusal: str

    def unread(self, group: str, topic: str) -> list[tuple[int, int]]:
        """Offset and timestamp of the records that wait for a group."""
        committed = self.described[group, topic].committed
        assert committed is not None
        return [record for record in self.records[topic] if record[0] >= committed]


def count(bootstrap: str, groups: list[str], *, orphan: str, held_back: str, aborted: str) -> Counts:
    """Count on a quiet cluster; ``held_back`` is a topic that is read with read_committed, too, and ``aborted`` one that is read only so."""
    tools = KafkaTools(bootstrap)
    describe = "kafka-consumer-groups --describe"
    with ThreadPoolExecutor(max_workers=2) as pool:
        starts, ends = (
            pool.submit(tools.run, f"kafka-get-offsets --exclude-internal-topics --time {time}") for time in ("earliest", "latest")
        )
        described = pool.submit(tools.run, " ".join([describe, *(f"--group {group}" for group in groups)]))
        refusal = pool.submit(tools.run, f"{describe} --group {orphan}")
        topics = _offsets(ends.result())
        levels = {topic: "read_committed" if topic == aborted else "read_uncommitted" for topic in topics}
        read = {topic: pool.submit(records, bootstrap, topic, isolation=level) for topic, level in levels.items()}
        visible = pool.submit(records, bootstrap, held_back, isolation="read_committed")
        return Counts(
            starts=_offsets(starts.result()),
            ends=topics,
            described=_rows(described.result()),
            records={topic: future.result() for topic, future in read.items()},
            visible=len(visible.result()),
            refusal=refusal.result(),
        )


def _offsets(printed: str) -> dict[str, int]:
    """The offsets of lines like ``orders:0:100``."""
    return {topic: int(offset) for topic, _, offset in (line.split(":") for line in printed.splitlines())}


def _rows(printed: str) -> dict[tuple[str, str], Row]:
    lines = [line.split() for line in printed.splitlines()]
    return {
        (words[0], words[1]): Row(_number(words[3]), int(words[4]), _number(words[5]), _text(words[6]), _text(words[8]))
        for words in lines
        if len(words) == 9 and words[0] != "GROUP"
    }


def _number(word: str) -> int | None:
    return None if word == "-" else int(word)


def _text(word: str) -> str | None:
    return None if word == "-" else word
