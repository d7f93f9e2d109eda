"""Embeds whatever has no vector, and writes whatever has no words."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from cato_web.beside import Bars, StoreCommand
from memory.errors import CatoMemoryError
from memory.services import upkeep


class Command(StoreCommand):
    help = "Embed whatever has no vector. May be broken off and called again, also while Cato runs."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with Bars() as bars:
                embedded = upkeep.backfill(progress=bars)
        except CatoMemoryError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{embedded.done:,} exchanges embedded.")
        if embedded.failed or embedded.waiting:
            raise CommandError(
                f"{embedded.failed:,} failed and {embedded.waiting:,} wait to be tried again: {embedded.error}"
            )
