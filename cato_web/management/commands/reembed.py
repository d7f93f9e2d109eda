"""Command: build an index generation with the configured embedding model while the active one is used."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from cato_web.management.store_command import ProgressBars, StoreCommand
from memory import api as memory
from memory.api import CatoError, IndexGeneration


class Command(StoreCommand):
    help = "Switch to the configured embedding model. Can be interrupted and repeated; it continues."

    def add_arguments(self, parser: ArgumentParser) -> None:
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--again", action="store_true", help="embed everything again, even with the same model")
        action.add_argument("--back", action="store_true", help="switch back to the previous index")
        action.add_argument("--drop-old", action="store_true", help="drop the previous index")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["drop_old"]:
                self.stdout.write(f"{memory.drop_retired_generations():,} index generations dropped.")
                return
            self._build(again=options["again"], back=options["back"])
        except CatoError as error:
            raise CommandError(str(error)) from error

    def _build(self, *, again: bool, back: bool) -> None:
        models = memory.embedding_model_status()
        if back:
            building = memory.start_rollback()
            if building is None:
                raise CommandError("There is no previous index.")
        elif again or models.differ or memory.is_reindexing():
            building = memory.start_reindex(again=again)
        else:
            self.stdout.write(f"The index uses {models.active} already; --again rebuilds it.")
            return
        with ProgressBars() as bars:
            bars.expect("embedded", memory.count_queued())
            while IndexGeneration.objects.filter(pk=building.pk, state=IndexGeneration.State.BUILDING).exists():
                embedded = memory.embed_queued(generation=building, progress=bars)
                if memory.activate_built_generation():
                    break
                if embedded.failed or embedded.waiting:
                    raise CommandError(
                        f"{embedded.failed:,} exchanges failed and {embedded.waiting:,} wait: {embedded.error} "
                        "The old index stays in use. Retry the failed jobs, then run this again."
                    )
                time.sleep(0.2)  # new exchanges, or a worker holds some leases
        self.stdout.write(f"The index now uses {memory.embedding_model_status().active}.")
