"""The key that an installation signs seals with, where it has one. Without one the code that signs is not loaded."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_audit.store.signing import SigningKey

VARIABLE = "KAFKA_AUDIT_SIGNING_KEY"
"""Names the file of the private key in the environment. Not set: nothing is signed."""


def signing_key() -> "SigningKey | None":
    """The key that ``KAFKA_AUDIT_SIGNING_KEY`` names; None when it names none. ConfigurationError (exit 2) when it cannot be used."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    from kafka_audit.store.signing import read_private_key  # noqa: PLC0415 - loads cryptography: 60 ms of every command

    return read_private_key(named)
