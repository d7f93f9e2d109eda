"""A migrated database, created once per test run and copied by servers and test processes."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

from tests.topology import POSTGRES, SHARED, TOPOLOGY, clean_environment

ROOT = Path(__file__).resolve().parent.parent
POSTGRES_NAME = f"cato_template_{SHARED.parent.name.rpartition('-')[2].lower()}"


def template_database() -> str:
    """Return the SQLite file, or the name of the PostgreSQL database, to copy; create it on first use."""
    SHARED.mkdir(parents=True, exist_ok=True)
    file, is_migrated = SHARED / "data" / "cato.sqlite3", SHARED / "migrated"
    with (SHARED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_migrated.exists():
            environment = clean_environment() | {"CATO_DATA_DIR": str(file.parent), "CATO_CONFIG_FILE": ""}
            if TOPOLOGY == "services":
                _execute(f'CREATE DATABASE "{POSTGRES_NAME}"')
                environment["DATABASE_URL"] = f"{POSTGRES.rsplit('/', 1)[0]}/{POSTGRES_NAME}"
            command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
            subprocess.run(command, cwd=ROOT, env=environment, check=True)
            is_migrated.touch()
    return POSTGRES_NAME if TOPOLOGY == "services" else str(file)


def drop_template() -> None:
    """Drop the PostgreSQL database, if any."""
    if TOPOLOGY == "services" and (SHARED / "migrated").exists():
        _execute(f'DROP DATABASE IF EXISTS "{POSTGRES_NAME}" WITH (FORCE)')


def _execute(statement: str) -> None:
    import psycopg

    with psycopg.connect(POSTGRES, autocommit=True) as pg:
        pg.execute(statement)
