"""The prompt: the stable part first (system, then history), then what was recalled, then the new message."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from chat.llm.client import Message
from chat.models import Image, Turn
from memory.api import estimate_tokens

BASE_PROMPT = Path(__file__).with_name("base_prompt.md")
_RESERVE = 500
# The pictures of so many earlier turns are sent again, so that one can ask on about them.
_SHOWN_AGAIN = 2


@dataclass(frozen=True, slots=True)
class PromptHistory:
    """The turns that fit into the prompt, oldest first, with the exchanges they already carry."""

    turns: tuple[Turn, ...]
    exchange_ids: frozenset[uuid.UUID]
    length: int


def system_prompt(instructions: str = "") -> str:
    """The base prompt (unless overridden) followed by the configured files and a thread's own `instructions`."""
    llm = settings.CATO.llm
    base = llm.base_prompt_file or BASE_PROMPT
    files = list(llm.system_prompt_files) if llm.override_base_prompt else [base, *llm.system_prompt_files]
    parts = [*(_read(str(path), path.stat().st_mtime) for path in files), instructions]
    return "\n\n".join(filter(None, parts))


def fit_history(turns: list[Turn], *, max_tokens: int) -> PromptHistory:
    """The last of `turns` (oldest first) that fit into `max_tokens` and `chat_window`."""
    window = settings.CATO.vector_store.chat_window
    kept: list[Turn] = []
    for turn in reversed(turns):
        cost = estimate_tokens(turn.message) + estimate_tokens(turn.answer)
        if cost > max_tokens or (window >= 0 and len(kept) >= window):
            break
        max_tokens -= cost
        kept.insert(0, turn)
    return PromptHistory(
        turns=tuple(kept),
        exchange_ids=frozenset(turn.effective_exchange_id for turn in kept if turn.effective_exchange_id),
        length=2 * len(turns) + 1,
    )


def history_token_budget(message: str, instructions: str = "") -> int:
    """How many tokens history may take beside the system prompt, what is recalled, the message and the answer."""
    conf = settings.CATO
    taken = estimate_tokens(system_prompt(instructions)) + estimate_tokens(message) + _RESERVE
    recalled = conf.vector_store.context_max_tokens if conf.vector_store.inject_context else 0
    return int(conf.llm.context_tokens - conf.llm.max_tokens - recalled - taken)


def build_prompt(*, history: PromptHistory, prompt_context: str, turn: Turn, partial_answer: str = "") -> list[Message]:
    """The messages for the endpoint; `said_so_far` is an interrupted answer to go on from."""
    new = f"{prompt_context}\n\n---\n\n{turn.message}" if prompt_context else turn.message
    messages: list[Message] = [
        {"role": "system", "content": system_prompt(turn.thread.instructions)},
        *_messages_of(history),
        {"role": "user", "content": content_of(new, turn.images.all())},
    ]
    if partial_answer:
        messages += [
            {"role": "assistant", "content": partial_answer},
            {"role": "user", "content": "Go on exactly where you stopped, without repeating anything."},
        ]
    return messages


def _messages_of(history: PromptHistory) -> Iterator[Message]:
    """What was said and answered; the pictures of the last turns that have any go along, older ones are named."""
    with_pictures = [turn.id for turn in history.turns if turn.images.all()]
    shown = set(with_pictures[-_SHOWN_AGAIN:])
    for turn in history.turns:
        if turn.id in shown:
            yield {"role": "user", "content": content_of(turn.message, turn.images.all())}
        else:
            names = "".join(f"\n[picture: {image.name}]" for image in turn.images.all())
            yield {"role": "user", "content": turn.message + names}
        yield {"role": "assistant", "content": turn.answer}


@lru_cache(maxsize=32)
def _read(path: str, changed_at: float) -> str:
    return Path(path).read_text(encoding="utf-8").strip()


def content_of(text: str, images: Iterable[Image]) -> str | list[dict[str, Any]]:
    """The content of a message to the model: its text, or a list of parts where there are pictures."""
    addresses = [address for image in images if (address := data_url(image))]
    if not addresses:
        return text
    return [{"type": "text", "text": text}, *({"type": "image_url", "image_url": {"url": url}} for url in addresses)]


def data_url(image: Image) -> str:
    """The picture as an address that carries it; empty where its file is gone."""
    try:
        with image.file.open() as file:
            return f"data:{image.media_type};base64,{base64.b64encode(file.read()).decode()}"
    except FileNotFoundError:
        return ""
