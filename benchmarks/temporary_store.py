"""An empty Cato without web process and worker: a database and a real Chroma server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import django

from benchmarks.bench import workbench
from tests import server, topology

if TYPE_CHECKING:
    from cato_web.accounts.models import User


@contextmanager
def temporary_store(database_url: str = "") -> Iterator[User]:
    """Set up Django on a new data directory (or the empty database at `database_url`), and a Chroma server.

    Yields the only person. The embedding model is the local one, on every core.
    """
    with workbench() as folder:
        port = topology.free_port()
        for name in set(os.environ) - set(topology.clean_environment()):
            del os.environ[name]
        os.environ |= {
            "CATO_DATA_DIR": str(folder / "data"),
            "CATO_CONFIG_FILE": "",
            "CHROMA_URL": f"http://127.0.0.1:{port}",
            "DJANGO_SETTINGS_MODULE": "cato_web.settings",
        }
        if database_url:
            os.environ["DATABASE_URL"] = database_url
        vector_store = server.start_chroma(folder, "chroma", folder / "chroma", port)
        try:
            django.setup()
            from django.core.management import call_command

            from cato_web.accounts.services import create_person

            call_command("migrate", interactive=False, verbosity=0)
            server.wait_for(server.is_chroma_available, "Chroma")
            yield create_person(name="Bench", email="bench@cato.example", password="four plain words are fine")
        finally:
            vector_store.end()
