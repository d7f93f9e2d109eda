"""Writes all that this Cato keeps into one file, while people use it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from cato_web.backups.errors import BackupError
from cato_web.backups.writing import BackupResult, atomic_output, back_up
from cato_web.management.store_command import ProgressBars
from memory.api import CatoError

_SECRETS = "It holds password hashes and secrets: keep it as safe as the data directory."


class Command(BaseCommand):
    help = "Write one consistent copy of database and files into a file, also while Cato runs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "path", metavar="PATH", help="the file; a folder, for a name with today's date; - for stdout"
        )
        parser.add_argument(
            "--without-vectors", action="store_true", help="smaller; then restoring embeds every text anew"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with_vectors = not options["without_vectors"]
        try:
            with ProgressBars() as bars:
                if options["path"] == "-":
                    written = back_up(sys.stdout.buffer, with_vectors=with_vectors, progress=bars)
                    self.stderr.write(_told("stdout", written))
                    return
                path = _file_for(Path(options["path"]))
                with atomic_output(path) as out:
                    written = back_up(out, with_vectors=with_vectors, progress=bars)
        except (BackupError, CatoError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{_told(str(path), written)} {_SECRETS}")


def _file_for(path: Path) -> Path:
    return path / f"cato-{timezone.now():%Y-%m-%d-%H%M%S}.tar.gz" if path.is_dir() else path


def _told(where: str, written: BackupResult) -> str:
    vanished = f" {written.vanished:,} files were removed meanwhile." if written.vanished else ""
    return f"Wrote {written.rows:,} rows and {written.files:,} files to {where}.{vanished}"
