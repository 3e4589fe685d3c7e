"""How to reach one cluster: librdkafka-style keys, checked and mapped to kafka-python's arguments."""

import importlib.util
import os.path
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kafka_audit.cluster.connection_keys import INSTEAD, SUPPORTED, WITHOUT_EFFECT, unknown_key_advice
from kafka_audit.errors import ConfigurationError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
DEFAULT_REQUEST_TIMEOUT_MS = 15_000


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings:
    """One cluster's addresses and credentials; passwords are left out of ``repr``.

    Build it with :meth:`from_mapping` (Airflow's ``kafka`` connection extra) or :meth:`from_file` (command line).
    """

    bootstrap_servers: tuple[str, ...]
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_password: str | None = field(default=None, repr=False)
    request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS
    other: tuple[tuple[str, str | int | bool], ...] = ()

    @classmethod
    def from_mapping(cls, keys: Mapping[str, object], *, where: str = "the connection") -> "ConnectionSettings":
        """Check and map librdkafka-style ``keys``; ConfigurationError names every key that is wrong, and what to write."""
        problems: list[str] = []
        mapped: dict[str, Any] = {}
        for key, value in keys.items():
            if callable(value):
                problems.append(f"{key}: a callable is refused; credentials and options are plain text")
            elif isinstance(value, Mapping | list | tuple | set):
                problems.append(f"{key}: holds a {type(value).__name__}; write plain text (lists separated by commas)")
            elif key in SUPPORTED:
                _map_one(key, value, mapped, problems)
            elif key not in WITHOUT_EFFECT:
                problems.append(f"{key}: {INSTEAD.get(key) or unknown_key_advice(key)}")
        if not problems:
            _check_together(mapped, problems)
        if problems:
            listed = "\n  ".join(problems)
            raise ConfigurationError(f"{where} cannot be used:\n  {listed}")
        named = {one.name: mapped.pop(one.name) for one in fields(cls) if one.name in mapped}
        return cls(**named, other=tuple(sorted(mapped.items())))

    def client_arguments(self) -> dict[str, Any]:
        """Arguments of kafka-python's connection manager, credentials included: never log them."""
        arguments: dict[str, Any] = dict(self.other)
        arguments |= {
            "bootstrap_servers": list(self.bootstrap_servers),
            "security_protocol": self.security_protocol,
            "request_timeout_ms": self.request_timeout_ms,
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_plain_username": self.sasl_username,
            "sasl_plain_password": self.sasl_password,
            "ssl_password": self.ssl_password,
        }
        return arguments

    @property
    def identity(self) -> str:
        """Who this connection claims to be, without the secret: for messages."""
        if self.sasl_mechanism:
            return f"{self.sasl_mechanism} user {self.sasl_username!r}" if self.sasl_username else self.sasl_mechanism
        return "a TLS client certificate" if dict(self.other).get("ssl_certfile") else "no credentials"


def _map_one(key: str, value: object, mapped: dict[str, Any], problems: list[str]) -> None:
    argument, read = SUPPORTED[key]
    try:
        read_value = read(value)
    except ValueError as problem:
        problems.append(f"{key}: {problem}")
        return
    if argument in mapped and mapped[argument] != read_value:
        problems.append(f"{key}: given twice under two names with different values; keep one")
    if read_value is not None:
        mapped[argument] = read_value


def _check_together(mapped: Mapping[str, Any], problems: list[str]) -> None:
    if not mapped.get("bootstrap_servers"):
        problems.append("bootstrap.servers: is required; write host:port, or several separated by commas")
    protocol = mapped.get("security_protocol", "PLAINTEXT")
    mechanism = mapped.get("sasl_mechanism")
    if protocol not in PROTOCOLS:
        problems.append(f"security.protocol: {protocol} is not one of {', '.join(PROTOCOLS)}")
    elif protocol.startswith("SASL"):
        _check_sasl(mechanism, mapped, problems)
    elif mechanism or mapped.get("sasl_username"):
        problems.append(f"security.protocol: is {protocol}, so sasl.* keys would not be used; write SASL_SSL or remove them")
    if not protocol.endswith("SSL"):
        unused = [key for key, (argument, _) in SUPPORTED.items() if argument.startswith("ssl_") and argument in mapped]
        if unused:
            keys = ", ".join(unused)
            problems.append(f"security.protocol: is {protocol}, so {keys} would not be used; write SSL or SASL_SSL, or remove them")
    for argument in ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile"):
        name = mapped.get(argument)
        if name and not os.path.isfile(name):  # noqa: PTH113  (Path.is_file raises for a name that is too long)
            key = next(key for key, (mapped_to, _) in SUPPORTED.items() if mapped_to == argument)
            problems.append(f"{key}: there is no file {name}")


def _check_sasl(mechanism: str | None, mapped: Mapping[str, Any], problems: list[str]) -> None:
    if mechanism not in MECHANISMS:
        given = "is missing" if mechanism is None else f"{mechanism} is not supported"
        problems.append(f"sasl.mechanism: {given}; write one of {', '.join(MECHANISMS)}")
    elif mechanism == "GSSAPI":
        if importlib.util.find_spec("gssapi") is None:
            problems.append("sasl.mechanism: GSSAPI needs the Python package gssapi, which is not installed; run: pip install gssapi")
    else:
        problems.extend(
            f"{key}: is required for {mechanism}"
            for key, argument in (("sasl.username", "sasl_username"), ("sasl.password", "sasl_password"))
            if not mapped.get(argument)
        )
