"""The commands ``kafka-audit verify`` and ``kafka-audit keys``: check that stored evidence is unchanged, and who signed it."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from kafka_audit.audit.check import check_audit, check_files
from kafka_audit.audit.review_check import check_review
from kafka_audit.cli.options import Root
from kafka_audit.errors import ConfigurationError
from kafka_audit.safe_text import visible
from kafka_audit.store.chain_check import Checked, check_chain
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import FileHashes
from kafka_audit.store.mirrors import bring, folder_at, fresh_copy, root_of, where
from kafka_audit.store.sealed import AUDIT, REVIEW, Sealed, placed
from kafka_audit.store.signing import new_key, read_public_key
from kafka_audit.store.signing_key import VARIABLE

_NO_WITNESS = (
    "note     neither a witness (--chain CLUSTER --head SHA256) nor a key (--key FILE) was given: the files agree with each other, which "
    "does not show that nobody rewrote all of them"
)

keys_app = typer.Typer(help="The key that signs an installation's snapshots and audits.", no_args_is_help=True)


def verify(
    path: Annotated[
        Path | None,
        typer.Argument(
            parser=folder_at, metavar="[PATH|URL]", help="Folder of one snapshot, audit, review, rolled-up day or behaviour table."
        ),
    ] = None,
    chain: Annotated[
        str | None, typer.Option(metavar="CLUSTER", help="Check all audits of this cluster and the chain of their hashes.")
    ] = None,
    root: Root = Path("audit-root"),
    head: Annotated[
        str | None, typer.Option(metavar="[AUDIT_ID=]SHA256", help="With --chain: the sha256 of a manifest from a run's log or XCom.")
    ] = None,
    key: Annotated[
        list[Path] | None, typer.Option(help="Public key; requires a signature made with its private key. May be repeated.")
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="With --chain: also check what each audit refers to, as `verify AUDIT` does.")
    ] = False,
) -> None:
    """Recompute the sha256 of sealed evidence and of everything it refers to, and print each result.

    Exit code 5: something was changed or is gone. Exit code 4: all files of an unpacked evidence package are intact, and it refers to
    others that are not in it.
    """
    if (path is None) == (chain is None):
        raise ConfigurationError("name one thing to verify: the folder of a snapshot or an audit, or --chain CLUSTER")
    if chain is None and (head is not None or deep):
        raise ConfigurationError("--head and --deep belong to --chain CLUSTER")
    keys = [read_public_key(one) for one in key or ()]
    if chain is not None:
        with fresh_copy(root.resolve()) as place:
            _verify_chain(place, chain, head, keys, deep=deep)
    elif path is not None:
        named = root_of(path)
        with fresh_copy(named) if named else nullcontext() as place:
            _verify_folder(place / path.relative_to(named) if named and place else path, keys)


def _verify_chain(root: Path, cluster: str, head: str | None, keys: Sequence[Ed25519PublicKey], *, deep: bool) -> None:
    def each(audit: Path, hashes: FileHashes) -> list[str]:
        checked = check_audit(audit, EvidenceRoot(path=root), hashes=hashes)
        return [*checked.problems, *checked.absent]

    at = EvidenceRoot(path=root)
    folder = at.audits(cluster)
    if not folder.is_dir() or (at.remote and not at.sealed_ids(cluster, AUDIT)):
        raise ConfigurationError(f"there is no folder {where(folder)}, so there are no audits of {cluster}: check --chain and --root")
    checked = check_chain(folder, cluster, head=head, keys=keys, each=each if deep else None)
    for problem in at.remote.chain_problems(folder) if at.remote else ():
        checked.problem(problem)
    _print(checked)
    checked.raise_problems(f"the chain of cluster {cluster} in {where(folder)}")
    if head is None and not keys:
        typer.echo(_NO_WITNESS)
    depth = "with all that they name" if deep else "their own files; what they name outside was not looked at (--deep)"
    typer.echo(f"intact: the audits of cluster {cluster}, {depth}")


def _verify_folder(path: Path, keys: Sequence[Ed25519PublicKey]) -> None:
    path, place = placed(path)
    bring(path)
    if not path.is_dir():
        raise ConfigurationError(f"there is no folder {where(path)}: name the folder of one snapshot or one audit")
    sealed = Sealed.open(path)
    manifest = sealed.manifest
    check = {AUDIT: check_audit, REVIEW: check_review}.get(place.kind) if place else None
    checked = check(path, EvidenceRoot(path=place.root), keys) if place and check else check_files(path, manifest, place, keys)
    _print(checked)
    checked.raise_problems(where(path))
    if check is check_audit and not keys:
        typer.echo(f"{_NO_WITNESS}. Compare with the run's log: manifest sha256 {sealed.manifest_sha256}")
    identity = manifest.get("snapshot_id") or manifest.get("audit_id") or manifest.get("review_id") or path.name
    cluster = place.cluster if place else manifest.get("cluster")
    files = f"{len(manifest['files'])} files match their sha256"
    named = f"; checked {checked.counted('intact')} things, gone {checked.counted('gone')}" if check else ""
    intact = "intact" if place else "intact by itself"
    typer.echo(visible(f"{intact}: {manifest['kind']} {identity} of cluster {cluster}, {files}{named}"))


def _print(checked: Checked) -> None:
    for state, text in checked.lines:
        typer.echo(visible(f"{state:<8} {text}"))  # a line each: a name with a line break must not look like another answer


@keys_app.command(name="new")
def new_keys(
    to: Annotated[Path, typer.Option(help="File for the private key; the public key is written beside it as FILE.pub.")],
) -> None:
    """Make a key pair (Ed25519). Snapshots and audits are signed once KAFKA_AUDIT_SIGNING_KEY is set to the private key's file."""
    to = to.resolve()
    if not to.parent.is_dir():
        raise ConfigurationError(f"there is no folder {to.parent}: make it first, for example with install -d -m 0700 {to.parent}")
    public = new_key(to)
    typer.echo(f"private key: {to} (keep it where only the installation's tasks can read it; {VARIABLE}={to} makes them sign)")
    typer.echo(f"public key: {public} (give it to those who check: kafka-audit verify --key {public} AUDIT)")
