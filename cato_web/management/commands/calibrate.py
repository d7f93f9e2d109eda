"""Command: calibrate the relevance gate on the stored exchanges."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from cato_web.management.store_command import StoreCommand, find_user
from memory import api as memory
from memory.api import CalibrationResult, CatoError, ThresholdStats


class Command(StoreCommand):
    help = "Calibrate the relevance gate on the stored exchanges, for the active embedding model."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--user", default="all", help="use only what this account can read; name or email (default: all)"
        )
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--dry-run", action="store_true", help="show the result and change nothing")
        action.add_argument("--reset", action="store_true", help="restore the default threshold")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["reset"]:
            is_reset = memory.reset_threshold()
            self.stdout.write(
                "The default threshold is restored." if is_reset else "The default threshold is in use already."
            )
            return
        try:
            name = options["user"]
            readable = None if name == "all" else memory.readable_space_ids(find_user(name).pk)
            result = memory.fit_threshold(readable)
        except CatoError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_table(result))
        if options["dry_run"]:
            self.stdout.write("Nothing was changed.")
            return
        memory.save_threshold(result)
        self.stdout.write(f"The threshold is now {result.chosen.threshold:.3f}; --reset restores the default.")


def _table(result: CalibrationResult) -> str:
    lines = [
        f"{result.provider}/{result.model}, calibrated on {result.sample:,} exchanges.",
        f"{'threshold':>9} {'passes':>8} {'rejects':>8}",
    ]
    lines += [
        _line(row, "  chosen" if row.threshold == round(result.chosen.threshold, 3) else "") for row in result.table
    ]
    lines += ["", _line(result.before, "  previous"), _line(result.chosen, "  chosen")]
    return "\n".join(lines)


def _line(row: ThresholdStats, note: str = "") -> str:
    return f"{row.threshold:>9.3f} {row.passed:>8.1%} {row.rejected:>8.1%}{note}"
