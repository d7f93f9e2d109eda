"""Command: update database and assets, and print the set-up link if there is no account yet."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from cato_web.accounts import services
from cato_web.assets import collect


class Command(BaseCommand):
    help = "Migrate, collect the assets, and print the set-up link if there is no account yet."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        collect.gather()
        token = services.setup_token()
        if token:
            server = settings.CATO.server
            address = server.public_url or f"http://{server.host}:{server.port}"
            self.stdout.write(f"Create the first account at {address.rstrip('/')}/setup/{token}")
