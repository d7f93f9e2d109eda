"""Prompts: a stable beginning for the provider's cache, and no more than the limit."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chat.llm.prompts import build_prompt, fit_history
from memory.spaces import access
from tests.factories import exchange, thread, turn

pytestmark = pytest.mark.django_db


def test_everything_before_the_new_message_is_stable_whatever_is_recalled(person):
    thread_ = thread(person)
    turns = []
    prompts = []
    for number in range(3):
        history = fit_history(turns, max_tokens=10_000)
        old_turn = turn(thread_, f"Question {number}", f"Answer {number}")
        prompts.append(build_prompt(history=history, prompt_context=f"zebra {number}", turn=old_turn, attachments=()))
        turns.append(old_turn)

    for earlier, later in pairwise(prompts):
        stable = earlier[:-1]
        assert repr(later[: len(stable)]).encode() == repr(stable).encode()
        assert "zebra" not in repr(stable)
    assert prompts[-1][-1]["content"].endswith("Question 2")


def test_turns_that_no_longer_fit_into_the_prompt_can_be_recalled(memory, person):
    thread_ = thread(person)
    turns = []
    for number in range(4):
        stored = exchange(person, f"The code of door {number} is 47{number}1.", "x" * 400, thread_id=thread_.id)
        turns.append(turn(thread_, stored.user_message, stored.assistant_message, exchange_id=stored.id))
    memory.index_pending()

    history = fit_history(turns, max_tokens=300)

    assert list(history.turns) == turns[2:]
    in_prompt = {t.exchange_id for t in turns[2:]}
    assert history.exchange_ids == in_prompt
    found = memory.recall(
        ["What is the code of door 0?"], spaces=access.readable_space_ids(person.id), exclude=history.exchange_ids
    )
    recalled = {r.exchange.id for r in found.results}
    assert turns[0].exchange_id in recalled
    assert not recalled & in_prompt
