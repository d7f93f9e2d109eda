"""Requests in a form that servers accept: without fields that a model does not know, and with calls that can be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from chat.errors import ModelError
from chat.llm import client
from chat.llm.endpoint import ModelEndpoint

QUESTION = [{"role": "user", "content": "Where is the key?"}]


def ask(endpoint, key: str, options: Mapping[str, Any] = client.NO_OPTIONS, *, messages: Any = QUESTION) -> str:
    async def read() -> str:
        asked = ModelEndpoint(endpoint.openai_url, key, "fake")
        return "".join([chunk.text async for chunk in client.stream(asked, messages, options=options)])

    return client.run(read())


@pytest.fixture
def scripted(endpoint, monkeypatch):
    """Return a function that sets what the endpoint does, of which nothing is known yet."""
    monkeypatch.setattr(client, "_unsupported", {})

    def script(mode: str) -> None:
        endpoint.script(mode, mode=mode, answer="Behind the clock.")
        endpoint.clear(mode)

    return script


def test_a_reasoning_model_is_asked_without_temperature_and_with_its_own_limit(endpoint, scripted, settings):
    scripted("reasoning-model")

    assert ask(endpoint, "reasoning-model") == "Behind the clock."
    assert ask(endpoint, "reasoning-model", {"max_tokens": 7}) == "Behind the clock."

    *rejected, first, second = endpoint.requests("reasoning-model")
    assert len(rejected) == 2
    assert not {"temperature", "max_tokens"} & {*first, *second}
    assert first["max_completion_tokens"] == settings.CATO.llm.max_tokens
    assert second["max_completion_tokens"] == 7


def test_a_server_that_does_not_know_stream_options_is_asked_without(endpoint, scripted, settings):
    scripted("no-stream-options")

    assert ask(endpoint, "no-stream-options") == "Behind the clock."
    assert ask(endpoint, "no-stream-options") == "Behind the clock."

    rejected, *accepted = endpoint.requests("no-stream-options")
    assert "stream_options" in rejected
    assert len(accepted) == 2
    assert all("stream_options" not in each and each["temperature"] == rejected["temperature"] for each in accepted)


def test_a_client_is_told_that_the_model_does_not_accept_its_temperature(endpoint, scripted):
    scripted("reasoning-model")
    ask(endpoint, "reasoning-model")

    with pytest.raises(ModelError) as caught:
        ask(endpoint, "reasoning-model", {"temperature": 0.2})

    assert (caught.value.code, caught.value.reason.code) == ("rejected", "unsupported_value")


def test_an_answer_that_has_begun_is_not_requested_again_without_a_field(endpoint, scripted):
    scripted("event-unsupported-midway")

    with pytest.raises(ModelError):
        ask(endpoint, "event-unsupported-midway")

    assert len(endpoint.requests("event-unsupported-midway")) == 1


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "null"])
def test_a_call_with_arguments_that_are_no_json_does_not_make_the_prompt_unusable(endpoint, scripted, arguments):
    scripted("reads-arguments")
    call = {"id": "x", "type": "function", "function": {"name": "search", "arguments": arguments}}
    messages = [
        *QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "x", "content": "Error: the arguments are not valid JSON."},
    ]

    assert ask(endpoint, "reads-arguments", messages=messages) == "Behind the clock."

    assert call["function"]["arguments"] == arguments
