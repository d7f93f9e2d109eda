"""Fits on this store where the relevance gate lies, and shows what it would keep and silence."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from cato_web.accounts.services import UserLookupError, get_user_by_name
from cato_web.management.store_command import StoreCommand
from memory import api as memory
from memory.api import CalibrationResult, CatoError, ThresholdStats


class Command(StoreCommand):
    help = "Fit the relevance gate to what is stored here, for the embedding model that serves."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", default="all", help="fit on what this person may read; name or e-mail (all)")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--dry-run", action="store_true", help="show what would be fitted and change nothing")
        what.add_argument("--reset", action="store_true", help="go back to the shipped level")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["reset"]:
            gone = memory.reset_threshold()
            self.stdout.write(
                "The shipped level is in force again." if gone else "The shipped level is in force already."
            )
            return
        try:
            name = options["user"]
            readable = None if name == "all" else memory.readable_space_ids(get_user_by_name(name).pk)
            found = memory.fit_threshold(readable)
        except (CatoError, UserLookupError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_table(found))
        if options["dry_run"]:
            self.stdout.write("Nothing was changed.")
            return
        memory.save_threshold(found)
        self.stdout.write(f"The level is {found.chosen.level:.3f} from now on; --reset goes back to the shipped one.")


def _table(found: CalibrationResult) -> str:
    lines = [
        f"{found.provider}/{found.model}, fitted on {found.sample:,} exchanges.",
        f"{'level':>8} {'keeps':>8} {'silences':>9}",
    ]
    lines += [_line(row, "  chosen" if row.level == round(found.chosen.level, 3) else "") for row in found.table]
    lines += ["", _line(found.before, "  in force until now"), _line(found.chosen, "  chosen")]
    return "\n".join(lines)


def _line(row: ThresholdStats, note: str = "") -> str:
    return f"{row.level:>8.3f} {row.keeps:>8.1%} {row.silences:>9.1%}{note}"
