"""Base of commands that need the vector store: the configured one, that of a running `serve`, or a temporary one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from cato_web.accounts.models import User
from cato_web.accounts.services import UserLookupError, get_user_by_name
from cato_web.config.schema import Config
from cato_web.supervisor.chroma_cleanup import ChromaCleanupError, run_if_requested
from cato_web.supervisor.data_dir_lock import data_dir_lock
from cato_web.supervisor.plan import SETTINGS, StartupError, python_path
from cato_web.supervisor.server_info import running_server_info
from cato_web.supervisor.shared_store import shared_store, temporary_chroma

# Set for commands that run with a temporary vector store.
_OWN_STORE_VARIABLE = "CATO_OWN_STORE"
_CLEANUP_TIMEOUT = 300.0  # seconds, for `serve`


class StoreCommand(BaseCommand):
    """A management command that uses the vector store."""

    requires_system_checks: list[str] = []
    # Whether it runs beside other commands; otherwise it has the data directory for itself while `serve` does not run.
    shares_store = False

    def run_from_argv(self, argv: list[str]) -> None:
        """Run here if a vector store is configured, otherwise in a process with the address of one."""
        self.parse(argv)
        config = settings.CATO
        if config.chroma_url is not None or not config.vector_store.enabled:
            super().run_from_argv(argv)
            return
        try:
            with self._server_addresses(config, argv[1]) as addresses:
                command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *argv[1:]]
                env = os.environ | {"PYTHONPATH": python_path(), "DJANGO_SETTINGS_MODULE": SETTINGS} | addresses
                code = subprocess.run(command, env=env, check=False).returncode  # noqa: S603
        except StartupError as error:
            sys.stderr.write(f"{error}\n")
            code = 1
        sys.exit(code)

    def parse(self, argv: list[str]) -> Namespace:
        """Return the options; end the process after help and usage errors, which need no vector store."""
        self._called_from_command_line = True
        return self.create_parser(argv[0], argv[1]).parse_args(argv[2:])

    @contextmanager
    def _server_addresses(self, config: Config, name: str) -> Iterator[dict[str, str]]:
        server_info = running_server_info(config.server.data_dir)
        if server_info and server_info["chroma_url"] is None:
            raise StartupError("Cato runs here without a vector store.")
        if server_info:
            yield {"REDIS_URL": server_info["redis_url"], "CHROMA_URL": server_info["chroma_url"]}
            return
        files = config.vector_store.path
        if self.shares_store:
            with shared_store(config.server.data_dir, files) as url:
                yield {"CHROMA_URL": url}
            return
        with data_dir_lock(config.server.data_dir, f"`manage.py {name}` works on"):
            with temporary_chroma(files) as url:
                yield {"CHROMA_URL": url, _OWN_STORE_VARIABLE: "yes"}
            try:
                run_if_requested(files)
            except ChromaCleanupError as error:
                raise StartupError(f"{error}\nRun the command again, or start Cato, which retries.") from error


class ProgressBars:
    """Progress bars on stderr if that is a terminal. An instance is a progress callback of memory."""

    def __init__(self) -> None:
        self._bars: dict[str, tqdm[Any]] = {}

    def expect(self, name: str, total: int) -> None:
        """Show the progress of `name` as a share of `total`, with the remaining time."""
        self._bars[name] = tqdm(desc=name, total=total, unit="", disable=None, file=sys.stderr)

    def __enter__(self) -> ProgressBars:
        return self

    def __exit__(self, *_: object) -> None:
        for bar in self._bars.values():
            bar.close()

    def __call__(self, name: str, count: int) -> None:
        if name not in self._bars:
            self._bars[name] = tqdm(desc=name, unit="", disable=None, file=sys.stderr)
        self._bars[name].update(count)


def find_user(name: str) -> User:
    """Return the active account with this email or name. Raises CommandError."""
    try:
        return get_user_by_name(name)
    except UserLookupError as error:
        raise CommandError(str(error)) from error


def manages_vector_store() -> bool:
    """Return whether `serve` or this command manages the vector store and cleans its files."""
    return _OWN_STORE_VARIABLE in os.environ or _is_served()


@contextmanager
def exclusive_data_dir() -> Iterator[None]:
    """Lock the data directory against `serve`. Raises StartupError if it is running."""
    if _OWN_STORE_VARIABLE in os.environ:  # locked by the process that runs the vector store
        yield
        return
    with data_dir_lock(settings.CATO.server.data_dir, "`manage.py restore` works on"):
        yield


def wait_for_cleanup(marker: Path) -> None:
    """Wait until a running `serve` has cleaned the files. Raises CommandError."""
    deadline = time.monotonic() + _CLEANUP_TIMEOUT
    while _is_served() and marker.exists():
        if time.monotonic() > deadline:
            raise CommandError("The vector store's files are not cleaned yet; see the output of `serve`.")
        time.sleep(0.1)


def _is_served() -> bool:
    files = str(settings.CATO.vector_store.path)
    server_info = running_server_info(settings.CATO.server.data_dir)
    return (
        bool(server_info)
        and server_info["chroma_path"] == files
        and server_info["chroma_url"] == settings.CATO.chroma_url
    )
