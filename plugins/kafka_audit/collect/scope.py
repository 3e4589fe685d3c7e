"""Which topics and groups a snapshot covers."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import translate

from kafka_audit.errors import ConfigurationError

# Internal by Kafka's own definition (org.apache.kafka.common.internals.Topic), also when Metadata hides them.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"})


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Include patterns (``*``, ``?``, ``[...]``, case matters); internal topics are always included."""

    topics: tuple[str, ...] = ("*",)
    groups: tuple[str, ...] = ("*",)
    _matchers: tuple[Callable[[str], object], Callable[[str], object]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_matchers", (_matcher("topics", self.topics), _matcher("groups", self.groups)))

    @classmethod
    def from_text(cls, *, topics: str = "*", groups: str = "*") -> "Scope":
        """Read patterns separated by commas, as DAG params and the command line give them."""
        return cls(topics=_split(topics), groups=_split(groups))

    def covers_topic(self, name: str, *, is_internal: bool = False) -> bool:
        """True when this topic belongs to the snapshot."""
        return is_internal or name in INTERNAL_TOPICS or self._matchers[0](name) is not None

    def covers_group(self, group_id: str) -> bool:
        """True when this group belongs to the snapshot."""
        return self._matchers[1](group_id) is not None


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _matcher(what: str, patterns: Iterable[str]) -> Callable[[str], object]:
    listed = list(patterns)
    if not listed:
        raise ConfigurationError(f"the scope has no pattern for {what}: write * for all, or names and patterns separated by commas")
    return re.compile("|".join(f"(?:{translate(pattern)})" for pattern in listed)).match
