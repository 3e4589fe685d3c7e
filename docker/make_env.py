"""Writes ``.env`` with fresh secrets for docker-compose*.yaml, readable by its owner only: ``python3 docker/make_env.py``.

An existing file is kept, because secrets in use cannot be recovered. With the argument ``-`` it prints the secrets instead. With
``> .env`` the result is the same as without: the script removes all other users' rights from the file that the shell created.
"""

import base64
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / ".env"

SECRETS: dict[str, Callable[[], str]] = {
    "POSTGRES_PASSWORD": lambda: secrets.token_hex(16),
    # Fernet keys are 32 bytes in URL-safe base64; Airflow encrypts stored connections with it.
    "AIRFLOW_FERNET_KEY": lambda: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    "AIRFLOW_JWT_SECRET": lambda: secrets.token_hex(64),
    "AIRFLOW_SECRET_KEY": lambda: secrets.token_hex(32),
    "AIRFLOW_ADMIN_PASSWORD": lambda: secrets.token_urlsafe(12),
    # For docker-compose.celery.yaml.
    "REDIS_PASSWORD": lambda: secrets.token_hex(16),
    "OBJECT_STORE_SECRET": lambda: secrets.token_hex(20),
}


def main() -> None:
    """Write the file, or print it."""
    text = "".join(f"{name}={make()}\n" for name, make in SECRETS.items())
    if sys.argv[1:] not in ([], ["-"]):
        sys.exit("usage: make_env.py [-]")
    redirected = FILE.is_file() and os.path.samestat(os.fstat(sys.stdout.fileno()), FILE.stat())
    if redirected:
        os.fchmod(sys.stdout.fileno(), 0o600)
    if redirected or sys.argv[1:]:
        sys.stdout.write(text)
        return
    try:
        descriptor = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        sys.exit(f"{FILE} is there already and was kept; for fresh secrets remove it first")
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    sys.stdout.write(f"wrote {FILE}\n")


if __name__ == "__main__":
    main()
