"""Command: write all exchanges that a user can read as JSON lines."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from cato_web.api.serializers import serialize_exchanges
from cato_web.management.store_command import find_user
from memory import api as memory
from memory.api import Exchange, iterate_by_pk

_BATCH_SIZE = 200


class Command(BaseCommand):
    help = "Write every exchange, note and passage that an account can read to stdout, one JSON object per line."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True, metavar="NAME", help="name or email")

    def handle(self, *args: Any, **options: Any) -> None:
        person = find_user(options["user"])
        readable = memory.in_spaces(Exchange.objects.findable(), memory.readable_space_ids(person.pk))
        for page in iterate_by_pk(readable.select_related("owner"), _BATCH_SIZE):
            for row in serialize_exchanges(page):
                self.stdout.write(row.model_dump_json())
