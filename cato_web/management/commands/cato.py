"""`manage.py cato …`: hands over to the command line, which must see --config before Django's settings are read."""

from __future__ import annotations

import os
import sys

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Cato's own command line; see `manage.py cato --help`."

    def run_from_argv(self, argv: list[str]) -> None:
        os.execv(sys.executable, [sys.executable, "-m", "cato_web.cli", *argv[2:]])
