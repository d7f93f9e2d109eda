"""Command: compare database and index, and repair differences."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from cato_web.accounts.export.jobs import delete_orphaned_exports
from cato_web.management.store_command import ProgressBars, StoreCommand
from chat import services as chat
from memory import api as memory
from memory.api import CatoError


class Command(StoreCommand):
    help = "Repair differences between database and index. Can be interrupted and repeated, also while Cato runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count only")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with ProgressBars() as bars:
                result = memory.reconcile(dry_run=options["dry_run"], progress=bars)
        except CatoError as error:
            raise CommandError(str(error)) from error
        if options["dry_run"]:
            self.stdout.write("Nothing was changed. Without --dry-run:")
        self.stdout.write(f"{result.queued:,} exchanges queued to be embedded")
        self.stdout.write(f"{result.vectors_removed:,} orphaned vectors removed")
        self.stdout.write(f"{result.collections_dropped:,} orphaned collections dropped")
        self.stdout.write(f"{result.words_written:,} exchanges' terms written")
        self.stdout.write(f"{result.words_removed:,} forgotten exchanges' terms removed")
        self.stdout.write(f"{result.cached_removed:,} orphaned cached embeddings removed")
        self.stdout.write(f"{result.files_removed:,} orphaned originals removed")
        attachments = chat.delete_orphaned_attachments(dry_run=options["dry_run"])
        imports = chat.delete_orphaned_imports(dry_run=options["dry_run"])
        exports = delete_orphaned_exports(dry_run=options["dry_run"])
        self.stdout.write(f"{attachments:,} orphaned attachments removed")
        self.stdout.write(f"{imports:,} orphaned import files removed")
        self.stdout.write(f"{exports:,} orphaned exports removed")
