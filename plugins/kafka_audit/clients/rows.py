"""The columns of a client's wide row as plain Python values, used both by audits and for files that are not deployed yet."""

from typing import Any

from kafka_audit.clients.declared import Client
from kafka_audit.clients.settings import HasSettings, effective, start_problems, unknown_settings


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
        "declaration": "; ".join([f"read from {source} ({client.implementation})", *odd]),
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
