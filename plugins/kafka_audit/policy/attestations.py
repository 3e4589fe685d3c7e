"""``attestations.yaml``: what a person vouches for because no machine can see it, each with a file that shows it."""

from datetime import date, datetime, timezone
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.fields import Code, Date, Moment, Name, Strict, repeated
from kafka_audit.input_files.read import MOST_HASHED, hash_input, refuse_outside
from kafka_audit.policy.waivers import is_future
from kafka_audit.safe_text import visible


class Attestation(Strict):
    """What one person says of one manual control (OPS-01 ...): who, when, what, and until when it holds.

    ``file`` is the evidence, such as the minutes of a rehearsal, by its path in the policy folder, and ``sha256`` its hash. ``outcome``
    is ``failed`` where a rehearsal showed that the state is not safe.
    """

    id: Name
    control: Code
    attested_by: Name
    attested_on: Date
    expires: Moment
    statement: Annotated[str, Field(min_length=10, max_length=2_000)]
    outcome: Literal["passed", "failed"] = "passed"
    file: Annotated[str, Field(min_length=1, max_length=500)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

    @model_validator(mode="after")
    def _holds_for_a_time(self) -> "Attestation":
        if self.expires.astimezone(timezone.utc).date() <= self.attested_on:
            raise ValueError("expires is not after attested_on: write a time after the attestation, in UTC, like 2027-01-31T00:00:00Z")
        parts = PurePosixPath(self.file).parts
        if PurePosixPath(self.file).is_absolute() or ".." in parts:
            raise ValueError(f"file: {self.file!r} lies outside of the policy folder: copy the file into it")
        if any(part.startswith(".") for part in parts):
            raise ValueError(f"file: {self.file!r} is hidden, so audits do not copy it: give it a name that does not begin with a dot")
        return self

    def in_force(self, at: datetime) -> bool:
        """Whether it holds at an aware datetime: it was given by then, and has not expired."""
        return at < self.expires and not is_future(self.attested_on, at)


class AttestationFile(Strict):
    """The content of ``attestations.yaml``."""

    version: Literal[1]
    attestations: list[Attestation] = Field(default_factory=list, max_length=1_000)

    @model_validator(mode="after")
    def _ids_differ(self) -> "AttestationFile":
        twice = repeated(one.id for one in self.attestations)
        if twice:
            raise ValueError(f"attestations: {twice} appear twice: give each its own id")
        outcomes = {(one.control, one.attested_on): one.outcome for one in self.attestations}
        for one in self.attestations:
            if outcomes[one.control, one.attested_on] != one.outcome:
                raise ValueError(f"attestations: {one.control} has passed and failed on {one.attested_on}: keep the one that counts")
        return self

    def check_files(self, folder: Path) -> None:
        """ConfigurationError (exit 2) lists every file that is missing, lies outside of the folder or has another sha256."""
        problems = []
        left, hashes = MOST_HASHED, dict[Path, str]()
        for one in self.attestations:
            path, where = folder / one.file, visible(f"{folder}/attestations.yaml: attestations.{one.id}.file")
            try:
                refuse_outside(folder, path)
                if path not in hashes:
                    hashes[path], length = hash_input(path, "name the file that shows what is attested")
                    left -= length
                if left < 0:
                    problems.append(
                        f"{visible(f'attestations.{one.id}.file')}: {path}: with it, all attested files have more than "
                        f"{MOST_HASHED:,} bytes; keep large ones elsewhere, and name in their place a file that lists their sha256"
                    )
                    break
                found = hashes[path]
                if found != one.sha256:
                    raise ConfigurationError(
                        f"{path}: its sha256 is {found}: it is not the file that was attested; correct sha256, or the file"
                    )
            except FileNotFoundError:
                problems.append(f"{where}: {path}: the file is missing")
            except ConfigurationError as problem:
                problems.append(f"{where}: {problem}")
        if problems:
            raise ConfigurationError("\n  ".join(problems))


def newest(attestations: list[Attestation], at: datetime) -> dict[str, Attestation]:
    """Control code -> the attestation that counts at an aware datetime: of those given by then, the latest."""
    given = [one for one in attestations if not is_future(one.attested_on, at)]
    return {one.control: one for one in sorted(given, key=_when)}


def _when(one: Attestation) -> tuple[date, datetime]:
    return one.attested_on, one.expires
