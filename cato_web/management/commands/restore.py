"""Command: restore a backup into an empty installation and build its index."""

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
from cato_web.management.store_command import ProgressBars, StoreCommand, exclusive_data_dir
from cato_web.supervisor.plan import StartupError
from cato_web.supervisor.server_info import running_server_info
from chat.realtime.peers import count_web_processes, is_connected
from memory import api as memory
from memory.api import CatoError

_LATER = "The index is built while Cato runs; until then, search uses keywords."
_KEY_LOST = "The secret key differs from that of the backup. What it encrypted is lost:"


class Command(StoreCommand):
    help = "Restore a backup into an empty installation while Cato does not run. Everybody has to sign in again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="PATH", help="a file that `backup` wrote; - for stdin")
        parser.add_argument("--index-later", action="store_true", help="let the workers build the index")

    def run_from_argv(self, argv: list[str]) -> None:
        """Refuse while Cato runs or can be running, and run without a vector store if none is needed."""
        options = self.parse(argv)
        if not is_connected():
            # Web processes on other machines register there, and nowhere else.
            sys.stderr.write("Redis does not answer, so web processes could be running. Start it, then restore.\n")
            sys.exit(1)
        if running_server_info(settings.CATO.server.data_dir) or count_web_processes():
            sys.stderr.write(
                "Cato is running. Stop its web processes, then restore; "
                "a killed process counts for another half minute.\n"
            )
            sys.exit(1)
        if options.index_later:  # no vector store is needed
            BaseCommand.run_from_argv(self, argv)
        else:
            super().run_from_argv(argv)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with exclusive_data_dir(), ProgressBars() as bars:
                with _open_input(options["path"]) as source:
                    restored = restore(source, progress=bars)
                self.stdout.write(
                    f"Restored the backup of {restored.made_at:%Y-%m-%d %H:%M} UTC: {restored.people:,} people, "
                    f"{restored.exchanges:,} exchanges, {restored.rows:,} rows and {restored.files:,} files. "
                    "Everybody has to sign in again."
                )
                if restored.lost_secrets:
                    self.stdout.write("\n  ".join([_KEY_LOST, *restored.lost_secrets]))
                self.stdout.write(_LATER if options["index_later"] else _build_index(bars))
        except (BackupError, StartupError) as error:
            raise CommandError(str(error)) from error


def _build_index(bars: ProgressBars) -> str:
    """Build the index; workers continue with the rest. Return the message to print."""
    try:
        # Existing collections of this installation may contain exchanges that were forgotten since.
        memory.drop_orphan_collections()
        embedded = memory.backfill(progress=bars)
    except CatoError as error:
        return f"{error} {_LATER}"
    if embedded.failed or embedded.waiting:
        return f"{embedded.failed:,} exchanges failed and {embedded.waiting:,} wait: {embedded.error} {_LATER}"
    return f"{embedded.done:,} exchanges are in the index."


@contextmanager
def _open_input(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        if sys.stdin is None:
            raise CommandError("Standard input is closed.")
        yield sys.stdin.buffer
        return
    try:
        source = open(path, "rb")  # noqa: SIM115  (only errors of opening are caught)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    with source:
        yield source
