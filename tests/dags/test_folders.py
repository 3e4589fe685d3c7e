"""The folders from which a run may read policy and controls, and the defaults if it names none."""

import os
from pathlib import Path

import pytest

from kafka_audit.audit.installation import control_folders, policy_folder
from kafka_audit.audit.notification import notifies
from kafka_audit.audit.request import AuditRequest, check_request
from kafka_audit.errors import ConfigurationError

pytestmark = pytest.mark.airflow
DAG = "kafka_reliability_audit"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``allowed`` is open to runs and holds ``policy``; ``own`` is the installation's policy, ``mine`` its controls; ``secret`` is neither."""
    for name in ("allowed/policy", "allowed/controls", "own", "mine", "secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "allowed" / "way-out").symlink_to(tmp_path / "secret")
    (tmp_path / "allowed" / "circle").symlink_to(tmp_path / "allowed" / "circle")
    monkeypatch.setenv("KAFKA_AUDIT_FOLDERS", os.pathsep.join((str(tmp_path / "none-of-these"), str(tmp_path / "allowed"))))
    (tmp_path / "none-of-these").mkdir()
    return tmp_path


def asked(**params: str) -> AuditRequest:
    return check_request(AuditRequest, DAG, params, None)


def test_a_run_that_names_no_folder_gets_the_installations(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (asked().policy_folder, asked().controls_folders) == (None, ())
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", str(folders / "own"))
    monkeypatch.setenv("KAFKA_AUDIT_CONTROLS", os.pathsep.join((str(folders / "mine"), str(folders / "own"))))
    for request in (asked(), asked(policy_dir="", controls_dirs="")):
        assert request.policy_folder == folders / "own"
        assert request.controls_folders == (folders / "mine", folders / "own")


def test_a_run_may_name_folders_below_an_allowed_one(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked(policy_dir=f"{folders}/allowed/policy", controls_dirs=f"{folders}/allowed/controls, {folders}/allowed")
    assert request.policy_folder == folders / "allowed" / "policy"
    assert request.controls_folders == (folders / "allowed" / "controls", folders / "allowed")


@pytest.mark.parametrize("name", ["policy_dir", "controls_dirs"])
@pytest.mark.parametrize(
    "folder", ["secret", "allowed/../secret", "allowed/way-out", "allowed/circle", "not-there", "allowedness", "", "allowed/\0", "x" * 5000]
)
def test_any_other_folder_is_refused_whether_it_exists_or_not(folders: Path, name: str, folder: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        asked(**{name: f"{folders}/{folder}"})
    message = str(refused.value)
    assert f"{name}: this installation does not let a run use that folder" in message
    assert f"{folders / 'none-of-these'}, {folders / 'allowed'} (KAFKA_AUDIT_FOLDERS)" in message
    assert f"(given: {f'{folders}/{folder}'!r})" in message
    assert "no such folder" not in message


def test_without_a_list_a_run_may_name_only_what_it_would_get_anyway(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_AUDIT_FOLDERS")
    with pytest.raises(ConfigurationError, match="neither KAFKA_AUDIT_FOLDERS nor KAFKA_AUDIT_POLICY is set"):
        asked(policy_dir=f"{folders}/allowed/policy")
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", str(folders / "own"))
    assert asked(policy_dir=f"{folders}/own").policy_folder == folders / "own"
    with pytest.raises(ConfigurationError, match=r"allowed are folders .*own \(KAFKA_AUDIT_POLICY\)"):
        asked(policy_dir=f"{folders}/allowed/policy")


@pytest.mark.parametrize("variable", ["KAFKA_AUDIT_POLICY", "KAFKA_AUDIT_CONTROLS", "KAFKA_AUDIT_FOLDERS"])
@pytest.mark.parametrize("value", ["relative", "{folders}/not-there", "{folders}/file"])
def test_a_setting_that_names_no_folder_is_an_error_and_never_the_shipped_policy(
    folders: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    (folders / "file").write_text("")
    monkeypatch.setenv(variable, value.format(folders=folders))
    with pytest.raises(ConfigurationError, match=f"{variable}: .* is not the absolute path of a folder on this machine"):
        asked(policy_dir=f"{folders}/allowed/policy")


def test_a_folder_whose_name_could_not_be_told_from_two_is_refused(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folders / "a,b").mkdir()
    monkeypatch.setenv("KAFKA_AUDIT_CONTROLS", f"{folders}/a,b")
    with pytest.raises(ConfigurationError, match="holds a comma, which separates folders in the Params of a run: rename it"):
        control_folders()


def test_the_installations_policy_is_told_without_links(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folders / "current").symlink_to(folders / "own")
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", f"{folders}/current")
    assert policy_folder() == folders / "own"
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", "")
    assert policy_folder() is None


def test_the_command_line_takes_the_same_variables(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from kafka_audit.cli import audit
    from kafka_audit.cli.main import app

    given: list[dict] = []

    def audited(**arguments: object):
        given.append(arguments)
        from types import SimpleNamespace

        return SimpleNamespace(exit_code=0)

    monkeypatch.setattr("kafka_audit.cli.options.need_java", lambda: None)
    for name in ("load_policy", "load_catalogue", "check_policy", "print_summary"):
        monkeypatch.setattr(audit, name, lambda *given: None)
    monkeypatch.setattr(audit, "run_audit_through_airflow", audited)
    command = ["audit", "--bootstrap", "127.0.0.1:1", "--root", str(folders / "root")]
    said = {
        "KAFKA_AUDIT_POLICY": f"{folders}/own",
        "KAFKA_AUDIT_CONTROLS": f"{folders}/mine{os.pathsep}{folders}/own",
        "KAFKA_AUDIT_CLUSTER": "orders",
    }
    assert CliRunner().invoke(app, command, env=said).exit_code == 0
    assert CliRunner().invoke(app, command, env=dict.fromkeys(said, "")).exit_code == 0
    assert CliRunner().invoke(app, [*command, "--policy", f"{folders}/mine", "--cluster", "c"], env=said).exit_code == 0
    found = [(call["cluster"], call["policy_dir"], call["controls_dirs"]) for call in given]
    own, mine = folders / "own", folders / "mine"
    assert found == [("orders", own, [mine, own]), ("kafka", None, []), ("c", mine, [mine, own])]


def test_the_airflow_of_one_audit_gets_exactly_what_its_person_chose(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_audit.airflow.environment import chosen

    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "payments=kafka_payments")
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", f"{folders}/secret")
    monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", "ops_chat")
    for name, value in chosen(cluster="orders", policy=folders / "own", controls=[folders / "mine"]).items():
        monkeypatch.setenv(name, value)
    request = asked(cluster="orders")
    assert (request.cluster, request.policy_folder, request.controls_folders) == ("orders", folders / "own", (folders / "mine",))
    for name, value in chosen(cluster="orders", policy=None, controls=[]).items():
        monkeypatch.setenv(name, value)
    assert (asked().policy_folder, asked().controls_folders) == (None, ())
    assert not notifies()
    with pytest.raises(ConfigurationError, match="--policy: there is no folder"):
        chosen(cluster="orders", policy=folders / "not-there", controls=[])
