"""Writes the passwords file of Airflow's simple auth manager from ``AIRFLOW_ADMIN_PASSWORD``, readable by its owner only."""

import json
import os
from pathlib import Path


def main() -> None:
    """Write ``AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE``."""
    path = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    path.touch(mode=0o600)
    path.write_text(json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}), encoding="utf-8")


if __name__ == "__main__":
    main()
