"""Follows the chain of a cluster's audits from the newest to the first, and finds removed, forked, reordered, rewritten and unchained ones.

A chain proves nothing about its own end: whoever may write into the folder can remove or rewrite the newest audits and make all that
names them fit. That takes a witness outside: the sha256 that the run logged and returned (``head``), or a signature (``keys``). A witness
of one audit vouches for that one and for all before it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_audit.errors import ConfigurationError, IncompleteError, IntegrityError
from kafka_audit.safe_text import visible
from kafka_audit.store.chain_state import STATE, ChainState, Seal, number_in, read_state, replaced_in, seal_in
from kafka_audit.store.locks import held_to_read
from kafka_audit.store.manifest import MANIFEST, SIGNATURE, FileHashes, bytes_of, file_problems, parse_object
from kafka_audit.store.sealed import AUDIT, Place, identity_problems
from kafka_audit.store.signing import signature_problems

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_WITNESS = re.compile(r"(?:(?P<audit>[^=]+)=)?(?P<sha256>[0-9a-f]{64})")


INTACT, CHANGED, GONE, ABSENT, NOTE = "intact", "changed", "gone", "absent", "note"


@dataclass(kw_only=True)
class Checked:
    """Collects the results of a check, in order: (state, text).

    ``problems``: those for which the check fails. ``absent``: what cannot be checked, because it is not in the package that is checked.
    """

    lines: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def intact(self, text: str) -> None:
        self.lines.append((INTACT, text))

    def note(self, text: str) -> None:
        """Something a reader must know that is no problem."""
        self.lines.append((NOTE, text))

    def gone(self, text: str) -> None:
        """Something that was deleted, and of which the audit has a copy."""
        self.lines.append((GONE, text))

    def problem(self, text: str, state: str = CHANGED) -> None:
        self.lines.append((state, text))
        self.problems.append(text)

    def not_packed(self, text: str) -> None:
        """Something that an unpacked evidence package does not hold."""
        self.lines.append((ABSENT, text))
        self.absent.append(text)

    def counted(self, state: str) -> int:
        return sum(1 for one, _ in self.lines if one == state)

    def raise_problems(self, what: Path | str) -> None:
        """IntegrityError (exit 5) that lists every problem; IncompleteError (exit 4) if something is absent and there is no problem."""
        if self.problems:
            listed = _lines(self.problems)
            raise IntegrityError(f"{what} cannot be relied on:\n  {listed}\nDo not use it as evidence; restore it from a copy")
        if self.absent:
            raise IncompleteError(
                f"{what} is intact as far as this evidence package goes, which does not hold all that it names:\n  {_lines(self.absent)}\n"
                "To check these, too, verify it in the root folder where it was made"
            )


def _lines(texts: Sequence[str]) -> str:
    return "\n  ".join(map(visible, texts))  # a name with a line break must not look like another answer


@dataclass(frozen=True, kw_only=True)
class Link:
    """One sealed audit as its manifest tells."""

    seal: Seal
    previous: Seal | None
    reopened: tuple[Seal, ...]
    replaces: tuple[str, ...]
    folder: Path


def check_chain(
    folder: Path,
    cluster: str,
    *,
    head: str | None = None,
    keys: Sequence["Ed25519PublicKey"] = (),
    each: Callable[[Path, FileHashes], list[str]] | None = None,
) -> Checked:
    """Check the audits of a cluster in ``folder``: the hashes of all their files, their numbers and their links.

    ``head``: SHA256, or AUDIT_ID=SHA256, of a manifest as a run told it. ``keys``: the newest must be signed by one of them, and no other
    may have a signature of another key; the newest vouches for older ones without a signature. ``each`` looks further into an audit.
    """
    checked, hashes = Checked(), FileHashes()
    with held_to_read(folder) as unlocked:
        if unlocked:
            checked.note(unlocked)
        links = _links(folder, cluster, hashes, checked)
        try:
            state = read_state(folder)
        except IntegrityError as broken:
            checked.problem(str(broken))
            state = None
    if not links:
        checked.problem(f"{folder}: holds no sealed audit of cluster {cluster}")
        return checked
    opened = {name: one.seal for name, one in state.opened.items()} if state else {}
    for problem in _numbers(links):
        checked.problem(problem)
    by_name = {one.seal.audit_id: one for one in links}
    for link in reversed(links):
        for problem in _link(link, by_name, links[0], opened):
            checked.problem(problem)
        for problem in each(link.folder, hashes) if each else ():
            checked.problem(f"{link.seal.audit_id}: {problem}")
    _state(folder, state, links, checked)
    _signatures(links, keys, checked)
    if head is not None:
        _witness(head, by_name, checked)
    _told(links, opened, checked)
    return checked


def _links(folder: Path, cluster: str, hashes: FileHashes, checked: Checked) -> list[Link]:
    """Every sealed audit by its number, its own files checked; what only claims to be one is a problem."""
    found = []
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        if place.name.startswith("."):
            continue
        if place.is_symlink() or not place.is_dir():
            checked.problem(f"{place.name}: is a link or a file among the audits")
            continue
        try:
            if not (place / MANIFEST).exists() and not (place / MANIFEST).is_symlink():
                continue
            manifest = parse_object(place / MANIFEST, bytes_of(place / MANIFEST))
            found.append(_read(place, cluster, manifest, hashes))
        except IntegrityError as broken:
            checked.problem(f"{place.name}: claims to be sealed and is not in the chain: {broken}")
            continue
        for problem in file_problems(place, manifest, hashes):
            checked.problem(f"{place.name}: {problem}")
    return sorted(found, key=lambda one: (one.seal.sequence, one.seal.audit_id))


def _read(place: Path, cluster: str, manifest: Mapping[str, Any], hashes: FileHashes) -> Link:
    problems = identity_problems(manifest, place.name, Place(kind=AUDIT, cluster=cluster, root=place.parents[2]))
    if problems:
        raise IntegrityError(problems[0])
    try:
        return Link(
            seal=Seal(audit_id=place.name, sequence=number_in(manifest["sequence"]), manifest_sha256=hashes.of(place / MANIFEST)[0]),
            previous=seal_in(manifest["previous"]) if manifest["previous"] is not None else None,
            reopened=tuple(seal_in(one) for one in manifest["reopened"]),
            replaces=replaced_in(manifest["replaces"]),
            folder=place,
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"its manifest does not say its place ({problem!r:.200})") from problem


def _numbers(links: Sequence[Link]) -> Iterator[str]:
    """Forks: one number for two audits, or one audit before two."""
    numbers: dict[int, str] = {}
    before: dict[str, str] = {}
    for link in links:
        me = link.seal.audit_id
        if numbers.setdefault(link.seal.sequence, me) != me:
            yield f"{numbers[link.seal.sequence]} and {me} have the number {link.seal.sequence}: the chain was forked"
        if link.previous and before.setdefault(link.previous.audit_id, me) != me:
            yield f"{before[link.previous.audit_id]} and {me} both follow {link.previous.audit_id}: the chain was forked"


def _link(link: Link, by_name: Mapping[str, Link], first: Link, opened: Mapping[str, Seal]) -> Iterator[str]:
    """Whether the audit before this one is the one it names, and whether every number between them is explained."""
    me, previous = link.seal, link.previous
    after = previous.sequence if previous else 0
    if previous is None and link is not first:
        yield f"{me.audit_id}: has number {me.sequence} and names no audit before it: the link was removed"
    elif previous is not None:
        there = by_name.get(previous.audit_id)
        if there is None:
            yield f"{previous.audit_id}: number {previous.sequence} is missing, and {me.audit_id} follows it: it was removed"
        elif there.seal.manifest_sha256 != previous.manifest_sha256:
            yield f"{previous.audit_id}: its manifest is not the one that {me.audit_id} follows: it was rewritten"
        elif there.seal.sequence != previous.sequence or previous.sequence >= me.sequence:
            yield f"{previous.audit_id}: has number {there.seal.sequence} and stands before {me.audit_id}, number {me.sequence}: reordered"
    explained = {one.sequence: one for one in link.reopened}
    missing = (
        [number for number in range(after + 1, me.sequence) if number not in explained] if me.sequence - after < 1_000_000 else [after + 1]
    )
    if missing and not (previous is None and link is not first):
        numbers = f"number {missing[0]}" if len(missing) == 1 else f"numbers {missing[0]} to {missing[-1]}"
        yield f"{numbers}: missing before {me.audit_id}, number {me.sequence}: an audit was removed"
    for one in link.reopened:
        if one.audit_id not in by_name and one.audit_id not in opened:
            when = f"was open to be done again when {me.audit_id} was sealed"
            yield f"{one.audit_id}: number {one.sequence} {when}, and is gone: it was removed"


def _state(folder: Path, state: ChainState | None, links: Sequence[Link], checked: Checked) -> None:
    """.chain.json against the manifests: it knows the newest audit even when its folder is gone."""
    if state is None:
        checked.note(f"{folder / STATE}: is not there; nothing here shows whether the newest audit is still the newest")
        return
    # One that was being opened when a crash came has its manifest still, and is the newest.
    being_opened = [one.seal for one in state.opened.values() if one.seal.sequence == state.last]
    newest = links[-1].seal if links else None
    if newest not in (state.head, state.sealing, *being_opened):
        checked.problem(f"{STATE} names {state.head} as the newest, and what is there is {newest}: removed, rewritten or added")
    for name, one in state.opened.items():
        if not (folder / name).is_dir():
            checked.problem(f"{name}: was opened to be done again as number {one.seal.sequence}, and its folder is gone: it was removed")


def _signatures(links: Sequence[Link], keys: Sequence["Ed25519PublicKey"], checked: Checked) -> None:
    if not keys:
        if any((link.folder / SIGNATURE).exists() for link in links):
            checked.note("there are signatures; they were not checked, because no --key was given")
        return
    signed = 0
    for link in links:
        if link is links[-1] or (link.folder / SIGNATURE).exists():
            problems = signature_problems(link.folder, keys)
            signed += not problems
            for problem in problems:
                checked.problem(f"{link.seal.audit_id}: {problem}")
    checked.note(f"signatures: {signed} of {len(links)} audits are signed by a key that was given; the newest vouches for all before it")


def _witness(head: str, by_name: Mapping[str, Link], checked: Checked) -> None:
    said = _WITNESS.fullmatch(head)
    if said is None:
        raise ConfigurationError(f"--head {head!r}: write the sha256 of a manifest, 64 hexadecimal digits, or AUDIT_ID=SHA256")
    sha256, audit_id = said["sha256"], said["audit"]
    found = next((one for one in by_name.values() if one.seal.manifest_sha256 == sha256 and audit_id in (None, one.seal.audit_id)), None)
    if found is not None:
        later = sum(1 for one in by_name.values() if one.seal.sequence > found.seal.sequence)
        also = f"; the {later} after it are not vouched for by it" if later else ", the newest"
        checked.intact(f"witness: {found.seal.audit_id}, number {found.seal.sequence}, is as its run told{also}")
        return
    redone = next((one.seal.audit_id for one in by_name.values() if sha256 in one.replaces), None)
    hint = f" {redone} says that it was done again since: compare with the log of that run's newest try" if redone else ""
    named = f"audit {audit_id}" if audit_id else "any audit here"
    checked.problem(f"witness: {sha256} is not the manifest of {named}: it was removed or rewritten.{hint}")


def _told(links: Sequence[Link], opened: Mapping[str, Seal], checked: Checked) -> None:
    for seal in [seal for seal in opened.values() if seal not in {link.seal for link in links}]:
        checked.note(f"{seal.audit_id}: was number {seal.sequence}, was opened to be done again and is not sealed: it has no result now")
    again = [one.seal.audit_id for one in links if one.replaces]
    if again:
        checked.note(f"{len(again)} audits were done again after they had been sealed: {', '.join(again[:5])}")
    first, last = links[0].seal, links[-1].seal
    if not checked.problems:
        checked.intact(f"{len(links)} audits, numbers {first.sequence} to {last.sequence}; the newest is {last}")
