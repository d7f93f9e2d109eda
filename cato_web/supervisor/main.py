"""Runs all of Cato on one machine: a small supervisor of Valkey, Chroma, a worker and the web process.

    python -m cato_web.supervisor [--config PATH] [--host HOST] [--port PORT] [--dummy-mode] [--no-vector-store]

It imports neither Django nor chromadb. Exit codes: 0 ended as asked, 1 could not run, 2 usage,
3 configuration.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import hashlib
import http.client
import json
import os
import select
import shutil
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from cato_web.config import loader as configuration
from cato_web.config.schema import Config
from cato_web.supervisor.chroma_cleanup import cleanup_marker
from cato_web.supervisor.plan import ServerPlan, StartupError, build_plan
from cato_web.supervisor.process import ChildProcess, log_line

POLL = 0.02  # seconds between looks while starting
VALKEY_WAIT, CHROMA_WAIT = 10.0, 5.0  # seconds
LOOK_EVERY = 1.0  # seconds between looks for a note that asks for clean files
CLEAN_AGAIN = 300.0  # seconds until what failed is tried again
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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
    parser.add_argument("--dummy-mode", action="store_true", help="answer a placeholder, ask no model")
    parser.add_argument("--no-vector-store", action="store_true", help="without memory")
    return parser.parse_args(argv)


class _ShutdownError(Exception):
    """Somebody asked the supervisor to end."""


class Supervisor:
    """Starts the children, keeps them running, ends them in order."""

    def __init__(self, config: Config, plan: ServerPlan) -> None:
        self._config, self._plan = config, plan
        self._clean_after = 0.0
        # Signals arrive as bytes on a socket, so that none interrupts anything halfway.
        self._told, self._teller = socket.socketpair()
        for end in (self._told, self._teller):
            end.setblocking(False)
        signal.set_wakeup_fd(self._teller.fileno(), warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def run(self) -> int:
        """From start to end; returns the exit code."""
        note = self._config.server.data_dir / "serve.json"
        try:
            if code := self._prepare():
                return code
            self._start_web(note)
            sys.stdout.write(f"Cato is ready at {self._config.server.public_url or self._url}\n")
            sys.stdout.flush()
            while True:
                _revive(self._plan.children)
                self._clean_if_asked()
                due = [child.due for child in self._plan.children if child.due is not None]
                self._pause(min([*due, LOOK_EVERY]))
        except _ShutdownError:
            return 0
        finally:
            self._end()
            note.unlink(missing_ok=True)

    def _prepare(self) -> int:
        """Start the servers and beside them migrate the database; an exit code other than 0 is a failure."""
        plan = self._plan
        servers = [child for child in (plan.valkey, plan.chroma) if child is not None]
        prepare = ChildProcess("prepare", [sys.executable, "-m", "django", "prepare"], plan.web.env)
        for child in (*servers, prepare):
            child.start()
        try:
            self._wait(lambda: prepare.ended)
        finally:
            prepare.kill()
        code = prepare.process.returncode if prepare.process else 1
        return code if code in (0, 3) else 1

    def _start_web(self, note: Path) -> None:
        """Start the web process and the worker, and wait for the first page. Raises StartupError."""
        plan = self._plan
        if plan.valkey is not None:
            self._wait(lambda: accepts_connections(plan.redis_url), VALKEY_WAIT, plan.valkey)
            if not accepts_connections(plan.redis_url):
                raise StartupError(f"Valkey did not start ({plan.valkey.how}).")
        if plan.chroma is not None and plan.chroma_url is not None:
            # Without it all else works: recall is by words until it is back.
            url = plan.chroma_url
            self._wait(lambda: accepts_connections(url), CHROMA_WAIT, plan.chroma)
        _write_note(note, plan, self._url, self._config.vector_store.path)
        plan.web.start()
        self._wait(self._web_answers, None, plan.web)
        if plan.web.ended:
            raise StartupError(f"The web process ended before it was ready ({plan.web.how}).")
        plan.worker.start()  # last, so that the first page has all cores for itself

    def _clean_if_asked(self) -> None:
        """Where a note asks for it, stop Chroma for a moment and remove what was deleted from its files."""
        chroma, files = self._plan.chroma, self._config.vector_store.path
        if chroma is None or not cleanup_marker(files).exists() or time.monotonic() < self._clean_after:
            return
        chroma.ask_to_end()
        self._wait(lambda: chroma.process is None or chroma.ended, chroma.grace)
        chroma.kill()
        cleaning = ChildProcess(
            "cleaning", [sys.executable, "-m", "cato_web.supervisor.chroma_cleanup", str(files)], chroma.env
        )
        cleaning.start()
        others = [child for child in self._plan.children if child is not chroma]
        try:
            while not cleaning.ended:
                _revive(others)
                self._pause(POLL)
        finally:
            cleaning.kill()
        if cleaning.process is not None and cleaning.process.returncode == 0:
            cleanup_marker(files).unlink(missing_ok=True)
        else:
            log_line(f"the vector store's files are not cleaned yet; trying again in {CLEAN_AGAIN:g} s")
            self._clean_after = time.monotonic() + CLEAN_AGAIN
        chroma.start()

    def _wait(self, done: Callable[[], bool], timeout: float | None = None, child: ChildProcess | None = None) -> None:
        """Until it is done, the time in seconds is over, or the child has ended, whichever comes first."""
        limit = None if timeout is None else time.monotonic() + timeout
        while not done() and (limit is None or time.monotonic() < limit) and not (child and child.ended):
            self._pause(POLL)

    def _pause(self, seconds: float | None) -> None:
        """Sleep until a signal arrives, at most so long. Raises _ShutdownError where it asks to end."""
        select.select([self._told], [], [], seconds)
        try:
            arrived = self._told.recv(1024)
        except BlockingIOError:
            return
        if set(arrived) & set(STOP_SIGNALS):
            raise _ShutdownError

    def _end(self) -> None:
        """End the children one after another, each with its time to finish; asked again, end them at once."""
        patient = True
        for child in self._plan.children:
            try:
                if patient:
                    child.ask_to_end()
                    self._wait(lambda child=child: child.process is None or child.ended, child.grace)  # type: ignore[misc]
            except _ShutdownError:
                patient = False
            child.kill()

    @property
    def _url(self) -> str:
        host, port = self._config.server.host, self._config.server.port
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def _web_answers(self) -> bool:
        host = self._config.server.host
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (asks, does not bind)
        connection = http.client.HTTPConnection(host, self._config.server.port, timeout=1)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def accepts_connections(url: str) -> bool:
    """Whether the server at unix://path or http://host:port takes a connection."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "unix":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(parts.path)
        else:
            socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1).close()
    except OSError:
        return False
    return True


def _revive(children: Sequence[ChildProcess]) -> None:
    for child in children:
        child.revive()


def _check_port(host: str, port: int) -> None:
    """Raises StartupError where nothing could listen there."""
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
def data_dir_lock(data_dir: Path) -> Iterator[None]:
    """Hold the data directory for this process. Raises StartupError where another one holds it."""
    with (data_dir / "serve.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            message = f"Cato already runs on {data_dir} (process {lock.read().strip() or 'unknown'})."
            raise StartupError(message) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@contextmanager
def _runtime_dir(data_dir: Path) -> Iterator[Path]:
    """A folder (mode 700) for the socket; always the same, so that a killed supervisor leaves but one behind.

    A socket's path has at most 107 bytes, so it is never below the data directory. Raises StartupError.
    """
    home = os.environ.get("XDG_RUNTIME_DIR", "")
    usable = os.access(home, os.W_OK | os.X_OK) and len(os.fsencode(home)) < 60
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]
    # The name can be guessed, so what is found there is looked at before it is used.
    folder = Path(home if usable else "/tmp") / f"cato-{os.getuid()}-{digest}"  # noqa: S108
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise StartupError(f"{folder} exists and is not Cato's own. Remove it.") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_note(note: Path, plan: ServerPlan, url: str, files: Path) -> None:
    """Tell commands that work beside this process where its servers are, and whose files it may clean."""
    content = {"pid": os.getpid(), "url": url, "redis_url": plan.redis_url, "chroma_url": plan.chroma_url}
    content["chroma_path"] = str(files) if plan.chroma is not None else None
    draft = note.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(content))
    draft.replace(note)
