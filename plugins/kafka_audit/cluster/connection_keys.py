"""Which connection keys are understood, which have no effect here, and what to write in place of the others.

The names are librdkafka's (https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md), as in Airflow's
``kafka`` connection; the arguments are those of kafka-python 3.0.12.
"""

from collections.abc import Callable
from typing import Any

_DEFAULT_PORT = 9092
_MAX_PORT = 65535
_MAX_NUMBER = 2_147_483_647  # librdkafka's own limit: a 32-bit number
_LISTED = 40


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("write non-empty text")
    if not value.strip().isprintable():
        raise ValueError("holds characters that do not print, such as line breaks: write plain text")
    return value.strip()


def _secret(value: object) -> str:
    # The value is never echoed and never stripped: a password may begin or end with a space.
    if not isinstance(value, str) or not value:
        raise ValueError("write the password as non-empty text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("holds half a character (a surrogate): write the password as text")
    return value


def _upper(value: object) -> str:
    return _text(value).upper()


def _whole_number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("write a whole number")
    text = str(value).strip()
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise ValueError(f"{text[:_LISTED]!r} is not a whole number")
    if text.startswith("-") or not text.strip("0"):
        raise ValueError(f"{text[:_LISTED]} is not above 0")
    if len(text.lstrip("0")) > len(str(_MAX_NUMBER)) or int(text) > _MAX_NUMBER:
        raise ValueError(f"is above {_MAX_NUMBER}")
    return int(text)


def _servers(value: object) -> tuple[str, ...]:
    found = []
    for part in _text(value).split(","):
        address = part.strip()
        if not address:
            continue
        if "://" in address:
            raise ValueError(f"{address[:_LISTED]!r} names a listener; write only host:port and put the protocol in security.protocol")
        host, separator, port = address.rpartition(":")
        if not separator or (address.count(":") > 1 and not host.endswith("]")):
            found.append(f"{address}:{_DEFAULT_PORT}" if address.count(":") == 0 else address)
            continue
        if not host or not port.isascii() or not port.isdigit() or len(port) > len(str(_MAX_PORT)) or not 0 < int(port) <= _MAX_PORT:
            raise ValueError(f"{address[:_LISTED]!r} is not host:port; write broker1:9092 (without a port: {_DEFAULT_PORT})")
        found.append(address)
    if not found:
        raise ValueError("write host:port, or several separated by commas")
    return tuple(found)


def _check_hostname(value: object) -> bool:
    algorithm = _text(value).lower()
    if algorithm not in ("none", "https"):
        raise ValueError(f"{algorithm!r} is not one of none, https")
    return algorithm == "https"


def _verification(value: object) -> None:
    if str(value).strip().lower() != "true":
        raise ValueError(
            "switching off certificate verification is not supported: anyone on the network could then feed the audit false evidence; "
            "point ssl.ca.location at the CA (or at the broker's own certificate)"
        )


def _dns_lookup(value: object) -> str:
    mode = _text(value)
    if mode not in ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"):
        raise ValueError(f"{mode!r} is not one of use_all_dns_ips, resolve_canonical_bootstrap_servers_only")
    return mode


SUPPORTED: dict[str, tuple[str, Callable[[object], Any]]] = {
    "bootstrap.servers": ("bootstrap_servers", _servers),
    "metadata.broker.list": ("bootstrap_servers", _servers),
    "client.id": ("client_id", _text),
    "security.protocol": ("security_protocol", _upper),
    "sasl.mechanism": ("sasl_mechanism", _upper),
    "sasl.mechanisms": ("sasl_mechanism", _upper),
    "sasl.username": ("sasl_username", _text),
    "sasl.password": ("sasl_password", _secret),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", _text),
    "ssl.ca.location": ("ssl_cafile", _text),
    "ssl.certificate.location": ("ssl_certfile", _text),
    "ssl.key.location": ("ssl_keyfile", _text),
    "ssl.key.password": ("ssl_password", _secret),
    "ssl.crl.location": ("ssl_crlfile", _text),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", _check_hostname),
    "enable.ssl.certificate.verification": ("verification", _verification),
    "socket.timeout.ms": ("request_timeout_ms", _whole_number),
    "request.timeout.ms": ("request_timeout_ms", _whole_number),
    "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", _whole_number),
    "connections.max.idle.ms": ("connections_max_idle_ms", _whole_number),
    "metadata.max.age.ms": ("metadata_max_age_ms", _whole_number),
    "topic.metadata.refresh.interval.ms": ("metadata_max_age_ms", _whole_number),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", _whole_number),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", _whole_number),
    "client.dns.lookup": ("client_dns_lookup", _dns_lookup),
    "receive.message.max.bytes": ("receive_message_max_bytes", _whole_number),
}

# Keys of consumers and producers that people keep in the same connection. The audit joins no group, fetches no record and
# writes nothing, so they change nothing here; refusing them would force a second connection for no gain.
_CONSUMER_AND_PRODUCER_KEYS = (
    "group.id group.instance.id auto.offset.reset enable.auto.commit auto.commit.interval.ms enable.auto.offset.store isolation.level "
    "client.rack session.timeout.ms heartbeat.interval.ms max.poll.interval.ms fetch.min.bytes fetch.wait.max.ms fetch.max.bytes "
    "max.partition.fetch.bytes partition.assignment.strategy acks retries linger.ms enable.idempotence compression.type "
    "retry.backoff.ms retry.backoff.max.ms socket.keepalive.enable socket.nagle.disable socket.send.buffer.bytes "
    "socket.receive.buffer.bytes api.version.request log_level statistics.interval.ms"
)
WITHOUT_EFFECT = frozenset(_CONSUMER_AND_PRODUCER_KEYS.split())

_PEM = "PEM text is not supported: write it to a file that only you can read and give its path in {}"
_JAVA_STORE = "is a Java key. Export the store as PEM (keytool -exportcert -rfc, or openssl pkcs12) and give the path in {}"
INSTEAD: dict[str, str] = {
    "ssl.ca.pem": _PEM.format("ssl.ca.location"),
    "ssl.certificate.pem": _PEM.format("ssl.certificate.location"),
    "ssl.key.pem": _PEM.format("ssl.key.location"),
    "ssl.truststore.location": _JAVA_STORE.format("ssl.ca.location"),
    "ssl.truststore.certificates": _JAVA_STORE.format("ssl.ca.location"),
    "ssl.truststore.password": "is a Java key. A PEM file in ssl.ca.location needs no password",
    "ssl.truststore.type": "is a Java key. ssl.ca.location takes PEM",
    "ssl.keystore.location": _JAVA_STORE.format("ssl.certificate.location and ssl.key.location"),
    "ssl.keystore.password": "belongs to a Java or PKCS#12 store. Write ssl.certificate.location, ssl.key.location, ssl.key.password",
    "ssl.keystore.type": "is a Java key. ssl.certificate.location and ssl.key.location take PEM",
    "ssl.keystore.key": "is a Java key. Give the path of the PEM key in ssl.key.location",
    "ssl.keystore.certificate.chain": "is a Java key. Give the path of the PEM chain in ssl.certificate.location",
    "ssl.protocol": "is a Java key. TLS 1.2 or newer is always used; remove it",
    "ssl.enabled.protocols": "is a Java key. TLS 1.2 or newer is always used; remove it",
    "sasl.jaas.config": "is a Java key. Write its username and password in sasl.username and sasl.password",
    "sasl.client.callback.handler.class": "is a Java key. Only PLAIN, SCRAM and GSSAPI are supported; remove it",
    "sasl.login.callback.handler.class": "is a Java key. Only PLAIN, SCRAM and GSSAPI are supported; remove it",
    "sasl.kerberos.keytab": "kafka-python has no keytab option. Run kinit -kt KEYTAB PRINCIPAL first and remove it",
    "sasl.kerberos.principal": "kafka-python takes the principal from the ticket cache. Run kinit first and remove it",
}


def unknown_key_advice(key: str) -> str:
    """Why ``key`` is refused and what to do about it."""
    if key.startswith("sasl.oauthbearer.") or key in ("oauth_cb", "oauthbearer_token_refresh_cb"):
        return "OAUTHBEARER is not supported. Use SCRAM, PLAIN, GSSAPI or a TLS client certificate for the audit's account"
    if key.endswith("_cb"):
        return "callbacks are refused. Remove it"
    if key.startswith("ssl."):
        return "has no counterpart in kafka-python. TLS is set by ssl.{ca,certificate,key}.location and ssl.key.password"
    return "is not a key this tool knows. Check its spelling or remove it"
