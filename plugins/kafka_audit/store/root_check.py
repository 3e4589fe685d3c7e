"""Tries out whether an object store keeps what a root needs: what it proves, what it denies, and what cannot be asked."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from kafka_audit.errors import AuditError
from kafka_audit.store.objects import Objects, Put, RefusedError
from kafka_audit.times import stamp

PROVED, DENIED, WIDE, UNKNOWN = "proved", "denied", "too wide", "not known"

_ASK = {  # what the client cannot ask -> the command of the cloud that tells it
    "s3": {
        "versions": "aws s3api get-bucket-versioning",
        "lock": "aws s3api get-object-lock-configuration",
        "delete": "deny s3:DeleteObjectVersion",
    },
    "gs": {
        "versions": "gcloud storage buckets describe, versioning_enabled",
        "lock": "gcloud storage buckets describe, retention_policy",
        "delete": "give no storage.objects.delete outside of work/",
    },
    "abfss": {
        "versions": "az storage account blob-service-properties show, isVersioningEnabled",
        "lock": "az storage container immutability-policy show",
        "delete": "give no blobs/deleteBlobVersion/action",
    },
}


@dataclass(frozen=True)
class Answer:
    """One property of the store: PROVED, DENIED (a root cannot lie there), WIDE (a right that is not needed) or UNKNOWN."""

    state: str
    text: str


def check_root(objects: Objects, now: datetime) -> Iterator[Answer]:
    """Try out the store below a URL, and leave one small object there if it may not be removed.

    CollectionError when the store cannot be reached, ConfigurationError when the bucket does not exist or options cannot be used.
    """
    name = f"check/{stamp(now)}-{uuid.uuid4().hex[:8]}.txt"
    next(iter(objects.names("manifests")), None)
    yield Answer(PROVED, "reachable, and objects are listed")
    made = objects.create_new(name, b"first")
    if made is None:
        yield Answer(DENIED, f"create-only: {name} is new, and the store refused it as if it were there")
        return
    yield Answer(PROVED, "objects are created")
    yield _create_only(objects, name)
    yield _versions(objects, made)
    yield from _work(objects)
    yield from _rights(objects, name)
    ask = _asked(objects)
    yield Answer(
        UNKNOWN, f"lock: whether objects are retained cannot be asked through this client; ask the cloud's own tool: {ask['lock']}"
    )
    yield Answer(UNKNOWN, f"versions: whether these credentials may delete a version cannot be asked; {ask['delete']} (docs/storage.md)")


def _asked(objects: Objects) -> dict[str, str]:
    return _ASK[objects.url.partition(":")[0]]


def _create_only(objects: Objects, name: str) -> Answer:
    refused = objects.create_new(name, b"second") is None
    if refused and objects.read(name) == b"first":
        return Answer(PROVED, "create-only: a second object of the same name was refused, and the first is unchanged")
    return Answer(
        DENIED, "create-only: the store took a second object of the same name, so two writers could overwrite each other's evidence"
    )


def _versions(objects: Objects, made: Put) -> Answer:
    """S3 and Azure tell the version of an object that they keep versions of; Google numbers each object, kept or not."""
    if objects.url.startswith("gs:") or (objects.url.startswith("abfss:") and made.version is None):
        return Answer(UNKNOWN, f"versions: the store does not tell whether replaced objects are kept; ask {_asked(objects)['versions']}")
    if made.version in (None, "null"):
        return Answer(DENIED, "versions: the bucket keeps none: switch versioning on, so that a forged or deleted object can be restored")
    return Answer(PROVED, "versions: the bucket keeps them")


def _work(objects: Objects) -> Iterator[Answer]:
    name = f"work/check/{uuid.uuid4().hex}.txt"
    try:
        objects.replace(name, b"first")
        objects.replace(name, b"second")
        objects.remove([name])
    except AuditError as problem:
        yield Answer(DENIED, f"work/: objects there must be replaced and removed: {problem}")
        return
    yield Answer(PROVED, "work/: objects are replaced and removed there")


def _rights(objects: Objects, name: str) -> Iterator[Answer]:
    """Whether these credentials may do with evidence what no step of an audit does."""
    for what, may in (("replace", lambda: objects.replace(name, b"third")), ("remove", lambda: objects.remove([name]))):
        try:
            may()
        except RefusedError:
            yield Answer(PROVED, f"these credentials may not {what} objects outside of work/")
        except AuditError as problem:
            yield Answer(UNKNOWN, f"whether these credentials may {what} objects outside of work/: {problem}")
        else:
            yield Answer(WIDE, f"these credentials may {what} objects outside of work/: take that right from them (docs/storage.md)")
