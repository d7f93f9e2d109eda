"""What the benchmarks share: a folder of their own, and the processes of a running Cato."""

from __future__ import annotations

import atexit
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests import topology
from tests.server import Cato

# Each child of `serve` by a word that stands in its command line alone.
CHILDREN = {"valkey": "valkey", "chroma": "chromadb_rust_bindings", "worker": "celery", "web": "cato_web.server"}


@contextmanager
def workbench() -> Iterator[Path]:
    """A new folder that is gone afterwards, as is the one that tests.topology makes for pytest."""
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    atexit.register(shutil.rmtree, topology.HOME, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="cato-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def processes(cato: Cato) -> dict[str, psutil.Process]:
    """The processes that serve this Cato and live, by name."""
    if topology.TOPOLOGY == "services":
        living = [p for p in cato.processes if p.name != "prepare" and p.popen.poll() is None]
        return {p.name: psutil.Process(p.popen.pid) for p in living}
    found: dict[str, psutil.Process] = {}
    for child in psutil.Process(cato.processes[0].popen.pid).children():
        try:
            command = " ".join(child.cmdline())
        except psutil.Error:  # it ended just now
            continue
        found |= {name: child for name, word in CHILDREN.items() if word in command}
    return found
