"""The file of clusters: what it may say, what is refused and how, and when the clusters' DAGs run."""

from pathlib import Path

import pytest

from kafka_audit.audit.clusters import CLUSTERS_VARIABLE, DagCluster, cluster_policy, dag_clusters
from kafka_audit.audit.request import OffsetsRequest, check_request
from kafka_audit.errors import ConfigurationError

WHOLE = """
version: 1
clusters:
  - name: orders
    connection: kafka_orders
    policy: {policy}
    owners: [orders-team, sre]
    schedules: {{audit: "15 4 * * *", offsets: "*/10 * * * *", commits: "@hourly"}}
  - name: payments
    connection: kafka_payments
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes the file that the variable names."""
    for name in ("KAFKA_AUDIT_CLUSTER", "KAFKA_AUDIT_SCHEDULE", "KAFKA_AUDIT_POLICY"):
        monkeypatch.delenv(name, raising=False)

    def written(text: str) -> Path:
        file = tmp_path / "clusters.yaml"
        file.write_text(text, encoding="utf-8")
        monkeypatch.setenv(CLUSTERS_VARIABLE, str(file))
        return file

    return written


def test_a_cluster_has_what_its_entry_says_and_else_what_the_installation_has(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "all").mkdir()
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", str(tmp_path / "all"))
    write(WHOLE.format(policy=tmp_path / "own"))
    orders, payments = dag_clusters()
    assert (orders.name, orders.kafka_conn_id, orders.listed, orders.owners) == ("orders", "kafka_orders", True, ("orders-team", "sre"))
    assert (orders.audit_schedule, orders.offsets_schedule) == ("15 4 * * *", "*/10 * * * *")
    assert cluster_policy("orders") == tmp_path / "own"
    assert (payments.owners, payments.audit_schedule) == (("kafka-audit",), None)
    assert cluster_policy("payments") == cluster_policy("another") == tmp_path / "all"
    (tmp_path / "own").rmdir()
    with pytest.raises(ConfigurationError, match=r"clusters\.yaml: policy of orders: .*own is not a folder on this machine"):
        cluster_policy("orders")


def test_a_run_has_its_own_clusters_policy_and_may_not_name_that_of_another(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_AUDIT_FOLDERS", raising=False)
    (tmp_path / "own").mkdir()
    write(WHOLE.format(policy=tmp_path / "own"))
    assert check_request(OffsetsRequest, "kafka_offsets_snapshot__orders", {}, {}).policy_folder == tmp_path / "own"
    assert check_request(OffsetsRequest, "kafka_offsets_snapshot__payments", {}, {}).policy_folder is None
    with pytest.raises(ConfigurationError, match="does not let a run use that folder"):
        check_request(OffsetsRequest, "kafka_offsets_snapshot__payments", {"policy_dir": str(tmp_path / "own")}, {})


def test_a_change_of_the_file_is_seen_at_once(write) -> None:
    write("version: 1\nclusters: [{name: a, connection: c}]")
    assert [one.name for one in dag_clusters()] == ["a"]
    write("version: 1\nclusters: [{name: a, connection: c}, {name: b, connection: d}]")
    assert [one.name for one in dag_clusters()] == ["a", "b"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("name: Orders, connection: c", "clusters.0.name: a name has 1-63"),
        ("name: a", "clusters.0.connection: is missing: add it"),
        ("name: a, connection: c, owner: me", "clusters.0.owner: is not a known field"),
        ("name: a, connection: c, policy: mine", "clusters.0.policy: write the absolute path of a policy folder"),
        ('name: a, connection: c, owners: ["x, y"]', "clusters.0.owners.0: holds a comma"),
        ("name: a, connection: c, schedules: {audits: '@daily'}", "clusters.0.schedules.audits: is not a known field"),
        ("name: a, connection: c, schedules: {audit: daily}", "clusters.0.schedules.audit: write one of @hourly, @daily"),
        ("name: a, connection: c, schedules: {offsets: asset}", "clusters.0.schedules.offsets: write one of @hourly"),
        ("name: a, connection: c, schedules: {audit: '0 25 * * *'}", "the hour of a cron expression is 0 to 23, not 25"),
        ("name: a, connection: c, schedules: {commits: '5-90/5 * * * *'}", "the minute of a cron expression is 0 to 59, not 5-90/5"),
        ("name: a, connection: c}, {name: a, connection: d", "clusters: a is listed twice: give each cluster one name and one connection"),
    ],
)
def test_what_cannot_be_used_is_refused_with_file_field_and_fix(write, entry: str, message: str) -> None:
    file = write(f"version: 1\nclusters: [{{{entry}}}]")
    with pytest.raises(ConfigurationError) as refused:
        dag_clusters()
    assert str(refused.value).startswith(f"{file}: ") and message in str(refused.value)
    assert "{'version'" not in str(refused.value)  # not the whole file again
    assert refused.value.exit_code == 2


def test_a_file_that_is_not_there_is_refused(write) -> None:
    write("x").unlink()
    with pytest.raises(ConfigurationError, match=r"clusters\.yaml: cannot be read \(No such file or directory\)"):
        dag_clusters()


def test_listed_clusters_begin_at_times_of_their_own_that_never_change(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKA_AUDIT_OFFSETS_SCHEDULE", "KAFKA_AUDIT_COMMITS_SCHEDULE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KAFKA_AUDIT_SCHEDULE", "@daily")
    many = [DagCluster(name=f"cluster-{number}", listed=True) for number in range(50)]
    nights = {one.audit_schedule for one in many}
    assert len(nights) > 40
    assert all(int(hour) < 6 for _, hour, *_ in (night.split() for night in nights))
    assert {one.offsets_schedule for one in many} == {"*/5 * * * *", *(f"{minute}-59/5 * * * *" for minute in range(1, 5))}
    assert len({one.commits_schedule for one in many}) > 10
    assert {one.roll_up_schedule for one in many} <= {f"{minute} 0 * * *" for minute in range(30, 60)}
    orders = DagCluster(name="orders", listed=True)
    assert (orders.audit_schedule, orders.offsets_schedule) == ("28 4 * * *", "3-59/5 * * * *"), "the same after every restart"
    monkeypatch.setenv("KAFKA_AUDIT_SCHEDULE", "0 4 * * *")
    assert orders.audit_schedule == "0 4 * * *", "a cron expression is taken as it is"
    assert DagCluster(audits="@daily").audit_schedule == "@daily", "the only cluster has nobody to keep clear of"
