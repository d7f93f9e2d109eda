"""Collect the static files under names that change with their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.management.commands import collectstatic
from django.core.management import call_command

from cato_web.assets.bundles import BUNDLES, BundledStaticFilesStorage


def gather() -> bool:
    """Collect and compress the files in STATIC_ROOT; return False if they are up to date."""
    stamp = Path(settings.STATIC_ROOT) / ".gathered"
    now = _fingerprint()
    if stamp.exists() and stamp.read_text() == now:
        return False
    command = collectstatic.Command()
    command.storage = BundledStaticFilesStorage()
    # Files of earlier versions stay, because pages of them may still be open.
    call_command(command, interactive=False, verbosity=0)
    stamp.write_text(now)
    return True


def _fingerprint() -> str:
    """Return a hash of every file's name, size and time, and of the bundles."""
    digest = hashlib.sha256(repr(BUNDLES).encode())
    for finder in get_finders():
        for name, storage in finder.list(ignore_patterns=None):
            digest.update(f"{name} {storage.size(name)} {storage.get_modified_time(name).timestamp()}\n".encode())
    return digest.hexdigest()
