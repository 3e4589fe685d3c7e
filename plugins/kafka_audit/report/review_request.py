"""The question that a reviewer of a failed audit is asked: subject and body, in Markdown, in which names from the cluster stay text."""

from dataclasses import dataclass

from kafka_audit.audit.review_settings import ReviewSettings
from kafka_audit.report.markdown import plain
from kafka_audit.report.unwaived import Unwaived, read_unwaived
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.layout import Audit

_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Question:
    """Subject and body for Airflow's page of required actions."""

    subject: str
    body: str


def ask(audit: Audit, cluster: str, seal: Seal, settings: ReviewSettings) -> Question:
    """The question about a sealed audit that FAILED. IntegrityError when its results cannot be read."""
    unwaived = read_unwaived(audit, shown=_SHOWN, kept=0)
    return Question(
        subject=f"Accept the risk? The audit of Kafka cluster {plain(cluster)} FAILED", body=_body(cluster, seal, unwaived, settings)
    )


def _body(cluster: str, seal: Seal, unwaived: Unwaived, settings: ReviewSettings) -> str:
    counts = ", ".join(f"{count:,} {plain(name)}" for name, count in unwaived.by_severity.items()) or "none"
    rows = [f"| {plain(one.severity)} | {plain(one.code)} {plain(one.title)} | {plain(one.resource)} |" for one in unwaived.worst]
    more = unwaived.total - len(unwaived.worst)
    lines = [
        f"Cluster {plain(cluster)}, audit `{seal.audit_id}`, number {seal.sequence}, manifest sha256 `{seal.manifest_sha256}`.",
        "",
        f"Failures without a waiver: **{counts}**. The task `gate` of this run has the reasons; its button *Audit report* has everything.",
        "",
        *(["| severity | what is not true | where |", "|---|---|---|", *rows, ""] if rows else []),
        *([f"{more:,} more in the report.", ""] if more > 0 else []),
        "**Approve** records, under your login, that the risk is accepted until a date, and proposes waivers for the policy's repository. "
        "Fill in all fields: a reason (10 characters or more), a ticket, an owner who is not you, and an expiry within "
        f"{settings.max_days} days. **Reject** records that it is not accepted.",
        "",
        f"The verdict stays FAILED and the run stays red, whatever you answer. Without an answer within {settings.hours} hours, "
        "that nobody answered is recorded.",
    ]
    return "\n".join(lines)
