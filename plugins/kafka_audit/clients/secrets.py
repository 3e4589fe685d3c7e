"""Finds secrets among the settings of declared clients: a policy is kept in every audit, so none may stand there."""

import re
from pathlib import Path

from kafka_audit.clients.declared import Client
from kafka_audit.clients.names import looks_like_a_name
from kafka_audit.clients.properties import written_pairs
from kafka_audit.safe_text import visible
from kafka_audit.submit import is_secret

_ADVICE = "holds a secret: no control reads it, and the policy is kept in every audit: leave it out of this file"
_PLACEHOLDER = re.compile(r"\$\{(?!.*:-)[^{}]*\}")
_SPRINGS_PLACEHOLDER = re.compile(r"\$\{[^{}:]*:?\}")
"""What stands after the colon is the value where nothing else is given."""


def secret_problems(client: Client, folder: Path) -> list[str]:
    """A sentence for each setting of a client that holds a secret: file, field and name, never the value; sorted.

    A value that is nothing but one placeholder, such as ``${KAFKA_PASSWORD}``, is none. ``folder`` is that of the policy.
    """
    placeholder = _SPRINGS_PLACEHOLDER if client.implementation == "spring-kafka" else _PLACEHOLDER
    where, pairs = f"clients.yaml: clients.{client.name}.settings", [(name, str(value)) for name, value in client.settings.items()]
    if client.settings_file is not None:
        where = f"{client.settings_file} (clients.{client.name}.settings_file)"
        pairs = written_pairs(folder / client.settings_file)
    secret = {name for name, value in pairs if is_secret(name) and value.strip() and not placeholder.fullmatch(value.strip())}
    shown = {name if looks_like_a_name(name.lower()) else "a setting whose name is not shown" for name in secret}
    return [f"{visible(where)}: {name} {_ADVICE}" for name in sorted(shown)]
