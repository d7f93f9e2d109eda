"""LangChain: chat, stream, tools, structured output, Responses, embeddings and an agent."""

from __future__ import annotations

from typing import Any

import openai
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from benchmarks.clients.checks import PIXEL, WEATHER, Connection, equal, run


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"Rain in {city}"


def model(cato: Connection, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="cato",
        base_url=cato.base_url,
        api_key=cato.token,
        max_retries=0,
        include_response_headers=True,
        **options,
    )


def thread_of(message: AIMessage) -> str:
    return str(message.response_metadata["headers"]["x-cato-thread"])


def check_chat_with_usage_and_finish_reason(cato: Connection) -> None:
    cato.script("Ada has it.", usage_details={"prompt_tokens_details": {"cached_tokens": 3}})
    answer = model(cato).invoke([("system", "Be brief."), ("user", cato.unique("Who has the key?"))])
    equal(answer.content, "Ada has it.", "content")
    equal(answer.response_metadata["finish_reason"], "stop", "finish reason")
    equal(answer.usage_metadata["output_tokens"], 3, "output tokens")
    equal(answer.usage_metadata["input_token_details"]["cache_read"], 3, "cached tokens")


def check_conversation_continues_its_thread(cato: Connection) -> None:
    cato.script(["First.", "Second."])
    messages: list[Any] = [HumanMessage(cato.unique("One?"))]
    first = model(cato).invoke(messages)
    second = model(cato).invoke([*messages, first, HumanMessage("Two?")])
    equal(second.content, "Second.", "content")
    equal(thread_of(second), thread_of(first), "thread")


def check_stream(cato: Connection) -> None:
    cato.script("One two three four five six.", token_delay=0.1)
    chunks = list(model(cato, stream_usage=True).stream(cato.unique("Count")))
    whole: Any = sum(chunks[1:], chunks[0])
    equal(whole.content, "One two three four five six.", "content")
    assert len([chunk for chunk in chunks if chunk.content]) > 1, "it came in one piece"
    equal(whole.usage_metadata["output_tokens"], 6, "output tokens")
    equal(whole.response_metadata["finish_reason"], "stop", "finish reason")


def check_closed_stream_stops_the_answer(cato: Connection) -> None:
    cato.script("One two three four five six. " * 200, token_delay=0.1)
    messages: list[Any] = [HumanMessage(cato.unique("Count on"))]
    stream = model(cato).stream(messages)
    part = next(chunk for chunk in stream if chunk.content)
    stream.close()
    cato.script("Goodbye.")
    answer = model(cato).invoke([*messages, AIMessage(part.content), HumanMessage("Enough")])
    equal(answer.content, "Goodbye.", "content")


def check_options(cato: Connection) -> None:
    cato.script("Yes.")
    options = {"temperature": 0.2, "top_p": 0.9, "seed": 7, "stop": ["END"], "max_completion_tokens": 50}
    model(cato, **options).invoke(cato.unique("Options?"))
    prompt = cato.prompt()
    found = {name: prompt.get(name) for name in ("temperature", "top_p", "seed", "stop", "max_tokens")}
    equal(found, {"temperature": 0.2, "top_p": 0.9, "seed": 7, "stop": ["END"], "max_tokens": 50}, "options")


def run_tool(cato: Connection, chat: ChatOpenAI, *, streamed: bool) -> AIMessage:
    """Return the answer after a call of the tool."""
    cato.script(["Let me see.", "It rains."], WEATHER)
    messages: list[Any] = [HumanMessage(cato.unique("The weather?"))]
    bound = chat.bind_tools([weather])

    def answer() -> AIMessage:
        if not streamed:
            return bound.invoke(messages)
        chunks: list[AIMessageChunk] = list(bound.stream(messages))
        return sum(chunks[1:], chunks[0])

    first = answer()
    calls = first.tool_calls
    equal([(call["name"], call["args"]) for call in calls], [("weather", {"city": "Bergen"})], "calls")
    messages += [first, ToolMessage(weather.invoke(calls[0]["args"]), tool_call_id=calls[0]["id"])]
    last = answer()
    equal(cato.prompt()["messages"][-1]["content"], "Rain in Bergen", "result in the prompt")
    return last


def check_tools(cato: Connection) -> None:
    equal(run_tool(cato, model(cato), streamed=False).content, "It rains.", "content")


def check_tools_streamed(cato: Connection) -> None:
    equal(run_tool(cato, model(cato), streamed=True).content, "It rains.", "content")


def check_parallel_calls(cato: Connection) -> None:
    cato.script(["", "Rain and sun."], [[("weather", '{"city": "Bergen"}'), ("weather", '{"city": "Oslo"}')]])
    agent = create_agent(model(cato), tools=[weather])
    parts = list(agent.stream({"messages": [("user", cato.unique("Both?"))]}, stream_mode="messages"))
    equal("".join(part.text for part, _ in parts if part.type == "AIMessageChunk"), "Rain and sun.", "text")
    results = [message["content"] for message in cato.prompt()["messages"] if message["role"] == "tool"]
    equal(sorted(results), ["Rain in Bergen", "Rain in Oslo"], "results in the prompt")


def check_forced_tool(cato: Connection) -> None:
    cato.script("", WEATHER)
    model(cato).bind_tools([weather], tool_choice="weather").invoke(cato.unique("Force it"))
    equal(cato.prompt()["tool_choice"], {"type": "function", "function": {"name": "weather"}}, "tool_choice")
    cato.script("", WEATHER)
    model(cato).bind_tools([weather], tool_choice="any").invoke(cato.unique("Force any"))
    equal(cato.prompt()["tool_choice"], "required", "tool_choice")


def check_structured_output_by_schema(cato: Connection) -> None:
    cato.script('{"name": "Ada", "age": 36}')
    found = model(cato).with_structured_output(Person, method="json_schema").invoke(cato.unique("Who?"))
    equal(found, Person(name="Ada", age=36))
    equal(cato.prompt()["response_format"]["type"], "json_schema", "response_format")


def check_structured_output_by_function(cato: Connection) -> None:
    cato.script("", [[("Person", '{"name": "Ada", "age": 36}')]])
    found = model(cato).with_structured_output(Person, method="function_calling").invoke(cato.unique("Who?"))
    equal(found, Person(name="Ada", age=36))


def check_structured_output_in_json_mode(cato: Connection) -> None:
    cato.script('{"name": "Ada", "age": 36}')
    found = model(cato).with_structured_output(Person, method="json_mode").invoke(cato.unique("Who, as JSON?"))
    equal(found, Person(name="Ada", age=36))


def check_image(cato: Connection) -> None:
    cato.script("Red.")
    parts = [{"type": "text", "text": cato.unique("Which colour?")}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    equal(model(cato).invoke([HumanMessage(parts)]).content, "Red.", "content")
    assert "data:image/png" in str(cato.prompt()["messages"][-1]["content"]), "the model got no image"


def responses(cato: Connection, **options: Any) -> ChatOpenAI:
    return model(cato, use_responses_api=True, output_version="responses/v1", **options)


def check_responses(cato: Connection) -> None:
    cato.script("Ada has it.")
    answer = responses(cato).invoke([("system", "Be brief."), ("user", cato.unique("Who has the key?"))])
    equal(answer.text, "Ada has it.", "text")
    equal(answer.usage_metadata["output_tokens"], 3, "output tokens")
    assert answer.response_metadata["id"].startswith("resp_"), "no id of a response"


def check_responses_streamed(cato: Connection) -> None:
    cato.script("One two three four five six.", token_delay=0.1)
    chunks = list(responses(cato).stream(cato.unique("Count")))
    whole: Any = sum(chunks[1:], chunks[0])
    equal(whole.text, "One two three four five six.", "text")
    assert len([chunk for chunk in chunks if chunk.text]) > 1, "it came in one piece"
    equal(whole.usage_metadata["output_tokens"], 6, "output tokens")


def check_responses_with_tools(cato: Connection) -> None:
    equal(run_tool(cato, responses(cato), streamed=False).text, "It rains.", "text")
    equal(run_tool(cato, responses(cato), streamed=True).text, "It rains.", "text")


def check_responses_with_structured_output(cato: Connection) -> None:
    cato.script('{"name": "Ada", "age": 36}')
    found = responses(cato).with_structured_output(Person, method="json_schema").invoke(cato.unique("Who?"))
    equal(found, Person(name="Ada", age=36))


def check_responses_after_a_previous_one(cato: Connection) -> None:
    cato.script(["First.", "Second."])
    chat = responses(cato, use_previous_response_id=True)
    messages: list[Any] = [HumanMessage(cato.unique("One?"))]
    first = chat.invoke(messages)
    second = chat.invoke([*messages, first, HumanMessage("Two?")])
    equal(thread_of(second), thread_of(first), "thread")


def check_agent(cato: Connection) -> None:
    cato.script(["", "It rains in Bergen."], WEATHER)
    agent = create_agent(model(cato), tools=[weather], system_prompt="Answer with the tools.")
    state = agent.invoke({"messages": [("user", cato.unique("The weather of Bergen?"))]})
    equal(state["messages"][-1].content, "It rains in Bergen.", "last message")


def check_embeddings(cato: Connection) -> None:
    names = [model["id"] for model in list_models(cato) if model["type"] == "embedding"]
    embedder = OpenAIEmbeddings(
        model=names[0], base_url=cato.base_url, api_key=cato.token, check_embedding_ctx_length=False
    )
    vectors = embedder.embed_documents(["The key hangs behind the door.", "Lunch is at noon."])
    equal(len(vectors), 2, "number of vectors")
    equal(len(embedder.embed_query("Where is the key?")), len(vectors[0]), "length of a query's vector")


def list_models(cato: Connection) -> list[dict[str, Any]]:
    client = openai.OpenAI(base_url=cato.base_url, api_key=cato.token)
    return [row.model_dump() for row in client.models.list()]


def check_errors(cato: Connection) -> None:
    for chat, expected in [
        (ChatOpenAI(model="cato", base_url=cato.base_url, api_key="wrong", max_retries=0), openai.AuthenticationError),
        (ChatOpenAI(model="none", base_url=cato.base_url, api_key=cato.token, max_retries=0), openai.NotFoundError),
    ]:
        try:
            chat.invoke("Hello")
        except expected:
            continue
        raise AssertionError(f"no {expected.__name__}")


if __name__ == "__main__":
    run(["langchain-openai", "langchain"], globals())
