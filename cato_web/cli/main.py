"""Cato's command line: add, query, ask and count, with or without a running `serve`.

Results go to stdout, everything else to stderr. Exit codes: 0 success, 1 failure (also of one file among several), 2
usage, 3 configuration.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from cato_web.config import loader as configuration
from cato_web.config.schema import Config
from cato_web.supervisor.plan import StartupError

SUCCESS, FAILURE, USAGE, CONFIGURATION = 0, 1, 2, 3


@dataclass(frozen=True)
class CommandResult:
    """The result of an action: plain values for JSON, text for people, metadata, and partial errors."""

    result: Any
    text: str
    meta: Mapping[str, str | None]
    error: str | None = None


class CommandFailedError(Exception):
    """An action failed."""


class UsageError(Exception):
    """The arguments are invalid."""


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of exiting, so that it can be printed as JSON, too."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{self.format_usage()}{self.prog}: {message}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        from cato_web.supervisor.main import main as serve

        return serve(arguments[1:])
    started_at = time.monotonic()
    try:
        options = _parser().parse_args(arguments)
    except UsageError as error:
        is_json = "json" in arguments or "--output=json" in arguments
        unparsed = argparse.Namespace(output="json" if is_json else "text", quiet=False, dummy_mode=False)
        return _print_result(unparsed, None, None, str(error), started_at, USAGE)
    overrides = {
        "dummy_mode": options.dummy_mode or None,
        "vector_store.enabled": False if options.no_vector_store else None,
    }
    try:
        config = configuration.load(path=options.config, overrides=overrides)
        configuration.ensure_data_dir(config)
    except configuration.ConfigError as error:
        return _print_result(options, None, None, str(error), started_at, CONFIGURATION)
    try:
        with _environment(config, overrides), _store(config, options):
            result = _run_action(options)
    except UsageError as error:
        return _print_result(options, config, None, str(error), started_at, USAGE)
    except (CommandFailedError, StartupError) as error:
        return _print_result(options, config, None, str(error), started_at, FAILURE)
    return _print_result(options, config, result, result.error, started_at, FAILURE if result.error else SUCCESS)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="cato", description="A team chat that remembers. `cato serve` runs it; see `cato serve --help`."
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument(
        "--add-to-vector-store", metavar="PATH", type=Path, help="add a file, or the files of a folder, to memory"
    )
    action.add_argument("--query-vector-store", metavar="QUERY", help="search memory")
    action.add_argument("--vector-store-stats", action="store_true", help="show the size of memory")
    action.add_argument("--ask", metavar="TEXT", help="ask the model, with what memory recalls")
    parser.add_argument("--stdin", action="store_true", help="append standard input to the text of --ask")
    parser.add_argument("--user", metavar="NAME", help="account, by name or e-mail; required if there are several")
    parser.add_argument("--no-vector-store", action="store_true", help="without memory")
    parser.add_argument("--dummy-mode", action="store_true", help="answer with a placeholder, without a model")
    parser.add_argument("--config", metavar="PATH", type=Path, help="configuration file")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--quiet", action="store_true", help="only errors on stderr")
    return parser


def _run_action(options: argparse.Namespace) -> CommandResult:
    """Set up Django and run the selected action. Raises CommandFailedError."""
    import django

    django.setup()
    from django.db import DatabaseError
    from django.db.migrations.exceptions import MigrationSchemaMissing

    from memory.api import CatoError

    actions: dict[str, Callable[[argparse.Namespace, Any], CommandResult]] = {
        "add": _add,
        "query": _query,
        "stats": _stats,
        "ask": _ask,
    }
    try:
        return actions[_action(options)](options, _resolve_user(options.user))
    except CatoError as error:
        raise CommandFailedError(str(error)) from error
    except (DatabaseError, MigrationSchemaMissing) as error:
        raise CommandFailedError("The database is not ready: start Cato once with `make run` first.") from error


def _action(options: argparse.Namespace) -> str:
    is_action = {
        "add": options.add_to_vector_store,
        "query": options.query_vector_store is not None,
        "stats": options.vector_store_stats,
    }
    return next((name for name, is_selected in is_action.items() if is_selected), "ask")


def _resolve_user(name: str | None) -> Any:
    from cato_web.accounts.models import User
    from cato_web.accounts.services import UserLookupError, get_user_by_name

    if name:
        try:
            return get_user_by_name(name)
        except UserLookupError as error:
            raise UsageError(str(error)) from error
    users = list(User.objects.filter(is_active=True)[:2])
    if len(users) == 1:
        return users[0]
    if users:
        raise UsageError("There are several accounts. Name one with --user NAME.")
    raise CommandFailedError("There is no account yet. Start Cato and create one.")


def _add(options: argparse.Namespace, person: Any) -> CommandResult:
    """Add a file, or the files of a folder, and return when they can be found."""
    from cato_web.cli.add import add

    is_quiet = options.quiet or options.output == "json"
    rows = add(options.add_to_vector_store, person_id=person.pk, is_quiet=is_quiet)
    added = [f"{row['name']}: {row['outcome']}, passages: {row['passages']}" for row in rows if "error" not in row]
    errors = [str(row["error"]) for row in rows if "error" in row]
    return CommandResult(rows, "\n".join(added), _embedding_meta(), "\n".join(errors) or None)


def _query(options: argparse.Namespace, person: Any) -> CommandResult:
    """Search without the relevance gate."""
    from memory import api as memory
    from memory.api import excerpt

    if not options.query_vector_store.strip():
        raise UsageError("Write what to look for after --query-vector-store.")
    results = memory.search(options.query_vector_store, spaces=memory.readable_space_ids(person.pk), count=5)
    rows = [
        {
            "id": str(hit.exchange.id),
            "similarity": round(hit.similarity, 4) if hit.similarity is not None else None,
            "below_gate": hit.is_below_gate,
            "said_at": hit.exchange.timestamp.isoformat(),
            "who": hit.exchange.owner_name,
            "source": hit.exchange.source,
            "user_message": hit.exchange.user_message,
            "assistant_message": hit.exchange.assistant_message,
            "reason": hit.explanation,
        }
        for hit in results.results
    ]
    lines = [
        f"{row['similarity']}  {str(row['said_at'])[:10]}  {row['who']}: {excerpt(str(row['user_message']), 90)}"
        for row in rows
    ]
    if results.is_lexical_only:
        lines.insert(0, "The search index cannot be used at the moment: found by keywords only.")
    return CommandResult(rows, "\n".join(lines) or "Nothing was found.", {**_embedding_meta(), "note": results.note})


def _stats(options: argparse.Namespace, person: Any) -> CommandResult:
    """Count what the user can read, and locate the vector store."""
    from dataclasses import asdict

    from memory import api as memory
    from memory.api import disk_use, index_location

    figures = asdict(memory.memory_counts(memory.readable_space_ids(person.pk)))
    figures |= {"store": index_location(), "store_bytes": disk_use().index}
    lines = [f"{name.replace('_', ' ')}: {_format_value(value)}" for name, value in figures.items()]
    return CommandResult(figures, "\n".join(lines), _embedding_meta())


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count:,}" for name, count in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _embedding_meta() -> dict[str, str | None]:
    """Return the configured embedding model."""
    from django.conf import settings

    from memory import api as memory

    provider, model = memory.configured_model(settings.CATO.vector_store)
    return {"provider": provider, "model": model}


def _ask(options: argparse.Namespace, person: Any) -> CommandResult:
    """Ask in a new thread, as in the chat, and wait for the answer."""
    import asyncio
    import uuid

    from chat import services
    from chat.answers import runner
    from chat.llm import endpoint
    from chat.models import Turn

    text = options.ask
    if options.stdin:
        text = f"{text}\n\n{sys.stdin.read()}"
    posted = services.create_thread_with_message(person.pk, message=text, client_key=uuid.uuid4())
    asyncio.run(runner.run_answer(posted.turn.id))
    turn = Turn.objects.get(id=posted.turn.id)
    # A queued turn is answered by a web process.
    while turn.state in (*Turn.RUNNING_STATES, Turn.State.QUEUED):
        time.sleep(0.3)
        turn.refresh_from_db()
    is_stopped = turn.state == Turn.State.STOPPED
    if turn.state != Turn.State.COMPLETE and not is_stopped:
        raise CommandFailedError(turn.error or "The answer was interrupted.")
    result = {
        "answer": turn.answer,
        "state": turn.state,
        "finish_reason": turn.finish_reason,
        "thread_id": str(turn.thread_id),
        "turn_id": str(turn.id),
    }
    text = f"{turn.answer}\n\nThe answer was stopped.".strip() if is_stopped else turn.answer
    model_endpoint = endpoint.current()
    return CommandResult(
        result, text, {"provider": model_endpoint.host if model_endpoint else None, "model": turn.model}
    )


@contextmanager
def _environment(config: Config, overrides: Mapping[str, object]) -> Iterator[None]:
    """Set the environment that Django's settings read: this configuration, and the servers of a running `serve`."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "cato_web.settings"
    if config.file is not None:
        os.environ["CATO_CONFIG_FILE"] = str(config.file)
    if overrides["dummy_mode"]:
        os.environ["CATO_DUMMY_MODE"] = "true"
    if overrides["vector_store.enabled"] is False:
        os.environ["CATO_VECTOR_STORE_ENABLED"] = "false"
    from cato_web.management.store_command import running_server_info

    server_info = running_server_info(config)
    for name, key in (("REDIS_URL", "redis_url"), ("CHROMA_URL", "chroma_url")):
        if server_info.get(key):
            os.environ.setdefault(name, server_info[key])
    yield


@contextmanager
def _store(config: Config, options: argparse.Namespace) -> Iterator[None]:
    """Run a vector store for the duration of the command if none is configured or running."""
    needs_store = config.vector_store.enabled and not options.vector_store_stats
    if not needs_store or "CHROMA_URL" in os.environ or config.chroma_url is not None:
        yield
        return
    from cato_web.management.store_command import temporary_chroma

    with temporary_chroma(config.vector_store.path) as url:
        os.environ["CHROMA_URL"] = url
        try:
            yield
        finally:
            del os.environ["CHROMA_URL"]


def _print_result(
    options: argparse.Namespace,
    config: Config | None,
    result: CommandResult | None,
    error: str | None,
    started_at: float,
    code: int,
) -> int:
    if options.output == "json":
        meta: dict[str, Any] = {
            "provider": None,
            "model": None,
            "duration_ms": round((time.monotonic() - started_at) * 1000),
            "config_path": str(config.file) if config and config.file else None,
        }
        document = {
            "ok": code == SUCCESS,
            "mode": "dummy" if options.dummy_mode else "cli",
            "action": _action(options) if code != USAGE or config else None,
            "result": result.result if result else None,
            "error": error,
            "meta": meta | dict(result.meta if result else {}),
        }
        sys.stdout.write(json.dumps(document, ensure_ascii=False, default=str) + "\n")
    elif result is not None and result.text:
        sys.stdout.write(result.text + "\n")
    if error is not None:
        sys.stderr.write(error + "\n")
    if config is not None and not options.quiet:
        for warning in config.warnings:
            sys.stderr.write(warning + "\n")
    return code
