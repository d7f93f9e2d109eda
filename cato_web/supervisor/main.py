"""Supervisor: runs Valkey, Chroma, a worker and the web processes on one machine.

    python -m cato_web.supervisor [--config PATH] [--host HOST] [--port PORT] [--dummy-mode] [--no-vector-store]

Imports neither Django nor chromadb. Exit codes: 0 stopped on request, 1 failure, 2 usage, 3 configuration.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import http.client
import math
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cato_web.config import loader as configuration
from cato_web.config.schema import Config
from cato_web.supervisor.chroma_cleanup import cleanup_marker
from cato_web.supervisor.data_dir_lock import data_dir_lock
from cato_web.supervisor.lock_watch import LockWatch
from cato_web.supervisor.plan import ServerPlan, StartupError, build_plan, start_child
from cato_web.supervisor.process import ChildProcess, accepts_connections, log_line
from cato_web.supervisor.server_info import FILE_NAME, local_address, write_server_info

POLL_INTERVAL = 0.02  # seconds, while starting
VALKEY_START_TIMEOUT = 10.0  # seconds
CHECK_INTERVAL = 3.0  # seconds between checks for a cleanup marker and for a locked vector store
CLEANUP_RETRY_DELAY = 300.0  # seconds
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Seconds in which a stop signal is the same request as the one before: make passes on what systemd sends to both.
SAME_STOP_REQUEST = 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run until stopped; return the exit code."""
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
        log_line(str(error))
        return 3
    for warning in config.warnings:
        log_line(warning)
    try:
        with data_dir_lock(config.server.data_dir), _runtime_dir(config.server.data_dir) as runtime:
            _check_port(config.server.host, config.server.port)
            return Supervisor(config, build_plan(config, runtime)).run()
    except StartupError as error:
        log_line(str(error))
        return 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cato serve", description="Run all of Cato on this machine.")
    parser.add_argument("--config", type=Path, metavar="PATH", help="configuration file")
    parser.add_argument("--host", help="address to listen on")
    parser.add_argument("--port", type=int, help="port to listen on")
    parser.add_argument("--dummy-mode", action="store_true", help="use placeholder answers, without a model")
    parser.add_argument("--no-vector-store", action="store_true", help="without memory")
    return parser.parse_args(argv)


class _ShutdownError(Exception):
    """A signal asked the supervisor to stop."""


class Supervisor:
    """Starts the child processes, restarts them, and stops them in order."""

    def __init__(self, config: Config, plan: ServerPlan) -> None:
        self._config, self._plan = config, plan
        self._cleanup_after = 0.0
        self._stop_requested_at = -math.inf
        self._lock_watch = LockWatch(plan.chroma, config.vector_store.path) if plan.chroma else None
        # Signals arrive as bytes on a socket, so that they interrupt nothing.
        self._signal_receiver, self._signal_sender = socket.socketpair()
        for end in (self._signal_receiver, self._signal_sender):
            end.setblocking(False)
        signal.set_wakeup_fd(self._signal_sender.fileno(), warn_on_full_buffer=False)
        for signal_number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(signal_number, lambda *_: None)

    def run(self) -> int:
        """Start everything and run until stopped; return the exit code."""
        info_file = self._config.server.data_dir / FILE_NAME
        try:
            self._start(info_file)
            with suppress(OSError):  # as for lines of the log
                sys.stdout.write(f"Cato is ready at {self._config.server.public_url or self._url}\n")
                sys.stdout.flush()
            while True:
                _restart_exited(self._plan.children)
                self._clean_up_if_requested()
                if self._lock_watch is not None:
                    self._lock_watch.check()
                restart_in = [child.restart_in for child in self._plan.children if child.restart_in is not None]
                self._sleep_until_signal(min([*restart_in, CHECK_INTERVAL]))
        except _ShutdownError:
            return 0
        finally:
            self._stop_children()
            info_file.unlink(missing_ok=True)

    def _start(self, info_file: Path) -> None:
        """Start everything; the worker and further web processes last, when the first one responds. Raises StartupError.

        The servers start while the web process loads. Nobody waits for Chroma, which takes longer the more it stores:
        recall uses terms only until it responds.
        """
        plan = self._plan
        first, *others = plan.web
        _write_server_info(info_file, plan, self._url, self._config.vector_store.path)
        for child in (plan.valkey, plan.chroma, first):
            if child is not None:
                start_child(child)
        if plan.valkey is not None:
            self._wait(lambda: accepts_connections(plan.redis_url), VALKEY_START_TIMEOUT, plan.valkey)
            if not accepts_connections(plan.redis_url):
                raise StartupError(f"Valkey did not start ({plan.valkey.exit_description}).")
        self._wait(self._web_answers, None, first)
        if first.has_exited:
            raise StartupError(f"The web process ended before it was ready ({first.exit_description}).")
        for child in (*others, plan.worker):
            start_child(child)  # so that the first page gets all cores, and after the migrations

    def _clean_up_if_requested(self) -> None:
        """If the cleanup marker exists, stop Chroma and purge deleted data from its files."""
        chroma, files = self._plan.chroma, self._config.vector_store.path
        if chroma is None or not cleanup_marker(files).exists() or time.monotonic() < self._cleanup_after:
            return
        chroma.terminate()
        self._wait(lambda: chroma.process is None or chroma.has_exited, chroma.grace)
        chroma.kill()
        cleanup = ChildProcess(
            "cleanup", [sys.executable, "-m", "cato_web.supervisor.chroma_cleanup", str(files)], chroma.env
        )
        others = [child for child in self._plan.children if child is not chroma]
        try:
            cleanup.start()
            while not cleanup.has_exited:
                _restart_exited(others)
                self._sleep_until_signal(POLL_INTERVAL)
        except (OSError, subprocess.SubprocessError) as error:
            log_line(f"cleanup cannot be started ({error})")
        finally:
            cleanup.kill()
        if cleanup.process is not None and cleanup.process.returncode == 0:
            cleanup_marker(files).unlink(missing_ok=True)
        else:
            log_line(f"the vector store's files could not be cleaned; trying again in {CLEANUP_RETRY_DELAY:g} s")
            self._cleanup_after = time.monotonic() + CLEANUP_RETRY_DELAY
        chroma.restart()

    def _wait(
        self, is_done: Callable[[], bool], timeout: float | None = None, child: ChildProcess | None = None
    ) -> None:
        """Wait until `is_done()`, the timeout in seconds, or the exit of `child`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not is_done() and (deadline is None or time.monotonic() < deadline) and not (child and child.has_exited):
            self._sleep_until_signal(POLL_INTERVAL)

    def _sleep_until_signal(self, seconds: float | None) -> None:
        """Sleep until a signal arrives, at most `seconds`. Raises _ShutdownError for a new request to stop."""
        select.select([self._signal_receiver], [], [], seconds)
        try:
            signals = self._signal_receiver.recv(1024)
        except BlockingIOError:
            return
        now = time.monotonic()
        if set(signals) & set(STOP_SIGNALS) and now - self._stop_requested_at > SAME_STOP_REQUEST:
            self._stop_requested_at = now
            raise _ShutdownError

    def _stop_children(self) -> None:
        """Stop the children group after group within their grace periods; kill them after a second request."""
        is_graceful = True
        for group in self._plan.stop_order:
            try:
                if is_graceful:
                    self._stop(group)
            except _ShutdownError:
                is_graceful = False
            for child in group:
                child.kill()

    def _stop(self, group: Sequence[ChildProcess]) -> None:
        for child in group:
            child.terminate()
        self._wait(lambda: all(child.process is None or child.has_exited for child in group), group[0].grace)

    @property
    def _url(self) -> str:
        host, port = self._config.server.host, self._config.server.port
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def _web_answers(self) -> bool:
        connection = http.client.HTTPConnection(*local_address(self._url), timeout=1)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _restart_exited(children: Sequence[ChildProcess]) -> None:
    for child in children:
        child.restart_if_exited()


def _check_port(host: str, port: int) -> None:
    """Raise StartupError if the port cannot be bound."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"Port {port} of {host} is in use. Choose another one with --port or CATO_PORT."
            raise StartupError(message) from None
        raise StartupError(f"Cato cannot listen on {host}, port {port}: {error.strerror or error}.") from None


@contextmanager
def _runtime_dir(data_dir: Path) -> Iterator[Path]:
    """Create a directory (mode 700) for the socket, always the same, so that killed supervisors leave only one.

    A socket path has at most 107 bytes, so the directory is not in the data directory. Raises StartupError.
    """
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    is_usable = os.access(base, os.W_OK | os.X_OK) and len(os.fsencode(base)) < 60
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]
    # The name is predictable, so an existing directory is checked before use.
    directory = Path(base if is_usable else "/tmp") / f"cato-{os.getuid()}-{digest}"  # noqa: S108
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise StartupError(f"{directory} exists and is not Cato's own. Remove it.") from None
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _write_server_info(info_file: Path, plan: ServerPlan, url: str, files: Path) -> None:
    """Write the addresses of the servers, and whose files are managed, for commands that run while this process does."""
    content = {"pid": os.getpid(), "url": url, "redis_url": plan.redis_url, "chroma_url": plan.chroma_url}
    content["chroma_path"] = str(files) if plan.chroma is not None else None
    write_server_info(info_file, content)
