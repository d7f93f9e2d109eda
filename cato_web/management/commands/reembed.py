"""Builds the index of the configured embedding model beside the old one, which answers until the new one is whole."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from cato_web.management.store_command import ProgressBars, StoreCommand
from memory import api as memory
from memory.api import CatoError, Generation


class Command(StoreCommand):
    help = "Change over to the configured embedding model. May be broken off and called again; it goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--again", action="store_true", help="embed everything anew, also with the same model")
        which.add_argument("--back", action="store_true", help="let the index that served before serve again")
        which.add_argument("--drop-old", action="store_true", help="drop the index that served before")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["drop_old"]:
                self.stdout.write(f"{memory.drop_retired_generations():,} dropped.")
                return
            self._build(again=options["again"], back=options["back"])
        except CatoError as error:
            raise CommandError(str(error)) from error

    def _build(self, *, again: bool, back: bool) -> None:
        models = memory.embedding_model_status()
        if back:
            building = memory.start_rollback()
            if building is None:
                raise CommandError("No earlier index was kept to go back to.")
        elif again or models.differ or memory.is_reindexing():
            building = memory.start_reindex(again=again)
        else:
            self.stdout.write(f"The index is of {models.serving} already; --again makes it anew.")
            return
        with ProgressBars() as bars:
            while Generation.objects.filter(pk=building.pk, state=Generation.State.BUILDING).exists():
                embedded = memory.embed_queued(progress=bars)
                if embedded.failed or embedded.waiting:
                    raise CommandError(
                        f"{embedded.failed:,} exchanges failed and {embedded.waiting:,} wait: {embedded.error} "
                        "The old index goes on serving. Retry the failed jobs, then call again."
                    )
                if not memory.activate_built_generation():
                    time.sleep(0.2)  # something was just said, or a worker has some of it in hand
        self.stdout.write(f"The index is of {memory.embedding_model_status().serving} now.")
