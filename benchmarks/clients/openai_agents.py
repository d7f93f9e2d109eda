"""OpenAI Agents SDK: runs, streams, tools, handoffs, structured output and sessions, by Responses and by chat."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

from benchmarks.clients.checks import WEATHER, Connection, equal, run

KINDS = (OpenAIResponsesModel, OpenAIChatCompletionsModel)


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@function_tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"Rain in {city}"


def agent(cato: Connection, kind: Any, **options: Any) -> Agent:
    client = AsyncOpenAI(base_url=cato.base_url, api_key=cato.token, max_retries=0)
    return Agent(
        **{"name": "Helper", "instructions": "Be brief.", "model": kind(model="cato", openai_client=client)} | options
    )


def check_run(cato: Connection) -> None:
    for kind in KINDS:
        cato.script("Ada has it.")
        result = Runner.run_sync(agent(cato, kind), cato.unique("Who has the key?"))
        equal(result.final_output, "Ada has it.", kind.__name__)
        equal(result.context_wrapper.usage.output_tokens, 3, "output tokens")


def check_stream(cato: Connection) -> None:
    async def stream(kind: Any) -> tuple[str, Any]:
        result = Runner.run_streamed(agent(cato, kind), cato.unique("Count"))
        events = [event async for event in result.stream_events() if event.type == "raw_response_event"]
        deltas = [event.data.delta for event in events if event.data.type == "response.output_text.delta"]
        assert len(deltas) > 1, "it came in one piece"
        return "".join(deltas), result.final_output

    for kind in KINDS:
        cato.script("One two three four five six.", token_delay=0.1)
        equal(asyncio.run(stream(kind)), ("One two three four five six.",) * 2, kind.__name__)


def check_tools(cato: Connection) -> None:
    for kind in KINDS:
        cato.script(["Let me see.", "It rains."], WEATHER)
        result = Runner.run_sync(agent(cato, kind, tools=[weather]), cato.unique("The weather?"))
        equal(result.final_output, "It rains.", kind.__name__)
        equal(cato.prompt()["messages"][-1]["content"], "Rain in Bergen", "result in the prompt")


def check_parallel_calls(cato: Connection) -> None:
    for kind in KINDS:
        cato.script(["", "Rain and sun."], [[("weather", '{"city": "Bergen"}'), ("weather", '{"city": "Oslo"}')]])
        result = Runner.run_sync(agent(cato, kind, tools=[weather]), cato.unique("Both?"))
        equal(result.final_output, "Rain and sun.", kind.__name__)
        results = [message["content"] for message in cato.prompt()["messages"] if message["role"] == "tool"]
        equal(results, ["Rain in Bergen", "Rain in Oslo"], "results in the prompt")


def check_options(cato: Connection) -> None:
    for kind in KINDS:
        cato.script(["", "It rains."], WEATHER)
        settings = ModelSettings(
            temperature=0.2, top_p=0.9, max_tokens=50, tool_choice="required", parallel_tool_calls=False
        )
        Runner.run_sync(agent(cato, kind, tools=[weather], model_settings=settings), cato.unique("Options?"))
        prompt, expected = (
            cato.prompt(),
            {"temperature": 0.2, "top_p": 0.9, "max_tokens": 50, "parallel_tool_calls": False},
        )
        equal({name: prompt.get(name) for name in expected}, expected, kind.__name__)


def check_tools_streamed(cato: Connection) -> None:
    async def stream(kind: Any) -> Any:
        result = Runner.run_streamed(agent(cato, kind, tools=[weather]), cato.unique("The weather?"))
        async for _event in result.stream_events():
            pass
        return result.final_output

    for kind in KINDS:
        cato.script(["Let me see.", "", "It rains."], [*WEATHER, *WEATHER])
        equal(asyncio.run(stream(kind)), "It rains.", kind.__name__)


def check_structured_output(cato: Connection) -> None:
    for kind in KINDS:
        cato.script('{"name": "Ada", "age": 36}')
        result = Runner.run_sync(agent(cato, kind, output_type=Person), cato.unique("Who?"))
        equal(result.final_output, Person(name="Ada", age=36), kind.__name__)
        equal(cato.prompt()["response_format"]["type"], "json_schema", "response_format")


def check_handoff_to_another_agent(cato: Connection) -> None:
    for kind in KINDS:
        cato.script(["", "Regn."], [[("transfer_to_norwegian", "{}")]])
        norwegian = agent(cato, kind, name="Norwegian", instructions="Answer in Norwegian.")
        result = Runner.run_sync(agent(cato, kind, handoffs=[norwegian]), cato.unique("Weather, in Norwegian?"))
        equal((result.final_output, result.last_agent.name), ("Regn.", "Norwegian"), kind.__name__)
        assert "Answer in Norwegian." in cato.prompt()["messages"][0]["content"], "the other agent's instructions"


def check_session_of_several_runs(cato: Connection) -> None:
    for kind in KINDS:
        cato.script(["", "It rains.", "Take a coat."], WEATHER)
        session, helper = SQLiteSession(cato.unique("session")), agent(cato, kind, tools=[weather])
        Runner.run_sync(helper, cato.unique("The weather?"), session=session)
        result = Runner.run_sync(helper, "What shall I wear?", session=session)
        equal(result.final_output, "Take a coat.", kind.__name__)
        roles = [message["role"] for message in cato.prompt()["messages"]]
        equal(roles, ["system", "user", "assistant", "user"], "messages of the prompt")


def check_previous_response(cato: Connection) -> None:
    cato.script(["First.", "Second."])
    helper = agent(cato, OpenAIResponsesModel)
    first = Runner.run_sync(helper, cato.unique("One?"))
    second = Runner.run_sync(helper, "Two?", previous_response_id=first.last_response_id)
    equal(second.final_output, "Second.", "output")
    equal([message["role"] for message in cato.prompt()["messages"]], ["system", "user", "assistant", "user"], "prompt")


if __name__ == "__main__":
    set_tracing_disabled(True)
    run(["openai-agents", "openai"], globals())
