"""Which topics and groups a snapshot covers."""

from dataclasses import dataclass

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.glob import matches

# Internal by Kafka's own definition (org.apache.kafka.common.internals.Topic), also when Metadata hides them.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
ALWAYS_COVERED = INTERNAL_TOPICS | {"__remote_log_metadata"}
"""Topics that every scope covers. Kafka does not count the last one as internal, but tiered topics of every scope depend on it (TOP-11)."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Include patterns (``*``, ``?``, ``[...]``, case matters); internal topics and ALWAYS_COVERED are always included."""

    topics: tuple[str, ...] = ("*",)
    groups: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        for what, patterns in (("topics", self.topics), ("groups", self.groups)):
            if not patterns:
                raise ConfigurationError(f"the scope has no pattern for {what}: write * for all, or names and patterns separated by commas")

    @classmethod
    def from_text(cls, *, topics: str = "*", groups: str = "*") -> "Scope":
        """Read patterns separated by commas, as DAG params and the command line give them."""
        return cls(topics=_split(topics), groups=_split(groups))

    def covers_topic(self, name: str, *, is_internal: bool = False) -> bool:
        """True when this topic belongs to the snapshot."""
        return is_internal or name in ALWAYS_COVERED or _matches_any(self.topics, name)

    def covers_group(self, group_id: str) -> bool:
        """True when this group belongs to the snapshot."""
        return _matches_any(self.groups, group_id)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _matches_any(patterns: tuple[str, ...], name: str) -> bool:
    return "*" in patterns or any(matches(pattern, name) for pattern in patterns)
