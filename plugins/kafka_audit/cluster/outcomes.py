"""Counts, per API, how many items were answered and how many were refused: the measured half of the capability matrix."""

from collections import Counter

from kafka_audit.cluster.failures import error_name


class Outcomes:
    """What brokers answered so far, by API."""

    def __init__(self) -> None:
        self._answered: Counter[str] = Counter()
        self._denied: dict[str, Counter[str]] = {}

    def note(self, api: str, code: int, count: int = 1) -> None:
        """Record that ``count`` items of ``api`` came back with this error code. Codes other than success and denial tell nothing here."""
        if code == 0:
            self._answered[api] += count
        elif error_name(code).endswith("_AUTHORIZATION_FAILED"):
            self._denied.setdefault(api, Counter())[error_name(code)] += count

    def answered(self, api: str) -> int:
        """Items that were answered without an error."""
        return self._answered[api]

    def denied(self, api: str) -> dict[str, int]:
        """Items that were refused for lack of permission, by Kafka's name of the error."""
        return dict(self._denied.get(api, {}))
