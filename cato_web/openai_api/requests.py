"""What programs send: OpenAI's fields that mean something here. Those that only steer the model are the installation's."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from cato_web.openai_api.refusals import OpenAIError
from chat.services import ClientConversation, PastExchange

_INSTRUCT = ("system", "developer")
_BEGAN = "You began this conversation with:\n\n%s"


class Address(BaseModel):
    url: str


class Part(BaseModel):
    type: str
    text: str | None = None
    image_url: Address | str | None = None


class Message(BaseModel):
    role: str
    content: str | list[Part] | None = None
    tool_calls: list[Any] | None = None


class StreamOptions(BaseModel):
    include_usage: bool = False


class Format(BaseModel):
    type: str


class ChatRequest(BaseModel):
    """A conversation whose last message is to be answered. Fields that are not named here are taken and not looked at."""

    model: str | None = None
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: Format | None = None
    modalities: list[str] | None = None
    logprobs: bool | None = None


class EmbeddingRequest(BaseModel):
    """Texts to embed. `dimensions` may say what the model has anyway."""

    model: str | None = None
    input: str | list[Any]
    encoding_format: str | None = None
    dimensions: int | None = None


def to_conversation(asked: ChatRequest) -> ClientConversation:
    """The conversation as Cato takes it. Raises OpenAIError for what Cato does not do, and where nobody asks anything."""
    _refuse_what_cato_does_not_do(asked)
    instructions = [_text(m) for m in asked.messages if m.role in _INSTRUCT]
    said: list[PastExchange] = []
    pending: list[str] = []
    for message in asked.messages:
        if message.role == "user":
            pending.append(_text(message))
        elif message.role == "assistant" and (text := _text(message)):
            if pending:
                said.append(PastExchange("\n\n".join(pending), text))
                pending = []
            elif said:
                said[-1] = PastExchange(said[-1].message, f"{said[-1].answer}\n\n{text}")
            else:
                instructions.append(_BEGAN % text)
    if not pending:
        sentence = _("The last message must be a user's: Cato answers it, and does not go on with an answer.")
        raise OpenAIError(sentence, param="messages")
    return ClientConversation("\n\n".join(pending), tuple(said), "\n\n".join(filter(None, instructions)))


def pictures_of(asked: ChatRequest) -> Iterator[bytes]:
    """The pictures that go with the message to be answered. Raises OpenAIError for one that does not come along."""
    last = len(asked.messages)
    while last and asked.messages[last - 1].role != "assistant":
        last -= 1
    for message in asked.messages[last:]:
        for part in message.content if isinstance(message.content, list) else []:
            if part.type == "image_url":
                yield _picture(part)


def texts_of(asked: EmbeddingRequest, *, most: int, longest: int) -> list[str]:
    """The texts to embed, at least one. Raises OpenAIError."""
    texts: Sequence[Any] = [asked.input] if isinstance(asked.input, str) else asked.input
    if not all(isinstance(text, str) for text in texts):
        raise OpenAIError(_("Send texts, not tokens: Cato's model has its own."), param="input")
    if not texts or not all(text.strip() for text in texts):
        raise OpenAIError(_("There is nothing to embed: send one text or several, none of them empty."), param="input")
    if len(texts) > most or any(len(text) > longest for text in texts):
        sentence = _("At most %(most)s texts at once, each of at most %(longest)s characters.")
        raise OpenAIError(sentence % {"most": most, "longest": longest}, param="input")
    return list(texts)


def _refuse_what_cato_does_not_do(asked: ChatRequest) -> None:
    if asked.tools or asked.functions:
        sentence = _(
            "Cato's answers call no tools: leave tools and functions away. Its own memory is at /mcp as tools."
        )
        raise OpenAIError(sentence, code="unsupported_parameter", param="tools" if asked.tools else "functions")
    if asked.n is not None and asked.n != 1:
        raise OpenAIError(_("`n` must be 1."), code="unsupported_parameter", param="n")
    if asked.response_format is not None and asked.response_format.type != "text":
        sentence = _("Cato answers with text: leave response_format away.")
        raise OpenAIError(sentence, code="unsupported_parameter", param="response_format")
    if asked.modalities and asked.modalities != ["text"]:
        raise OpenAIError(_("Cato answers with text alone."), code="unsupported_parameter", param="modalities")
    if asked.logprobs:
        raise OpenAIError(_("Cato gives no logprobs."), code="unsupported_parameter", param="logprobs")
    for message in asked.messages:
        if message.tool_calls or message.role not in (*_INSTRUCT, "user", "assistant"):
            sentence = _("Messages are of system, developer, user and assistant, without tool calls.")
            raise OpenAIError(sentence, param="messages")


def _text(message: Message) -> str:
    if not isinstance(message.content, list):
        return (message.content or "").strip()
    for part in message.content:
        if part.type not in ("text", "image_url"):
            sentence = _("A message's parts are text and image_url, not %(type)s.") % {"type": part.type}
            raise OpenAIError(sentence, param="messages")
    return "\n\n".join(part.text for part in message.content if part.type == "text" and part.text).strip()


def _picture(part: Part) -> bytes:
    address = part.image_url.url if isinstance(part.image_url, Address) else part.image_url or ""
    head, _comma, data = address.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64")):
        sentence = _("Send pictures as data: addresses (base64); Cato fetches none from elsewhere.")
        raise OpenAIError(sentence, param="messages")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise OpenAIError(_("A picture's base64 cannot be read."), param="messages") from error
