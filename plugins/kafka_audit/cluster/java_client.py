"""The settings of one connection in the words of Kafka's Java client, which Spark reads with."""

from pathlib import Path

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.errors import ConfigurationError

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_client(settings: ConnectionSettings) -> dict[str, str]:
    """Keys of the Java client, credentials included: never log them. ConfigurationError for what it has no word for."""
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
    if cafile := other.get("ssl_cafile"):
        keys |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(cafile)}
    if certificate := other.get("ssl_certfile"):
        key = other.get("ssl_keyfile") or certificate
        keys |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _text(certificate),
            "ssl.keystore.key": _text(key),
        }
    if settings.ssl_password:
        keys["ssl.key.password"] = settings.ssl_password
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


def _text(path: object) -> str:
    file = Path(str(path))
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{file}: cannot be read as PEM text ({type(problem).__name__})") from None
