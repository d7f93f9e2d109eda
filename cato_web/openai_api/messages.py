"""The messages of a request, and their conversion to a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _
from pydantic import BaseModel

from cato_web.api.fields import decode_image
from cato_web.openai_api.errors import OpenAIError
from cato_web.openai_api.tool_requests import (
    ToolCallMessage,
    ToolSequence,
    call_message,
    check_length,
    result_message,
)
from chat.services import ClientConversation, PastExchange
from memory.api import InvalidInputError

_INSTRUCTION_ROLES = ("system", "developer")


class ImageUrl(BaseModel):
    """A `data:` URL."""

    url: str


class Part(BaseModel):
    """A text, a refusal or an image of a message."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | str | None = None


class Message(BaseModel):
    """A message with any role."""

    role: str
    content: str | list[Part] | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallMessage] | None = None
    tool_call_id: str | None = None


class _ConversationBuilder:
    """Collects exchanges: the messages of the user, the calls and results of tools, and the final answer.

    Tool messages are kept for the exchange that has no final answer yet. A user's message after results joins the
    messages before the calls.
    """

    def __init__(self) -> None:
        self.instructions: list[str] = []
        self.opening: list[str] = []
        self.history: list[PastExchange] = []
        self.pending: list[str] = []
        self.tool_messages: list[dict[str, Any]] = []
        self._sequence = ToolSequence()

    def add(self, message: Message) -> None:
        """Add the next message. Raises OpenAIError if it cannot be at this place."""
        if message.role == "tool":
            if _has_image(message):
                raise OpenAIError(_("The output of a function is text; send pictures in a message."), param="messages")
            self._sequence.add_result(message.tool_call_id)
            self.tool_messages.append(result_message(message.tool_call_id or "", _text(message)))
        elif message.role in _INSTRUCTION_ROLES:
            self.instructions.append(_text(message))
        elif message.role == "user":
            self._sequence.ensure_closed()
            self.pending.append(_text(message) or (_("Image") if _has_image(message) else ""))
        elif message.tool_calls:
            self._sequence.add_calls(message.tool_calls)
            if not self.pending and self.history:
                self._reopen()
            self.tool_messages.append(call_message(_text(message), message.tool_calls))
        elif text := _text(message):
            self._sequence.ensure_closed()
            self._add_answer(text)

    def build(self) -> ClientConversation:
        """Return the conversation. Raises OpenAIError if there is nothing to answer at its end."""
        self._sequence.ensure_closed()
        if not self.pending:
            sentence = _(
                "The last message must be a user's or a tool's: Cato answers it, and does not go on with an answer."
            )
            raise OpenAIError(sentence, param="messages")
        check_length(self.tool_messages)
        return ClientConversation(
            "\n\n".join(self.pending),
            tuple(self.history),
            "\n\n".join(filter(None, self.instructions)),
            tuple(self.tool_messages),
            "\n\n".join(self.opening),
        )

    def _add_answer(self, text: str) -> None:
        if self.pending:
            self.history.append(PastExchange("\n\n".join(self.pending), text))
        elif self.history:
            self.history[-1] = PastExchange(self.history[-1].message, f"{self.history[-1].answer}\n\n{text}")
        else:
            self.opening.append(text)
        self.pending, self.tool_messages = [], []

    def _reopen(self) -> None:
        """Go on with the last exchange, whose answer is followed by calls."""
        last = self.history.pop()
        self.pending, self.tool_messages = [last.message], [{"role": "assistant", "content": last.answer}]


def build_conversation(messages: Sequence[Message]) -> ClientConversation:
    """Convert the messages. Raises OpenAIError if they are in no valid order, or end without anything to answer."""
    builder = _ConversationBuilder()
    for message in messages:
        builder.add(message)
    return builder.build()


def check_roles(messages: Sequence[Message], *, allow_tools: bool) -> None:
    """Raise OpenAIError if a message has another role than those that are known."""
    roles = (*_INSTRUCTION_ROLES, "user", "assistant", *(("tool",) if allow_tools else ()))
    for message in messages:
        if message.role not in roles or (message.tool_calls and (not allow_tools or message.role != "assistant")):
            sentence = _("A message's role is one of %(roles)s, and only the assistant calls tools.")
            if not allow_tools:
                sentence = _("A background request has messages of %(roles)s, without tools.")
            raise OpenAIError(sentence % {"roles": ", ".join(roles)}, param="messages")


def image_bytes(messages: Sequence[Message]) -> Iterator[bytes]:
    """Yield the images of the message to be answered. Raises OpenAIError for an image that is not embedded in it."""
    start = len(messages)
    while start and (messages[start - 1].role != "assistant" or messages[start - 1].tool_calls):
        start -= 1
    for message in messages[start:]:
        for part in message.content if isinstance(message.content, list) else []:
            if part.type == "image_url":
                yield _decode_image(part)


def _text(message: Message) -> str:
    """Return the text of a message, or its refusal, which is the text of an answer."""
    if not isinstance(message.content, list):
        return (message.content or message.refusal or "").strip()
    for part in message.content:
        if part.type not in ("text", "refusal", "image_url"):
            sentence = _("A message's parts are text and image_url, not %(type)s.") % {"type": part.type}
            raise OpenAIError(sentence, param="messages")
    texts = (part.refusal if part.type == "refusal" else part.text for part in message.content)
    return "\n\n".join(filter(None, texts)).strip()


def _has_image(message: Message) -> bool:
    return isinstance(message.content, list) and any(part.type == "image_url" for part in message.content)


def _decode_image(part: Part) -> bytes:
    url = part.image_url.url if isinstance(part.image_url, ImageUrl) else part.image_url or ""
    try:
        return decode_image(url)
    except InvalidInputError as error:
        raise OpenAIError(str(error), param="messages") from error
