"""`cato config show`: each setting in force, and where its value comes from."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cato_web.cli import output
from cato_web.cli.messages import CONFIGURATION, SUCCESS, USAGE, CommandFailedError, CommandResult, UsageError
from cato_web.cli.parser import Parser

if TYPE_CHECKING:  # loads Django
    from chat.settings_in_force import Setting


def main(arguments: Sequence[str]) -> int:
    """Print the settings whose keys contain a text; return the exit code."""
    report = output.Report(output.wants_json(arguments), time.monotonic(), "config")
    try:
        options = _parser().parse_args(arguments)
    except UsageError as error:
        return report.finish(USAGE, error=str(error))
    report.options = options
    from cato_web.config import loader

    try:
        report.config = loader.load(path=options.config)
        loader.ensure_data_dir(report.config)
    except loader.ConfigError as error:
        return report.finish(CONFIGURATION, error=str(error))
    if report.config.file is not None:
        os.environ["CATO_CONFIG_FILE"] = str(report.config.file)
    found = [setting for setting in _settings(report) if options.key in setting.key]
    if not found:
        return report.finish(USAGE, error=f"No setting is called {options.key}. `cato config show` lists all.")
    file = str(report.config.file)
    rows = {setting.key: {"value": setting.value, "origin": setting.origin} for setting in found}
    return report.finish(SUCCESS, CommandResult(rows, "\n".join(_line(setting, file) for setting in found)))


def _parser() -> Parser:
    parser = Parser(prog="cato config", description="Print the settings in force, with masked secrets.")
    parser.add_argument("verb", choices=["show"], metavar="show", help="print the settings")
    parser.add_argument("key", nargs="?", default="", metavar="KEY", help="only settings whose key contains this")
    parser.add_argument("--config", metavar="PATH", type=Path, help="configuration file")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--quiet", action="store_true", help="only errors on stderr")
    parser.set_defaults(dummy_mode=False)
    return parser


def _settings(report: output.Report) -> list[Setting]:
    """Return the settings, with those of the page of the model endpoint if there is a database."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "cato_web.settings"
    import django

    django.setup()
    from cato_web.cli.actions import expected_errors
    from chat.settings_in_force import configured_settings, settings_in_force

    try:
        with expected_errors():
            return settings_in_force()
    except CommandFailedError as error:
        report.warn(f"Without the settings of the page Model settings. {error}")
        return configured_settings()


def _line(setting: Setting, file: str) -> str:
    value = "not set" if setting.value is None else json.dumps(setting.value, default=str, ensure_ascii=False)
    origin = {"file": f"file {file}", "page": "page Model settings"}.get(setting.origin, setting.origin)
    return f"{setting.key}: {value}  ({origin})"
