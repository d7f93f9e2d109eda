"""Holds the database and the index against each other and mends what does not agree."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from cato_web.management.store_command import ProgressBars, StoreCommand
from chat import services as chat
from memory import api as memory
from memory.api import CatoError


class Command(StoreCommand):
    help = "Mend what database and index disagree about. May be broken off and called again, also while Cato runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with ProgressBars() as bars:
                mended = memory.reconcile(dry_run=options["dry_run"], progress=bars)
        except CatoError as error:
            raise CommandError(str(error)) from error
        if options["dry_run"]:
            self.stdout.write("Nothing was changed. It would be:")
        self.stdout.write(f"{mended.queued:,} exchanges queued to be embedded")
        self.stdout.write(f"{mended.vectors_removed:,} vectors removed that nothing living has")
        self.stdout.write(f"{mended.collections_dropped:,} collections dropped that no index names")
        self.stdout.write(f"{mended.words_written:,} exchanges given their words")
        self.stdout.write(f"{mended.words_removed:,} forgotten exchanges' words removed")
        self.stdout.write(f"{mended.cached_removed:,} cached embeddings removed that nobody says")
        self.stdout.write(f"{mended.files_removed:,} uploaded files removed that no document names")
        pictures = chat.delete_orphaned_images(dry_run=options["dry_run"])
        imports = chat.delete_orphaned_imports(dry_run=options["dry_run"])
        self.stdout.write(f"{pictures:,} pictures removed that no message has")
        self.stdout.write(f"{imports:,} files removed that no import waits for")
