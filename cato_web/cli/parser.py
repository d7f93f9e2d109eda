"""The arguments of the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from cato_web.cli.messages import UsageError

_DESCRIPTION = (
    "A team chat that remembers. `cato serve` runs it, see `cato serve --help`; `cato config show` prints the settings; "
    "`cato hook` is for coding agents. "
    "A text or PATH of - is read from standard input."
)
# Which actions an option is for.
_OPTIONS = {
    "stdin": ("ask",),
    "thread": ("ask",),
    "model": ("ask",),
    "space": ("add", "query", "ask"),
    "k": ("query",),
    "name": ("add",),
}
_FLAGS = {
    "add": "--add-to-vector-store",
    "query": "--query-vector-store",
    "ask": "--ask",
    "stats": "--vector-store-stats",
}


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of exiting, so that it can be printed as JSON, too."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{self.format_usage()}{self.prog}: {message}")


def parser() -> Parser:
    """Return the parser of the command line."""
    built = Parser(prog="cato", description=_DESCRIPTION)
    action = built.add_mutually_exclusive_group(required=True)
    action.add_argument(
        "--add-to-vector-store", metavar="PATH", type=Path, help="add a file, or the files of a folder, to memory"
    )
    action.add_argument("--query-vector-store", metavar="QUERY", help="search memory")
    action.add_argument("--vector-store-stats", action="store_true", help="show the size of memory")
    action.add_argument("--ask", metavar="TEXT", help="ask the model, with what memory recalls")
    built.add_argument("--stdin", action="store_true", help="append standard input to the text of --ask")
    built.add_argument("--thread", metavar="ID", help="ask in this thread instead of a new one")
    built.add_argument("--model", metavar="NAME", help="ask this model instead of that of the thread")
    built.add_argument("--space", metavar="NAME", help="space to add to, to search, or of the new thread")
    built.add_argument("--k", metavar="COUNT", type=int, help="number of search results, 5 by default, at most 100")
    built.add_argument("--name", metavar="NAME", help="name of the document that is added from standard input")
    built.add_argument("--user", metavar="NAME", help="account, by name or email; required if there are several")
    built.add_argument("--no-vector-store", action="store_true", help="without memory")
    built.add_argument("--dummy-mode", action="store_true", help="answer with a placeholder, without a model")
    built.add_argument("--config", metavar="PATH", type=Path, help="configuration file")
    built.add_argument("--output", choices=("text", "json"), default="text")
    built.add_argument("--quiet", action="store_true", help="only errors on stderr")
    return built


def action_of(options: argparse.Namespace) -> str:
    """Return the selected action."""
    if options.add_to_vector_store is not None:
        return "add"
    if options.query_vector_store is not None:
        return "query"
    return "stats" if options.vector_store_stats else "ask"


def check(options: argparse.Namespace) -> None:
    """Raise UsageError for options that the action does not have, or that exclude each other."""
    action = action_of(options)
    for name, actions in _OPTIONS.items():
        if getattr(options, name) not in (None, False) and action not in actions:
            raise UsageError(f"--{name} is for {' and '.join(_FLAGS[other] for other in actions)} only.")
    if options.thread is not None and options.space is not None:
        raise UsageError("--space is for a new thread. Leave it out: the thread of --thread has a space already.")
    if options.k is not None and not 1 <= options.k <= 100:
        raise UsageError(f"--k {options.k}: give a number from 1 to 100.")
    if options.name is not None and options.add_to_vector_store != Path("-"):
        raise UsageError("--name is for a document from standard input: --add-to-vector-store - --name NAME.")
    if options.stdin and options.ask == "-":
        raise UsageError("--ask - reads standard input already. Leave --stdin out.")
