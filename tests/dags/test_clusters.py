"""Which DAGs an installation has, which cluster each reads, and when."""

from pathlib import Path

import pytest

from kafka_audit.audit import clusters
from kafka_audit.audit.clusters import dag_clusters
from kafka_audit.errors import ConfigurationError

pytestmark = pytest.mark.airflow
AUDIT, OFFSETS, ROLL_UP, COMMITS = KINDS = (
    "kafka_reliability_audit",
    "kafka_offsets_snapshot",
    "kafka_offsets_roll_up",
    "kafka_commit_history",
)


def dags() -> dict:
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(Path(__file__).parents[2] / "dags")).dags


def test_without_settings_offsets_and_commits_are_read_once_switched_on_and_audits_run_by_hand(dagbag) -> None:
    schedules = {AUDIT: None, OFFSETS: "*/5 * * * *", ROLL_UP: "30 0 * * *", COMMITS: "*/15 * * * *"}
    assert {kind: dagbag.dags[kind].schedule for kind in KINDS} == schedules
    assert [kind for kind in KINDS if not dagbag.dags[kind].is_paused_upon_creation] == [AUDIT]


@pytest.mark.parametrize("schedule", ["@daily", "0 4 * * 1-5"])
def test_the_installation_says_when_audits_offsets_snapshots_and_commit_histories_run(
    monkeypatch: pytest.MonkeyPatch, schedule: str
) -> None:
    for name in ("KAFKA_AUDIT_SCHEDULE", "KAFKA_AUDIT_OFFSETS_SCHEDULE", "KAFKA_AUDIT_COMMITS_SCHEDULE"):
        monkeypatch.setenv(name, schedule)
    found = dags()
    assert {found[kind].schedule for kind in (AUDIT, OFFSETS, COMMITS)} == {schedule}


def test_an_empty_setting_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "KAFKA_AUDIT_SCHEDULE",
        "KAFKA_AUDIT_OFFSETS_SCHEDULE",
        "KAFKA_AUDIT_COMMITS_SCHEDULE",
        "KAFKA_AUDIT_CLUSTERS",
        "KAFKA_AUDIT_CLUSTER",
    ):
        monkeypatch.setenv(name, "")
    from kafka_audit.airflow.offsets_tasks import audit_schedule

    (plain,) = dag_clusters()
    assert (audit_schedule(plain), plain.offsets_schedule, plain.commits_schedule) == (None, "*/5 * * * *", "*/15 * * * *")


@pytest.mark.parametrize(
    ("said", "name", "uri"),
    [
        ("asset", "offsets/kafka", "kafka-audit://offsets/kafka"),
        ("kafka-audit://offsets/other", "offsets/other", "kafka-audit://offsets/other"),
        ("s3://deployments/kafka", "s3://deployments/kafka", "s3://deployments/kafka"),
    ],
)
def test_audits_can_be_scheduled_on_an_asset(monkeypatch: pytest.MonkeyPatch, said: str, name: str, uri: str) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_SCHEDULE", said)
    audit = dags()[AUDIT]
    assert [(asset.name, asset.uri) for asset in audit.schedule] == [(name, uri)]


def test_each_listed_cluster_has_dags_of_its_own_and_there_are_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_SCHEDULE", "asset")
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders=kafka_orders, pay.ments=kafka_2")
    found = dags()
    assert set(found) == {f"{kind}__{cluster}" for kind in KINDS for cluster in ("orders", "pay.ments")}
    audit, offsets, commits = (found[f"{kind}__pay.ments"] for kind in (AUDIT, OFFSETS, COMMITS))
    for one in (audit, offsets, commits):
        assert (one.params["cluster"], one.params["kafka_conn_id"]) == ("pay.ments", "kafka_2")
    assert found[f"{ROLL_UP}__orders"].params["cluster"] == "orders"
    assert [asset.uri for asset in audit.schedule] == ["kafka-audit://offsets/pay.ments"]
    assert (offsets.schedule, commits.schedule) == ("3-59/5 * * * *", "3-59/15 * * * *"), "at minutes of its own"
    assert audit.doc_md == found[f"{AUDIT}__orders"].doc_md


def test_owners_and_schedules_of_a_file_of_clusters_are_those_of_its_dags_and_heavy_tasks_share_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "clusters.yaml"
    schedules = 'schedules: {audit: asset, offsets: "*/10 * * * *"}'
    file.write_text(f"version: 1\nclusters: [{{name: orders, connection: c, owners: [orders-team, sre], {schedules}}}]", encoding="utf-8")
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", str(file))
    monkeypatch.setenv("KAFKA_AUDIT_POOL", "kafka_audit")
    found = dags()
    assert set(found) == {f"{kind}__orders" for kind in KINDS}
    assert {dag.owner for dag in found.values()} == {"orders-team, sre"}
    assert [asset.uri for asset in found[f"{AUDIT}__orders"].schedule] == ["kafka-audit://offsets/orders"]
    assert found[f"{OFFSETS}__orders"].schedule == "*/10 * * * *"
    pools = {kind: {task.pool for task in found[f"{kind}__orders"].tasks} for kind in KINDS}
    assert pools == {AUDIT: {"kafka_audit"}, ROLL_UP: {"kafka_audit"}, COMMITS: {"kafka_audit"}, OFFSETS: {"default_pool"}}
    assert {task.weight_rule for task in found[f"{AUDIT}__orders"].tasks} == {"upstream"}, "an audit that has begun ends first"
    monkeypatch.delenv("KAFKA_AUDIT_POOL")
    assert {task.pool for dag in dags().values() for task in dag.tasks} == {"default_pool"}


def test_without_a_list_the_installation_names_its_one_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (dag_clusters()[0].name, dag_clusters()[0].kafka_conn_id) == ("kafka", "kafka_default")
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTER", "orders")
    (only,) = dag_clusters()
    assert (only.name, only.kafka_conn_id, only.dag_id(AUDIT)) == ("orders", "kafka_default", AUDIT)


def test_a_name_that_cannot_be_used_and_two_answers_to_one_question_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTER", "../orders")
    with pytest.raises(ConfigurationError, match=r"KAFKA_AUDIT_CLUSTER: '\.\./orders' is not usable: a name has 1-63"):
        dag_clusters()
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTER", "orders")
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "payments=kafka_payments")
    with pytest.raises(ConfigurationError, match="names one cluster and KAFKA_AUDIT_CLUSTERS lists payments: set one of the two"):
        dag_clusters()


def test_the_kinds_are_those_of_the_dag_files() -> None:
    files = {path.stem for path in (Path(__file__).parents[2] / "dags").glob("*.py")}
    assert files - {"kafka_reliability_watch"} == set(KINDS) == set(clusters.KINDS), "the watch is one for all clusters"


@pytest.mark.parametrize("dag_id", [AUDIT, f"{AUDIT}__payment", f"{AUDIT}__", "another__orders", "orders"])
def test_a_dag_that_the_installation_does_not_have_reads_no_cluster(monkeypatch: pytest.MonkeyPatch, dag_id: str) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders=kafka_orders,payments=kafka_payments")
    assert clusters.cluster_of_dag(f"{COMMITS}__orders").kafka_conn_id == "kafka_orders"
    with pytest.raises(ConfigurationError, match=f"the DAG {dag_id} is none of this installation, whose clusters are orders, payments"):
        clusters.cluster_of_dag(dag_id)


@pytest.mark.parametrize("value", ["orders", "orders=", "=kafka_orders", "Orders=kafka_orders", "a/b=c", "orders kafka_orders"])
def test_a_list_that_cannot_be_used_is_refused_and_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", f"fine=kafka_default,{value}")
    with pytest.raises(ConfigurationError, match=f"KAFKA_AUDIT_CLUSTERS: '{value}' is not usable: write name=connection id"):
        dag_clusters()


def test_a_cluster_that_is_listed_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders=a,payments=b,orders=c")
    with pytest.raises(ConfigurationError, match="lists orders twice"):
        dag_clusters()
