"""Prints a ``.env`` file with fresh secrets for docker-compose.yaml: ``python3 docker/make_env.py > .env``."""

import base64
import secrets
import sys
from collections.abc import Callable

SECRETS: dict[str, Callable[[], str]] = {
    "POSTGRES_PASSWORD": lambda: secrets.token_hex(16),
    # Fernet keys are 32 bytes in URL-safe base64; Airflow encrypts stored connections with it.
    "AIRFLOW_FERNET_KEY": lambda: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    "AIRFLOW_JWT_SECRET": lambda: secrets.token_hex(64),
    "AIRFLOW_SECRET_KEY": lambda: secrets.token_hex(32),
    "AIRFLOW_ADMIN_PASSWORD": lambda: secrets.token_urlsafe(12),
}


def main() -> None:
    """Write the file to standard output."""
    sys.stdout.write("".join(f"{name}={make()}\n" for name, make in SECRETS.items()))


if __name__ == "__main__":
    main()
