"""Run the child process that extracts a file, enforce its time limit, and explain how it ended."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO, NoReturn

from memory.documents.extraction.formats import FORMATS
from memory.documents.extraction.protocol import OUT_OF_MEMORY, ResultParser
from memory.documents.extraction.result import ExtractedText, ExtractionCancelledError, ExtractionLimits
from memory.errors import ExtractionError, gettext_noop

_ROOT = Path(__file__).resolve().parents[3]
# Seconds between calls of `stop`.
_TIMEOUT = 0.2
_PIECE_BYTES = 65_536


def extract_in_subprocess(
    file: BinaryIO, name: str, limits: ExtractionLimits, stop: Callable[[], bool] | None
) -> ExtractedText:
    """Extract an open file like `memory.documents.extraction.read`."""
    # The environment contains no secrets, and the process only gets the file.
    with subprocess.Popen(  # noqa: S603  (a constant command)
        [
            sys.executable,
            "-s",
            "-P",
            "-m",
            "memory.documents.extraction.worker",
            json.dumps({"name": name, "limits": asdict(limits)}),
        ],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PYTHONPATH": str(_ROOT), "PYTHONUTF8": "1"},
        start_new_session=True,
    ) as process:
        try:
            parser = _read_output(process, limits, stop)
            status = process.wait()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    reading = parser.reading()
    if status != 0 or reading is None:
        _explain(status, parser.kind, limits)
    return reading


def _read_output(
    process: subprocess.Popen[bytes], limits: ExtractionLimits, stop: Callable[[], bool] | None
) -> ResultParser:
    """Return the parser with everything the process wrote until it ended."""
    assert process.stdout is not None  # noqa: S101  (requested above)
    parser, deadline, next_check = ResultParser(limits), time.monotonic() + limits.wall_seconds, 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if stop is not None and now >= next_check:
                next_check = now + _TIMEOUT
                if stop():
                    raise ExtractionCancelledError("Reading this file was stopped.")
            if now > deadline:
                raise _too_slow(limits)
            if selector.select(_TIMEOUT):
                data = os.read(process.stdout.fileno(), _PIECE_BYTES)
                if not data:
                    return parser
                parser.take(data)


def _too_slow(limits: ExtractionLimits) -> ExtractionError:
    sentence = gettext_noop("This file took longer than %(seconds)s seconds to read.")
    return ExtractionError(sentence, seconds=f"{limits.wall_seconds:g}")


def _explain(status: int, kind: str, limits: ExtractionLimits) -> NoReturn:
    """Raise the error for a process that ended with `status` (minus a signal) without a result."""
    # Out of memory: Python raises MemoryError, other code aborts, and the kernel kills if the system has none left.
    if status in (OUT_OF_MEMORY, -signal.SIGABRT, -signal.SIGKILL):
        sentence = gettext_noop("This file needs more than %(most)s MB of memory to be read.")
        raise ExtractionError(sentence, most=str(limits.memory_mb))
    if status == -signal.SIGXCPU:
        sentence = gettext_noop("Reading this file exceeded the CPU limit (%(seconds)s s).")
        raise ExtractionError(sentence, seconds=str(limits.processor_seconds))
    if status == -signal.SIGALRM:
        raise _too_slow(limits)
    label = next((f.label for f in FORMATS if f.kind == kind), "")
    if not label:
        raise ExtractionError(gettext_noop("This file is damaged: it could not be read."))
    sentence = gettext_noop("This file is damaged: it begins as %(format)s but could not be read to its end.")
    raise ExtractionError(sentence, format=label)
