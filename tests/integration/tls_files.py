"""Certificates from a test's own certificate authority for one broker and one client: PEM files, with the client's key encrypted."""

import ipaddress
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_AUTHORITY, _BROKER, _CLIENT = (
    x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in ("authority", "broker", "operator")
)


@dataclass(frozen=True, kw_only=True)
class Tls:
    """A listener's port, and what both sides of it need."""

    port: int
    folder: Path
    key_password: str

    @property
    def principal(self) -> str:
        """What the broker calls the client."""
        return _CLIENT.rfc4514_string()

    @property
    def broker_properties(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "ssl.client.auth": "required",
        }

    @property
    def connection(self) -> dict[str, str]:
        """The client's connection, in librdkafka's keys."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.folder / "ca.pem"),
            "ssl.certificate.location": str(self.folder / "client.pem"),
            "ssl.key.location": str(self.folder / "client.key"),
            "ssl.key.password": self.key_password,
        }


def make_tls(folder: Path, *, key_password: str) -> Tls:
    """Write the files into ``folder`` and choose a free port."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    (folder / "ca.pem").write_bytes(_pem(_sign(_AUTHORITY, ca_key, ca_key)))
    key = ec.generate_private_key(ec.SECP256R1())
    (folder / "broker.pem").write_bytes(_pkcs8(key, None) + _pem(_sign(_BROKER, key, ca_key)))
    key = ec.generate_private_key(ec.SECP256R1())
    (folder / "client.pem").write_bytes(_pem(_sign(_CLIENT, key, ca_key)))
    (folder / "client.key").write_bytes(_pkcs8(key, key_password))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return Tls(port=found.getsockname()[1], folder=folder, key_password=key_password)


def _sign(subject: x509.Name, key: ec.EllipticCurvePrivateKey, ca_key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    now = datetime.now(timezone.utc)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(_AUTHORITY).public_key(key.public_key())
    made = (
        made.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
    )
    made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
    if key is ca_key:
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return made.sign(ca_key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pkcs8(key: ec.EllipticCurvePrivateKey, password: str | None) -> bytes:
    hidden = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)
