"""The command `llm`, without plugins: Cato is a model of extra-openai-models.yaml."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.clients.checks import PIXEL, Connection, equal, run

HOME = Path(os.environ.get("CLIENT_HOME", "."))
MODELS = """\
- model_id: cato
  model_name: cato
  api_base: {base_url}
  api_key_name: cato
  vision: true
  supports_schema: true
  supports_tools: true
"""
FUNCTION = '''
def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"Rain in {city}"
'''


def run_llm(cato: Connection, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder of its own."""
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "extra-openai-models.yaml").write_text(MODELS.format(base_url=cato.base_url))
    (HOME / "keys.json").write_text(json.dumps({"cato": cato.token}))
    return subprocess.run(
        [sys.executable, "-m", "llm", *arguments],
        env=os.environ | {"LLM_USER_PATH": str(HOME)}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def llm(cato: Connection, *arguments: str) -> str:
    """Run the command and return what it prints."""
    done = run_llm(cato, *arguments)
    equal(done.returncode, 0, f"exit code ({done.stderr.strip()[-500:]})")
    return done.stdout.strip()


def check_prompt_streamed(cato: Connection) -> None:
    cato.script("Ada has it.")
    equal(llm(cato, "-m", "cato", cato.unique("Who has the key?")), "Ada has it.", "output")
    equal(cato.prompt()["stream"], True, "stream")


def check_prompt_without_stream(cato: Connection) -> None:
    cato.script("Ada has it.")
    equal(llm(cato, "-m", "cato", "--no-stream", cato.unique("Who has the key?")), "Ada has it.", "output")


def check_conversation_continues(cato: Connection) -> None:
    cato.script(["First.", "Second."])
    question = cato.unique("One?")
    llm(cato, "-m", "cato", question)
    equal(llm(cato, "-c", "Two?"), "Second.", "output")
    texts = [message["content"] for message in cato.prompt()["messages"][1:]]
    # What is recalled stands before the last message, if anything is.
    equal([*texts[:2], texts[-1].splitlines()[-1]], [question, "First.", "Two?"], "conversation in the prompt")


def check_system_prompt_and_options(cato: Connection) -> None:
    cato.script("Yes.")
    llm(cato, "-m", "cato", "-s", "Be brief.", "-o", "temperature", "0.2", "-o", "max_tokens", "50", cato.unique("Eh?"))
    prompt = cato.prompt()
    equal((prompt["temperature"], prompt["max_tokens"]), (0.2, 50), "options")
    assert "Be brief." in prompt["messages"][0]["content"], "the system prompt is missing"


def check_schema(cato: Connection) -> None:
    cato.script('{"name": "Ada", "age": 36}')
    output = llm(cato, "-m", "cato", "--schema", "name, age int", cato.unique("Who?"))
    equal(json.loads(output), {"name": "Ada", "age": 36}, "output")
    equal(cato.prompt()["response_format"]["type"], "json_schema", "response_format")


def check_tools(cato: Connection) -> None:
    for mode in ([], ["--no-stream"]):
        cato.script(["", "It rains."], [[("weather", '{"city": "Bergen"}')]])
        output = llm(cato, "-m", "cato", *mode, "--functions", FUNCTION, cato.unique("The weather?"))
        equal(output, "It rains.", "output")
        equal(cato.prompt()["messages"][-1]["content"], "Rain in Bergen", "result in the prompt")


def check_image(cato: Connection) -> None:
    cato.script("Red.")
    HOME.mkdir(parents=True, exist_ok=True)
    picture = HOME / "red.png"
    picture.write_bytes(base64.b64decode(PIXEL.partition(",")[2]))
    equal(llm(cato, "-m", "cato", "-a", str(picture), cato.unique("Which colour?")), "Red.", "output")
    assert "data:image/png" in str(cato.prompt()["messages"][-1]["content"]), "the model got no image"


def check_wrong_token_is_reported(cato: Connection) -> None:
    done = run_llm(cato, "-m", "cato", "--key", "wrong", "Hello")
    assert done.returncode, "it was accepted"
    assert "401" in done.stderr, done.stderr


if __name__ == "__main__":
    run(["llm", "openai"], globals())
