"""Tool calls of a model: put together from their parts, whichever way the server sends them, with limits."""

from __future__ import annotations

import asyncio

import pytest

from chat.llm import client
from chat.llm.endpoint import ModelEndpoint
from chat.llm.events import EventError, parse_chunk
from chat.llm.tool_calls import (
    MAX_ARGUMENT_CHARS,
    MAX_CALLS,
    ToolCall,
    ToolCallCollector,
    ToolCallError,
    ToolCallPart,
    parse_parts,
)

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


def collect(*deltas: list) -> list[ToolCall]:
    collector = ToolCallCollector()
    for delta in deltas:
        collector.add(parse_parts(delta))
    return collector.calls


def test_the_calls_of_a_streamed_answer_are_put_together(endpoint):
    endpoint.script("tools", answer="Let me see.", calls=[[["weather", '{"city": "Xi’an"}'], ["weather", "{}"]]])
    model_endpoint = ModelEndpoint(base_url=endpoint.openai_url, api_key="tools", model="fake")

    async def ask() -> tuple[str, list[ToolCall], str]:
        collector, text, reason = ToolCallCollector(), "", ""
        messages = [{"role": "user", "content": "How is the weather?"}]
        async for chunk in client.stream(model_endpoint, messages, options={"tools": TOOLS}):
            collector.add(chunk.tool_calls)
            text, reason = text + chunk.text, chunk.finish_reason or reason
        await client.close_connections()
        return text, collector.calls, reason

    text, calls, reason = asyncio.run(ask())
    assert (text, reason) == ("Let me see.", "tool_calls")
    assert calls == [
        ToolCall("call-1-1", "weather", '{"city": "Xi’an"}'),
        ToolCall("call-1-2", "weather", "{}"),
    ]


def test_whole_calls_without_ids_and_indices_are_told_apart():
    whole = [{"function": {"name": "a", "arguments": {"x": 1}}}, {"function": {"name": "b", "arguments": ""}}]
    assert collect(whole) == [ToolCall("call_0", "a", '{"x": 1}'), ToolCall("call_1", "b", "")]


@pytest.mark.parametrize("index", [{"index": 0}, {"index": None}, {}])
def test_whole_calls_with_the_same_index_are_told_apart_by_their_ids(index):
    def whole(id: str, arguments: str) -> list:
        return [index | {"id": id, "function": {"name": "search", "arguments": arguments}}]

    calls = collect(whole("x", '{"n": 1}'), whole("y", '{"n": 2}'))
    assert calls == [ToolCall("x", "search", '{"n": 1}'), ToolCall("y", "search", '{"n": 2}')]


@pytest.mark.parametrize("id", ["x", "", None])
def test_a_call_whose_parts_all_have_its_name_is_one(id):
    def part(id: str | None, arguments: str) -> list:
        return [{"index": 0, "id": id, "function": {"name": "search", "arguments": arguments}}]

    assert collect(part("x", '{"n"'), part(id, ": 1}")) == [ToolCall("x", "search", '{"n": 1}')]


def test_parts_of_several_calls_can_alternate():
    def part(index: int, **function: str) -> list:
        return [{"index": index, "function": function}]

    calls = collect(
        part(0, name="a"), part(1, name="b"), part(0, arguments="{"), part(1, arguments="1"), part(0, arguments="}")
    )
    assert [(call.name, call.arguments) for call in calls] == [("a", "{}"), ("b", "1")]


@pytest.mark.parametrize(
    "value", ["text", ["text"], [{"function": "text"}], [{"index": "0"}], [{"index": True}], [{"id": 7}]]
)
def test_invalid_calls_are_an_error_of_the_stream(value):
    with pytest.raises(EventError):
        parse_chunk({"choices": [{"delta": {"tool_calls": value}}]})


def test_the_number_and_the_size_of_calls_are_limited():
    collector = ToolCallCollector()
    with pytest.raises(ToolCallError):
        collector.add([ToolCallPart(0, arguments="x" * (MAX_ARGUMENT_CHARS + 1))])
    with pytest.raises(ToolCallError):
        collector.add(ToolCallPart(index) for index in range(MAX_CALLS + 1))


def test_a_refusal_is_the_text_of_the_answer():
    assert parse_chunk({"choices": [{"delta": {"refusal": "Not that.", "content": None}}]}).text == "Not that."
