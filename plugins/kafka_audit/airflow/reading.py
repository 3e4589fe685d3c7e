"""Reads the cluster of an audit; apart from the tasks, because it loads kafka-python and pyarrow: no DAG file may when it is parsed."""

import logging
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kafka_audit.airflow.hook import KafkaAuditHook
from kafka_audit.airflow.step import note_failure
from kafka_audit.audit.request import AuditPlan
from kafka_audit.collect import parts, snapshot
from kafka_audit.collect.part import Part
from kafka_audit.collect.scope import Scope
from kafka_audit.errors import AuditError, CollectionError, ConfigurationError, IntegrityError
from kafka_audit.policy import load_policy
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.parts import has_note, note_of, parts_folder, send_note

log = logging.getLogger(__name__)

_ERRORS: dict[str, type[AuditError]] = {one.__name__: one for one in (ConfigurationError, IntegrityError)}


@dataclass(frozen=True, kw_only=True)
class ClusterReading:
    """Takes the snapshot of ``plan``: as a whole, or part by part. Nothing is read that is there already."""

    plan: AuditPlan

    def whole(self) -> None:
        """Read the cluster into a sealed snapshot."""
        if self.plan.snapshot is None:
            snapshot.take_snapshot(**self._where(), **self._how())

    def part(self, part: Part) -> None:
        """Read one part; an error is also noted beside it, for the join."""
        note = self._note(part)
        try:
            parts.read_part(part, **self._where(), **self._how())
        except Exception as problem:
            note_failure(note, part.name, problem)
            send_note(note)
            raise
        note.unlink(missing_ok=True)

    def join(self, count: int) -> None:
        """Join all parts into a sealed snapshot. When some are missing, the error of the first of them that left one."""
        missing = parts.missing_parts(count, **self._where())
        if missing:
            raise self._why_missing(missing)
        parts.join_parts(count, **self._where(), scope=self._scope, now=_now)

    def _why_missing(self, missing: list[Part]) -> AuditError:
        told = f"the snapshot was not sealed, because parts of it are missing ({', '.join(part.name for part in missing)})"
        for part in missing:
            if has_note(note := self._note(part)):
                failure = read_json(note)
                return _ERRORS.get(str(failure.get("error")), CollectionError)(f"{told}; {part.name}: {failure.get('message')}")
        return CollectionError(f"{told}: the logs of the tasks read_groups and read_topics say why")

    def _note(self, part: Part) -> Path:
        return note_of(parts_folder(self.plan.evidence_root, self.plan.cluster, self.plan.snapshot_id), part.name)

    @property
    def _scope(self) -> Scope:
        return Scope.from_text(topics=self.plan.topics, groups=self.plan.groups)

    def _where(self) -> dict[str, Any]:
        return {"root": self.plan.evidence_root, "cluster": self.plan.cluster, "snapshot_id": self.plan.snapshot_id}

    def _how(self) -> dict[str, Any]:
        settings, policy = KafkaAuditHook(self.plan.kafka_conn_id).get_conn(), load_policy(self.plan.policy_folder)
        return {"settings": settings, "scope": self._scope, "policy": policy, "now": _now, "progress": log.info}


def _now() -> datetime:
    return datetime.now(timezone.utc)
