"""PostgreSQL and Redis for tests: Debian's own programs as processes of the test, with their data in a folder that is removed."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from server_process import server_process, until_it_works

from kafka_audit.sandbox.brokers import free_ports

_INITDB = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None)  # Debian keeps it off the path
_REDIS = shutil.which("redis-server")
NEEDS_POSTGRES_AND_REDIS = [
    pytest.mark.skipif(_INITDB is None, reason="PostgreSQL is not installed (Debian: postgresql)"),
    pytest.mark.skipif(_REDIS is None, reason="Redis is not installed (Debian: redis-server)"),
]
_AS_POSTGRES = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


@contextlib.contextmanager
def postgres(*, user: str, password: str) -> Iterator[str]:
    """A server with an empty database ``airflow``; yields HOST:PORT."""
    assert _INITDB is not None
    (port,) = free_ports(1)
    # PostgreSQL refuses to run as root, and its user may not enter the folders of the tests.
    run_as = _AS_POSTGRES if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="kafka-audit-postgres-") as folder:
        data, secret = Path(folder) / "data", Path(folder) / "password"
        secret.write_text(password)
        if run_as:
            shutil.chown(folder, "postgres", "postgres")
            shutil.chown(secret, "postgres", "postgres")
        made = [_INITDB, "--pgdata", data, "--username", user, "--pwfile", secret, "--auth", "scram-sha-256"]
        subprocess.run([*run_as, *made, "--encoding", "UTF8", "--no-locale", "--no-sync"], check=True, cwd=folder, capture_output=True)
        server = [_INITDB.with_name("postgres"), "-D", data, "-c", "listen_addresses=127.0.0.1", "-c", f"port={port}"]
        command = [*run_as, *server, "-c", "unix_socket_directories=", "-c", "fsync=off"]
        with server_process([str(each) for each in command], log=Path(folder) / "log", cwd=Path(folder)):
            connect = {"host": "127.0.0.1", "port": port, "user": user, "password": password, "connect_timeout": 5}
            connection = until_it_works(lambda: psycopg2.connect(dbname="postgres", **connect), psycopg2.OperationalError)
            with contextlib.closing(connection):
                connection.autocommit = True  # no database can be created in a transaction
                connection.cursor().execute("CREATE DATABASE airflow")
            yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def redis_server(*, password: str) -> Iterator[str]:
    """An empty Redis; yields HOST:PORT."""
    import redis  # here, because it takes a second

    assert _REDIS is not None
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="kafka-audit-redis-") as folder:
        settings = Path(folder) / "redis.conf"  # not on the command line, which everybody may read
        settings.write_text(f'bind 127.0.0.1\nport {port}\ndir {folder}\nsave ""\nrequirepass {password}\n')
        with server_process([_REDIS, str(settings)], log=Path(folder) / "log"):
            with contextlib.closing(redis.Redis(port=port, password=password)) as client:
                until_it_works(client.ping, redis.ConnectionError)
            yield f"127.0.0.1:{port}"
