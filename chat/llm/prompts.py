"""Builds prompts: the stable part first (system, history), then the recalled passages and the new message."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from chat.llm.client import Message
from chat.models import Attachment, Turn
from memory.api import estimate_tokens

BASE_PROMPT = Path(__file__).with_name("base_prompt.md")
_RESERVED_TOKENS = 500
# The images of this many earlier turns are sent again, for follow-up questions.
_MAX_TURNS_WITH_IMAGES = 2


@dataclass(frozen=True, slots=True)
class PromptHistory:
    """The turns that fit into the prompt, oldest first, their exchanges, and the length of the whole conversation."""

    turns: tuple[Turn, ...]
    exchange_ids: frozenset[uuid.UUID]
    length: int

    def without(self, exchange_ids: Set[uuid.UUID]) -> PromptHistory:
        """Return the history without the turns of these exchanges."""
        turns = tuple(turn for turn in self.turns if turn.effective_exchange_id not in exchange_ids)
        return replace(self, turns=turns, exchange_ids=self.exchange_ids - exchange_ids)


def system_prompt(instructions: str = "", *, standing: str = "") -> str:
    """Return the `standing` instructions, base prompt (unless overridden), configured files and thread's `instructions`."""
    llm = settings.CATO.llm
    base = llm.base_prompt_file or BASE_PROMPT
    files = list(llm.system_prompt_files) if llm.override_base_prompt else [base, *llm.system_prompt_files]
    parts = [standing, *(_read(str(path), path.stat().st_mtime) for path in files), instructions]
    return "\n\n".join(filter(None, parts))


def fit_history(turns: list[Turn], *, max_tokens: int) -> PromptHistory:
    """Return the last of `turns` (oldest first) that fit into `max_tokens` and `chat_window`."""
    window = settings.CATO.vector_store.chat_window
    fitting: list[Turn] = []
    for turn in reversed(turns):
        cost = estimate_tokens(turn.message) + estimate_tokens(turn.answer)
        if cost > max_tokens or (window >= 0 and len(fitting) >= window):
            break
        max_tokens -= cost
        fitting.insert(0, turn)
    return PromptHistory(
        turns=tuple(fitting),
        exchange_ids=frozenset(turn.effective_exchange_id for turn in fitting if turn.effective_exchange_id),
        length=2 * len(turns) + 1,
    )


def history_token_budget(message: str, instructions: str = "", *, standing: str = "", attached: str = "") -> int:
    """Return the tokens left for history after the system prompt, recalled passages, attached files, message and answer."""
    conf = settings.CATO
    texts = (system_prompt(instructions, standing=standing), attached, message)
    used = sum(estimate_tokens(text) for text in texts if text) + _RESERVED_TOKENS
    recalled = conf.vector_store.context_max_tokens if conf.vector_store.inject_context else 0
    return int(conf.llm.context_tokens - conf.llm.max_tokens - recalled - used)


def tokens_left(prompt: Sequence[Message]) -> int:
    """Return the number of tokens that a prompt can grow by, estimated from its texts."""
    conf = settings.CATO.llm
    texts = (message.get("content") for message in prompt)
    used = sum(estimate_tokens(text) for text in texts if isinstance(text, str))
    return int(conf.context_tokens - conf.max_tokens - used)


def tool_text(turn: Turn) -> str:
    """Return the text of the turn's tool calls and results, to count its tokens."""
    return json.dumps(turn.tool_messages, ensure_ascii=False) if turn.tool_messages else ""


def build_prompt(
    *,
    history: PromptHistory,
    prompt_context: str,
    turn: Turn,
    attachments: Iterable[Attachment],
    web_context: str = "",
    attached_context: str = "",
    standing: str = "",
    partial_answer: str = "",
) -> list[Message]:
    """Return the messages for the endpoint.

    `web_context` is what is quoted of the web, `attached_context` are the texts of attached files; `standing` are the
    standing instructions; `partial_answer` is the text of an answer to be resumed.
    """
    new = "\n\n---\n\n".join(filter(None, (prompt_context, web_context, attached_context, turn.message)))
    messages: list[Message] = [
        {"role": "system", "content": system_prompt(turn.thread.instructions, standing=standing)},
        *_history_messages(history),
        {"role": "user", "content": _message_content(new, attachments)},
        *turn.tool_messages,
    ]
    if partial_answer:
        messages += [
            {"role": "assistant", "content": partial_answer},
            {"role": "user", "content": "Go on exactly where you stopped, without repeating anything."},
        ]
    return messages


def _history_messages(history: PromptHistory) -> Iterator[Message]:
    """Yield the messages of the history, with the images of the last turns that have any; older images are named."""
    with_images = [turn.id for turn in history.turns if any(row.is_image for row in turn.shown_attachments)]
    sent_again = set(with_images[-_MAX_TURNS_WITH_IMAGES:])
    for turn in history.turns:
        if turn.id in sent_again:
            documents = [row for row in turn.shown_attachments if not row.is_image]
            text = turn.message + _names(documents)
            yield {"role": "user", "content": _message_content(text, turn.shown_attachments)}
        else:
            yield {"role": "user", "content": turn.message + _names(turn.shown_attachments)}
        yield {"role": "assistant", "content": turn.answer}


def _names(attachments: Iterable[Attachment]) -> str:
    """Return a line for each attachment that is not sent with this message of the history."""
    return "".join(f"\n[{'picture' if row.is_image else 'file'}: {row.name}]" for row in attachments)


@lru_cache(maxsize=32)
def _read(path: str, changed_at: float) -> str:
    return Path(path).read_text(encoding="utf-8").strip()


def _message_content(text: str, attachments: Iterable[Attachment]) -> str | list[dict[str, Any]]:
    """Return the content of a message: its text, or a list of parts if it has images."""
    urls = [url for row in attachments if row.is_image and (url := data_url(row))]
    if not urls:
        return text
    return [{"type": "text", "text": text}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]


def data_url(image: Attachment) -> str:
    """Return the image as a data URL; "" if its file is missing."""
    try:
        with image.file.open() as file:
            return f"data:{image.media_type};base64,{base64.b64encode(file.read()).decode()}"
    except FileNotFoundError:
        return ""
