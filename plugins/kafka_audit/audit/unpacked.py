"""Whether a root is an unpacked evidence package (``kafka-audit export``), which holds one audit and not what older audits are made of."""

import hashlib
import json

from kafka_audit.errors import IntegrityError
from kafka_audit.store.chain_state import Seal, seal_in
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import bytes_of
from kafka_audit.store.stored_zip import SUMS

PLACE_IN_CHAIN = "chain.json"
"""The file of a package that names the seal of its audit."""


def is_package_of(root: EvidenceRoot, seal: Seal) -> bool:
    """Whether ``root`` is the unpacked package of the audit that is sealed as ``seal`` says, by a ``chain.json`` that SHA256SUMS lists.

    Anybody can write such files, so this says only where to look for what is missing: nothing that is there counts as intact by it.
    """
    try:
        place, sums = bytes_of(root.path / PLACE_IN_CHAIN), bytes_of(root.path / SUMS)
        named = seal_in(json.loads(place)["audit"])
    except (OSError, IntegrityError, KeyError, TypeError, ValueError, RecursionError):
        return False
    return named == seal and f"{hashlib.sha256(place).hexdigest()}  {PLACE_IN_CHAIN}".encode() in sums.splitlines()
