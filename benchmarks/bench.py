"""Shared by the benchmarks: a temporary folder, and the processes of a running Cato."""

from __future__ import annotations

import atexit
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from cato_web.config import loader
from cato_web.supervisor.plan import build_plan
from tests import topology
from tests.server import Cato, Process, start

# Each child of `serve` by a word that only its command line contains.
CHILDREN = {"valkey": "valkey", "chroma": "chromadb_rust_bindings", "worker": "celery", "web": "cato_web.server"}


@contextmanager
def workbench() -> Iterator[Path]:
    """Yield a new folder; afterwards delete it and the one that tests.topology creates for pytest."""
    # SIGTERM also stops the started processes.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    atexit.register(shutil.rmtree, topology.HOME, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="cato-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def start_valkey(home: Path) -> Iterator[Process]:
    """Start the Valkey that `serve` would start; its address is REDIS_URL in its environment."""
    home.mkdir(parents=True, exist_ok=True)
    plan = build_plan(loader.load(environ={"CATO_DATA_DIR": str(home), "CHROMA_URL": "http://127.0.0.1:1"}), home)
    assert plan.valkey is not None
    environment = topology.clean_environment() | {"REDIS_URL": plan.redis_url}
    valkey = start(home, "valkey", list(plan.valkey.command), environment)
    try:
        yield valkey
    finally:
        valkey.end()


def processes(cato: Cato) -> dict[str, psutil.Process]:
    """Return the running processes of this Cato by name; further web processes are called web 2 and so on."""
    if topology.TOPOLOGY == "services":
        living = [p for p in cato.processes if p.name != "prepare" and p.popen.poll() is None]
        return {p.name: psutil.Process(p.popen.pid) for p in living}
    found: dict[str, psutil.Process] = {}
    counts: Counter[str] = Counter()
    for child in psutil.Process(cato.processes[0].popen.pid).children():
        try:
            command = " ".join(child.cmdline())
        except psutil.Error:  # it has just ended
            continue
        for name, word in CHILDREN.items():
            if word in command:
                counts[name] += 1
                found[name if counts[name] == 1 else f"{name} {counts[name]}"] = child
    return found
