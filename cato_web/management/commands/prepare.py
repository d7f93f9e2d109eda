"""Command: update database and assets, and print the set-up link if there is no account yet."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.management.commands import collectstatic
from django.core.management import call_command
from django.core.management.base import BaseCommand

from cato_web.accounts import services
from cato_web.assets import BUNDLES, BundledStaticFilesStorage


class Command(BaseCommand):
    help = "Migrate, collect the assets, and print the set-up link if there is no account yet."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        _collect_assets()
        token = services.setup_token()
        if token:
            server = settings.CATO.server
            address = server.public_url or f"http://{server.host}:{server.port}"
            self.stdout.write(f"Create the first account at {address.rstrip('/')}/setup/{token}")


def _collect_assets() -> None:
    """Collect and compress the files in STATIC_ROOT, unless they are up to date."""
    stamp = Path(settings.STATIC_ROOT) / ".gathered"
    now = _fingerprint()
    if stamp.exists() and stamp.read_text() == now:
        return
    command = collectstatic.Command()
    command.storage = BundledStaticFilesStorage()
    # Files of earlier versions stay, because pages of them may still be open.
    call_command(command, interactive=False, verbosity=0)
    stamp.write_text(now)


def _fingerprint() -> str:
    """Return a hash of every file's name, size and time, and of the bundles."""
    digest = hashlib.sha256(repr(BUNDLES).encode())
    for finder in get_finders():
        for name, storage in finder.list(ignore_patterns=None):
            digest.update(f"{name} {storage.size(name)} {storage.get_modified_time(name).timestamp()}\n".encode())
    return digest.hexdigest()
