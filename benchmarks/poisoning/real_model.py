"""Let a real model answer hostile prompts, and count how often it follows them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from benchmarks.poisoning.frame import has_canary
from benchmarks.poisoning.measure import Rates


def count_followed(rates: Rates, base_url: str, model: str, count: int) -> tuple[int, int]:
    """Return how many of the first `count` answers to hostile prompts have the attacker's word, and how many there are.

    Raises ModelError.
    """
    prompts = [messages for _question, messages in rates.hostile_messages[:count]]
    answers = [asyncio.run(_answer(messages, base_url, model)) for messages in prompts]
    return sum(map(has_canary, answers)), len(answers)


async def _answer(messages: list[dict[str, object]], base_url: str, model: str) -> str:
    from chat.llm import client
    from chat.llm.endpoint import ModelEndpoint

    endpoint = ModelEndpoint(base_url=base_url.rstrip("/"), api_key="none", model=model)
    options = {"temperature": 0, "max_tokens": 300}
    text = ""
    async with aclosing(client.stream(endpoint, messages, model=model, options=options)) as chunks:
        async for chunk in chunks:
            text += chunk.text
    return text
