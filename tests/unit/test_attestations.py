"""Attestations: who vouches for what until when, and that the file which shows it is the one that was named."""

import hashlib
import os
import shutil
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_policy import SLAS, TIERS

from expectations.control_summary import _coverage
from kafka_audit.audit.inputs import policy_files
from kafka_audit.audit.policy_fit import check_dates, check_policy
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import EvidenceClass
from kafka_audit.input_files.read import MOST_HASHED
from kafka_audit.policy import Policy, load_policy
from kafka_audit.policy.attestations import newest

PROOF = b"minutes of the rehearsal"
ONE: dict[str, Any] = {
    "id": "restore-1",
    "control": "OPS-01",
    "attested_by": "Ada",
    "attested_on": "2026-10-20",
    "expires": "2027-04-20T00:00:00Z",
    "statement": "orders was restored in 40 minutes",
    "file": "proofs/restore.txt",
    "sha256": hashlib.sha256(PROOF).hexdigest(),
}
WITHIN = datetime(2026, 11, 20, tzinfo=timezone.utc)
AFTER = datetime(2027, 4, 20, tzinfo=timezone.utc)


def folder(place: Path, *listed: dict[str, Any]) -> Path:
    (place / "proofs").mkdir(parents=True, exist_ok=True)
    (place / "proofs" / "restore.txt").write_bytes(PROOF)
    (place / "tiers.yaml").write_text(TIERS)
    (place / "slas.yaml").write_text(SLAS)
    (place / "attestations.yaml").write_text(yaml.safe_dump({"version": 1, "attestations": list(listed)}))
    return place


def policy(place: Path, *listed: dict[str, Any]) -> Policy:
    return load_policy(folder(place, *listed))


def refusal(place: Path, *listed: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationError) as problem:
        policy(place, *listed)
    return str(problem.value)


def test_an_attestation_holds_from_its_day_until_it_expires(tmp_path: Path) -> None:
    (one,) = policy(tmp_path, ONE).attestations
    assert one.outcome == "passed"
    assert one.in_force(WITHIN)
    assert not one.in_force(AFTER)
    assert not one.in_force(datetime(2026, 10, 18, tzinfo=timezone.utc))


def test_the_latest_attestation_that_was_given_by_then_counts(tmp_path: Path) -> None:
    later = {**ONE, "id": "restore-2", "attested_on": "2026-12-01", "outcome": "failed"}
    listed = policy(tmp_path, later, ONE).attestations
    assert newest(listed, WITHIN)["OPS-01"].id == "restore-1"
    assert newest(listed, datetime(2026, 12, 24, tzinfo=timezone.utc))["OPS-01"].id == "restore-2"
    assert newest(listed, datetime(2026, 1, 1, tzinfo=timezone.utc)) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"file": "proofs/gone.txt"}, "attestations.restore-1.file: {place}/proofs/gone.txt: the file is missing"),
        ({"file": "proofs"}, "/proofs: cannot be read (Is a directory)"),
        ({"file": "../secret.txt"}, "lies outside of the policy folder"),
        ({"file": "/etc/hostname"}, "lies outside of the policy folder"),
        ({"file": "proofs/link.txt"}, "lies outside of the folder"),
        ({"file": "proofs/.hidden"}, "is hidden"),
        ({"file": "proofs/large.bin"}, "has more than 50,000,000 bytes"),
        ({"sha256": "0" * 64}, "it is not the file that was attested"),
        ({"sha256": "xyz"}, "attestations.0.sha256"),
        ({"expires": "9999-12-31T23:59:59-14:00"}, "attestations.0.expires"),
        ({"expires": "0001-01-01T00:00:00+14:00"}, "attestations.0.expires"),
        ({"file": "proofs/pipe"}, "is not a regular file"),
        ({"expires": "2026-10-20T12:00:00Z"}, "expires is not after attested_on"),
        ({"outcome": "perhaps"}, "attestations.0.outcome"),
        ({"statement": "ok"}, "attestations.0.statement"),
        ({"approved": True}, "attestations.0.approved"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_file_and_field(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    place = folder(tmp_path / "policy")
    (tmp_path / "secret.txt").write_bytes(PROOF)
    (place / "proofs" / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(place / "proofs" / "pipe")
    with (place / "proofs" / "large.bin").open("wb") as stream:
        stream.truncate(MOST_HASHED + 1)
    assert said.format(place=place) in refusal(place, {**ONE, **change})


def test_two_attestations_of_one_id_are_refused(tmp_path: Path) -> None:
    assert "['restore-1'] appear twice" in refusal(tmp_path, ONE, ONE)


def test_a_control_that_passed_and_failed_on_one_day_is_refused(tmp_path: Path) -> None:
    assert "OPS-01 has passed and failed on 2026-10-20" in refusal(tmp_path, ONE, {**ONE, "id": "restore-2", "outcome": "failed"})


def test_attested_files_are_read_once_and_have_a_limit_together(tmp_path: Path) -> None:
    place = folder(tmp_path)
    for name, length in (("most", MOST_HASHED - 10), ("more", 11)):
        with (place / "proofs" / name).open("wb") as stream:
            stream.truncate(length)
    large = {**ONE, "file": "proofs/most", "sha256": hashlib.sha256(bytes(MOST_HASHED - 10)).hexdigest()}
    began = time.process_time()
    assert len(policy(tmp_path, *({**large, "id": f"restore-{number}"} for number in range(200))).attestations) == 200
    assert time.process_time() - began < 2
    more = {**ONE, "id": "more", "file": "proofs/more", "sha256": hashlib.sha256(bytes(11)).hexdigest()}
    assert "attestations.more.file" in refusal(tmp_path, large, more)
    assert "all attested files have more than 50,000,000 bytes" in refusal(tmp_path, large, more)


def test_only_manual_controls_can_be_attested(tmp_path: Path) -> None:
    catalogue = load_catalogue()
    check_policy(policy(tmp_path / "one", ONE), catalogue)
    with pytest.raises(ConfigurationError, match="TOP-01 is not a control that a person attests: write one of OPS-01, OPS-02, OPS-03"):
        check_policy(policy(tmp_path / "two", {**ONE, "control": "TOP-01"}), catalogue)


def test_a_policy_is_not_adopted_with_an_attestation_that_has_expired_or_is_of_tomorrow(tmp_path: Path) -> None:
    found = policy(tmp_path, ONE)
    check_dates(found, WITHIN)
    with pytest.raises(ConfigurationError, match="restore-1: expires: 2027-04-20T00:00:00"):
        check_dates(found, AFTER)
    with pytest.raises(ConfigurationError, match="restore-1: attested_on: 2026-10-20 is in the future"):
        check_dates(found, datetime(2026, 10, 1, tzinfo=timezone.utc))


def test_the_copy_of_a_policy_holds_the_attested_files_and_has_the_same_hash(tmp_path: Path) -> None:
    found, copy = policy(tmp_path / "policy", ONE), tmp_path / "copy"
    (copy / "frameworks").mkdir(parents=True)
    for name, source in policy_files(found).items():
        (copy / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(source, copy / name)
    assert load_policy(copy).sha256 == found.sha256
    (copy / "proofs" / "restore.txt").write_bytes(b"other minutes")
    with pytest.raises(ConfigurationError, match="it is not the file that was attested"):
        load_policy(copy)


def test_the_manual_controls_are_below_high_and_say_attested_of_a_row_with_an_attestation() -> None:
    manual = [control for control in load_catalogue().controls if control.evidence is EvidenceClass.MANUAL]
    assert [control.code for control in manual] == ["OPS-01", "OPS-02", "OPS-03"]
    assert {control.severity.value for control in manual} == {"medium"}
    assert all("'attested'" in (control.evidence_of_row or "") for control in manual)


def test_an_open_manual_control_counts_neither_for_nor_against_the_coverage() -> None:
    row = {"passed": 9, "failed": 0, "findings": 10, "not_applicable": 0, "not_assessed": 1, "evidence_class": "observed"}
    still_open = {"passed": 0, "failed": 0, "findings": 1, "not_applicable": 0, "not_assessed": 1, "evidence_class": "manual"}
    attested = {**still_open, "passed": 1, "not_assessed": 0}
    assert _coverage([row, still_open]).ratio == 0.9
    assert (_coverage([row, attested]).assessed, _coverage([row, attested]).applicable) == (10, 11)
