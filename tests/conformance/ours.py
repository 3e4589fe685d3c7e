"""What this project answers: cases become snapshots, its controls and wide rows judge them, and questions.yaml says what a verdict means.

Cases with the same brokers and the same times of samples share one cluster, so that few Spark jobs judge them all.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.cases import UNKNOWN, Answer, Case, load_questions
from conformance.evidence import add_case, cluster, named, write
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from snapshot_builder import READ_AT

from kafka_audit.catalogue.load import Catalogue, load_catalogue
from kafka_audit.clients.declared import ClientFile
from kafka_audit.policy import Policy, load_policy
from kafka_audit.policy.slas import SlaFile
from kafka_audit.policy.tiers import TopicRule
from kafka_audit.store.history import read_history
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.build import wide_rows

STEP = 5
"""Histories that go back in steps of so many minutes share a cluster, whatever their length."""
_READ = ("code", "resource", "status", "reason")
_DECLARED = {"owner": "team", "declared_on": "2025-02-01", "source": "repository"}


def answers(spark: SparkSession, root: Path, cases: Iterable[Case]) -> dict[str, Answer]:
    """Case id -> answer."""
    found: dict[str, Answer] = {}
    catalogue = load_catalogue()
    for number, shared in enumerate(_clusters(cases).values()):
        found |= _judged(spark, root / f"cluster-{number}", shared, catalogue)
        spark.catalog.clearCache()
    return found


def _clusters(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Cases by the cluster that they share. Two cases with the same one of Kafka's own topics need two clusters."""
    found: dict[str, list[Case]] = {}
    used: Counter[str] = Counter()
    for case in cases:
        regular = case.minutes_ago == tuple(STEP * age for age in reversed(range(len(case.minutes_ago))))
        times = "steps" if regular and len(case.minutes_ago) > 1 else case.minutes_ago
        own = [name for name in case.now.get("topics", {}) if name.startswith("__")]
        used.update(own)
        found.setdefault(json.dumps([case.state.get("cluster"), times, max((used[name] for name in own), default=0)]), []).append(case)
    return found


def _judged(spark: SparkSession, root: Path, cases: list[Case], catalogue: Catalogue) -> dict[str, Answer]:
    """The answers on cases that share a cluster."""
    snapshot = _written(root, cases)
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 60), small_cluster=True)
    first = F.lit(True) if evidence.history.first_audit else None
    policy, questions = _policy(cases), load_questions()
    asked = [questions[case.question]["ours"] for case in cases]
    codes = {code for one in asked for code in one.get("controls", ())}
    figures = {one["figure"] for one in asked if "figure" in one}
    verdicts: dict[tuple[str, str], str] = {}
    values: dict[tuple[str, str], Any] = {}
    with evidence.tables.settings():
        subjects = {control.subject for control in catalogue.controls if control.code in codes} | {one.split(".")[0] for one in figures}
        for subject in sorted(subjects):
            rows = wide_rows(subject, evidence, policy)  # not kept as a whole: Spark then computes only the columns that are asked for
            controls = [control for control in catalogue.controls if control.subject == subject and control.code in codes]
            if controls:
                found = judge(rows, controls, None, PolicyColumns(policy=policy, at=READ_AT), first_audit=first)
                verdicts |= {(one["code"], one["resource"]): _status(one) for one in found.select(*_READ).collect()}
            columns = [one.split(".")[1] for one in figures if one.split(".")[0] == subject]
            for row in rows.select("resource", *columns).collect() if columns else ():
                values |= {(f"{subject}.{column}", row["resource"]): row[column] for column in columns}
    subject_of = {control.code: control.subject for control in catalogue.controls}
    return {case.id: _answer(case, ours, subject_of, verdicts, values) for case, ours in zip(cases, asked, strict=True)}


def _status(finding: Row) -> str:
    """A finding that does not apply for lack of a declaration or of a past answers nothing; one without such a reason says so of the case."""
    return "not_assessed" if finding["status"] == "not_applicable" and finding["reason"] is not None else finding["status"]


def _written(root: Path, cases: list[Case]) -> Snapshot:
    """Writes the histories of the cases as snapshots of one cluster, and gives the newest of them."""
    times = max((case.minutes_ago for case in cases), key=len)
    for age, minutes in reversed(list(enumerate(reversed(times)))):
        one = cluster(_section(cases[0], age))
        for case in cases:
            if age < len(case.samples):
                add_case(one, case.id, case.samples[-1 - age], now=age == 0)
        snapshot = write(one, root, minutes)
    return snapshot


def _section(case: Case, age: int) -> Mapping[str, Any]:
    return case.samples[-1 - min(age, len(case.samples) - 1)].get("cluster") or {}


def _policy(cases: list[Case]) -> Policy:
    """The shipped policy with what the owners of all cases declare."""
    shipped = load_policy()
    slas, clients, topics, declared = [], [], [], {"topics": list[str](), "groups": list[str]()}
    for case in cases:
        state = case.now
        if "sla" in state:
            slas.append({"pattern": f"{case.id}.*", "name": case.id, **state["sla"]})
        for name, about in (state.get("clients") or {}).items():
            places = {"topics": [named(case.id, one) for one in about.get("topics", [])]}
            places |= {"group": named(case.id, about["group"])} if "group" in about else {}
            clients.append({**_DECLARED, "name": f"{case.id}.{name}", **about, **places})
        for name, about in (state.get("contracts") or {}).items():
            topics.append(TopicRule.model_validate({"pattern": named(case.id, name), **about}))
        for kind, names in declared.items():
            names += [named(case.id, name) for name in state.get(f"declared_{kind}", ())]
    return replace(
        shipped,
        slas=[*SlaFile.model_validate({"version": 1, "groups": slas}).groups, *shipped.slas],
        clients=ClientFile.model_validate({"version": 1, "clients": clients}).clients,
        topics=[*topics, *shipped.topics],
        declared_topics=declared["topics"],
        declared_groups=declared["groups"],
    )


def _resource(case: Case, subject: str) -> str:
    """The name of what a case asks about among the resources of a subject."""

    def place(kind: str) -> str:
        return named(case.id, str(case.place(kind)))

    if subject in ("producer", "consumer"):
        of = {"producer": "topic", "consumer": "group"}[subject]
        return f"{subject} {place('client')}" if case.now.get("clients") else f"{of} {place(of)}"
    if subject in ("topic", "group"):
        return place(subject)
    if subject in ("declared_topic", "declared_group"):
        return named(case.id, case.now[f"{subject}s"][0])
    partition = f"{place('topic')}-{case.place('partition')}" if subject in ("partition", "group_partition") else ""
    of_group = {"partition": lambda: partition, "group_partition": lambda: f"{place('group')}:{partition}"}
    others = {"group_sla": lambda: place("group"), "broker": lambda: str(case.place("broker")), "cluster": lambda: "cluster"}
    return (of_group | others)[subject]()


def _answer(
    case: Case,
    ours: Mapping[str, Any],
    subject_of: Mapping[str, str],
    verdicts: Mapping[tuple[str, str], str],
    values: Mapping[tuple[str, str], Any],
) -> Answer:
    if "figure" in ours:
        value = values.get((ours["figure"], _resource(case, ours["figure"].split(".")[0])))
        if value is None:
            return UNKNOWN
        return (
            ours["words"].get(value, UNKNOWN) if "words" in ours else value / ours.get("divided_by", 1) if "divided_by" in ours else value
        )
    given = {verdicts.get((code, _resource(case, subject_of[code])), "not_applicable") for code in ours["controls"]}
    if "fail" in given:
        return ours["fail"]
    if given & {"not_assessed", "error"}:
        return UNKNOWN
    return ours["pass"] if "pass" in given else ours.get("not_applicable", UNKNOWN)
