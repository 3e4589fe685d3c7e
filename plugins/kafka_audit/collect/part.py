"""Which part of a snapshot one process reads: several processes share a large cluster out by the names of its groups and topics."""

import zlib
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Part:
    """The share ``index`` (from 0) of ``count`` equal ones.

    ``groups``: of the groups, with their members, configuration and commits. ``topics``: of the topics, and of the log directories of
    brokers; the first such part also reads what is of the cluster as a whole. What is compared is read by one part, within moments:
    it reads commits again before the log ends of its topics, and transactions after their producers.
    """

    groups: bool = True
    topics: bool = True
    index: int = 0
    count: int = 1

    @property
    def name(self) -> str:
        """The name of its folder, which tells parts of other divisions apart, too."""
        return f"{'groups' if self.groups else 'topics'}-{self.index + 1:02}-of-{self.count:02}"

    @property
    def leads(self) -> bool:
        """Whether it reads what is of the cluster as a whole."""
        return self.topics and self.index == 0

    def has(self, name: str) -> bool:
        """Whether the group, topic or broker (its id as text) is of this share: the same in every process and release of Python."""
        return self.count == 1 or zlib.crc32(name.encode("utf-8", "surrogatepass")) % self.count == self.index


WHOLE = Part()
"""Everything."""


def parts_of(count: int) -> tuple[Part, ...]:
    """All parts of a snapshot that ``count`` processes share: those of the groups, then those of the topics."""
    shares = [(groups, index) for groups in (True, False) for index in range(count)]
    return tuple(Part(groups=groups, topics=not groups, index=index, count=count) for groups, index in shares)
