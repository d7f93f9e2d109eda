"""Request models of /v1. Sampling parameters are ignored: the configuration decides them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import BaseModel, Field

from cato_web.openai_api.errors import OpenAIError
from chat.services import ClientConversation, PastExchange

_INSTRUCTION_ROLES = ("system", "developer")
_OPENING = "You began this conversation with:\n\n%s"


class ImageUrl(BaseModel):
    """A `data:` URL."""

    url: str


class Part(BaseModel):
    """A text or an image of a message."""

    type: str
    text: str | None = None
    image_url: ImageUrl | str | None = None


class Message(BaseModel):
    """A message with any role."""

    role: str
    content: str | list[Part] | None = None
    tool_calls: list[Any] | None = None


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    include_usage: bool = False


class Format(BaseModel):
    """The requested response format."""

    type: str


class ChatRequest(BaseModel):
    """A conversation whose last message is to be answered. Other fields of OpenAI's are ignored."""

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
    """Texts to embed. `dimensions` must match the model."""

    model: str | None = None
    input: str | list[Any]
    encoding_format: str | None = None
    dimensions: int | None = None


def to_conversation(body: ChatRequest) -> ClientConversation:
    """Convert the request. Raises OpenAIError if it uses unsupported features or does not end with a user's message."""
    _check_supported(body)
    instructions = [_text(m) for m in body.messages if m.role in _INSTRUCTION_ROLES]
    history: list[PastExchange] = []
    pending: list[str] = []
    for message in body.messages:
        if message.role == "user":
            pending.append(_text(message))
        elif message.role == "assistant" and (text := _text(message)):
            if pending:
                history.append(PastExchange("\n\n".join(pending), text))
                pending = []
            elif history:
                history[-1] = PastExchange(history[-1].message, f"{history[-1].answer}\n\n{text}")
            else:
                instructions.append(_OPENING % text)
    if not pending:
        sentence = _("The last message must be a user's: Cato answers it, and does not go on with an answer.")
        raise OpenAIError(sentence, param="messages")
    return ClientConversation("\n\n".join(pending), tuple(history), "\n\n".join(filter(None, instructions)))


def image_bytes(body: ChatRequest) -> Iterator[bytes]:
    """Yield the images of the message to be answered. Raises OpenAIError for an image that is not embedded in it."""
    start = len(body.messages)
    while start and body.messages[start - 1].role != "assistant":
        start -= 1
    for message in body.messages[start:]:
        for part in message.content if isinstance(message.content, list) else []:
            if part.type == "image_url":
                yield _decode_image(part)


def input_texts(body: EmbeddingRequest, *, limit: int, max_length: int) -> list[str]:
    """Return the texts to embed, at least one. Raises OpenAIError."""
    texts: Sequence[Any] = [body.input] if isinstance(body.input, str) else body.input
    if not all(isinstance(text, str) for text in texts):
        raise OpenAIError(_("Send texts, not tokens: Cato's model has its own."), param="input")
    if not texts or not all(text.strip() for text in texts):
        raise OpenAIError(_("There is nothing to embed: send one text or several, none of them empty."), param="input")
    if len(texts) > limit or any(len(text) > max_length for text in texts):
        sentence = _("At most %(most)s texts at once, each of at most %(longest)s characters.")
        raise OpenAIError(sentence % {"most": limit, "longest": max_length}, param="input")
    return list(texts)


def _check_supported(body: ChatRequest) -> None:
    if body.tools or body.functions:
        sentence = _(
            "Cato's answers call no tools: leave tools and functions away. Its own memory is at /mcp as tools."
        )
        raise OpenAIError(sentence, code="unsupported_parameter", param="tools" if body.tools else "functions")
    if body.n is not None and body.n != 1:
        raise OpenAIError(_("`n` must be 1."), code="unsupported_parameter", param="n")
    if body.response_format is not None and body.response_format.type != "text":
        sentence = _("Cato answers with text: leave response_format away.")
        raise OpenAIError(sentence, code="unsupported_parameter", param="response_format")
    if body.modalities and body.modalities != ["text"]:
        raise OpenAIError(_("Cato answers with text alone."), code="unsupported_parameter", param="modalities")
    if body.logprobs:
        raise OpenAIError(_("Cato gives no logprobs."), code="unsupported_parameter", param="logprobs")
    for message in body.messages:
        if message.tool_calls or message.role not in (*_INSTRUCTION_ROLES, "user", "assistant"):
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


def _decode_image(part: Part) -> bytes:
    url = part.image_url.url if isinstance(part.image_url, ImageUrl) else part.image_url or ""
    head, _comma, data = url.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64")):
        sentence = _("Send pictures as data: addresses (base64); Cato fetches none from elsewhere.")
        raise OpenAIError(sentence, param="messages")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise OpenAIError(_("A picture's base64 cannot be read."), param="messages") from error
