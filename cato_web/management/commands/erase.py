"""Lets no file hold what was forgotten: indexes and database are made anew, and what was dropped is removed."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from cato_web.management.store_command import ProgressBars, StoreCommand, manages_vector_store, wait_for_cleanup
from memory import api as memory
from memory.api import CatoError, Erasure, Job

_NOT_OURS = """The Chroma server at {url} is not run by this Cato. What was dropped there is still in its files.
Where they are: stop it for a moment, run `python -m cato_web.supervisor.chroma_cleanup PATH`, start it again. (By hand: remove the
folders of PATH whose name is no id in the table segments of chroma.sqlite3, then `chroma vacuum --path PATH --force`.)"""
_POSTGRESQL = "PostgreSQL's own write-ahead log, replicas and backups keep what was erased until they are rotated."


class Command(StoreCommand):
    help = "Remove every byte of what was forgotten from the files. May be broken off and called again."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with ProgressBars() as bars:
                while gone := memory.erase_forgotten():
                    bars("forgotten exchanges", gone)
                renewed = memory.purge_all(progress=bars)
        except CatoError as error:
            raise CommandError(f"{error} What was begun is finished when this is called again.") from error
        self.stdout.write(f"{renewed:,} indexes and the database were made anew.")
        if settings.CATO.database_url is not None:
            self.stdout.write(_POSTGRESQL)
        note = memory.request_file_cleanup()
        if note is not None and manages_vector_store():
            wait_for_cleanup(note)
        else:
            self.stdout.write(_NOT_OURS.format(url=settings.CATO.chroma_url))
        waiting = Erasure.objects.filter(state=Job.State.PENDING).count()
        if waiting:
            raise CommandError(f"{waiting:,} exchanges are still being erased; call this again in a minute.")
