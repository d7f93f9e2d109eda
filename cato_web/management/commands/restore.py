"""Makes an empty Cato what a backup says, and builds its index."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from cato_web.backups.errors import BackupError
from cato_web.backups.restoring import restore
from cato_web.management.store_command import ProgressBars, StoreCommand, exclusive_data_dir, running_server_info
from cato_web.supervisor.plan import StartupError
from chat.realtime.hub import count_web_processes
from memory import api as memory
from memory.api import CatoError

_LATER = "The index is built when Cato runs; until it is, memory finds by words."
_KEY_LOST = (
    "The secret key here is not the one of before, so the stored API key of the model cannot be read: "
    "an administrator types it anew on the settings page."
)


class Command(StoreCommand):
    help = "Restore a backup where nobody is yet, while Cato does not run. Everybody signs in again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="PATH", help="the file that `backup` wrote; - for stdin")
        parser.add_argument("--index-later", action="store_true", help="leave building the index to the workers")

    def run_from_argv(self, argv: list[str]) -> None:
        is_help = "--help" in argv or "-h" in argv
        if not is_help and (running_server_info(settings.CATO) or count_web_processes()):
            sys.stderr.write(
                "Cato is running: its web processes write to the database. Stop them, then restore; "
                "a process that was killed counts for half a minute more.\n"
            )
            sys.exit(1)
        if is_help or "--index-later" in argv:  # no vector store is needed
            BaseCommand.run_from_argv(self, argv)
        else:
            super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with exclusive_data_dir(), ProgressBars() as bars:
                with _opened(options["path"]) as source:
                    back = restore(source, progress=bars)
                self.stdout.write(
                    f"Restored the backup of {back.made_at:%Y-%m-%d %H:%M} UTC: {back.people:,} people, {back.exchanges:,} "
                    f"exchanges, {back.rows:,} rows and {back.files:,} files. Everybody signs in again."
                )
                if back.is_key_lost:
                    self.stdout.write(_KEY_LOST)
                self.stdout.write(_LATER if options["index_later"] else _index(bars))
        except (BackupError, StartupError) as error:
            raise CommandError(str(error)) from error


def _index(bars: ProgressBars) -> str:
    """Build the index; what cannot be done now the workers do. Returns what is to be said."""
    try:
        # Collections of these spaces that a store still has from before may hold what has been forgotten since.
        memory.drop_orphan_collections()
        embedded = memory.backfill(progress=bars)
    except CatoError as error:
        return f"{error} {_LATER}"
    if embedded.failed or embedded.waiting:
        return f"{embedded.failed:,} exchanges failed and {embedded.waiting:,} wait: {embedded.error} {_LATER}"
    return f"{embedded.done:,} exchanges are in the index."


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        source = open(path, "rb")  # noqa: SIM115  (errors while it is read are others)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    with source:
        yield source
