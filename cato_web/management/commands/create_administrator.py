"""Command: create an administrator, also if no administrator can sign in any more."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email
from django.urls import reverse

from cato_web.accounts import roles
from memory.api import clean_name, clean_text


class Command(BaseCommand):
    help = (
        "Make the account with this email an active administrator, creating it if necessary, and print a link that "
        "sets its password, once and within a day."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--name", default="", help="name of a new account; by default the part before the @")

    def handle(self, *args: Any, **options: Any) -> None:
        email = clean_text(options["email"]).strip().lower()
        try:
            validate_email(email)
        except ValidationError as error:
            raise CommandError(f"{options['email']} is not an email address.") from error
        name = clean_name(options["name"] or email.partition("@")[0])[:80]
        if not name:
            raise CommandError("The name has no visible characters. Give another one with --name.")
        person, token = roles.make_administrator(email, name)
        server = settings.CATO.server
        address = (server.public_url or f"http://{server.host}:{server.port}").rstrip("/")
        self.stderr.write(f"{person.name} ({person.email}) is an administrator. This link sets a password, once:")
        self.stdout.write(f"{address}{reverse('password_reset', args=[token])}")
