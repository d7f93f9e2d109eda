"""Helpers of the tests of usage: answers in this process, and usage of the past."""

from __future__ import annotations

import asyncio
import uuid
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from cato_web.accounts.models import User
from chat.answers import runner
from chat.llm import endpoint as model_endpoint
from chat.models import Turn, UsageDay
from chat.services import post_message
from chat.usage.counting import usage_date
from chat.usage.limits import set_limit
from tests.factories import thread
from tests.fake_endpoint import FakeEndpoint

KEY = "usage"


def connect(endpoint: FakeEndpoint, model: str = "fake", **script: Any) -> None:
    """Connect the fake endpoint, which does what the script says."""
    model_endpoint.save(base_url=endpoint.openai_url, api_key=KEY, model=model)
    endpoint.script(KEY, **{"answer": "It hangs behind the clock."} | script)
    endpoint.clear(KEY)


def answer(turn: Turn) -> Turn:
    """Answer a posted turn in this process, write the title of its thread, and return it."""

    async def run() -> None:
        await runner.run_answer(turn.id)
        await runner.shutdown()

    asyncio.run(run())
    turn.refresh_from_db()
    return turn


def used(person: User | None, tokens: int, *, on: date | None = None, **fields: Any) -> UsageDay:
    """Store usage of this person: so many tokens, with a cost of 1 for each million."""
    return UsageDay.objects.create(
        **{
            "date": on or usage_date(),
            "purpose": "answer",
            "model": "fake",
            "person_id": person and person.pk,
            "requests": 1,
            "prompt_tokens": tokens,
            "cost": Decimal(tokens) / 1_000_000,
        }
        | fields
    )


def last_month() -> date:
    """Return the last day of the month before this one."""
    return usage_date().replace(day=1) - timedelta(days=1)


def posted(person: User, message: str = "Where is the key?", **fields: Any) -> Turn:
    """Post a message to a new thread of this person."""
    in_thread = fields.pop("in_thread", None) or thread(person)
    return post_message(in_thread.id, author_id=person.pk, message=message, client_key=uuid.uuid4(), **fields).turn


def limit(
    target: str, id: uuid.UUID | None = None, *, soft: int | None = None, hard: int | None = None, unit: str = "tokens"
) -> None:
    """Set a limit in tokens, or in another unit."""
    amounts = {name: None if amount is None else Decimal(amount) for name, amount in (("soft", soft), ("hard", hard))}
    set_limit(target, id, unit=unit, **amounts)


def write_titles(settings: Any, value: bool) -> None:
    """Switch titles by the model on or off."""
    settings.CATO = settings.CATO.model_copy(update={"chat": settings.CATO.chat.model_copy(update={"titles": value})})
