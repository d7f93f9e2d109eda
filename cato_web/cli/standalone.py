"""Run an action of the command line in this process: without a running Cato, or with settings of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from cato_web.cli.messages import CommandRequest, CommandResult
from cato_web.config.schema import Config
from cato_web.supervisor.server_info import running_server_info


def run_standalone(
    config: Config,
    request: CommandRequest,
    *,
    file: Path | None,
    content: bytes | None,
    name: str | None,
    is_quiet: bool,
    on_text: Callable[[str], None],
) -> CommandResult:
    """Set up Django with this configuration and run the action.

    `file` is what is added, or `content` from standard input under `name`. `on_text` is called for each part of an answer.
    Raises UsageError, CommandFailedError and StartupError.
    """
    _set_environment(config)
    with _store(config, is_needed=config.vector_store.enabled and request.action != "stats"):
        import django

        django.setup()
        from cato_web.cli import actions

        with actions.expected_errors():
            person = actions.resolve_user(request.user)
            if request.action == "add":
                space = actions.resolve_space(person.pk, request.space)
                return _add(file, content, name, person=person, space=space, is_quiet=is_quiet)
            if request.action == "ask":
                return _ask(request, person, on_text)
            return {"query": actions.query, "stats": actions.stats}[request.action](request, person)


def _add(
    file: Path | None, content: bytes | None, name: str | None, *, person: Any, space: Any, is_quiet: bool
) -> CommandResult:
    """Add a file, the files of a folder or a text, and return when they can be found."""
    from cato_web.cli import add
    from cato_web.cli.actions import embedding_meta

    if content is not None:
        rows = [add.add_content(content, name=name, space=space, person_id=person.pk)]
    else:
        rows = add.add_files(file or Path(), space=space, person_id=person.pk, is_quiet=is_quiet)
    added = [f"{row['name']}: {row['outcome']}, passages: {row['passages']}" for row in rows if "error" not in row]
    errors = [str(row["error"]) for row in rows if "error" in row]
    return CommandResult(rows, "\n".join(added), embedding_meta(), "\n".join(errors) or None)


def _ask(request: CommandRequest, person: Any, on_text: Callable[[str], None]) -> CommandResult:
    """Ask as in the chat, and pass the answer on while it is written."""
    from cato_web.cli.questions import answer_result, post_question
    from chat import access
    from chat.answers import runner
    from chat.answers.tail import tail_answer

    posted = post_question(request, person)

    async def answer() -> None:
        running = asyncio.create_task(runner.run_answer(posted.turn.id))
        # A queued turn is answered by a web process.
        can_receive = partial(access.can_receive, person.pk, posted.turn.thread_id)
        async for text in tail_answer(posted.turn.id, can_receive):
            on_text(text)
        await running

    asyncio.run(answer())
    return answer_result(person.pk, posted)


def _set_environment(config: Config) -> None:
    """Set the environment that Django's settings read: this configuration, and the servers of a running `serve`."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "cato_web.settings"
    if config.file is not None:
        os.environ["CATO_CONFIG_FILE"] = str(config.file)
    if config.dummy_mode:
        os.environ["CATO_DUMMY_MODE"] = "true"
    if not config.vector_store.enabled:
        os.environ["CATO_VECTOR_STORE_ENABLED"] = "false"
    server_info = running_server_info(config.server.data_dir)
    for name, key in (("REDIS_URL", "redis_url"), ("CHROMA_URL", "chroma_url")):
        if server_info.get(key):
            os.environ.setdefault(name, server_info[key])


@contextmanager
def _store(config: Config, *, is_needed: bool) -> Iterator[None]:
    """Provide a vector store for the duration of the command, if none is configured or run by `serve`."""
    if not is_needed or "CHROMA_URL" in os.environ or config.chroma_url is not None:
        yield
        return
    from cato_web.supervisor.shared_store import shared_store

    with shared_store(config.server.data_dir, config.vector_store.path) as url:
        os.environ["CHROMA_URL"] = url
        try:
            yield
        finally:
            del os.environ["CHROMA_URL"]
