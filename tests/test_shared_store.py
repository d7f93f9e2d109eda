"""The vector store that commands and MCP clients share while `serve` does not run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from cato_web.supervisor.data_dir_lock import DataDirLockedError, data_dir_lock
from cato_web.supervisor.plan import StartupError
from cato_web.supervisor.process import accepts_connections
from cato_web.supervisor.server_info import read_server_info
from cato_web.supervisor.shared_store import shared_store
from tests.server import ROOT, wait_for
from tests.topology import clean_environment

_USE = """
import sys
from pathlib import Path
from cato_web.supervisor.shared_store import shared_store
with shared_store(Path(sys.argv[1]), Path(sys.argv[2])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def is_free(data_dir) -> bool:
    try:
        with data_dir_lock(data_dir):
            return True
    except DataDirLockedError:
        return False


def test_users_share_a_store_that_ends_with_the_last_of_them(tmp_path):
    with shared_store(tmp_path, tmp_path / "vectors") as first:
        with shared_store(tmp_path, tmp_path / "vectors") as second:
            assert first == second
        assert accepts_connections(first), "the first still uses it"
        with (
            pytest.raises(StartupError, match=r"`manage.py mcp` or `cato` uses .*process \d+"),
            data_dir_lock(tmp_path),
        ):
            pass
    assert not accepts_connections(first)
    assert is_free(tmp_path), "`serve` can start at once"
    with shared_store(tmp_path, tmp_path / "vectors") as next_url:
        assert accepts_connections(next_url)


def test_the_store_outlives_the_user_that_started_it_and_ends_although_the_last_is_killed(tmp_path):
    command = [sys.executable, "-c", _USE, str(tmp_path), str(tmp_path / "vectors")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(command, **pipes) as first, subprocess.Popen(command, **pipes) as second:
        url = first.stdout.readline().strip()
        assert second.stdout.readline().strip() == url
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        assert accepts_connections(url)
        os.kill(second.pid, signal.SIGKILL)
        second.wait()
    wait_for(lambda: is_free(tmp_path), "the keeper to end")
    assert not accepts_connections(url)


def test_a_keeper_that_was_killed_is_replaced(tmp_path):
    with shared_store(tmp_path, tmp_path / "vectors") as url:
        os.kill(read_server_info(tmp_path / "store.json")["pid"], signal.SIGKILL)
        wait_for(lambda: not accepts_connections(url), "the store to end")
    with shared_store(tmp_path, tmp_path / "vectors") as other_url:
        assert accepts_connections(other_url)


def test_beside_serve_the_sentence_names_it(tmp_path):
    with data_dir_lock(tmp_path), pytest.raises(StartupError, match=f"Cato already runs on .*process {os.getpid()}"):  # noqa: SIM117
        with shared_store(tmp_path, tmp_path / "vectors"):
            pass


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["reconcile", "--help"], 0), (["reconcile", "--wrong"], 2), (["restore"], 2), (["restore", "--help"], 0)],
)
def test_help_and_usage_errors_start_no_store(arguments, code, tmp_path):
    environment = clean_environment() | {"CATO_DATA_DIR": str(tmp_path), "CATO_CONFIG_FILE": ""}

    result = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env=environment, text=True, capture_output=True, check=False,
    )  # fmt: skip

    assert (result.returncode, (result.stdout or result.stderr).partition("[")[0]) == (
        code,
        f"usage: manage.py {arguments[0]} ",
    )
    assert not (tmp_path / "serve.lock").exists(), "nothing was started that needs the data directory"
