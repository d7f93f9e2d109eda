"""What the model is sent: the stable part first, so that a provider's cache keeps working, and no more than fits."""

from __future__ import annotations

from itertools import pairwise

import pytest

from chat.llm.prompts import build_prompt, fit_history
from memory.spaces import access
from tests.factories import exchange, thread, turn

pytestmark = pytest.mark.django_db


def test_all_but_the_new_message_is_the_same_from_turn_to_turn_whatever_is_recalled(person):
    here = thread(person)
    turns = []
    prompts = []
    for number in range(3):
        history = fit_history(turns, max_tokens=10_000)
        asked = turn(here, f"Question {number}", f"Answer {number}")
        prompts.append(build_prompt(history=history, prompt_context=f"zebra {number}", turn=asked))
        turns.append(asked)

    for earlier, later in pairwise(prompts):
        stable = earlier[:-1]
        assert repr(later[: len(stable)]).encode() == repr(stable).encode()
        assert "zebra" not in repr(stable)
    assert prompts[-1][-1]["content"].endswith("Question 2")


def test_what_no_longer_fits_into_the_prompt_can_be_recalled(memory, person):
    here = thread(person)
    turns = []
    for number in range(4):
        said = exchange(person, f"The code of door {number} is 47{number}1.", "x" * 400, thread_id=here.id)
        turns.append(turn(here, said.user_message, said.assistant_message, exchange_id=said.id))
    memory.index_pending()

    history = fit_history(turns, max_tokens=300)

    assert list(history.turns) == turns[2:]
    kept = {t.exchange_id for t in turns[2:]}
    assert history.exchange_ids == kept
    found = memory.recall(
        ["What is the code of door 0?"], spaces=access.readable_space_ids(person.id), exclude=history.exchange_ids
    )
    recalled = {r.exchange.id for r in found.results}
    assert turns[0].exchange_id in recalled
    assert not recalled & kept
