"""What the layout, the chain and the steps of an audit ask of a root in an object store: all of it in one class."""

import contextlib
import logging
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.store import open_audits, remote_chain
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.manifest import MANIFEST, MOST_BYTES
from kafka_audit.store.remote import Remote
from kafka_audit.store.remote_names import is_inside, manifests_of
from kafka_audit.times import is_id

log = logging.getLogger(__name__)

_FRESH_SECONDS = 10.0
"""How long lists of audits count as current in one process."""


@dataclass(frozen=True, kw_only=True)
class RemoteRoot(Remote):
    """The root at a URL, with its audits, reviews and rolled-up days."""

    _refreshed: dict[Path, float] = field(default_factory=dict, repr=False)

    def bring_clusters(self) -> None:
        """Make the folder of each cluster that has audits here, and bring what lists of its audits need."""
        audits = self.mirror / "audits"

        def refresh(folder: Path) -> None:
            try:
                self.refresh_audits(folder)
            except IntegrityError as problem:  # whoever reads this cluster is told; the others are brought
                log.warning("the audits of %s cannot all be listed: %s", folder.name, problem)

        with self._when_due(audits) as due:
            if due:
                names = {*self.objects.folders("manifests/audits"), *self.objects.folders("work/audits")}
                self.each(refresh, [audits / name for name in sorted(names) if is_inside(name) and not name.startswith(".")])

    def refresh_audits(self, folder: Path) -> None:
        """Bring what lists and the chain of the audits in ``folder`` need (remote_chain.refresh_audits)."""
        with self._when_due(folder) as due:
            if due:
                remote_chain.refresh_audits(self, folder)

    def days(self, parent: Path) -> None:
        """Bring the manifests of a cluster's rolled-up days; one that was made again since takes the place of the copy that is here."""

        def bring(named: tuple[str, str]) -> None:
            folder, etag = parent / named[0], named[1]
            noted = self.mirror / ".etags" / self.name_of(folder)
            if (folder / MANIFEST).is_file() and noted.is_file() and noted.read_text(encoding="utf-8") == etag:
                return
            raw = self.objects.read(self.manifest_object(folder))
            if raw is not None:
                shutil.rmtree(folder, ignore_errors=True)
                self.keep_manifest(folder, raw)
                self.write(noted, etag.encode())

        self.each(bring, self.sealed_names(parent).items())

    def bring_parts(self, folders: Iterable[Path]) -> None:
        """Bring the manifests of parts of a snapshot; a copy of a part that the store does not have, or has another of, is removed."""

        def bring(folder: Path) -> None:
            raw, known = self.objects.read(self.manifest_object(folder), MOST_BYTES), folder / MANIFEST
            here = known.read_bytes() if known.is_file() else None
            if here not in (raw, None):  # without a manifest another task of this machine may be copying the part
                shutil.rmtree(folder, ignore_errors=True)
            if raw not in (here, None):
                self.keep_manifest(folder, raw)

        self.each(bring, folders)

    def remove_parts(self, folder: Path) -> None:
        """Remove all objects of the parts of a snapshot, also those that no manifest names."""
        self.objects.remove([one.name for one in self.objects.names(manifests_of(self.name_of(folder)))])

    def seal_audit(self, audit: Path, identity: Mapping[str, Any], files: Mapping[str, Any], pending: Path) -> Seal:
        """Seal an open audit (remote_chain.seal_audit_in_store)."""
        made = remote_chain.seal_audit_in_store(self, audit, identity, files, pending)
        self._refreshed.clear()
        return made

    def chain_problems(self, folder: Path) -> list[str]:
        """Every difference between the numbers of a chain and the manifests in ``folder``, as sentences (remote_chain.problems)."""
        return remote_chain.problems(self, folder)

    def seal_review(self, fresh: Path, final: Path, number: int) -> None:
        """Send a review with its number among those of its cluster; CollectionError when another review got it at the same moment."""
        raw = (fresh / MANIFEST).read_bytes()
        remote_chain.completed(self, final.parent)
        self.send_files(fresh, final, raw)
        if not remote_chain.claim(self, final, number, raw):
            raise CollectionError(f"{self.url}: another review got number {number} of its cluster at the same moment: clear this task")

    def bring_audit(self, audit: Path) -> None:
        """Make the folder of an audit here what is in the store, sealed or open (open_audits.bring_audit).

        IntegrityError also when it has a manifest and no number in the chain: its steps would be skipped as done.
        """
        if not (audit / MANIFEST).is_file() and (raw := self.objects.read(self.manifest_object(audit), MOST_BYTES)) is not None:
            remote_chain.check_sealed(self, audit, raw)
        open_audits.bring_audit(self, audit)

    def send_audit(self, audit: Path) -> None:
        """Send what a step changed in the folder of an open audit (open_audits.send_audit)."""
        open_audits.send_audit(self, audit)

    def bring_file(self, path: Path) -> None:
        """Bring one file that changes (open_audits.bring_file)."""
        open_audits.bring_file(self, path)

    def send_file(self, path: Path) -> None:
        """Send one file that changes (open_audits.send_file)."""
        open_audits.send_file(self, path)

    def ids(self, parent: Path) -> list[str]:
        """The ids of the sealed folders in ``parent``, oldest first."""
        return [name for name in self.sealed_names(parent) if is_id(name)]

    def all_ids(self, parent: Path, *, with_open: bool) -> tuple[str, ...]:
        """The ids of the folders in ``parent``, newest first; of audits also of those that are not sealed."""
        if with_open:
            self.refresh_audits(parent)
        names = {*self.ids(parent), *(one.name for one in (parent.iterdir() if with_open else ()) if is_id(one.name))}
        return tuple(sorted(names, reverse=True))

    @contextlib.contextmanager
    def _when_due(self, folder: Path) -> Iterator[bool]:
        """Whether what is here of a folder is too old; if the block fails, it is so for the next one that asks, too."""
        now = time.monotonic()
        if now - self._refreshed.get(folder, -_FRESH_SECONDS) < _FRESH_SECONDS:
            yield False
            return
        self._refreshed[folder] = now
        try:
            yield True
        except BaseException:
            self._refreshed.pop(folder, None)
            raise
