"""Seals are signed if the installation has a key, and other programs can check them with the public key."""

import base64
import hashlib
import json
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat, load_pem_public_key
from sealed_audits import CLUSTER, WholeAudit, audit_id, forge, seal, snapshot
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
from test_audit_check import said

from kafka_audit.errors import ConfigurationError
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import EvidenceRoot, unseal_audit
from kafka_audit.store.sealed import Sealed
from kafka_audit.store.signing import new_key, read_public_key
from kafka_audit.store.signing_key import VARIABLE, signing_key


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The public key of an installation that signs."""
    private = tmp_path / "seal.key"
    said("keys", "new", "--to", private)
    monkeypatch.setenv(VARIABLE, str(private))
    return private.with_name("seal.key.pub")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return new_key(tmp_path / "other.key")


def test_a_new_key_is_for_its_owner_only_and_never_replaces_one(tmp_path: Path) -> None:
    file = tmp_path / "seal.key"
    text = said("keys", "new", "--to", file)
    assert (stat.S_IMODE(file.stat().st_mode), str(file) in text) == (0o600, True)
    before = file.read_bytes()
    assert b"BEGIN PRIVATE KEY" in before
    assert "is there already and is not overwritten" in said("keys", "new", "--to", file, code=2)
    file.rename(tmp_path / "kept")
    assert "seal.key.pub is there already" in said("keys", "new", "--to", file, code=2)
    assert not file.exists()


def test_keys_are_never_made_by_themselves_and_without_one_nothing_is_signed(tmp_path: Path) -> None:
    whole = WholeAudit(tmp_path / "root")
    assert not list(tmp_path.rglob("*.dsse.json"))
    assert not list(tmp_path.rglob("*.key"))
    assert "signed" not in said("verify", whole.audit.path)


def test_audits_and_snapshots_are_signed_and_verify_with_the_public_key(key: Path, tmp_path: Path) -> None:
    whole = WholeAudit(tmp_path / "root")
    for folder in (whole.audit.path, whole.snapshot.path, whole.offsets.path):
        assert "the signature of its manifest is of the key given" in said("verify", "--key", key, folder)
    assert "was not checked, because no --key was given" in said("verify", whole.audit.path)
    statement = json.loads(base64.b64decode(read_json(whole.audit.path / "manifest.dsse.json")["payload"]))
    manifest = whole.audit.path / "manifest.json"
    assert statement["subject"] == [{"name": "manifest.json", "digest": {"sha256": hashlib.sha256(manifest.read_bytes()).hexdigest()}}]
    assert statement["predicate"] == {
        "kind": "audit", "cluster": CLUSTER, "audit_id": whole.audit.path.name, "sequence": 1, "previous": None,
    }  # fmt: skip


def sslib_key(public: Path, keyid: str) -> SSlibKey:
    return SSlibKey.from_crypto(load_pem_public_key(public.read_bytes()), keyid=keyid)


def test_a_public_dsse_verifier_accepts_the_signature_and_refuses_another_key(key: Path, other: Path, tmp_path: Path) -> None:
    folder = WholeAudit(tmp_path / "root").audit.path
    envelope = Envelope.from_dict(read_json(folder / "manifest.dsse.json"))
    (keyid,) = envelope.signatures
    assert list(envelope.verify([sslib_key(key, keyid)], 1)) == [keyid]
    assert envelope.payload_type == "application/vnd.in-toto+json"
    with pytest.raises(VerificationError):
        envelope.verify([sslib_key(other, keyid)], 1)
    envelope.payload += b" "
    with pytest.raises(VerificationError):
        envelope.verify([sslib_key(key, keyid)], 1)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_accepts_the_signature_over_the_bytes_that_dsse_defines(key: Path, tmp_path: Path) -> None:
    folder = snapshot(EvidenceRoot(path=tmp_path / "root"), 0).path
    envelope = read_json(folder / "manifest.dsse.json")
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    (tmp_path / "signed").write_bytes(b" ".join([b"DSSEv1", str(len(kind)).encode(), kind, str(len(payload)).encode(), payload]))
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    command = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", key, "-in", tmp_path / "signed", "-sigfile", tmp_path / "sig"]
    assert b"Verified Successfully" in subprocess.run(command, capture_output=True, check=True).stdout


def rewritten(folder: Path) -> None:
    write_json(folder / "report" / "report.json", {"verdict": "PASSED"})
    forge(folder)


def stripped(folder: Path) -> None:
    (folder / "manifest.dsse.json").unlink()


def garbage(folder: Path) -> None:
    (folder / "manifest.dsse.json").write_text('{"payload": "?", "payloadType": 3, "signatures": 7}')


def with_key_twice(folder: Path) -> None:
    text = (folder / "manifest.dsse.json").read_text()
    (folder / "manifest.dsse.json").write_text(text.replace("{", '{"payload": "",', 1))


def of_another_seal(folder: Path) -> None:
    shutil.copy(next(folder.parents[2].glob(f"evidence/{CLUSTER}/*/manifest.dsse.json")), folder / "manifest.dsse.json")


def through_a_link(folder: Path) -> None:
    (folder / "manifest.dsse.json").rename(folder.parent / "elsewhere")
    (folder / "manifest.dsse.json").symlink_to(folder.parent / "elsewhere")


def with_signatures_without_end(folder: Path) -> None:
    envelope = read_json(folder / "manifest.dsse.json")
    write_json(folder / "manifest.dsse.json", {**envelope, "signatures": [{"sig": "AAAA"}] * 300_000 + envelope["signatures"]})


def with_more_signatures_than_are_tried(folder: Path) -> None:
    envelope = read_json(folder / "manifest.dsse.json")
    write_json(folder / "manifest.dsse.json", {**envelope, "signatures": [{"sig": "AAAA"}] * 16 + envelope["signatures"]})


ATTACKS = [
    *(rewritten, stripped, garbage, with_key_twice, of_another_seal, through_a_link),
    *(with_signatures_without_end, with_more_signatures_than_are_tried),
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_audit_whose_signature_does_not_fit_is_refused(key: Path, tmp_path: Path, attack: Callable[[Path], None]) -> None:
    whole = WholeAudit(tmp_path / "root")
    attack(whole.audit.path)
    (whole.root.audits(CLUSTER) / ".chain.json").unlink()
    assert "manifest.dsse.json" in said("verify", "--key", key, whole.audit.path, code=5)


def test_a_wrong_key_is_refused_and_one_of_several_is_enough(key: Path, other: Path, tmp_path: Path) -> None:
    folder = snapshot(EvidenceRoot(path=tmp_path / "root"), 0).path
    assert "none of its signatures is of the key that was given" in said("verify", "--key", other, folder, code=5)
    said("verify", "--key", other, "--key", key, folder)
    said("verify", "--key", key.with_suffix(""), folder, code=2)


def test_a_rollback_to_an_older_signed_audit_is_found_by_the_witness_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = EvidenceRoot(path=tmp_path / "root")
    chain = ("verify", "--chain", CLUSTER, "--root", root.path, "--key", tmp_path / "seal.key.pub")
    new_key(tmp_path / "seal.key")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    seal(root, 1)
    state = root.audits(CLUSTER) / ".chain.json"
    earlier, told = state.read_text(), seal(root, 2)
    later = state.read_text()
    state.write_text(earlier)
    assert "removed, rewritten or added" in said(*chain, code=5)
    state.write_text(later)
    shutil.rmtree(root.audit(CLUSTER, told.audit_id).path)
    assert "removed, rewritten or added" in said(*chain, code=5)
    state.write_text(earlier)
    said(*chain)
    assert "it was removed or rewritten" in said(*chain, "--head", told.manifest_sha256, code=5)


def test_the_newest_of_a_chain_must_be_signed_and_vouches_for_those_before_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = EvidenceRoot(path=tmp_path / "root")
    chain = ("verify", "--chain", CLUSTER, "--root", root.path, "--key", tmp_path / "seal.key.pub")
    seal(root, 1)
    new_key(tmp_path / "seal.key")
    assert "manifest.dsse.json: is missing" in said(*chain, code=5)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    for hour in (2, 3):
        seal(root, hour)
    assert "2 of 3 audits are signed" in said(*chain)
    newest = root.audit(CLUSTER, audit_id(3)).path
    rewritten(newest)
    (root.audits(CLUSTER) / ".chain.json").unlink()
    said(*chain[:-2])
    assert "was changed after it was signed" in said(*chain, code=5)


def test_an_audit_that_is_done_again_has_no_signature_while_it_is_open(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WholeAudit(tmp_path / "root")
    assert unseal_audit(whole.audit)
    assert not (whole.audit.path / "manifest.dsse.json").exists()
    monkeypatch.delenv(VARIABLE)
    (whole.audit.path / "manifest.dsse.json").write_text("an old one")
    whole.seal()
    assert not (whole.audit.path / "manifest.dsse.json").exists()
    assert Sealed.open(whole.audit.path).problems() == []


def no_file(file: Path) -> None:
    pass


def no_key(file: Path) -> None:
    file.write_text("x")


def public_half(file: Path) -> None:
    new_key(file.with_name("k")).rename(file)


def on_a_curve(file: Path) -> None:
    file.write_bytes(generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def with_a_password(file: Path) -> None:
    encryption = BestAvailableEncryption(b"secret")
    file.write_bytes(generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))


@pytest.mark.parametrize("make", [no_file, no_key, public_half, on_a_curve, with_a_password])
def test_a_key_that_cannot_be_used_is_invalid_input_before_anything_is_read_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "key")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "key"))
    with pytest.raises(ConfigurationError, match=VARIABLE):
        signing_key()
    with pytest.raises(ConfigurationError, match=VARIABLE):
        snapshot(EvidenceRoot(path=tmp_path / "root"), 0)
    assert not (tmp_path / "root").exists()


def test_a_public_key_that_is_not_there_is_not_called_a_wrong_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"the public key cannot be read \(No such file or directory\): name the .pub file"):
        read_public_key(tmp_path / "none.pub")
    with pytest.raises(ConfigurationError, match="is not a public key in PEM form"):
        read_public_key(Path(__file__))
