"""The command line beside a running Cato and without one: what it prints where, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import ROOT, wait_for
from tests.topology import clean_environment


def run(environment: dict[str, str], *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cato_web.cli", *arguments],
        cwd=ROOT, env=environment, input=stdin, text=True, capture_output=True, timeout=90,
    )  # fmt: skip


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "greenhouse.txt"
    path.write_text("The greenhouse is watered on Tuesdays.\n\nIts key hangs behind the clock.\n")
    return path


def test_beside_a_running_cato_what_is_added_is_found_at_once_by_its_person_alone(cato, alice, bob, note):
    added = run(cato.environment, "--add-to-vector-store", str(note), "--user", alice.email)
    assert (added.returncode, added.stdout) == (0, "Remembered greenhouse.txt, passages: 1.\n")

    found = run(cato.environment, "--query-vector-store", "where is the key", "--user", alice.email, "--output", "json")
    answer = json.loads(found.stdout)
    assert answer["ok"] is True
    assert answer["action"] == "query"
    assert "behind the clock" in answer["result"][0]["user_message"]
    assert set(answer) == {"ok", "mode", "action", "result", "error", "meta"}
    assert set(answer["meta"]) >= {"provider", "model", "duration_ms", "config_path"}
    assert "behind the clock" in alice.get("/search", params={"q": "key"}).text

    others = run(cato.environment, "--query-vector-store", "where is the key", "--user", bob.email)
    assert others.stdout == "Nothing is remembered yet.\n"


def test_ask_prints_the_answer_and_remembers_it(cato, alice, endpoint):
    endpoint.script("cato", answer="Behind the clock.")

    asked = run(cato.environment, "--ask", "Where is the key?", "--stdin", "--user", alice.email, stdin="Think hard.")

    assert (asked.returncode, asked.stdout) == (0, "Behind the clock.\n")
    wait_for(lambda: "Where is the key?" in alice.get("/search", params={"q": "the key"}).text, "it to be found")


def test_a_model_that_fails_is_a_failure_with_a_sentence(cato, alice, endpoint):
    endpoint.script("cato", mode="error-500")

    asked = run(cato.environment, "--ask", "Where is the key?", "--user", alice.email, "--output", "json")

    assert asked.returncode == 1
    assert json.loads(asked.stdout)["error"].startswith("The model's server failed (HTTP 500)")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "required"),
        (["--ask", "x", "--vector-store-stats"], 2, "not allowed with"),
        (["--vector-store-stats"], 1, "--user NAME"),
        (["--vector-store-stats", "--user", "nobody"], 1, "no account nobody"),
        (["--vector-store-stats", "--config", "/nowhere/config.yaml"], 3, "/nowhere/config.yaml"),
    ],
)
def test_what_cannot_be_done_ends_with_its_code_and_a_sentence(cato, alice, bob, arguments, code, says):
    ended = run(cato.environment, *arguments)

    assert ended.returncode == code
    assert says in ended.stderr
    assert ended.stdout == ""


def test_a_file_that_is_not_there_or_cannot_be_read_is_refused(cato, alice, tmp_path):
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    for path, says in ((tmp_path / "none.txt", "no such file"), (picture, "not a kind of file that can be read")):
        ended = run(cato.environment, "--add-to-vector-store", str(path), "--user", alice.email)
        assert ended.returncode == 1
        assert says in ended.stderr


def test_the_files_of_a_folder_are_added_under_their_places_in_it(cato, alice, tmp_path):
    folder = tmp_path / "handbook"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "saw.md").write_text("The band saw is serviced by Ingrid each spring.")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    (folder / ".hidden.txt").write_text("not this")
    (folder / "outside.txt").symlink_to("/etc/passwd")

    added = run(cato.environment, "--add-to-vector-store", str(folder), "--user", alice.email, "--output", "json")

    rows = json.loads(added.stdout)["result"]
    assert {row["name"]: "error" in row for row in rows} == {
        "handbook/picture.png": True,
        "handbook/tools/saw.md": False,
    }
    assert "handbook/tools/saw.md" in alice.get("/documents").text


def test_without_a_running_cato_the_command_starts_the_index_for_itself(tmp_path, note):
    environment = clean_environment() | {"CATO_DATA_DIR": str(tmp_path / "data"), "CATO_CONFIG_FILE": ""}
    account = (
        "from cato_web.people.services import create_person as c; c(name='Ada', email='a@b.example', password='x')"
    )
    for command in (["prepare"], ["shell", "-c", account]):
        subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=environment, check=True, timeout=60)

    assert run(environment, "--add-to-vector-store", str(note)).returncode == 0
    found = run(environment, "--query-vector-store", "where is the key")

    assert "behind the clock" in found.stdout


def test_in_dummy_mode_the_placeholder_is_printed_and_nothing_remembered(cato, alice):
    asked = run(cato.environment, "--ask", "Hello", "--dummy-mode", "--user", alice.email)

    assert (asked.returncode, asked.stdout[:20]) == (0, "No model is connecte")
    stats = run(cato.environment, "--vector-store-stats", "--user", alice.email, "--output", "json")
    assert json.loads(stats.stdout)["result"]["exchanges"] == 0
