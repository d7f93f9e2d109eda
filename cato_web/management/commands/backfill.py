"""Embeds whatever has no vector, and writes whatever has no words."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from cato_web.management.store_command import ProgressBars, StoreCommand
from chat.threads.memory_settings import store_missing_turns
from memory import api as memory
from memory.api import CatoError


class Command(StoreCommand):
    help = "Embed whatever has no vector. May be interrupted and called again, also while Cato runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--from-history",
            action="store_true",
            help="first store in memory what was answered while the vector store was disabled",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with ProgressBars() as bars:
                if options["from_history"]:
                    self.stdout.write(f"{store_missing_turns(progress=bars):,} turns stored in memory.")
                embedded = memory.backfill(progress=bars)
        except CatoError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{embedded.done:,} exchanges embedded.")
        if embedded.failed or embedded.waiting:
            raise CommandError(
                f"{embedded.failed:,} failed and {embedded.waiting:,} wait to be tried again: {embedded.error}"
            )
