"""``kafka-audit verify AUDIT`` checks every hash that the audit contains and prints the result of each."""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sealed_audits import CLUSTER, WholeAudit, audit_id, forge, seal, sealed_folder
from typer.testing import CliRunner, Result

from kafka_audit.audit.inputs import keep_rules, keep_used, rules_record
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.cli.main import app
from kafka_audit.errors import AuditError, ConfigurationError, IntegrityError
from kafka_audit.policy import load_policy
from kafka_audit.policy.load import shipped_policy_folder
from kafka_audit.store.durable_files import remove_folder, write_json
from kafka_audit.store.layout import unseal_audit
from kafka_audit.store.sealed import Sealed


def said(*arguments: object, code: int = 0) -> str:
    """What the command prints, its error included, when it ends with this exit code."""
    done: Result = CliRunner().invoke(app, [str(one) for one in arguments])
    problem = done.exception
    found = problem.exit_code if isinstance(problem, AuditError) else done.exit_code
    text = done.output + str(problem or "")
    assert found == code, text
    return text


@pytest.fixture
def whole(tmp_path: Path) -> WholeAudit:
    return WholeAudit(tmp_path / "root")


def test_an_intact_audit_is_checked_with_all_that_it_names(whole: WholeAudit) -> None:
    text = said("verify", whole.audit.path)
    for named in (
        f"snapshot {whole.snapshot.snapshot_id}",
        f"earlier snapshot {whole.earlier.snapshot_id}",
        f"offsets snapshot {whole.offsets.snapshot_id}: as the audit used it",
        "rolled-up day 2026-11-19: as the audit used it",
        "behaviour tables 20261120T110000Z: as the audit used it",
        f"policy: the audit's copy has the sha256 {load_policy().sha256}",
        f"controls: the audit's copy has the sha256 {load_catalogue([whole.controls]).sha256}",
        "its manifest has the sha256 that .chain.json names",
    ):
        assert f"intact   {named}" in text or named in text, named
    assert f"intact: audit {whole.audit.path.name} of cluster {CLUSTER}" in text


@pytest.mark.parametrize("name", ["snapshot", "earlier"])
def test_a_snapshot_that_was_replaced_with_its_manifest_is_found_through_the_audit(whole: WholeAudit, name: str) -> None:
    folder = getattr(whole, name).path
    pq.write_table(pa.table({"topic": ["other"]}), folder / "topics.parquet")
    forge(folder)
    assert Sealed.verified(folder)
    text = said("verify", whole.audit.path, code=5)
    assert f"{folder.name}: its manifest is not the one that the audit names" in text


def test_a_deleted_snapshot_is_said_and_fails_because_nothing_keeps_a_copy(whole: WholeAudit) -> None:
    shutil.rmtree(whole.snapshot.path)
    assert f"gone     snapshot {whole.snapshot.snapshot_id}: is gone" in said("verify", whole.audit.path, code=5)


def test_what_retention_deleted_is_said_and_its_copy_in_the_audit_is_enough(whole: WholeAudit) -> None:
    for folder in (whole.offsets.path, whole.day, whole.behaviour):
        remove_folder(folder)
    text = said("verify", whole.audit.path)
    for what in (f"offsets snapshot {whole.offsets.snapshot_id}", "rolled-up day 2026-11-19", "behaviour tables 20261120T110000Z"):
        assert f"gone     {what}: deleted since; the audit's copy is intact" in text
    assert "gone 3" in text
    assert pq.read_table(whole.audit.inputs / "history" / CLUSTER / "lag" / "2026-11-19" / "groups.parquet").num_rows == 3


def test_without_the_copy_what_was_deleted_cannot_be_proven(whole: WholeAudit) -> None:
    remove_folder(whole.behaviour)
    shutil.rmtree(whole.audit.inputs / "history" / CLUSTER / "commits")
    forge(whole.audit.path)
    assert "behaviour tables 20261120T110000Z: the audit's copy is missing" in said("verify", whole.audit.path, code=5)


def test_a_copy_that_was_replaced_with_its_manifest_is_found(whole: WholeAudit) -> None:
    copy = whole.audit.inputs / "history" / CLUSTER / "lag" / "2026-11-19"
    (copy / "groups.parquet").unlink()
    (copy / "manifest.json").unlink()
    sealed_folder(copy, 9)
    forge(whole.audit.path)
    assert "rolled-up day 2026-11-19: the audit's copy is not what the audit used" in said("verify", whole.audit.path, code=5)


def test_a_day_that_was_made_again_is_said_and_an_edited_one_fails(whole: WholeAudit) -> None:
    shutil.rmtree(whole.day)
    sealed_folder(whole.day, 4, kind="lag_day")
    assert "rolled-up day 2026-11-19: was made again since; the audit's copy is what was used" in said("verify", whole.audit.path)
    (whole.day / "groups.parquet").write_bytes(b"x")
    assert "was changed; the audit's copy is intact" in said("verify", whole.audit.path, code=5)


def test_an_edited_copy_of_the_policy_no_longer_has_the_hash_that_the_audit_names(whole: WholeAudit) -> None:
    file = whole.audit.inputs / "policy" / "slas.yaml"
    file.write_text(file.read_text() + "# looser\n")
    forge(whole.audit.path)
    assert "policy: the audit's copy has the sha256" in said("verify", whole.audit.path, code=5)


@pytest.mark.parametrize("harm", [shutil.rmtree, lambda folder: (folder / "slas.yaml").write_text("[")])
def test_a_copy_of_the_policy_that_cannot_be_read_is_not_passed_over(whole: WholeAudit, harm: Callable[[Path], object]) -> None:
    harm(whole.audit.inputs / "policy")
    forge(whole.audit.path)
    assert "the rules cannot be checked" in said("verify", whole.audit.path, code=5)


def test_a_verdict_rewritten_with_its_manifest_is_found_by_what_stands_beside_the_audit(whole: WholeAudit) -> None:
    write_json(whole.audit.report / "report.json", {"verdict": "PASSED"})
    forge(whole.audit.path)
    assert "chain.json names another sha256" in said("verify", whole.audit.path, code=5)
    later = seal(whole.root, 1)
    assert f"audit {later.audit_id} names another sha256" in said("verify", whole.audit.path, code=5)


def test_the_link_to_the_audit_before_cannot_be_left_out(whole: WholeAudit) -> None:
    later = whole.root.audit(CLUSTER, seal(whole.root, 1).audit_id)
    forge(later.path, {"previous": None})
    assert "has number 2 and names no audit before it: the link was removed" in said("verify", later.path, code=5)


def test_an_audit_under_the_name_of_another_is_refused(whole: WholeAudit) -> None:
    other = whole.audit.path.with_name(audit_id(7))
    shutil.copytree(whole.audit.path, other)
    assert f"its manifest is of audit '{whole.audit.path.name}'" in said("verify", other, code=5)


def test_copies_are_hard_links_and_bytes_where_no_link_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WholeAudit(tmp_path / "one")
    place = Path("offsets") / CLUSTER / whole.offsets.snapshot_id / "topics.parquet"
    assert (whole.audit.inputs / place).samefile(whole.root.path / place)

    def refused(*_args: object, **_kwargs: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    copied = WholeAudit(tmp_path / "two")
    assert not (copied.audit.inputs / place).samefile(copied.root.path / place)
    assert "intact: audit" in said("verify", copied.audit.path)


def test_a_step_that_runs_again_after_retention_keeps_the_copies_and_drops_those_nobody_names(whole: WholeAudit) -> None:
    remove_folder(whole.offsets.path)
    remove_folder(whole.behaviour)
    assert unseal_audit(whole.audit)
    write_json(whole.audit.lag / "commit_history.json", {"folder": None, "reason": "none"})
    keep_used(whole.audit, whole.root, CLUSTER)
    assert (whole.audit.inputs / "offsets" / CLUSTER / whole.offsets.snapshot_id / "topics.parquet").is_file()
    assert not list(whole.audit.inputs.glob("history/prod/commits/behaviour/*"))


def test_rules_that_changed_between_a_job_and_the_report_are_not_sealed_as_those_that_were_used(whole: WholeAudit) -> None:
    assert unseal_audit(whole.audit)
    file = whole.controls / "log_dirs_healthy.yaml"
    file.write_text(file.read_text() + "# after the job\n")
    with pytest.raises(ConfigurationError, match="settings was judged with another policy or other controls"):
        whole.seal()


@pytest.mark.parametrize(
    "harm",
    [
        lambda file, secret: file.symlink_to(secret),
        lambda file, secret: file.symlink_to("/dev/zero"),
        lambda file, secret: os.mkfifo(file),
        lambda file, secret: file.write_bytes(secret.read_bytes()),
    ],
    ids=["a link to a secret", "a link to a device without end", "a pipe", "another text"],
)
def test_no_file_comes_into_an_audit_that_took_the_place_of_a_policys_file(
    harm: Callable[[Path, Path], object], whole: WholeAudit, tmp_path: Path
) -> None:
    place, catalogue, secret = tmp_path / "policy", load_catalogue([whole.controls]), tmp_path / "secret"
    shutil.copytree(shipped_policy_folder(), place)
    secret.write_text("the password")
    policy = load_policy(place)
    assert unseal_audit(whole.audit)
    for part in (whole.audit.settings, whole.audit.lag):
        write_json(part / "rules.json", rules_record(policy, catalogue))
    (place / "attestations.yaml").unlink()
    harm(place / "attestations.yaml", secret)
    with pytest.raises(ConfigurationError):
        keep_rules(whole.audit, policy, catalogue, [whole.controls])
    assert not [path for path in whole.audit.path.rglob("*") if path.is_file() and b"the password" in path.read_bytes()]


def test_what_was_deleted_before_it_was_copied_ends_with_the_integrity_code(whole: WholeAudit) -> None:
    assert unseal_audit(whole.audit)
    shutil.rmtree(whole.audit.inputs)
    remove_folder(whole.day)
    with pytest.raises(IntegrityError, match=r"2026-11-19 is not there as .* used it"):
        keep_used(whole.audit, whole.root, CLUSTER)


def test_a_record_that_is_nested_without_end_is_a_problem_and_no_traceback(whole: WholeAudit) -> None:
    (whole.audit.lag / "history.json").write_text("[" * 100_000)
    forge(whole.audit.path)
    assert "the earlier evidence cannot be checked" in said("verify", whole.audit.path, code=5)


def piped(file: Path) -> None:
    os.mkfifo(file)


def to_a_device(file: Path) -> None:
    file.symlink_to("/dev/zero")


@pytest.mark.parametrize("harm", [piped, to_a_device])
@pytest.mark.parametrize("name", ["inputs/controls/zz.yaml", "inputs/policy/waivers.yaml", "lag/commit_history.json"])
@pytest.mark.parametrize("command", [(), ("--chain", CLUSTER, "--deep", "--root")])
def test_what_was_refused_is_not_read_any_more(whole: WholeAudit, harm: Callable[[Path], None], name: str, command: tuple[str]) -> None:
    file = whole.audit.path / name
    file.unlink(missing_ok=True)
    harm(file)
    with time_limit():
        text = said("verify", *command, whole.root.path if command else whole.audit.path, code=5)
    assert f"{name}: is " in text
    assert "the rules cannot be checked" not in text


@contextlib.contextmanager
def time_limit(seconds: int = 10) -> Iterator[None]:
    """Fail when the block takes longer, also when it waits for a pipe."""

    def late(*_: object) -> None:
        pytest.fail(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", [".app.deadbeef", "team/.app.properties", ".team/app.properties"])
def test_a_hidden_settings_file_is_refused_before_an_audit_begins_because_none_could_keep_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "policy"
    shutil.copytree(load_policy().folder, folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("acks=all\n")
    client = f"{{name: a, kind: producer, implementation: java, owner: a, declared_on: 2026-11-01, source: a, topics: [a], settings_file: {name}}}"
    (folder / "clients.yaml").write_text(f"version: 1\nclients: [{client}]\n")
    with pytest.raises(ConfigurationError, match=r"clients\.0: settings_file is a hidden file"):
        load_policy(folder)


@pytest.mark.parametrize("folder", ["../../../etc", "behaviour/../../x", "/etc", 7])
def test_a_record_cannot_lead_out_of_the_root(whole: WholeAudit, folder: object) -> None:
    write_json(whole.audit.lag / "commit_history.json", {"folder": folder, "manifest_sha256": "0"})
    with pytest.raises(IntegrityError, match="is not a record of what was used"):
        keep_used(whole.audit, whole.root, CLUSTER)
    forge(whole.audit.path)
    assert "the earlier evidence cannot be checked" in said("verify", whole.audit.path, code=5)


def test_a_rolled_up_day_and_a_snapshot_are_still_verified_alone(whole: WholeAudit) -> None:
    assert f"intact: snapshot {whole.snapshot.snapshot_id} of cluster {CLUSTER}, 1 files match" in said("verify", whole.snapshot.path)
    assert "intact: lag_day 2026-11-19" in said("verify", whole.day)
    assert "intact: commit_behaviour 20261120T110000Z" in said("verify", whole.behaviour)
    said("verify", code=2)
    said("verify", whole.day, "--chain", CLUSTER, code=2)
    said("verify", whole.day, "--head", "0" * 64, code=2)
