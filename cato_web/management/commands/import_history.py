"""Command: import conversations of other products into a space of a user."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cato_web.cli.actions import resolve_space
from cato_web.management.store_command import ProgressBars, find_user
from chat.imports.formats import PROVIDERS, count_conversations
from chat.imports.importer import import_conversations
from chat.imports.report import ImportReport
from memory.api import CatoError


class Command(BaseCommand):
    help = (
        f"Import conversations of {', '.join(PROVIDERS)}. Can be interrupted and repeated; nothing is imported twice."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, metavar="PATH", help="the exported zip, JSON file, or unpacked folder")
        parser.add_argument("--user", required=True, metavar="NAME", help="owner of the conversations; name or email")
        parser.add_argument("--space", metavar="NAME", help="space of the conversations; the personal space by default")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            person = find_user(options["user"])
            space = resolve_space(person.pk, options["space"])
            with ProgressBars() as bars:
                bars.expect("conversations", count_conversations(options["path"]))
                report = import_conversations(options["path"], person_id=person.pk, space=space, progress=bars)
        except CatoError as error:
            raise CommandError(str(error)) from error
        for line in _lines(report):
            self.stdout.write(line)


def _lines(report: ImportReport) -> list[str]:
    lines = [
        f"{report.found:,} conversations, projects and memories found: {report.imported:,} imported "
        f"({report.turns:,} turns), {report.already_there:,} existed already, "
        f"{report.not_imported.total():,} were not imported."
    ]
    lines += [f"Not imported, {why}: {count:,}" for why, count in sorted(report.not_imported.items())]
    lines += [f"Left out, {what}: {count:,}" for what, count in sorted(report.left_out.items()) if count]
    lines += [f"{title}: {why}" for title, why in report.skipped]
    remaining = report.skipped_count - len(report.skipped)
    return [*lines, f"and {remaining:,} more"] if remaining else lines
