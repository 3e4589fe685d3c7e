"""The platform's own check of a run's parameters, for what Airflow's check lets through."""

import pytest

from kafka_audit.audit.request import AuditRequest, ClusterRequest, CommitHistoryRequest, OffsetsRequest, RollUpRequest, check_request
from kafka_audit.errors import ConfigurationError

pytestmark = pytest.mark.airflow
DAG = "kafka_reliability_audit"


@pytest.mark.parametrize(
    ("dag_id", "kind"),
    [
        (DAG, AuditRequest),
        ("kafka_offsets_snapshot", OffsetsRequest),
        ("kafka_offsets_roll_up", RollUpRequest),
        ("kafka_commit_history", CommitHistoryRequest),
    ],
)
def test_params_are_exactly_the_fields_of_the_request_with_the_same_defaults(dagbag, dag_id: str, kind: type[ClusterRequest]) -> None:
    params = dagbag.dags[dag_id].params
    assert {name: params[name] for name in params} == kind().model_dump(mode="json")


def test_an_unknown_key_is_refused_with_the_name_that_was_meant() -> None:
    with pytest.raises(ConfigurationError, match="min_covrage: is not a parameter of kafka_reliability_audit; did you mean 'min_coverage'"):
        check_request(AuditRequest, DAG, {}, {"min_covrage": 0.1})


def test_a_parameter_of_another_kind_of_run_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="fail_on: is not a parameter of kafka_offsets_snapshot"):
        check_request(OffsetsRequest, "kafka_offsets_snapshot", {}, {"fail_on": "low"})


@pytest.mark.usefixtures("folders_allowed")
def test_every_bad_value_is_named_at_once(tmp_path) -> None:
    bad = {
        "fail_on": "awful",
        "min_coverage": 1.5,
        "max_age_seconds": 0,
        "formats": "html,docx",
        "policy_dir": "relative",
        "controls_dirs": f"{tmp_path},{tmp_path}/none",
    }
    with pytest.raises(ConfigurationError) as refused:
        check_request(AuditRequest, DAG, bad, bad)
    for name in bad:
        assert f"{name}: " in str(refused.value)
    assert "there is no such folder on the machine that runs the tasks" in str(refused.value)


def test_keys_that_airflow_itself_puts_into_a_runs_configuration_are_accepted() -> None:
    assert check_request(AuditRequest, DAG, {}, {"airflow/task_span_detail_level": 2}).fail_on == "high"
