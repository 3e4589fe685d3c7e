"""Reads offset and timestamp of the first record at or after given offsets, without those of aborted transactions.

Keys, values and headers are not kept.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import monotonic

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.codecs import UnreadableBatchError
from kafka_audit.cluster.failures import DEADLINE_EXCEEDED, INVALID_RESPONSE, OFFSET_OUT_OF_RANGE, OLD_FORMAT, Failure
from kafka_audit.cluster.fetching import LENGTH_AND_OFFSET_BYTES, MAGIC, MAGIC_BYTE, AbortedTransaction, Unserved, failure_of, fetch
from kafka_audit.cluster.record_batches import HEADER, RecordBatch
from kafka_audit.cluster.routing import Leaders, TopicPartition

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
MOST_ANSWERS = 1_000
"""Give a partition up after this many answers in a row without a wanted record. They hold some 840,000 ends of transactions."""
Place = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstRecord:
    """A record's offset, and its timestamp as stored: CreateTime is the producer's clock, LogAppendTime the broker's.

    All three are None where only control records (the ends of transactions) and records of aborted transactions follow, up to the end
    that was asked for.
    """

    offset: int | None = None
    timestamp_ms: int | None = None
    timestamp_type: str | None = None


_NO_RECORD = FirstRecord()


class _Allowance:
    """The seconds that are left for reading records inside batches."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Count the time inside this block, and no other, against the allowance."""
        self._until = monotonic() + self._seconds
        try:
            yield
        finally:
            self._seconds = self._until - monotonic()

    def is_left(self) -> bool:
        return monotonic() < self._until


@dataclass
class _Search:
    """The search in one partition: the offsets still wanted, ascending, and up to where its log has been read.

    Below ``stable`` every transaction has ended; above it nobody knows how the open ones end, so their records count.
    """

    stable: int
    end: int
    offsets: list[int]
    reached: int = 0
    step: int = 0
    in_vain: int = 0
    found: dict[int, FirstRecord | Failure] = field(default_factory=dict)

    @property
    def position(self) -> int:
        """Where to read next."""
        return max(self.offsets[0], self.reached)

    @property
    def committed_only(self) -> bool:
        """Whether the broker is to name the aborted transactions."""
        return self.position < self.stable

    def settle(self, offset: int, result: FirstRecord | Failure) -> None:
        self.offsets.remove(offset)
        self.found[offset] = result
        self.in_vain = 0

    def settle_all(self, result: FirstRecord | Failure) -> None:
        for offset in list(self.offsets):
            self.settle(offset, result)


def read_first_records(
    channel: Channel,
    leaders: Leaders,
    wanted: Mapping[TopicPartition, Sequence[int]],
    *,
    stable: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[Place, FirstRecord | Failure]:
    """The first record at or after each offset of ``wanted`` and below the partition's end; needs Read on the topic.

    Records of aborted transactions do not count below the partition's last stable offset, which is its entry in ``stable``. The search
    goes on over gaps that compaction and transactions leave. One request serves offsets of a partition that lie close
    together. A batch is a failure where its codec is not installed, where it is damaged, and where too much of it would
    have to be decompressed. Looking into compressed batches may take a quarter of the time that is left, and an eighth of that for the
    partitions of one topic, so that the producers of one topic cannot use up the time of the others.
    """
    seconds = channel.seconds_left() / 4
    whole = _Allowance(seconds)
    of_topic = {topic: _Allowance(seconds / 8) for topic, _ in wanted}
    searches = {key: _Search(stable=stable[key], end=ends[key], offsets=sorted(set(offsets))) for key, offsets in wanted.items()}
    while open_ones := {key: search for key, search in searches.items() if search.offsets}:
        asked_alike: dict[tuple[int, bool], dict[TopicPartition, int]] = {}
        for key, search in open_ones.items():
            asked_alike.setdefault((search.step, search.committed_only), {})[key] = search.position
        for (step, committed_only), positions in sorted(asked_alike.items()):
            found = fetch(
                channel,
                leaders,
                positions,
                step=step,
                committed_only=committed_only,
                read=lambda key, records, aborted: _take(key, records, aborted, searches[key], (whole, of_topic[key[0]])),
            )
            for key, result in found.items():
                if isinstance(result, Unserved):
                    searches[key].step += 1
                elif isinstance(result, Failure):
                    _fail(searches[key], result)
    return {(*key, offset): result for key, search in searches.items() for offset, result in search.found.items()}


def _fail(search: _Search, failure: Failure) -> None:
    if failure.error == OFFSET_OUT_OF_RANGE:  # deleted since its offset was read; later ones may still be there
        search.settle(search.offsets[0], failure)
    else:
        search.settle_all(failure)


def _take(
    key: TopicPartition, records: bytes, aborted: Sequence[AbortedTransaction], search: _Search, allowances: Sequence[_Allowance]
) -> bool:
    """Record the results that these bytes give. Each call settles at least one offset or moves the position forward."""
    asked, before = search.position, len(search.offsets)
    search.step = 0
    search.in_vain += 1
    left_out = _LeftOut(aborted)
    for batch in _whole_batches(records):
        if not search.offsets:
            break
        if batch is None:
            search.settle(search.offsets[0], failure_of(key, OLD_FORMAT, "the records are of a message format before 2"))
            return True
        is_aborted = left_out.contains(batch)
        if batch.last_offset < search.position:
            continue
        concerned = [offset for offset in search.offsets if offset <= batch.last_offset]
        if concerned and not batch.is_control and not is_aborted:
            with ExitStack() as used:
                for allowance in allowances:
                    used.enter_context(allowance.in_use())
                _settle_in(key, batch, concerned, search, lambda: all(allowance.is_left() for allowance in allowances))
        search.reached = batch.last_offset + 1
    if search.offsets and search.position >= search.end:
        search.settle_all(_NO_RECORD)
    elif search.offsets and search.position <= asked and len(search.offsets) == before:
        text = f"the answer has no record batch that reaches offset {asked}"
        search.settle(search.offsets[0], failure_of(key, INVALID_RESPONSE, text))
    elif search.offsets and search.in_vain == MOST_ANSWERS:
        text = f"{MOST_ANSWERS:,} answers in a row held no record at or above offset {search.offsets[0]}"
        search.settle_all(failure_of(key, DEADLINE_EXCEEDED, text))
    return True


class _LeftOut:
    """Which batches of an answer belong to aborted transactions, told by the rule of Kafka's own consumer: batches come in log order."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._open: set[int] = set()

    def contains(self, batch: RecordBatch) -> bool:
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            self._open.add(self._coming.pop().producer_id)
        if batch.is_control:
            self._open.discard(batch.producer_id)  # a producer has one transaction at a time, and this is the end of it
        return batch.is_transactional and batch.producer_id in self._open


def _settle_in(key: TopicPartition, batch: RecordBatch, offsets: Sequence[int], search: _Search, in_time: Callable[[], bool]) -> None:
    waiting = list(offsets)
    kind = LOG_APPEND_TIME if batch.has_append_time else CREATE_TIME
    try:
        for offset, timestamp in batch.records(in_time):
            while offset >= waiting[0]:
                found = FirstRecord(offset=offset, timestamp_ms=timestamp if timestamp >= 0 else None, timestamp_type=kind)
                search.settle(waiting.pop(0), found if offset < search.end else _NO_RECORD)
                if not waiting:
                    return
    except UnreadableBatchError as problem:
        failure = failure_of(key, problem.error, f"the batch at offset {batch.base_offset} cannot be read: {problem.message}")
        for offset in waiting:
            search.settle(offset, failure)


def _whole_batches(records: bytes) -> Iterator[RecordBatch | None]:
    """Yield every complete batch; None, and then nothing more, for a batch of an older format."""
    position = 0
    while position + MAGIC_BYTE < len(records) and (magic := records[position + MAGIC_BYTE]) <= MAGIC:
        if magic < MAGIC:
            yield None
            return
        size = LENGTH_AND_OFFSET_BYTES + int.from_bytes(records[position + 8 : position + LENGTH_AND_OFFSET_BYTES], "big", signed=True)
        if size < HEADER.size or position + size > len(records):
            return
        yield RecordBatch.of(memoryview(records)[position : position + size])
        position += size
