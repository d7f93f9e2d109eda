"""Requests of OpenAI's Responses API, converted to chat requests, which Cato answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import BaseModel, BeforeValidator, Field

from cato_web.openai_api.errors import OpenAIError, unsupported
from cato_web.openai_api.messages import Message, Part
from cato_web.openai_api.requests import ChatRequest
from cato_web.openai_api.tool_requests import FunctionCall, ToolCallMessage

_TEXT_PARTS = ("input_text", "output_text", "text", "refusal")
# Where a chat request has a field under another name.
_PARAMS = {
    "messages": "input",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "max_completion_tokens": "max_output_tokens",
}


class ContentPart(BaseModel):
    """A part of a message or of a function's output."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None


class InputItem(BaseModel):
    """A message, a function call or its output. A message needs no type."""

    type: str = "message"
    role: str = ""
    content: str | list[ContentPart] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: str | list[ContentPart] = ""


class TextOptions(BaseModel):
    """The format of the answer."""

    format: dict[str, Any] | None = None


class ReasoningOptions(BaseModel):
    """How much the model reasons."""

    effort: Annotated[str, Field(max_length=20)] | None = None


def _as_items(value: object) -> object:
    """Return a text as the message of a user."""
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


class ResponseRequest(BaseModel):
    """Input to be answered, alone or after an earlier response. Other fields of OpenAI's are ignored."""

    model: str | None = None
    input: Annotated[list[InputItem], Field(min_length=1), BeforeValidator(_as_items)]
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    stream: bool | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    metadata: dict[str, Any] | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None
    n: int | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None


def to_chat_request(body: ResponseRequest, *, before: list[Message]) -> ChatRequest:
    """Convert the request, with the messages `before` its input. Raises OpenAIError if it uses unsupported features."""
    _check_supported(body)
    instructions = [Message(role="system", content=body.instructions)] if body.instructions else []
    return ChatRequest(
        model=body.model,
        messages=[*instructions, *before, *_messages(body.input)],
        stream=body.stream,
        tools=[_chat_tool(tool) for tool in body.tools] if body.tools else None,
        tool_choice=_chat_choice(body.tool_choice),
        parallel_tool_calls=body.parallel_tool_calls,
        response_format=_chat_format(body.text.format if body.text else None),
        reasoning_effort=body.reasoning.effort if body.reasoning else None,
        max_completion_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
    )


def rename_param(error: OpenAIError) -> OpenAIError:
    """Return the error of a chat request with the name that its field has in this API."""
    return OpenAIError(
        str(error),
        status=error.status,
        kind=error.kind,
        code=error.code,
        param=_PARAMS.get(error.param or "", error.param),
    )


def _check_supported(body: ResponseRequest) -> None:
    logprobs = body.top_logprobs or "message.output_text.logprobs" in (body.include or ())
    sentences = {
        "background": (body.background, _("Cato answers while the request waits: omit background, or stream.")),
        "conversation": (body.conversation, _("Conversations are threads: send previous_response_id instead.")),
        "prompt": (body.prompt, _("Cato has no prompts of OpenAI: send their text as instructions.")),
        "n": (body.n not in (None, 1), _("`n` must be 1.")),
        "top_logprobs": (
            logprobs,
            _("Responses can be read again later, and logprobs are not stored: use /v1/chat/completions for them."),
        ),
    }
    for param, (is_used, sentence) in sentences.items():
        if is_used:
            raise unsupported(sentence, param)


def _messages(items: list[InputItem]) -> Iterator[Message]:
    """Yield the items as messages. Calls that follow each other, or a text of the assistant, are one message with it."""
    answer: Message | None = None
    for item in items:
        if item.type == "function_call":
            answer = answer or Message(role="assistant")
            function = FunctionCall(name=item.name, arguments=item.arguments)
            answer.tool_calls = [*(answer.tool_calls or ()), ToolCallMessage(id=item.call_id, function=function)]
            continue
        if item.type == "reasoning":
            continue  # clients send back what other servers returned; Cato returns none
        if answer is not None:
            yield answer
            answer = None
        if item.type == "function_call_output":
            yield Message(role="tool", tool_call_id=item.call_id, content=_content(item.output))
        elif item.type != "message":
            sentence = _("Input items are messages, function_call and function_call_output, not %(type)s.")
            raise OpenAIError(sentence % {"type": item.type}, param="input")
        elif item.role == "assistant":
            answer = Message(role="assistant", content=_content(item.content))
        else:
            yield Message(role=item.role, content=_content(item.content))
    if answer is not None:
        yield answer


def _content(content: str | list[ContentPart] | None) -> str | list[Part] | None:
    if not isinstance(content, list):
        return content
    return [_part(part) for part in content]


def _part(part: ContentPart) -> Part:
    if part.type in _TEXT_PARTS:
        return Part(type="text", text=part.text or part.refusal)
    if part.type == "input_image" and part.image_url:
        return Part(type="image_url", image_url=part.image_url)
    sentence = _(
        "The parts of a message are input_text, output_text and input_image with image_url, not %(type)s. "
        "Upload files with POST /api/documents."
    )
    raise OpenAIError(sentence % {"type": part.type}, param="input")


def _chat_tool(tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        sentence = _("Cato has no built-in tools of OpenAI, such as %(type)s: send tools of the type function.")
        raise unsupported(sentence % {"type": str(tool.get("type"))[:40]}, "tools")
    return {"type": "function", "function": _without_nulls(tool, "type")}


def _chat_choice(choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") != "function":
        raise unsupported(_("tool_choice is none, auto, required or a function."), "tool_choice")
    return {"type": "function", "function": {"name": choice.get("name")}}


def _chat_format(format: dict[str, Any] | None) -> dict[str, Any] | None:
    kind = (format or {}).get("type", "text")
    if format is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": kind}
    if kind == "json_schema":
        return {"type": kind, "json_schema": _without_nulls(format, "type")}
    raise unsupported(_("text.format is of the type text, json_object or json_schema."), "text.format")


def _without_nulls(values: dict[str, Any], *left_out: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and name not in left_out}
