"""`manage.py serve`: hands over to the supervisor, which needs no Django and so starts and stays small."""

from __future__ import annotations

import os
import sys

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Everything on one machine: see `manage.py serve --help`."

    def run_from_argv(self, argv: list[str]) -> None:
        os.execv(sys.executable, [sys.executable, "-m", "cato_web.serve", *argv[2:]])
