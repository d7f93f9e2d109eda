"""LiteLLM: chat, stream, tools, structured output, Responses, embeddings and its names of errors."""

from __future__ import annotations

import json
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # instead of fetching it

import litellm
from pydantic import BaseModel

from benchmarks.clients.checks import PIXEL, WEATHER, Connection, equal, run

litellm.suppress_debug_info = True
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def complete(cato: Connection, messages: list[Any], **options: Any) -> Any:
    settings = {"model": "openai/cato", "api_base": cato.base_url, "api_key": cato.token, "max_retries": 0}
    return litellm.completion(messages=messages, **settings | options)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def check_chat(cato: Connection) -> None:
    cato.script("Ada has it.")
    answer = complete(cato, [{"role": "system", "content": "Be brief."}, user(cato.unique("Who has the key?"))])
    equal(answer.choices[0].message.content, "Ada has it.", "content")
    equal(answer.choices[0].finish_reason, "stop", "finish reason")
    equal(answer.usage.completion_tokens, 3, "tokens")


def check_conversation_continues_its_thread(cato: Connection) -> None:
    cato.script(["First.", "Second."])
    question = user(cato.unique("One?"))
    first = complete(cato, [question])
    second = complete(cato, [question, first.choices[0].message.model_dump(), user("Two?")])
    equal(second.cato["thread"], first.cato["thread"], "thread")


def check_stream(cato: Connection) -> None:
    cato.script("One two three four five six.", token_delay=0.1)
    question = [user(cato.unique("Count"))]
    chunks = list(complete(cato, question, stream=True, stream_options={"include_usage": True}))
    whole = litellm.stream_chunk_builder(chunks, messages=question)
    equal(whole.choices[0].message.content, "One two three four five six.", "content")
    equal(whole.usage.completion_tokens, 6, "tokens")
    assert len([chunk for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]) > 1, "one piece"


def check_options(cato: Connection) -> None:
    cato.script("Yes.")
    options = {"temperature": 0.2, "top_p": 0.9, "seed": 7, "stop": ["END"], "max_tokens": 50, "presence_penalty": 0.5}
    complete(cato, [user(cato.unique("Options?"))], **options)
    prompt = cato.prompt()
    equal({name: prompt.get(name) for name in options}, options, "options")


def run_tool(cato: Connection, **options: Any) -> str:
    """Return the answer after a call of the tool."""
    cato.script(["Let me see.", "It rains."], WEATHER)
    messages: list[Any] = [user(cato.unique("The weather?"))]

    def message() -> Any:
        answer = complete(cato, messages, tools=TOOLS, **options)
        whole = litellm.stream_chunk_builder(list(answer)) if options.get("stream") else answer
        return whole.choices[0].message

    first = message()
    call = first.tool_calls[0]
    equal((call.function.name, json.loads(call.function.arguments)), ("weather", {"city": "Bergen"}), "call")
    messages += [first.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "Rain in Bergen"}]
    content = str(message().content)
    equal(cato.prompt()["messages"][-1]["content"], "Rain in Bergen", "result in the prompt")
    return content


def check_tools(cato: Connection) -> None:
    equal(run_tool(cato), "It rains.", "content")


def check_tools_streamed(cato: Connection) -> None:
    equal(run_tool(cato, stream=True), "It rains.", "content")


def check_parallel_calls_streamed(cato: Connection) -> None:
    cato.script("", [[("weather", '{"city": "Bergen"}'), ("weather", '{"city": "Oslo"}')]])
    answer = complete(cato, [user(cato.unique("Both?"))], tools=TOOLS, stream=True)
    calls = litellm.stream_chunk_builder(list(answer)).choices[0].message.tool_calls
    equal([json.loads(call.function.arguments)["city"] for call in calls], ["Bergen", "Oslo"], "calls")


def check_structured_output(cato: Connection) -> None:
    cato.script('{"name": "Ada", "age": 36}')
    answer = complete(cato, [user(cato.unique("Who?"))], response_format=Person)
    equal(Person.model_validate_json(answer.choices[0].message.content), Person(name="Ada", age=36))
    equal(cato.prompt()["response_format"]["json_schema"]["name"], "Person", "schema in the prompt")


def check_image(cato: Connection) -> None:
    cato.script("Red.")
    parts = [{"type": "text", "text": cato.unique("Which colour?")}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    equal(complete(cato, [{"role": "user", "content": parts}]).choices[0].message.content, "Red.", "content")


def respond(cato: Connection, **options: Any) -> Any:
    return litellm.responses(model="openai/cato", api_base=cato.base_url, api_key=cato.token, **options)


def check_responses(cato: Connection) -> None:
    cato.script(["Ada has it.", "Since Monday."])
    first = respond(cato, input=cato.unique("Who has the key?"), instructions="Be brief.")
    equal(first.output[-1].content[0].text, "Ada has it.", "text")
    second = respond(cato, input="Since when?", previous_response_id=first.id)
    equal(second.output[-1].content[0].text, "Since Monday.", "text")
    equal(second.cato["thread"], first.cato["thread"], "thread")


def check_responses_streamed(cato: Connection) -> None:
    cato.script("One two three four five six.", token_delay=0.1)
    events = list(respond(cato, input=cato.unique("Count"), stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    equal(text, "One two three four five six.", "text")
    equal(str(events[-1].type.value), "response.completed", "last event")


def check_responses_with_tools(cato: Connection) -> None:
    cato.script(["", "It rains."], WEATHER)
    tools = [{"type": "function", "name": "weather", "parameters": PARAMETERS}]
    first = respond(cato, input=cato.unique("The weather?"), tools=tools)
    (call,) = [item for item in first.output if item.type == "function_call"]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain in Bergen"}
    last = respond(cato, input=[output], previous_response_id=first.id, tools=tools)
    equal(last.output[-1].content[0].text, "It rains.", "text")


def check_embeddings(cato: Connection) -> None:
    texts = ["The key hangs behind the door.", "Lunch is at noon."]
    answer = litellm.embedding(model="openai/cato", input=texts, api_base=cato.base_url, api_key=cato.token)
    equal(len(answer.data), 2, "number of vectors")


def check_errors(cato: Connection) -> None:
    for options, expected in [
        ({"api_key": "wrong"}, litellm.AuthenticationError),
        ({"model": "openai/none"}, litellm.NotFoundError),
        ({"n": 2}, litellm.BadRequestError),
    ]:
        try:
            complete(cato, [user("Hello")], **options)
        except expected:
            continue
        raise AssertionError(f"no {expected.__name__} for {options}")


if __name__ == "__main__":
    run(["litellm", "openai"], globals())
