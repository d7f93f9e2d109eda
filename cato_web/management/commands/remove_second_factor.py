"""Command: remove the second factor of a person who has lost it, also of the last administrator."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cato_web.accounts.second_factor.services import remove_second_factor
from cato_web.management.store_command import find_user


class Command(BaseCommand):
    help = (
        "Remove the authenticator app, the passkeys and the recovery codes of the account, and sign it out everywhere."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL")

    def handle(self, *args: Any, **options: Any) -> None:
        person = find_user(options["email"])
        if not remove_second_factor(person, by=None):
            raise CommandError(f"{person.name} ({person.email}) has no second factor.")
        self.stdout.write(f"{person.name} ({person.email}) has no second factor any more and is signed out everywhere.")
