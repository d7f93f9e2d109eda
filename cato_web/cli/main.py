"""Cato's command line: add, query, ask and count, with or without a running `serve`.

Results go to stdout, everything else to stderr. Exit codes: 0 success, 1 failure (also of one file among several), 2
usage, 3 configuration. Help and usage errors import nothing that is slow, such as Django or the configuration.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from cato_web.cli import output, standard_input
from cato_web.cli.messages import (
    CONFIGURATION,
    FAILURE,
    SUCCESS,
    USAGE,
    CommandFailedError,
    CommandRequest,
    CommandResult,
    UsageError,
)
from cato_web.cli.parser import action_of, check, parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        from cato_web.supervisor.main import main as serve

        return serve(arguments[1:])
    if arguments[:1] == ["config"]:
        from cato_web.cli.config import main as show_config

        return show_config(arguments[1:])
    if arguments[:1] == ["hook"]:
        from cato_web.cli.hook import main as run_hook

        return run_hook(arguments[1:])
    report = output.Report(is_json=output.wants_json(arguments), started_at=time.monotonic())
    try:
        options = parser().parse_args(arguments)
        report = output.Report(options.output == "json", report.started_at, action_of(options), options)
        check(options)
        request = _request(options)
    except UsageError as error:
        return report.finish(USAGE, error=str(error))
    return _run_configured(options, request, report)


def _request(options: argparse.Namespace) -> CommandRequest:
    """Return the request with the text from standard input, if that is read. Raises UsageError."""
    action = action_of(options)
    text = {"query": options.query_vector_store, "ask": options.ask}.get(action, "")
    if text == "-":
        text = standard_input.read_text()
    if options.stdin:
        text = f"{text}\n\n{standard_input.read_text()}"
    if action in ("query", "ask") and not text.strip():
        verb = {"query": "look for after --query-vector-store", "ask": "ask after --ask"}[action]
        raise UsageError(f"Write what to {verb}.")
    request = CommandRequest(
        action, options.user, text, options.space, options.thread, options.model, 5 if options.k is None else options.k
    )
    try:
        json.dumps(asdict(request), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise UsageError("The arguments are not UTF-8 text.") from error
    return request


def _run_configured(options: argparse.Namespace, request: CommandRequest, report: output.Report) -> int:
    from cato_web.config import loader
    from cato_web.supervisor.plan import StartupError

    overrides: Mapping[str, object] = {
        "dummy_mode": options.dummy_mode or None,
        "vector_store.enabled": False if options.no_vector_store else None,
    }
    try:
        report.config = loader.load(path=options.config, overrides=overrides)
        loader.ensure_data_dir(report.config)
    except loader.ConfigError as error:
        return report.finish(CONFIGURATION, error=str(error))
    try:
        result = _run(options, request, report)
    except UsageError as error:
        return report.finish(USAGE, error=str(error))
    except (CommandFailedError, StartupError) as error:
        return report.finish(FAILURE, error=str(error))
    except KeyboardInterrupt:
        return report.finish(FAILURE, error="Interrupted.")
    if not (options.stdin or "-" in (options.ask, options.query_vector_store, str(options.add_to_vector_store))):
        report.warn(standard_input.unread_note())
    return report.finish(FAILURE if result.error else SUCCESS, result, result.error)


def _run(options: argparse.Namespace, request: CommandRequest, report: output.Report) -> CommandResult:
    """Run the action in a running Cato if it can, otherwise here. Raises UsageError, CommandFailedError, StartupError."""
    config = report.config
    if config is None:
        raise TypeError("The configuration is loaded before an action runs.")
    on_text: Callable[[str], None] = report.stream
    if request.action != "add" and not options.dummy_mode and not options.no_vector_store:
        from cato_web.cli.server import run_on_server

        result = run_on_server(config, request, on_text, warn=report.warn)
        if result is not None:
            return result
    from cato_web.cli.standalone import run_standalone

    is_quiet = options.quiet or report.is_json
    file = options.add_to_vector_store
    content = standard_input.read_bytes() if file == Path("-") else None
    return run_standalone(
        config, request, file=file, content=content, name=options.name, is_quiet=is_quiet, on_text=on_text
    )
