"""The settings of one connection in the words of Kafka's Java client, which Spark reads with."""

import re
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.errors import ConfigurationError

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
_SAME = (
    "client_id",
    "socket_connection_setup_timeout_ms",
    "connections_max_idle_ms",
    "metadata_max_age_ms",
    "reconnect_backoff_ms",
    "reconnect_backoff_max_ms",
    "client_dns_lookup",
)
"""Arguments of kafka-python that Java has under the same name, with dots."""

_NOT_JAVA = frozenset(
    {
        *("metadata.broker.list", "sasl.mechanisms", "sasl.username", "sasl.password", "socket.timeout.ms"),
        *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.crl.location", "ssl.ca.pem", "ssl.certificate.pem"),
        *("ssl.key.pem", "enable.ssl.certificate.verification", "topic.metadata.refresh.interval.ms", "receive.message.max.bytes"),
    }
)
"""Names that librdkafka has and Java's client does not: it would ignore them, and so connect in another way than the file says."""


def java_keys(keys: Mapping[str, object], bootstrap: str, *, where: str) -> dict[str, str]:
    """Keys of the Java client from ``keys``, which are its own or, if one of them is librdkafka's alone, those of a connection file.

    ``bootstrap`` takes the place of addresses in ``keys``. ConfigurationError as of a connection file; ``where`` names it.
    """
    if _NOT_JAVA.isdisjoint(keys):
        return {**{name: str(value) for name, value in keys.items()}, "bootstrap.servers": bootstrap}
    others = {name: value for name, value in keys.items() if name != "metadata.broker.list"}
    return java_client(ConnectionSettings.from_mapping({**others, "bootstrap.servers": bootstrap}, where=where))


def java_client(settings: ConnectionSettings) -> dict[str, str]:
    """Keys of the Java client, credentials included: never log them. ConfigurationError for a setting that it does not have."""
    other = dict(settings.other)
    keys = {
        "bootstrap.servers": ",".join(settings.bootstrap_servers),
        "security.protocol": settings.security_protocol,
        "request.timeout.ms": str(settings.request_timeout_ms),
    }
    if settings.sasl_mechanism:
        if settings.sasl_mechanism not in _LOGIN_MODULES:
            raise ConfigurationError(
                f"the commit history cannot be read with {settings.sasl_mechanism}: "
                f"use a connection with one of {', '.join(_LOGIN_MODULES)}"
            )
        module = _LOGIN_MODULES[settings.sasl_mechanism]
        user, password = _quoted(settings.sasl_username or ""), _quoted(settings.sasl_password or "")
        keys |= {
            "sasl.mechanism": settings.sasl_mechanism,
            "sasl.jaas.config": f"{module} required username={user} password={password};",
        }
    keys |= {name.replace("_", "."): str(other[name]) for name in _SAME if name in other}
    # As text and not as paths: Spark's executors may run on machines that do not have these files.
    if cafile := other.get("ssl_cafile"):
        keys |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _text(cafile)}
    if certificate := other.get("ssl_certfile"):
        key = other.get("ssl_keyfile") or certificate
        keys |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _text(certificate),
            "ssl.keystore.key": _private_key(key, settings.ssl_password),
        }
    if other.get("ssl_check_hostname") is False:
        keys["ssl.endpoint.identification.algorithm"] = ""
    if "ssl_crlfile" in other:
        raise ConfigurationError(
            "the commit history cannot be read with ssl.crl.location: Java takes revocation lists from its own settings"
        )
    return keys


def _quoted(text: str) -> str:
    """A value of a JAAS entry."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _private_key(path: object, password: str | None) -> str:
    """The key as unencrypted PKCS#8, which every Java reads: Java 17 cannot read PBES2, and none reads openssl's older format."""
    found = _KEY.search(_text(path))
    if found is None:
        raise ConfigurationError(f"{path}: holds no private key in PEM; name its file in ssl.key.location")
    secret = password.encode() if password and "ENCRYPTED" in found[0] else None
    try:
        key = serialization.load_pem_private_key(found[0].encode(), secret)
    except (TypeError, ValueError, UnsupportedAlgorithm) as problem:
        raise ConfigurationError(f"{path}: the private key cannot be read: check the file and ssl.key.password ({problem})") from None
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def _text(path: object) -> str:
    file = Path(str(path))
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{file}: cannot be read as PEM text ({type(problem).__name__})") from None
