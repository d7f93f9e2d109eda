"""The supervisor `serve`: starts everything, restarts what dies, and leaves nothing behind."""

from __future__ import annotations

import errno
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from cato_web.config import loader
from cato_web.supervisor.chroma_cleanup import cleanup_marker
from cato_web.supervisor.data_dir_lock import data_dir_lock
from cato_web.supervisor.main import Supervisor
from cato_web.supervisor.plan import ServerPlan, StartupError, start_child
from cato_web.supervisor.process import ChildProcess, log_line
from cato_web.supervisor.server_info import FILE_NAME, running_server_info, write_server_info
from tests.topology import clean_environment, free_port, only_long

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Serve:
    """A running supervisor that is ready."""

    process: subprocess.Popen[str]
    data_dir: Path
    port: int
    log: Path
    address: str

    @property
    def note(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.data_dir / "serve.json").read_text())
        return content

    @property
    def children(self) -> dict[str, psutil.Process]:
        """Return its children by name."""
        words = {"valkey": "valkey", "chroma": "chromadb_rust_bindings", "worker": "celery", "web": "cato_web.server"}
        found: dict[str, psutil.Process] = {}
        for child in psutil.Process(self.process.pid).children():
            found |= {name: child for name, word in words.items() if word in _command(child)}
        return found


@contextmanager
def serve(tmp_path: Path, *arguments: str, until: str = "Cato is ready at ", **environment: str) -> Iterator[Serve]:
    """Start a supervisor and wait for the line that begins with `until`, which names an address of the server."""
    port = free_port()
    log = tmp_path / "stderr"
    command = [sys.executable, "-m", "cato_web.supervisor", "--port", str(port), *arguments]
    env = clean_environment() | {"CATO_DATA_DIR": str(tmp_path / "data"), "CATO_CONFIG_FILE": ""} | environment
    with log.open("w") as errors:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        output = next((line for line in process.stdout if line.startswith(until)), "")
        assert f":{port}" in output, log.read_text()
        yield Serve(process, tmp_path / "data", port, log, output.split()[-1])
    finally:
        process.terminate()
        process.communicate(timeout=40)


def run_refused(tmp_path: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run a `serve` that cannot start; return exit code and output."""
    env = clean_environment() | {"CATO_DATA_DIR": str(tmp_path / "data"), "CATO_CONFIG_FILE": ""} | environment
    command = [sys.executable, "-m", "cato_web.supervisor", *arguments]
    is_done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=30)
    return is_done.returncode, is_done.stderr


def test_what_a_killed_serve_left_counts_for_nothing_although_its_process_id_is_used_again(tmp_path):
    write_server_info(tmp_path / FILE_NAME, {"pid": os.getpid(), "url": "http://127.0.0.1:8000"})
    assert running_server_info(tmp_path) == {}
    with data_dir_lock(tmp_path, "`manage.py restore` works on"):
        assert running_server_info(tmp_path) == {}
    with data_dir_lock(tmp_path):
        assert running_server_info(tmp_path)["url"] == "http://127.0.0.1:8000"
    assert running_server_info(tmp_path) == {}


def test_a_dead_child_is_restarted_and_the_end_leaves_no_process(tmp_path: Path) -> None:
    with serve(tmp_path) as running:
        before, note = _all_up(running), running.note
        for name in ("valkey", "chroma", "web", "worker"):
            before[name].send_signal(signal.SIGKILL)
        _wait(lambda: not {c.pid for c in running.children.values()} & {c.pid for c in before.values()})
        after = _all_up(running)

        assert "chroma ended (signal 9); starting it again in 0.2 s" in running.log.read_text()
        _wait(lambda: _answers(f"http://127.0.0.1:{running.port}/healthz"))
        _wait(lambda: _answers(f"{note['chroma_url']}/api/v2/heartbeat"))
        assert redis.Redis.from_url(note["redis_url"]).ping()
        assert running.note == note, "its addresses stay the same"

        code, output = run_refused(tmp_path, "--port", str(free_port()))
        assert (code, f"already runs on {running.data_dir} (process {running.process.pid})" in output) == (1, True)

        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(30) == 0
    assert not [child for child in after.values() if child.is_running()]
    assert not (running.data_dir / "serve.json").exists()
    assert not Path(note["redis_url"].removeprefix("unix://")).parent.exists()


def test_the_link_for_the_first_account_works_as_soon_as_it_is_printed(tmp_path: Path) -> None:
    for _start in ("that collects the assets in a process of its own", "after it"):
        with serve(tmp_path, until="Create the first account at ") as running:
            assert "/setup/" in running.address
            assert _answers(running.address, seconds=30)


def test_an_idle_connection_stays_open(tmp_path: Path) -> None:
    """A server closes it after five seconds by default, and a request that is sent at that moment is lost."""
    with serve(tmp_path) as cato, closing(http.client.HTTPConnection("127.0.0.1", cato.port, timeout=20)) as connection:
        connection.auto_open = False
        connection.connect()
        for pause in (6, 0):
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
            time.sleep(pause)


def test_a_killed_supervisor_takes_its_children_along_and_can_be_started_again(tmp_path: Path) -> None:
    with serve(tmp_path) as running:
        children = _all_up(running)
        running.process.kill()
        running.process.wait()
        _wait(lambda: not any(_command(child) for child in children.values()))
    with serve(tmp_path) as restarted:
        assert _all_up(restarted)


def test_only_its_user_can_reach_the_started_servers(tmp_path: Path) -> None:
    with serve(tmp_path) as running:
        path = Path(running.note["redis_url"].removeprefix("unix://"))
        assert path.stat().st_mode & 0o777 == 0o700
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert running.note["chroma_url"].startswith("http://127.0.0.1:")
        assert (running.data_dir / "serve.json").stat().st_mode & 0o777 == 0o600
        assert running.data_dir.stat().st_mode & 0o777 == 0o700
        open_socket = [c.laddr for child in _all_up(running).values() for c in child.net_connections("tcp")]
        assert {address.ip for address in open_socket} == {"127.0.0.1"}


@only_long
def test_server_output_is_hidden_unless_the_server_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serve(tmp_path) as running:
        _all_up(running)
    assert running.log.read_text() == ""

    script = "import sys; sys.exit('the disk is full')"
    failing = ChildProcess("chroma", [sys.executable, "-c", script], os.environ, quiet=True)
    failing.start()
    _wait(lambda: failing.has_exited)
    failing.restart_if_exited()
    assert capfd.readouterr().err == "chroma ended (exit code 1); starting it again in 0.2 s\nthe disk is full\n"


@only_long
def test_a_configured_server_is_not_started(tmp_path: Path) -> None:
    with serve(tmp_path, "--no-vector-store", REDIS_URL="redis://127.0.0.1:1/0") as running:
        _wait(lambda: "worker" in running.children)
        assert set(running.children) == {"worker", "web"}
        assert running.note["redis_url"] == "redis://127.0.0.1:1/0"


def test_a_port_in_use_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        code, output = run_refused(tmp_path, "--port", port)
    assert (code, output) == (1, f"Port {port} of 127.0.0.1 is in use. Choose another one with --port or CATO_PORT.\n")


@pytest.mark.parametrize(
    ("arguments", "environment", "expected", "words"),
    [
        ((), {"CATO_LLM_MAX_TOKENS": "many"}, 3, "llm.max_tokens: 'many' (from the environment"),
        (("--config", "/no/such.yaml"), {}, 3, "There is no configuration file /no/such.yaml."),
        ((), {"CATO_DATA_DIR": "/proc/cato"}, 3, "server.data_dir: /proc/cato (from the environment) cannot be used"),
        (("--prot", "1"), {}, 2, "unrecognized arguments"),
    ],
)
def test_an_impossible_start_is_explained(
    tmp_path: Path, arguments: tuple[str, ...], environment: dict[str, str], expected: int, words: str
) -> None:
    code, output = run_refused(tmp_path, *arguments, **environment)
    assert code == expected
    assert words in output


def test_a_database_that_cannot_be_migrated_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "cato.sqlite3").write_bytes(b"no database" * 1000)
    code, output = run_refused(tmp_path, "--port", str(free_port()))
    assert code == 1
    assert "file is not a database" in output
    assert "The web process ended before it was ready (exit code 1)." in output


def test_the_supervisor_imports_neither_django_nor_chromadb() -> None:
    script = "import sys, cato_web.supervisor.main; print(*sorted({'django', 'chromadb', 'celery'} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert output.strip() == ""


def _all_up(running: Serve) -> dict[str, psutil.Process]:
    _wait(lambda: len(running.children) == 4)
    return running.children


def _command(process: psutil.Process) -> str:
    """Return its name and command line, or nothing if it has ended."""
    try:
        return f"{process.name()} {' '.join(process.cmdline())}"
    except psutil.Error:
        return ""


def _answers(url: str, seconds: float = 2) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=seconds) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _wait(is_done: Any, seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < end, f"process {os.getpid()} waited {seconds:g} s"
        time.sleep(0.05)


def test_a_data_directory_whose_lock_cannot_be_written_is_named(tmp_path):
    (tmp_path / "serve.lock").mkdir()
    with (
        pytest.raises(StartupError, match=r"serve\.lock cannot be written: Is a directory"),
        data_dir_lock(tmp_path),
    ):
        pass


def test_a_child_that_cannot_be_started_again_is_tried_again(tmp_path, capfd):
    """As without memory or handles for it, which the system reports in the same way."""
    program, away = tmp_path / "program", tmp_path / "away"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o700)
    child = ChildProcess("worker", [str(program)], os.environ)
    child.start()
    _wait(lambda: child.has_exited)
    program.rename(away)

    child.restart_if_exited()
    _wait(lambda: not child.restart_in)
    child.restart_if_exited()
    _exit, failure = capfd.readouterr().err.splitlines()
    assert failure.startswith("worker cannot be started ([Errno 2] No such file or directory: ")
    assert failure.endswith("; starting it again in 0.4 s")

    away.rename(program)
    _wait(lambda: not child.restart_in)
    child.restart_if_exited()
    assert child.restart_in is None
    child.kill()


def test_a_child_for_whose_output_there_is_no_file_is_tried_again(monkeypatch, capfd):
    child = ChildProcess("chroma", [sys.executable, "-c", "raise SystemExit(1)"], os.environ, quiet=True)
    child.start()
    _wait(lambda: child.has_exited)
    child.restart_if_exited()
    _wait(lambda: not child.restart_in)
    with monkeypatch.context() as without_space:
        without_space.setattr(tempfile, "tempdir", "/no/such")
        child.restart_if_exited()

    assert "chroma cannot be started ([Errno 2] No " in capfd.readouterr().err
    assert child.restart_in


def test_a_child_that_cannot_be_started_at_first_ends_the_start_with_the_reason():
    with pytest.raises(StartupError, match=r"worker cannot be started \(.*/no/such.*Check that memory"):
        start_child(ChildProcess("worker", ["/no/such/python"], os.environ))


def test_a_cleanup_that_cannot_be_started_is_put_off_and_the_vector_store_runs_again(tmp_path, monkeypatch, capfd):
    config = loader.load(environ={"CATO_DATA_DIR": str(tmp_path)})
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    web, worker, chroma = (ChildProcess(name, command, os.environ) for name in ("web", "worker", "chroma"))
    chroma.start()
    first = chroma.process
    marker = cleanup_marker(config.vector_store.path)
    marker.touch()
    monkeypatch.setattr(signal, "set_wakeup_fd", lambda *_, **__: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "executable", "/no/such/python")

    supervisor = Supervisor(config, ServerPlan([web], worker, chroma, None, "", None))
    supervisor._clean_up_if_requested()

    assert marker.exists()
    assert (chroma.process is first, chroma.has_exited) == (False, False)
    assert "could not be cleaned; trying again in 300 s" in capfd.readouterr().err
    chroma.kill()


def test_the_hidden_output_of_a_server_takes_little_space(capfd):
    script = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit('the disk is full'));"
        "sys.stderr.write('x' * 2_000_000); time.sleep(60)"
    )
    noisy = ChildProcess("chroma", [sys.executable, "-c", script], os.environ, quiet=True)
    noisy.start()
    output = Path(f"/proc/{noisy.process.pid}/fd/2")
    _wait(lambda: output.stat().st_size == 2_000_000)

    noisy.restart_if_exited()
    assert output.stat().st_size == 0

    noisy.terminate()
    _wait(lambda: noisy.has_exited)
    noisy.restart_if_exited()
    assert capfd.readouterr().err == "chroma ended (exit code 1); starting it again in 0.2 s\nthe disk is full\n"


def test_a_full_disk_behind_the_log_does_not_end_the_supervisor(monkeypatch):
    def fail(_text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sys.stderr, "write", fail)
    log_line("chroma ended (exit code 1); starting it again in 0.2 s")
