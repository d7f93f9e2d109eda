"""Builds the index of the configured embedding model beside the old one, which answers until the new one is whole."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory import services as memory
from memory.models import Embedding, Generation, Job


class Command(BaseCommand):
    help = "Change over to the configured embedding model. May be broken off and called again; it goes on."

    def handle(self, *args: Any, **options: Any) -> None:
        models = memory.models_in_use()
        if not models.differ:
            self.stdout.write(f"The index is of {models.serving} already.")
            return
        building = memory.build_generation()
        while Generation.objects.filter(pk=building.pk, state=Generation.State.BUILDING).exists():
            memory.index_pending(limit=500)
            models = memory.models_in_use()
            self.stderr.write(f"\r{models.built:,} of {models.to_build:,} embedded", ending="")
            failed = Embedding.objects.filter(generation=building, state=Job.State.FAILED).count()
            if failed:
                raise CommandError(
                    f"{failed:,} exchanges could not be embedded. Retry the failed jobs, then call again."
                )
            if not memory.switch_generation():
                time.sleep(0.2)  # a worker has some of them in hand
        self.stderr.write("")
        self.stdout.write(f"The index is of {memory.models_in_use().serving} now.")
