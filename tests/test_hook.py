"""`cato hook`: recall for coding agents, and their results as records, with the rights of a token."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from cato_web.cli import hook as hook_module
from cato_web.cli.agent_transcripts import last_exchange
from cato_web.cli.hook import AgentEvent, HookError, main, parse_event
from tests.server import ROOT, wait_for

PROMPT = "Why does the build of the winch fail?"
ANSWER = "The winch needs firmware 4.2, because 4.1 has no brake."


def prompt_event(name: str = "UserPromptSubmit", prompt: str = PROMPT) -> dict:
    return {"hook_event_name": name, "session_id": "s1", "cwd": "/home/ada/winch", "prompt": prompt}


def end_event(answer: str = ANSWER) -> dict:
    return prompt_event("AfterAgent") | {"prompt_response": answer}


def transcript(folder: Path, *lines: dict) -> str:
    path = folder / "transcript.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return str(path)


def said(role: str, content: object, **fields) -> dict:
    return {"type": role, "message": {"role": role, "content": content}, **fields}


# What agents send


def test_an_event_of_claude_code_names_its_transcript(tmp_path):
    path = transcript(
        tmp_path,
        said("user", "An earlier prompt"),
        said("user", PROMPT),
        said("assistant", [{"type": "tool_use", "name": "Bash"}]),
        said("user", [{"type": "tool_result", "content": "4.1"}]),
        said("user", "added by the agent", isMeta=True),
        said("assistant", [{"type": "text", "text": ANSWER}]),
        {"type": "summary"},
    )
    event = {"hook_event_name": "Stop", "session_id": "s1", "cwd": "/home/ada/winch", "transcript_path": path}
    assert parse_event(json.dumps(event)) == AgentEvent("Stop", "s1", "winch", PROMPT, ANSWER)


def test_an_event_of_gemini_cli_has_prompt_and_answer():
    assert parse_event(json.dumps(end_event())) == AgentEvent("AfterAgent", "s1", "winch", PROMPT, ANSWER)


def test_a_notification_of_codex_has_the_messages_of_its_turn():
    fields = {
        "type": "agent-turn-complete",
        "thread-id": "s1",
        "cwd": "/home/ada/winch",
        "input-messages": [PROMPT],
        "last-assistant-message": ANSWER,
    }
    assert parse_event(json.dumps(fields)) == AgentEvent("agent-turn-complete", "s1", "winch", PROMPT, ANSWER)


@pytest.mark.parametrize("text", ["", "[]", "no JSON", pytest.param("[" * 100_000, id="nested too deeply")])
def test_anything_else_is_refused(text):
    with pytest.raises(HookError):
        parse_event(text)


@pytest.mark.parametrize(
    "lines", [[], [{"type": "summary"}], [said("assistant", "alone")], [{"message": [1]}, said("user", 3)]]
)
def test_a_transcript_without_a_prompt_gives_nothing(tmp_path, lines):
    assert last_exchange(transcript(tmp_path, *lines)) == ("", "")
    assert last_exchange(str(tmp_path / "missing")) == ("", "")


@pytest.mark.parametrize("path", ["transcript\0.jsonl", "transcript\ud83d.jsonl"])
def test_a_path_that_no_file_can_have_gives_nothing(path):
    assert last_exchange(path) == ("", "")


def test_a_line_that_is_nested_too_deeply_is_skipped(tmp_path):
    path = tmp_path / "transcript.jsonl"
    path.write_text(f"{json.dumps(said('user', PROMPT))}\n{'[' * 100_000}")
    assert last_exchange(str(path)) == (PROMPT, "")


@pytest.mark.parametrize("messages", [7, PROMPT, {"text": PROMPT}, [7, None, [PROMPT]]])
def test_messages_of_another_kind_count_as_none(messages):
    event = {"type": "agent-turn-complete", "input-messages": messages, "last-assistant-message": 7}
    assert parse_event(json.dumps(event)) == AgentEvent("agent-turn-complete", "", "")


# With a running Cato


@pytest.fixture
def hook(cato, alice, tmp_path):
    """Return a function that runs the command with an event of an agent of Alice."""
    token = tmp_path / "token"
    token.write_text(alice.create_token("read", "write") + "\n")

    def run(event: object, *arguments: str, passes_argument: bool = False) -> subprocess.CompletedProcess[str]:
        text = event if isinstance(event, str) else json.dumps(event)
        command = [sys.executable, str(ROOT / "manage.py"), "cato", "hook", "--url", cato.url]
        command += ["--token-file", str(token), *arguments, *([text] if passes_argument else [])]
        given = "" if passes_argument else text
        return subprocess.run(command, input=given, text=True, capture_output=True, timeout=60, check=False)

    return run


def context(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout).get("hookSpecificOutput", {}).get("additionalContext", "")


def test_what_an_agent_found_out_is_recalled_by_the_next_one(hook, alice, bob):
    assert hook(end_event()).stdout == "{}\n"
    wait_for(lambda: ANSWER in context(hook(prompt_event("BeforeAgent", "Which firmware does the winch need?"))), "it")
    answer = json.loads(hook(prompt_event(prompt="Which firmware does the winch need?")).stdout)
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert ANSWER in context(hook({"hook_event_name": "SessionStart", "session_id": "s2", "cwd": "/srv/winch"}))
    assert "firmware 4.2" not in bob.search_page("firmware of the winch")


def test_a_continued_answer_replaces_the_one_before(hook, alice):
    hook(end_event("It fails at the linker."), "--space", "own")
    result = hook(
        {"type": "agent-turn-complete", "thread-id": "s1", "cwd": "/srv/winch", "input-messages": [PROMPT],
         "last-assistant-message": ANSWER}, passes_argument=True,
    )  # fmt: skip
    assert result.returncode == 0
    api = alice.api_client()
    found = api.post("/api/records/query", json={"text": PROMPT, "filters": {"kept_by": "cato hook"}}).json()["records"]
    mine = [record["text"] for record in found if record["id"].startswith("agent-s1-")]
    assert mine == [f"winch: {PROMPT}\n\n{ANSWER}"]


@pytest.mark.parametrize("event", [prompt_event(prompt=""), {"hook_event_name": "Notification"}, end_event("")])
def test_an_event_without_a_use_prints_an_empty_object(hook, event):
    assert (hook(event).stdout, hook(event).returncode) == ("{}\n", 0)


def test_a_failure_never_has_the_exit_code_that_refuses_a_prompt(hook, tmp_path):
    failures = {
        "begins with http": hook(prompt_event(), "--url", "cato.example"),
        "does not respond": hook(prompt_event(), "--url", "http://127.0.0.1:9"),
        "API token": hook(prompt_event(), "--token-file", str(tmp_path / "none")),
        "reads the JSON object": hook("no JSON"),
        "unrecognized arguments": hook(prompt_event(), "--unknown"),
        "refused the request (404)": hook(prompt_event(), "--space", "Nobody's"),
    }
    for text, result in failures.items():
        assert text in result.stderr
        assert result.returncode == 1


# Without Cato


@pytest.fixture
def answering():
    """Return a function that starts a server for one request, with this response, and returns its address."""
    with ExitStack() as listeners, ThreadPoolExecutor() as threads:

        def start(response: bytes) -> str:
            listener = listeners.enter_context(socket.create_server(("127.0.0.1", 0)))
            threads.submit(_answer_once, listener, response)
            return f"http://127.0.0.1:{listener.getsockname()[1]}"

        yield start


def _answer_once(listener: socket.socket, response: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(response)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "does not respond"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{", "does not respond"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 90\r\n\r\n<p>", "refused the request (502): Bad Gateway"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + b"[" * 60_000, "not respond", id="nested"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "is not Cato"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "is not Cato"),
    ],
)
def test_another_program_at_the_address_is_named(answering, capsys, tmp_path, response, message):
    (tmp_path / "token").write_text("secret")
    arguments = ["--url", answering(response), "--token-file", str(tmp_path / "token"), json.dumps(prompt_event())]
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


def test_a_connection_with_tls_that_breaks_off_is_named(monkeypatch, capsys, tmp_path):
    def break_off(*_: object, **__: object) -> None:
        raise ssl.SSLEOFError(8, "EOF occurred in violation of protocol")

    (tmp_path / "token").write_text("secret")
    monkeypatch.setattr(hook_module, "urlopen", break_off)
    arguments = ["--url", "https://cato.example", "--token-file", str(tmp_path / "token")]
    assert main([*arguments, json.dumps(prompt_event())]) == 1
    assert "does not respond at https://cato.example" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://127.0.0.1:port", "http://[::1"])
def test_an_address_that_is_none_is_named(capsys, tmp_path, url):
    (tmp_path / "token").write_text("secret")
    assert main(["--url", url, "--token-file", str(tmp_path / "token"), json.dumps(prompt_event())]) == 1
    assert f"does not respond at {url}" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"two words"])
def test_a_file_that_holds_no_token_is_named(capsys, tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    assert main(["--token-file", str(tmp_path / "token"), json.dumps(prompt_event())]) == 1
    assert "API token" in capsys.readouterr().err


def test_a_token_file_in_the_home_of_an_unknown_account_is_named(capsys):
    assert main(["--token-file", "~no-such-account/token", json.dumps(prompt_event())]) == 1
    assert "API token" in capsys.readouterr().err


def test_nobody_reading_the_output_is_a_failure_without_a_message(monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main([json.dumps(prompt_event(prompt=""))]) == 1
    assert capsys.readouterr().err == ""


def test_half_characters_of_a_cut_text_become_question_marks():
    event = parse_event(json.dumps(prompt_event("AfterAgent", "It is \ud83d") | {"prompt_response": "\udd0d Done"}))
    assert (event.prompt, event.answer) == ("It is ?", "? Done")


def test_a_closed_standard_input_is_an_empty_one(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main([]) == 1
    assert "reads the JSON object" in capsys.readouterr().err
