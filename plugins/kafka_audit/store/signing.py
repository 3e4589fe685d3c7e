"""Signatures of seals: a DSSE envelope around an in-toto statement that names the sha256 of a manifest, signed with an Ed25519 key.

The hashes of a manifest show that files were changed by someone who does not change the manifest too. Whoever may write into the folder
can do both, and nothing in it can prove otherwise: that takes a witness outside. A signature is one. The key is a file that only the
installation's tasks can read; the public half is given to whoever checks.

DSSE and in-toto are public specifications with verifiers in many languages, and need only Ed25519 from ``cryptography``, which Kafka's TLS
needs anyway. The manifest lists the files, so its sha256 is the one subject of the statement. (OpenSSF model-signing would hash all files
again, has no Ed25519, and brings sigstore, whose log would publish that an audit was made.)

The signature lies beside the manifest as ``manifest.dsse.json`` and is the one file that the manifest cannot list.
"""

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.store.durable_files import write_failed, write_json
from kafka_audit.store.manifest import MANIFEST, SIGNATURE, bytes_of, parse_object, read_manifest
from kafka_audit.store.signing_key import VARIABLE

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:kafka-audit:seal:v1"
_MOST_BYTES, _MOST_SIGNATURES = 64 << 10, 16
"""Of an envelope: ours has 2 KB and one signature, and each is tried with each key."""
_IDENTITY = ("kind", "cluster", "snapshot_id", "audit_id", "review_id", "sequence", "previous", "reviewed", "review_before")
"""What the predicate repeats of the manifest, where it is there: which seal this is, its place in the chain, and what a review is of."""


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """The private key of the installation."""

    private: Ed25519PrivateKey

    def envelope(self, manifest: bytes) -> dict[str, Any]:
        """The signed statement about the bytes of a manifest."""
        about = json.loads(manifest)
        statement = {
            "_type": STATEMENT,
            "subject": [{"name": MANIFEST, "digest": {"sha256": hashlib.sha256(manifest).hexdigest()}}],
            "predicateType": PREDICATE,
            "predicate": {name: about[name] for name in _IDENTITY if name in about},
        }
        payload = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
        signature = {"keyid": key_id(self.private.public_key()), "sig": _text(self.private.sign(signed_bytes(payload)))}
        return {"payloadType": PAYLOAD_TYPE, "payload": _text(payload), "signatures": [signature]}

    def sign(self, folder: Path, manifest: Path) -> None:
        """Write the signature of a folder whose manifest is, or is going to be, the file ``manifest``."""
        write_json(folder / SIGNATURE, self.envelope(bytes_of(manifest)))

    def problems(self, folder: Path) -> list[str]:
        """Why the signature of a sealed folder is not one of this key; empty when it is."""
        return signature_problems(folder, [self.private.public_key()])


def signed_bytes(payload: bytes) -> bytes:
    """What DSSE signs: the payload with its type and both lengths before it (pre-authentication encoding)."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def key_id(public: Ed25519PublicKey) -> str:
    """The sha256 of the public key's DER form (SubjectPublicKeyInfo): a hint which key to try, which proves nothing."""
    return hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def read_private_key(named: str) -> SigningKey:
    """The key in the file of that absolute path, as PEM; ConfigurationError (exit 2) when it cannot be used."""
    advice = "name the file that `kafka-audit keys new` made, or unset the variable to seal without a signature"
    if not Path(named).is_absolute():  # the tasks of a run have other working folders than the command that starts it
        raise ConfigurationError(f"{VARIABLE}={named}: is relative; write an absolute path: {advice}")
    try:
        key = load_pem_private_key(Path(named).read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as problem:
        raise ConfigurationError(f"{VARIABLE}={named}: the private key cannot be read ({problem}): {advice}") from problem
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError(f"{VARIABLE}={named}: is not an Ed25519 key: {advice}")
    return SigningKey(private=key)


def new_key(path: Path) -> Path:
    """Make a key and return the file of its public half, ``path``.pub; only the owner can read the private half, ``path``. Both are PEM.

    ConfigurationError (exit 2) when one of the two is there already: what was signed with a key could not be checked without it.
    """
    public = path.with_name(f"{path.name}.pub")
    key = Ed25519PrivateKey.generate()
    texts = {
        path: (0o600, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())),
        public: (0o644, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)),
    }
    for file in texts:
        if os.path.lexists(file):
            raise ConfigurationError(f"{file} is there already and is not overwritten: name another file")
    for file, (mode, text) in texts.items():
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as problem:
            raise write_failed(file, problem) from problem
    return public


def read_public_key(path: Path) -> Ed25519PublicKey:
    """A public key as PEM; ConfigurationError (exit 2) when it is none, or a private one, which belongs on no checker's machine."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as problem:
        raise ConfigurationError(f"{path}: the public key cannot be read ({problem.strerror}): name the .pub file") from problem
    except ValueError as problem:
        raise ConfigurationError(f"{path}: is not a public key in PEM form ({problem}): name the .pub file") from problem
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigurationError(f"{path}: is not an Ed25519 key: name the .pub file that `kafka-audit keys new` made")
    return key


def signature_problems(folder: Path, keys: Sequence[Ed25519PublicKey]) -> list[str]:
    """Why the signature of a sealed folder does not prove that a holder of one of the keys sealed it; empty when it does."""
    if not os.path.lexists(folder / SIGNATURE):
        return [f"{SIGNATURE}: is missing, so nobody vouches for the manifest"]
    try:
        envelope = parse_object(folder / SIGNATURE, bytes_of(folder / SIGNATURE, _MOST_BYTES))
        statement = _signed_statement(envelope, keys)
        manifest = bytes_of(folder / MANIFEST)
        about = read_manifest(folder)
    except IntegrityError as problem:
        return [str(problem)]
    except (KeyError, TypeError, AttributeError, ValueError, binascii.Error, RecursionError) as problem:
        return [f"{SIGNATURE}: is not a DSSE envelope ({problem!r})"]
    if statement is None:
        return [f"{SIGNATURE}: none of its signatures is of the key that was given"]
    return _differences(statement, manifest, about)


def _differences(statement: Mapping[str, Any], manifest: bytes, about: Mapping[str, Any]) -> list[str]:
    subject = [{"name": MANIFEST, "digest": {"sha256": hashlib.sha256(manifest).hexdigest()}}]
    if (statement.get("_type"), statement.get("predicateType"), statement.get("subject")) != (STATEMENT, PREDICATE, subject):
        return [f"{SIGNATURE}: is about another manifest, so the manifest was changed after it was signed"]
    if statement.get("predicate") != {name: about[name] for name in _IDENTITY if name in about}:
        return [f"{SIGNATURE}: says something else than the manifest about which seal this is"]
    return []


def _signed_statement(envelope: Mapping[str, Any], keys: Sequence[Ed25519PublicKey]) -> dict[str, Any] | None:
    """The statement of an envelope that one of the keys has signed; None when none has."""
    payload = base64.b64decode(envelope["payload"], validate=True)
    if envelope["payloadType"] != PAYLOAD_TYPE:
        return None
    if len(envelope["signatures"]) > _MOST_SIGNATURES:
        raise ValueError(f"more than {_MOST_SIGNATURES} signatures")
    for one in envelope["signatures"]:
        for key in keys:
            try:
                key.verify(base64.b64decode(one["sig"], validate=True), signed_bytes(payload))
            except InvalidSignature:
                continue
            return parse_object(Path(SIGNATURE), payload)
    return None


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
