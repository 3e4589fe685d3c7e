"""``clients.yaml``: the client settings that owners declare, because no cluster shows them; and the columns of a client's wide row.

The columns are plain Python values, used both by audits and for files that are not deployed yet.
"""

import hashlib
import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from kafka_audit.clients.defaults import check_release
from kafka_audit.clients.names import BOOLEANS, NUMBERS, canonical_name
from kafka_audit.clients.properties import pairs_of, settings_bytes
from kafka_audit.clients.sections import settings_of
from kafka_audit.clients.settings import HasSettings, effective, start_problems, unknown_settings
from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.fields import Date, Name, Pattern, Strict, repeated
from kafka_audit.input_files.read import refuse_outside
from kafka_audit.input_files.yaml_file import read_model
from kafka_audit.safe_text import visible

Kind = Literal["producer", "consumer"]
Implementation = Literal["java", "spring-kafka", "kafka-connect", "librdkafka", "kafka-python", "other"]
_YAML_1_1_BOOLEAN = re.compile(r"yes|no|on|off|y|n", re.IGNORECASE)
_YAML_1_1_NUMBER = re.compile(r"[+-]?(?:0[xob][0-9a-f_]+|[0-9][0-9_]*_[0-9_]*)", re.IGNORECASE)
"""Words that YAML 1.1 reads as booleans or numbers, but YAML 1.2 as text. No client would accept them as text."""
Attestation = Literal["send_errors_handled", "commits_after_processing"]


def _quoted(value: Any) -> Any:  # noqa: ANN401 - whatever YAML made of it
    if isinstance(value, (int, float)):
        raise ValueError("is a number: write it in quotes, such as '3.10', which YAML would read as 3.1")
    return value


Release = Annotated[str, BeforeValidator(_quoted)]


class Client(Strict):
    """One declared producer or consumer. ``settings`` use the names and values of its implementation; ``topics`` are shell globs.

    ``settings_file``: a properties or key=value file, relative to the policy folder, instead of ``settings``. ``source``: where the
    owner read the settings. ``attests``: facts that no setting shows and that the owner vouches for. ``release``: of the client library
    (for spring-kafka that of its kafka-clients, for kafka-connect Kafka's), or its beginning, such as ``3.9``: it decides the defaults.
    """

    name: Name
    kind: Kind
    implementation: Implementation
    release: Release | None = None
    owner: Name
    declared_on: Date
    source: Name
    topics: list[Pattern] = Field(default_factory=list)
    group: Annotated[str, Field(min_length=1)] | None = None
    settings: dict[str, str | int | float | bool] = Field(default_factory=dict)
    settings_file: Annotated[str, Field(min_length=1)] | None = None
    attests: list[Attestation] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_what_it_uses(self) -> "Client":
        if self.kind == "producer" and not self.topics:
            raise ValueError("topics is empty: name the topics this producer writes to, as globs")
        if self.kind == "producer" and self.group is not None:
            raise ValueError("group belongs to consumers: remove it, or write kind: consumer")
        if self.kind == "consumer" and not self.group:
            raise ValueError("group is missing: name the consumer group of this consumer")
        if self.settings and self.settings_file is not None:
            raise ValueError("settings and settings_file exclude each other: keep one")
        if self.release is not None:
            try:
                check_release(self.implementation, self.release)
            except ConfigurationError as problem:
                raise ValueError(f"release: {problem}") from problem
        for setting, value in self.settings.items():
            if isinstance(value, str):
                _refuse_yaml_1_1(setting, canonical_name(setting, self.implementation), value.strip())
        if any(part.startswith(".") and part != ".." for part in PurePosixPath(self.settings_file or "").parts):
            raise ValueError("settings_file is a hidden file, which audits do not copy: give it a name that does not begin with a dot")
        return self


class ClientFile(Strict):
    """The content of ``clients.yaml``."""

    version: Literal[1]
    clients: list[Client] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_differ(self) -> "ClientFile":
        twice = repeated(client.name for client in self.clients)
        if twice:
            raise ValueError(f"clients: {twice} appear twice: give each its own name")
        return self

    def with_settings_files(self, folder: Path) -> tuple["ClientFile", str]:
        """Read every ``settings_file`` into ``settings``; returns the new ClientFile and the sha256 over the files that were read.

        ConfigurationError (exit 2) lists every file that is missing, broken or outside the folder (also behind a link).
        """
        problems, clients, digest = [], [], hashlib.sha256()
        for client in self.clients:
            if client.settings_file is None:
                clients.append(client)
                continue
            path = folder / client.settings_file
            try:
                refuse_outside(folder, path)
                raw = settings_bytes(path)
                pairs = pairs_of(path, raw)
                digest.update(client.settings_file.encode() + b"\0" + hashlib.sha256(raw).digest())
                settings = settings_of(pairs, kind=client.kind, implementation=client.implementation, where=str(path))
                clients.append(client.model_copy(update={"settings": settings}))
            except ConfigurationError as problem:
                problems.append(f"{visible(f'clients.{client.name}.settings_file')}: {problem}")
        if problems:
            raise ConfigurationError("\n  ".join(problems))
        return self.model_copy(update={"clients": clients}), digest.hexdigest()


def _refuse_yaml_1_1(setting: str, canonical: str, value: str) -> None:
    if canonical in BOOLEANS and _YAML_1_1_BOOLEAN.fullmatch(value):
        raise ValueError(f"settings.{setting}: is the text {value!r}: write true or false")
    if canonical in NUMBERS and _YAML_1_1_NUMBER.fullmatch(value):
        raise ValueError(f"settings.{setting}: is the text {value!r:.80}: write digits only")


def load_client_file(path: Path) -> ClientFile:
    """Load a ``clients.yaml`` that is not part of a policy, and its settings files; ConfigurationError (exit 2) lists all problems."""
    return read_model(path, ClientFile)[0].with_settings_files(path.parent)[0]


def settings_row(client: HasSettings, *, source: str) -> dict[str, Any]:
    """The columns of a client whose settings are known (kafka_audit.catalogue.rows.clients); ``source`` is where they were read."""
    unknown, problems = unknown_settings(client), start_problems(client)
    odd = [
        *([f"settings it does not have: {', '.join(unknown)}"] if unknown else []),
        *([f"refuses to start: {', '.join(problems)}"] if problems else []),
    ]
    return {
        "declared": True,
        "implementation": client.implementation,
        "declaration": "; ".join([f"read from {source} ({' '.join(filter(None, (client.implementation, client.release)))})", *odd]),
        "source": source,
        "settings": {name: {"value": one.value, "source": one.source} for name, one in effective(client).items()},
        "unknown_settings": unknown,
        "start_problems": problems,
    }


def declared_row(client: Client) -> dict[str, Any]:
    """The columns of a client in clients.yaml: those of its settings, and what its owner declares."""
    row = settings_row(client, source=client.source)
    attested = "attested_error_handling" if client.kind == "producer" else "attested_processing"
    word = "send_errors_handled" if client.kind == "producer" else "commits_after_processing"
    return {
        **row,
        "client": client.name,
        "owner": client.owner,
        "declared_on": client.declared_on.isoformat(),
        "declaration": f"declared by {client.owner} on {client.declared_on}, {row['declaration']}",
        attested: word in client.attests,
    }
