"""The command line beside a running Cato: the web process runs what it asks for, with the rights of its user."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import uuid

import pytest
from django.test import Client

from cato_web.cli import messages
from tests.factories import PersonFactory
from tests.server import ROOT
from tests.test_command_line import run

_SLOW_MODULES = ("django", "chromadb", "onnxruntime", "numpy", "openai", "pydantic", "yaml", "cato_web.config.schema")
_COUNT_IMPORTS = """
import json, sys
from cato_web.cli.main import main
try:
    code = main(json.loads(sys.argv[1]))
except SystemExit as end:
    code = end.code
print("code", code, "loaded", [name for name in json.loads(sys.argv[2]) if name in sys.modules], file=sys.stderr)
"""


def loaded_modules(environment: dict[str, str], *arguments: str, code: int = 0) -> list[str]:
    """Return which slow modules a command loads."""
    command = [sys.executable, "-c", _COUNT_IMPORTS, json.dumps(arguments), json.dumps(_SLOW_MODULES)]
    result = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=60)
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"code {code} loaded "), result.stderr
    return json.loads(last.partition("loaded ")[2].replace("'", '"'))


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--help"], 0), (["--nonsense"], 2), (["--ask", "x", "--k", "3", "--output", "json"], 2)]
)
def test_help_and_usage_errors_load_nothing_that_is_slow(arguments, code):
    assert loaded_modules({"PATH": ""}, *arguments, code=code) == []


def test_beside_a_running_cato_a_command_loads_neither_django_nor_chroma_nor_the_model(cato, alice, endpoint):
    endpoint.script("cato", answer="Behind the clock.")
    for action in (["--query-vector-store", "key"], ["--vector-store-stats"], ["--ask", "Where is the key?"]):
        loaded = loaded_modules(cato.environment, *action, "--user", alice.email)
        assert not {"django", "chromadb", "onnxruntime", "numpy", "openai"} & set(loaded), action
    # It could have: on its own, the command does load them.
    alone = loaded_modules(cato.environment, "--vector-store-stats", "--no-vector-store", "--user", alice.email)
    assert "django" in alone


def test_an_answer_comes_with_its_sources_and_goes_on_in_its_thread(cato, alice, endpoint, tmp_path):
    note = tmp_path / "key.txt"
    note.write_text("The key of the boat house hangs behind the clock.")
    run(cato.environment, "--add-to-vector-store", str(note), "--user", alice.email)
    endpoint.script("cato", answer="Behind the clock [1].")

    question = ("--ask", "Where does the key of the boat house hang?", "--user", alice.email, "--output", "json")
    first = json.loads(run(cato.environment, *question).stdout)["result"]

    # Other tests store texts that everybody can read.
    source = first["sources"][0]
    assert (source["number"], source["is_cited"], source["source_file"]) == (1, True, "key.txt")
    assert "behind the clock" in source["user_message"]
    assert first["usage"]
    second = json.loads(run(cato.environment, *question, "--thread", first["thread_id"]).stdout)["result"]
    assert second["thread_id"] == first["thread_id"]
    assert second["turn_id"] != first["turn_id"]


def test_an_answer_is_printed_while_it_is_written(cato, alice, endpoint):
    endpoint.script("cato", tokens=400, token_delay=0.05)
    message = "Print what is written"
    command = [sys.executable, "-m", "cato_web.cli", "--ask", message, "--user", alice.email]
    with subprocess.Popen(command, cwd=ROOT, env=cato.environment, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        try:
            begin = asking.stdout.read(10)
            states = cato.sql("SELECT state FROM chat_turn WHERE message = ?", message)
        finally:
            asking.kill()
    assert begin == "word0 word"
    assert states == [("answering",)]


def test_a_thread_or_space_of_others_does_not_exist_for_a_user(cato, alice, bob, endpoint):
    endpoint.script("cato", answer="Yes.")
    thread = alice.send_message("Mine alone")
    for arguments in (["--thread", thread], ["--space", str(uuid.uuid4())], ["--space", "No such group"]):
        refused = run(cato.environment, "--ask", "And mine?", "--user", bob.email, *arguments)
        assert refused.returncode == 1, arguments
        assert refused.stdout == ""
    assert cato.sql("SELECT COUNT(*) FROM chat_turn WHERE message = ?", "And mine?") == [(0,)]
    assert run(cato.environment, "--ask", "And mine?", "--user", alice.email, "--thread", thread).returncode == 0


def test_a_text_is_added_to_a_space_and_found_there_only(cato, alice, bob):
    fact = f"The flag {uuid.uuid4().hex[:6]} is in the loft."
    added = run(
        cato.environment, "--add-to-vector-store", "-", "--name", "flag.txt", "--space", "team",
        "--user", alice.email, stdin=fact,
    )  # fmt: skip
    assert (added.returncode, added.stdout) == (0, "flag.txt: added, passages: 1\n")

    def query(person, *arguments: str) -> list[str]:
        found = run(
            cato.environment, "--query-vector-store", fact, "--user", person.email, "--output", "json", *arguments
        )
        return [row["user_message"] for row in json.loads(found.stdout)["result"]]

    assert query(bob, "--space", "team", "--k", "1") == [fact]
    assert fact not in query(alice, "--space", "own")


def test_the_text_of_a_question_or_query_comes_from_standard_input(cato, alice, endpoint):
    endpoint.script("cato", answer="Heard.")
    text = f"Piped {uuid.uuid4().hex[:6]}"
    assert run(cato.environment, "--ask", "-", "--user", alice.email, stdin=text).stdout == "Heard.\n"
    assert cato.sql("SELECT COUNT(*) FROM chat_turn WHERE message = ?", text) == [(1,)]
    assert run(cato.environment, "--query-vector-store", "-", "--user", alice.email, stdin=text).returncode == 0
    unread = run(cato.environment, "--vector-store-stats", "--user", alice.email, stdin=text)
    assert "Standard input was not read" in unread.stderr
    assert run(cato.environment, "--vector-store-stats", "--user", alice.email).stderr == ""


def test_another_model_answers_one_question(cato, alice, endpoint):
    endpoint.script("cato", answer="Here.")
    answered = run(cato.environment, "--ask", "Which model?", "--user", alice.email, "--model", "fake-large")
    assert answered.stdout == "Here.\n", answered.stderr
    assert "fake-large" in [request["model"] for request in endpoint.requests("cato")]
    refused = run(cato.environment, "--ask", "Which model?", "--user", alice.email, "--model", "fake-larg")
    assert (refused.returncode, "Did you mean fake-large?" in refused.stderr) == (1, True)


def test_statistics_are_sentences_without_python(cato, alice):
    text = run(cato.environment, "--vector-store-stats", "--user", alice.email).stdout
    assert re.search(r"^By source +(none yet|\w+ \d+(, \w+ \d+)*)$", text, re.MULTILINE), text
    assert not {"{}", "None"} & set(text.split())


def test_config_show_names_the_origin_of_each_setting_and_no_secret(cato, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("chat: {max_attachments: 7}\n")
    environment = cato.environment | {"CATO_LLM_API_KEY": "very-secret", "CATO_CONFIG_FILE": str(file)}
    text = run(environment, "config", "show")
    assert text.returncode == 0, text.stderr
    assert f"chat.max_attachments: 7  (file {file})" in text.stdout
    assert 'llm.api_key: "***"  (environment)' in text.stdout
    assert "api.enabled: true  (default)" in text.stdout
    assert "very-secret" not in text.stdout
    as_json = json.loads(run(environment, "config", "show", "llm.api_key", "--output", "json").stdout)
    assert as_json["result"] == {"llm.api_key": {"value": "***", "origin": "environment"}}
    unknown = run(environment, "config", "show", "nonsense", "--output", "json")
    assert (unknown.returncode, json.loads(unknown.stdout)["ok"]) == (2, False)


@pytest.mark.django_db
class TestSignedRequests:
    body = json.dumps({"action": "stats", "user": None}).encode()

    def post(self, settings, signature: str | None = None, **fields: str) -> int:
        key = settings.SECRET_KEY
        headers = {"X-Cato-Signature": messages.sign(self.body, key) if signature is None else signature}
        return Client(headers=headers).post("/cli", self.body, content_type="application/json", **fields).status_code

    def test_a_signed_request_from_this_machine_is_run(self, settings):
        PersonFactory()
        assert self.post(settings) == 200

    @pytest.mark.parametrize(
        "fields",
        [{"REMOTE_ADDR": "192.0.2.7"}, {"HTTP_X_FORWARDED_FOR": "192.0.2.7"}, {"HTTP_X_FORWARDED_PROTO": "https"}],
    )
    def test_one_from_elsewhere_is_refused(self, settings, fields):
        assert self.post(settings, **fields) == 403

    def test_one_that_is_unsigned_old_or_for_another_text_is_refused(self, settings):
        key, now = settings.SECRET_KEY, time.time()
        old, early = messages.sign(self.body, key, now - 60), messages.sign(self.body, key, now + 60)
        other_text, other_key = messages.sign(b"{}", key), messages.sign(self.body, "another key")
        redated = f"{int(now)}.{old.partition('.')[2]}"
        malformed = ("", "x", ".", "é.1", "²." + "0" * 64, "9" * 5_000 + ".0")
        for signature in (*malformed, old, early, other_text, other_key, redated):
            assert self.post(settings, signature) == 403, signature
