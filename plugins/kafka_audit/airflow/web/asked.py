"""What a page of groups, controls or topics is asked with, and what it answers: computed without Airflow, rendered by the routes."""

from dataclasses import dataclass, field
from typing import Any

from kafka_audit.airflow.web.marks import addressed
from kafka_audit.audit.listing import MayRead, find_audit
from kafka_audit.index.read import IndexedAudit
from kafka_audit.index.shown import Shown, pinned_audit, shown_audit
from kafka_audit.report import words
from kafka_audit.report.lag import DAY_MS
from kafka_audit.store.layout import EvidenceRoot


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A template of the pages, what it is rendered with, and the status of the answer."""

    template: str
    facts: dict[str, Any]
    status_code: int = 200


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Who asks for which cluster; ``up`` is the relative address of the first page, ``audit`` the id in the cursor, or empty."""

    root: EvidenceRoot
    cluster: str
    may_read: MayRead
    up: str
    audit: str = ""
    start: int = 0
    others: tuple[str, ...] = field(default=())
    """The other clusters that the person may read."""

    def may_see(self, audit_id: str) -> bool:
        """Whether the person may read an audit of the cluster."""
        return find_audit(self.root, self.cluster, audit_id, self.may_read) is not None

    def shown(self) -> Shown:
        """The newest audit that can be shown."""
        return shown_audit(self.root, self.cluster, self.may_see)

    def index(self, shown: Shown) -> IndexedAudit | None:
        """The audit in the cursor if it can be shown, else the newest."""
        return (pinned_audit(self.root, self.cluster, self.audit, self.may_see) if self.audit else None) or shown.index

    def link_to(self, audit_id: str) -> str:
        """The relative address of an audit."""
        return f"{self.up}audits/{addressed(self.cluster)}/{addressed(audit_id)}/"

    def answer(self, template: str, shown: Shown, index: IndexedAudit, **facts: object) -> Answer:
        """The page of an audit. ``newer``: it is of the audit in the cursor, and there is a newer one; ``pinned_gone``: that is gone."""
        audit_id = index.audit.path.name
        paging = {
            "newer": bool(self.audit) and shown.index is not None and shown.index.audit.path.name != audit_id,
            "pinned_gone": bool(self.audit) and audit_id != self.audit,
        }
        always = {"words": words, "day": DAY_MS, "cluster": self.cluster, "shown": shown, "index": index}
        return Answer(template=template, facts={**always, **paging, **facts})

    def nothing(self, shown: Shown, message: str, name: str = "") -> Answer:
        """404 in words: what was asked for is not in the audit that can be shown, or none can be."""
        facts = {"words": words, "cluster": self.cluster, "shown": shown, "message": message, "name": name}
        return Answer(template="nothing.html.j2", facts=facts, status_code=404)
