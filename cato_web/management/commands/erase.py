"""Command: purge forgotten data from index and database files."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from cato_web.management.store_command import ProgressBars, StoreCommand, manages_vector_store, wait_for_cleanup
from memory import api as memory
from memory.api import CatoError

_FOREIGN_CHROMA = """The Chroma server at {url} is not run by this Cato. Its files still contain dropped collections.
On its machine: stop it, run `python -m cato_web.supervisor.chroma_cleanup PATH`, and start it again. (By hand: remove
the folders of PATH whose names are not ids in the table segments of chroma.sqlite3, then run
`chroma vacuum --path PATH --force`.)"""
_POSTGRESQL = "PostgreSQL's write-ahead log, replicas and backups contain erased data until they are rotated."


class Command(StoreCommand):
    help = "Purge forgotten data from all files. Can be interrupted and repeated."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._erase()
        except CatoError as error:
            raise CommandError(f"{error} Run the command again to finish.") from error

    def _erase(self) -> None:
        with ProgressBars() as bars:
            memory.cleanup_documents()
            while count := memory.erase_forgotten():
                bars("forgotten exchanges", count)
            rebuilt = memory.purge_all(progress=bars)
        self.stdout.write(f"{rebuilt:,} collections and the database were rebuilt.")
        if settings.CATO.database_url is not None:
            self.stdout.write(_POSTGRESQL)
        marker = memory.request_file_cleanup()
        if marker is not None and manages_vector_store():
            wait_for_cleanup(marker)
        else:
            self.stdout.write(_FOREIGN_CHROMA.format(url=settings.CATO.chroma_url))
        memory.ensure_erased()
