"""The command line with and without a running Cato: output, streams and exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from cato_web.cli.main import main
from cato_web.cli.messages import CommandResult
from cato_web.cli.output import Report
from tests.server import ROOT, wait_for
from tests.socket import open_socket
from tests.topology import clean_environment


def run(
    environment: dict[str, str], *arguments: str, stdin: str = "", folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "cato", *arguments],
        cwd=folder, env=environment, input=stdin, text=True, capture_output=True, timeout=90,
    )  # fmt: skip


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "greenhouse.txt"
    path.write_text("The greenhouse is watered on Tuesdays.\n\nIts key hangs behind the clock.\n")
    return path


def test_an_added_text_is_found_at_once_and_only_by_its_person(cato, alice, bob, note):
    added = run(cato.environment, "--add-to-vector-store", str(note), "--user", alice.email)
    assert (added.returncode, added.stdout) == (0, "greenhouse.txt: added, passages: 1\n")

    found = run(cato.environment, "--query-vector-store", "where is the key", "--user", alice.email, "--output", "json")
    answer = json.loads(found.stdout)
    assert answer["ok"] is True
    assert answer["action"] == "query"
    assert "behind the clock" in answer["result"][0]["user_message"]
    assert set(answer) == {"ok", "mode", "action", "result", "error", "meta"}
    assert set(answer["meta"]) >= {"provider", "model", "duration_ms", "config_path"}
    assert "behind the clock" in alice.search_page("key")

    other_results = run(cato.environment, "--query-vector-store", "where is the key", "--user", bob.email)
    assert other_results.stdout == "Nothing was found.\n"


def test_ask_prints_and_remembers_the_answer(cato, alice, endpoint):
    endpoint.script("cato", answer="Behind the clock.")

    answered = run(
        cato.environment, "--ask", "Where is the key?", "--stdin", "--user", alice.email, stdin="Think hard."
    )

    assert (answered.returncode, answered.stdout) == (0, "Behind the clock.\n")
    wait_for(lambda: "Where is the key?" in alice.search_page("the key"), "it to be found")


def test_a_model_error_is_a_failure_with_a_message(cato, alice, endpoint):
    endpoint.script("cato", mode="error-500")

    answered = run(cato.environment, "--ask", "Where is the key?", "--user", alice.email, "--output", "json")

    assert answered.returncode == 1
    assert json.loads(answered.stdout)["error"].startswith("The model's server failed (HTTP 500)")


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        ([], 2, "required"),
        (["--ask", "x", "--vector-store-stats"], 2, "not allowed with"),
        (["--vector-store-stats"], 2, "--user NAME"),
        (["--vector-store-stats", "--user", "nobody"], 2, "no account nobody"),
        (["--query-vector-store", "", "--user", "{alice}"], 2, "Write what"),
        (["--vector-store-stats", "--config", "/nowhere/config.yaml"], 3, "/nowhere/config.yaml"),
    ],
)
def test_invalid_requests_exit_with_a_code_and_a_message(cato, alice, bob, arguments, code, expected):
    arguments = [one.replace("{alice}", alice.email) for one in arguments]
    result = run(cato.environment, *arguments)

    assert result.returncode == code
    assert expected in result.stderr
    assert result.stdout == ""
    as_json = run(cato.environment, *arguments, "--output", "json")
    assert as_json.returncode == code
    answer = json.loads(as_json.stdout)
    assert (answer["ok"], answer["result"]) == (False, None)
    assert expected in answer["error"]


@pytest.mark.parametrize(
    ("command", "is_json"),
    [
        (["cato", "--vector-store-stats", "--output", "json"], True),
        (["cato", "--vector-store-stats"], False),
        (["serve"], False),
        (["backup", "/nowhere/backup.zip"], False),
        (["reconcile", "--dry-run"], False),
    ],
)
@pytest.mark.parametrize("source", ["environment", "file"])
def test_an_invalid_configuration_fails_every_command_with_a_message(cato, tmp_path, command, is_json, source):
    file = tmp_path / "config.yaml"
    file.write_text("llm: {temperature: 9}\n")
    wrong = {"CATO_LLM_TEMPERATURE": "9"} if source == "environment" else {"CATO_CONFIG_FILE": str(file)}
    result = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *command],
        cwd=tmp_path, env=cato.environment | wrong, text=True, capture_output=True, timeout=60,
    )  # fmt: skip

    assert result.returncode == 3
    assert "llm.temperature: '9'" in result.stderr.replace("9.0", "'9'").replace(": 9 ", ": '9' ")
    assert "Traceback" not in result.stderr
    assert json.loads(result.stdout)["ok"] is False if is_json else result.stdout == ""


def test_paths_are_relative_to_the_current_folder(cato, alice, note):
    added = run(cato.environment, "--add-to-vector-store", note.name, "--user", alice.email, folder=note.parent)
    assert (added.returncode, added.stdout) == (0, "greenhouse.txt: added, passages: 1\n")


def test_folders_with_equal_names_are_distinguished_by_longer_paths(cato, alice, tmp_path):
    for root, text in (("first", "The saw is serviced in May."), ("second", "The boat is painted in June.")):
        (tmp_path / root / "docs").mkdir(parents=True)
        (tmp_path / root / "docs" / "plan.txt").write_text(text)

    def add(path: str) -> str:
        return run(cato.environment, "--add-to-vector-store", path, "--user", alice.email, folder=tmp_path).stdout

    assert add("first/docs") == "docs/plan.txt: added, passages: 1\n"
    assert add("second/docs") == "second/docs/plan.txt: added, passages: 1\n"
    # A file is the same document on its own and as part of its folder.
    assert add("first/docs/plan.txt") == "docs/plan.txt: unchanged, passages: 1\n"
    (tmp_path / "second" / "docs" / "plan.txt").write_text("The boat is painted in July.")
    assert add("second/docs") == "second/docs/plan.txt: version 2, passages: 1\n"

    page = alice.search_page("serviced painted")
    assert "The saw is serviced in May." in page
    assert "The boat is painted in July." in page
    assert "The boat is painted in June." not in page


def test_statistics_show_location_and_size_of_the_store(cato, alice):
    result = run(cato.environment, "--vector-store-stats", "--user", alice.email, "--output", "json")
    result = json.loads(result.stdout)["result"]
    assert result["store"]
    assert set(result) >= {"exchanges", "store", "store_bytes", "model", "dimension"}


def test_a_missing_or_unreadable_file_is_refused(cato, alice, tmp_path):
    image = tmp_path / "picture.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    for path, expected in ((tmp_path / "none.txt", "no such file"), (image, "Unsupported file type.")):
        result = run(cato.environment, "--add-to-vector-store", str(path), "--user", alice.email)
        assert result.returncode == 1
        assert expected in result.stderr


def test_files_of_a_folder_are_added_under_their_relative_paths(cato, alice, tmp_path):
    folder = tmp_path / "handbook"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "saw.md").write_text("The band saw is serviced by Ingrid each spring.")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    (folder / ".hidden.txt").write_text("not this")
    (folder / "outside.txt").symlink_to("/etc/passwd")

    added = run(cato.environment, "--add-to-vector-store", str(folder), "--user", alice.email, "--output", "json")

    answer = json.loads(added.stdout)
    # One unreadable file is a failure, although the others are added.
    assert (added.returncode, answer["ok"]) == (1, False)
    assert "picture.png" in answer["error"]
    rows = answer["result"]
    assert {row["name"]: "error" in row for row in rows} == {
        "handbook/picture.png": True,
        "handbook/tools/saw.md": False,
    }
    assert "handbook/tools/saw.md" in alice.get("/documents").text


def test_without_a_running_cato_the_command_starts_its_own_index(tmp_path, note):
    environment = clean_environment() | {"CATO_DATA_DIR": str(tmp_path / "data"), "CATO_CONFIG_FILE": ""}
    account = (
        "from cato_web.accounts.services import create_person as c; c(name='Ada', email='a@b.example', password='x')"
    )
    for command in (["prepare"], ["shell", "-c", account]):
        subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=environment, check=True, timeout=60)

    assert run(environment, "--add-to-vector-store", str(note)).returncode == 0
    found = run(environment, "--query-vector-store", "where is the key")

    assert "behind the clock" in found.stdout


def test_dummy_mode_prints_the_placeholder_and_remembers_nothing(cato, alice):
    answered = run(cato.environment, "--ask", "Hello", "--dummy-mode", "--user", alice.email)

    assert (answered.returncode, answered.stdout[:20]) == (0, "Placeholder: no mode")
    stats = run(cato.environment, "--vector-store-stats", "--user", alice.email, "--output", "json")
    assert json.loads(stats.stdout)["result"]["exchanges"] == 0


def test_a_person_exports_all_readable_exchanges_as_json_lines(cato, alice, bob, note):
    run(cato.environment, "--add-to-vector-store", str(note), "--user", alice.email)
    lines = cato.manage("export_memory", "--user", alice.email).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["user_message"].split("\n")[0] for row in rows] == ["The greenhouse is watered on Tuesdays."]
    assert set(rows[0]) >= {"id", "timestamp", "source", "prior_exchange_ids", "thread_session_id", "manual_entry"}
    assert cato.manage("export_memory", "--user", bob.email).stdout == ""
    unknown = cato.manage("export_memory", "--user", "nobody", check=False)
    assert (unknown.returncode, "no account nobody" in unknown.stderr) == (1, True)


def test_every_command_shows_its_help_while_cato_runs(cato):
    shown = cato.manage("restore", "--help").stdout

    assert "--index-later" in shown
    assert shown.startswith("usage: manage.py restore ")


def test_an_answer_of_the_command_line_streams_to_open_pages_which_can_stop_it(cato, alice, endpoint):
    endpoint.script("cato", tokens=2000, token_delay=0.03)
    command = [sys.executable, "-m", "cato_web.cli", "--ask", "Count slowly", "--user", alice.email, "--output", "json"]
    with subprocess.Popen(command, cwd=ROOT, env=cato.environment, stdout=subprocess.PIPE, text=True) as asking:
        try:
            found = wait_for(
                lambda: cato.sql("SELECT thread_id FROM chat_turn WHERE message = ?", "Count slowly"), "it", 60
            )
            thread = str(uuid.UUID(found[0][0]))
            with open_socket(alice, thread) as page:
                page.hello()
                page.until("word5")
                stop = wait_for(lambda: re.search(r'formaction="(/t/[^"]+/stop)"', alice.thread_page(thread)), "Stop")
                alice.post(stop[1], htmx=True)
                page.until_all(r"-blocks\">.*word5", ">Stopped by Alice Owner<")
            output = json.loads(asking.communicate(timeout=30)[0])
        finally:
            asking.kill()
    assert output["result"]["state"] == "stopped"
    assert output["result"]["answer"].startswith("word0 word1")
    assert output["result"]["answer"] in alice.thread_page(thread)


@pytest.mark.parametrize("option", ["--user", "--space", "--model", "--thread"])
def test_arguments_in_another_encoding_are_refused(option, capsys):
    assert main(["--ask", "Where is the key?", option, os.fsdecode(b"Zo\xeb")]) == 2
    assert capsys.readouterr().err == "The arguments are not UTF-8 text.\n"


def test_a_command_goes_on_when_nobody_reads_its_output_any_more(monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        report = Report(is_json=False, started_at=0.0)
        report.stream("Behind ")
        report.stream("the clock.")
        assert report.finish(0, CommandResult({"state": "complete"}, "Behind the clock.")) == 1
    assert capsys.readouterr().err == ""


def test_a_command_of_manage_ends_quietly_when_nobody_reads_its_output_any_more(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    environment = clean_environment() | {"CATO_DATA_DIR": str(tmp_path), "CATO_CONFIG_FILE": ""}
    with os.fdopen(writer, "wb") as out:
        ended = subprocess.run(
            [sys.executable, "manage.py", "help"],
            cwd=ROOT, env=environment, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_full_disk_behind_the_output_is_named(monkeypatch, capsys):
    with open("/dev/full", "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert Report(is_json=True, started_at=0.0).finish(0, CommandResult([], "")) == 1
    assert capsys.readouterr().err == "The output cannot be written: No space left on device.\n"
