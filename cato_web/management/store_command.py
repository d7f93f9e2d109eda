"""Commands that need the vector store find it: the running `serve`'s, one of their own for as long as they run, or the
configured one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from cato_web.config.schema import Config
from cato_web.supervisor.chroma_cleanup import ChromaCleanupError, run_if_requested
from cato_web.supervisor.main import accepts_connections, data_dir_lock
from cato_web.supervisor.plan import StartupError, chroma_server, free_port

# Set for a command whose vector store is its own.
_OWN = "CATO_OWN_STORE"
_START = 20.0  # seconds that a vector store may take to start
_CLEANING = 300.0  # and `serve` to clean its files


class StoreCommand(BaseCommand):
    """A management command that speaks to the vector store."""

    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as usual where an address is configured, else again in a process that knows one."""
        config = settings.CATO
        if config.chroma_url is not None or not config.vector_store.enabled:
            super().run_from_argv(argv)
            return
        try:
            with _addresses(config) as found:
                command = [sys.executable, "-m", "django", *argv[1:]]
                code = subprocess.run(command, env=_environment(found), check=False).returncode  # noqa: S603
        except StartupError as error:
            sys.stderr.write(f"{error}\n")
            code = 1
        sys.exit(code)


class ProgressBars:
    """Progress as bars on stderr; nothing where that is no terminal. To be called as memory's verbs tell progress."""

    def __init__(self) -> None:
        self._bars: dict[str, tqdm[Any]] = {}

    def __enter__(self) -> ProgressBars:
        return self

    def __exit__(self, *_: object) -> None:
        for bar in self._bars.values():
            bar.close()

    def __call__(self, what: str, count: int) -> None:
        if what not in self._bars:
            self._bars[what] = tqdm(desc=what, unit="", disable=None, file=sys.stderr)
        self._bars[what].update(count)


def manages_vector_store() -> bool:
    """Whether the vector store is Cato's own, so that its files are cleaned: by `serve`, or after this command."""
    return _OWN in os.environ or _is_served()


@contextmanager
def exclusive_data_dir() -> Iterator[None]:
    """Keep `serve` away from the data directory while something goes on there. Raises StartupError where it runs."""
    if _OWN in os.environ:  # the process that runs the vector store for this one does
        yield
        return
    with data_dir_lock(settings.CATO.server.data_dir):
        yield


def wait_for_cleanup(note: Path) -> None:
    """Wait until `serve` has cleaned the files, where it runs. Raises CommandError."""
    end = time.monotonic() + _CLEANING
    while _is_served() and note.exists():
        if time.monotonic() > end:
            raise CommandError("The vector store's files are not cleaned yet; what `serve` says tells why.")
        time.sleep(0.1)


def running_server_info(config: Config) -> Mapping[str, Any]:
    """What a live `serve` on this data directory noted of itself; nothing where there is none."""
    try:
        left = json.loads((config.server.data_dir / "serve.json").read_text())
        os.kill(left["pid"], 0)
    except (OSError, ValueError, KeyError):
        return {}
    return dict(left)


def _is_served() -> bool:
    files = str(settings.CATO.vector_store.path)
    served = running_server_info(settings.CATO)
    return bool(served) and served["chroma_path"] == files and served["chroma_url"] == settings.CATO.chroma_url


@contextmanager
def _addresses(config: Config) -> Iterator[dict[str, str]]:
    served = running_server_info(config)
    if served and served["chroma_url"] is None:
        raise StartupError("Cato runs here without a vector store.")
    if served:
        yield {"REDIS_URL": served["redis_url"], "CHROMA_URL": served["chroma_url"]}
        return
    files = config.vector_store.path
    with data_dir_lock(config.server.data_dir):
        with temporary_chroma(files) as url:
            yield {"CHROMA_URL": url, _OWN: "yes"}
        try:
            run_if_requested(files)
        except ChromaCleanupError as error:
            raise StartupError(f"{error}\nRun the command again, or start Cato, which tries until they are.") from error


@contextmanager
def temporary_chroma(path: Path) -> Iterator[str]:
    """A Chroma server over these files for as long as the command runs. Raises StartupError."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    env = dict(os.environ) | {"ANONYMIZED_TELEMETRY": "False"}
    server = chroma_server(path, port, env)
    server.start()
    try:
        end = time.monotonic() + _START
        while not accepts_connections(url):
            if server.ended or time.monotonic() > end:
                raise StartupError(f"The vector store over {path} did not start.{server.complaint}")
            time.sleep(0.05)
        yield url
    finally:
        server.ask_to_end()
        if server.process is not None:
            with suppress(subprocess.TimeoutExpired):  # killed next
                server.process.wait(server.grace)
        server.kill()


def _environment(found: Mapping[str, str]) -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": "cato_web.settings", **found}
