"""A migrated database and collected assets, created once per test run and copied by servers and test processes."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.topology import POSTGRES, SHARED, TOPOLOGY, clean_environment

ROOT = Path(__file__).resolve().parent.parent
POSTGRES_NAME = f"cato_template_{SHARED.parent.name.rpartition('-')[2].lower()}"


def template_database() -> str:
    """Return the SQLite file, or the name of the PostgreSQL database, to copy; create it on first use."""
    file, is_migrated = SHARED / "data" / "cato.sqlite3", SHARED / "migrated"
    with _locked():
        if not is_migrated.exists():
            database = {}
            if TOPOLOGY == "services":
                _execute(f'CREATE DATABASE "{POSTGRES_NAME}"')
                database["DATABASE_URL"] = f"{POSTGRES.rsplit('/', 1)[0]}/{POSTGRES_NAME}"
            _manage(file.parent, "migrate", "--verbosity", "0", **database)
            is_migrated.touch()
    return POSTGRES_NAME if TOPOLOGY == "services" else str(file)


def copy_prepared_data(data: Path) -> None:
    """Copy a migrated SQLite database and the collected assets to this data directory; create them on first use."""
    database, prepared = template_database(), SHARED / "prepared"
    with _locked():
        if not prepared.exists():
            prepared.mkdir(mode=0o700)
            shutil.copyfile(database, prepared / "cato.sqlite3")
            _manage(prepared, "prepare")
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(database, data / "cato.sqlite3")
    shutil.copytree(prepared / "static", data / "static")


def drop_template() -> None:
    """Drop the PostgreSQL database, if any."""
    if TOPOLOGY == "services" and (SHARED / "migrated").exists():
        _execute(f'DROP DATABASE IF EXISTS "{POSTGRES_NAME}" WITH (FORCE)')


@contextmanager
def _locked() -> Iterator[None]:
    SHARED.mkdir(parents=True, exist_ok=True)
    with (SHARED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _manage(data: Path, *command: str, **environment: str) -> None:
    environment = clean_environment() | {"CATO_DATA_DIR": str(data), "CATO_CONFIG_FILE": ""} | environment
    # `prepare` prints a link, which nobody follows.
    subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL
    )


def _execute(statement: str) -> None:
    import psycopg

    with psycopg.connect(POSTGRES, autocommit=True) as pg:
        pg.execute(statement)
