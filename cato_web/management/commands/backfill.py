"""Command: embed exchanges without vector and write missing lexical terms."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from cato_web.management.store_command import ProgressBars, StoreCommand
from chat.threads.memory_settings import store_missing_turns
from memory import api as memory
from memory.api import CatoError


class Command(StoreCommand):
    help = "Embed exchanges that have no vector. Can be interrupted and repeated, also while Cato runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--from-history",
            action="store_true",
            help="first store turns that were answered while the vector store was disabled",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with ProgressBars() as bars:
                if options["from_history"]:
                    self.stdout.write(f"{store_missing_turns(progress=bars):,} turns stored in memory.")
                result = memory.backfill(progress=bars)
        except CatoError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{result.done:,} exchanges embedded.")
        if result.failed or result.waiting:
            raise CommandError(f"{result.failed:,} failed and {result.waiting:,} will be retried: {result.error}")
