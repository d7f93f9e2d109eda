"""Command: memory as MCP tools over standard input and output."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from cato_web.management.store_command import StoreCommand, find_user
from cato_web.mcp.caller import Caller


class Command(StoreCommand):
    help = "Serve memory as MCP tools on standard input and output, until the input ends."
    shares_store = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True, metavar="NAME", help="account whose memory is used; name or email")
        parser.add_argument("--read-only", action="store_true", help="only tools that search and read")

    def handle(self, *args: Any, **options: Any) -> None:
        from cato_web.mcp import server

        person = find_user(options["user"])
        scopes = {"read"} if options["read_only"] else {"read", "write"}
        server.over_stdio(Caller(person.pk, person.is_administrator, frozenset(scopes)))
