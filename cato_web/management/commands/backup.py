"""Command: write a backup while Cato runs."""

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

_SECRETS = "It contains password hashes and secrets: keep it as safe as the data directory."


class Command(BaseCommand):
    help = "Write a consistent copy of database and files into one file, also while Cato runs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="PATH", help="a file; a folder, for a file named by date; - for stdout")
        parser.add_argument(
            "--without-vectors", action="store_true", help="smaller, but a restore embeds all texts again"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with_vectors = not options["without_vectors"]
        try:
            with ProgressBars() as bars:
                if options["path"] == "-":
                    # A buffer of its own is flushed before the result is reported, and discarded after an error.
                    with open(sys.stdout.fileno(), "wb", closefd=False) as out:
                        result = back_up(out, with_vectors=with_vectors, progress=bars)
                    self.stderr.write(_format_result("stdout", result))
                    return
                path = _output_path(Path(options["path"]))
                with atomic_output(path) as out:
                    result = back_up(out, with_vectors=with_vectors, progress=bars)
        except (BackupError, CatoError) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{options['path']} cannot be written: {error.strerror or error}.") from error
        self.stdout.write(f"{_format_result(str(path), result)} {_SECRETS}")


def _output_path(path: Path) -> Path:
    return path / f"cato-{timezone.now():%Y-%m-%d-%H%M%S}.tar.gz" if path.is_dir() else path


def _format_result(target: str, result: BackupResult) -> str:
    vanished = f" {result.vanished:,} files were deleted in the meantime." if result.vanished else ""
    return f"Wrote {result.rows:,} rows and {result.files:,} files to {target}.{vanished}"
