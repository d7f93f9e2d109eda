"""What the command line prints: results on stdout, everything else on stderr."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cato_web.cli.messages import FAILURE, SUCCESS, CommandResult

if TYPE_CHECKING:  # the configuration takes longer to load than to print a usage error
    from cato_web.config.schema import Config


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether arguments that may be invalid ask for JSON."""
    return "--output=json" in arguments or any(pair == ("--output", "json") for pair in pairwise(arguments))


@dataclass
class Report:
    """The output of one command; `action` and `options` are None until the arguments are known to be valid."""

    is_json: bool
    started_at: float
    action: str | None = None
    options: argparse.Namespace | None = None
    config: Config | None = None
    _has_streamed: bool = False
    _ends_line: bool = True
    _is_cut: bool = False

    def stream(self, text: str) -> None:
        """Print a part of an answer while it is written, unless the output is JSON."""
        if not self.is_json:
            self._has_streamed, self._ends_line = True, text.endswith("\n")
            self._print(text)

    def warn(self, sentence: str) -> None:
        """Print a sentence on stderr, unless it is empty or --quiet was given."""
        if sentence and not (self.options is not None and self.options.quiet):
            sys.stderr.write(sentence + "\n")

    def finish(self, code: int, result: CommandResult | None = None, error: str | None = None) -> int:
        """Print result or error and the warnings of the configuration; return the exit code."""
        if self.is_json:
            self._print(json.dumps(self._document(code, result, error), ensure_ascii=False, default=str) + "\n")
        elif self._has_streamed:
            self._print("" if self._ends_line else "\n")
        elif result is not None and result.text:
            self._print(result.text + "\n")
        if error is not None:
            sys.stderr.write(error + "\n")
        if result is not None and self._has_streamed and result.result["state"] == "stopped":
            self.warn("The answer was stopped.")
        for warning in self.config.warnings if self.config is not None else ():
            self.warn(warning)
        return FAILURE if self._is_cut else code

    def _print(self, text: str) -> None:
        """Print on stdout; what is printed after a failure is lost, and the command goes on, so that an answer is kept."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            self._is_cut = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):  # `head` has what it wanted
                sys.stderr.write(f"The output cannot be written: {error.strerror}.\n")

    def _document(self, code: int, result: CommandResult | None, error: str | None) -> dict[str, Any]:
        meta: dict[str, Any] = {
            "provider": None,
            "model": None,
            "duration_ms": round((time.monotonic() - self.started_at) * 1000),
            "config_path": str(self.config.file) if self.config is not None and self.config.file else None,
        }
        return {
            "ok": code == SUCCESS,
            "mode": "dummy" if self.options is not None and self.options.dummy_mode else "cli",
            "action": self.action,
            "result": result.result if result else None,
            "error": error,
            "meta": meta | dict(result.meta if result else {}),
        }
