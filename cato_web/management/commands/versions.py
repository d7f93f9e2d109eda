"""Command: list the versions of a document, delete one, or all but the last and the live one."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management import CommandError

from cato_web.management.store_command import StoreCommand, find_user
from memory import api as memory
from memory.api import active_documents, list_versions


class Command(StoreCommand):
    help = "List the versions of a document, delete one of them, or all but the last and the live one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the document, as on the page Documents")
        parser.add_argument("--user", required=True, help="account that can read it, by name or email")
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--delete", type=int, metavar="N", help="delete version N")
        action.add_argument("--keep", type=int, metavar="K", help="delete all but the last K versions and the live one")

    def handle(self, *args: Any, **options: Any) -> None:
        person = find_user(options["user"])
        document = active_documents(memory.readable_space_ids(person.pk)).filter(name=options["name"]).first()
        if document is None:
            raise CommandError(f"{person} can read no document named {options['name']}.")
        if options["delete"] is not None:
            version = document.versions.filter(number=options["delete"], removed_at=None).first()
            if version is None:
                raise CommandError(f"{document.name} has no version {options['delete']}.")
            memory.forget_version(version, by=person.pk)
        elif options["keep"] is not None:
            if options["keep"] < 1:
                raise CommandError("Keep at least 1 version; delete the whole document on its page.")
            memory.delete_old_versions(document, options["keep"], by=person.pk)
        memory.cleanup_documents()
        document.refresh_from_db()
        if document.forgotten_at is not None:
            self.stdout.write("That was the last version: the document is deleted.")
            return
        for state in list_versions(document):
            live = ", live" if document.live_version_id == state.id else ""
            self.stdout.write(f"{state.number}: {state.stage}{live}, {state.created_at:%Y-%m-%d %H:%M}")
