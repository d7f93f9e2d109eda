"""Broad questions recall many short excerpts in chronological order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memory.retrieval import strategies
from memory.retrieval.prompt_context import build_prompt_context, estimate_tokens
from memory.spaces import access
from tests.factories import exchange

pytestmark = pytest.mark.django_db

STEPS = (
    "The roofer Hansen came to look at the leak in the barn roof.",
    "Hansen's offer for the barn roof is 14,200 euros.",
    "We compared it with Vogt, whose offer for the barn roof is 12,900 euros.",
    "The bank approved the loan for the barn roof.",
    "We ordered the barn roof from Vogt.",
    "The scaffold for the barn roof was put up.",
    "Rain got into the hay because the barn roof was open for two days.",
    "The insurance pays 1,100 euros for the hay under the barn roof.",
    "The last tiles of the barn roof are on.",
    "The final invoice for the barn roof is 13,450 euros.",
)
BROAD = (
    "Summarise everything that happened with the barn roof.",
    "List everything we know about the barn roof.",
)


@pytest.fixture
def barn(memory, person):
    """Store the steps, the last first, each with a long answer."""
    start = datetime(2026, 2, 1, 9, tzinfo=UTC)
    for number, text in reversed(list(enumerate(STEPS))):
        exchange(person, text, f"Noted as step {number}. " * 80, timestamp=start + timedelta(days=5 * number))
    memory.index_pending()
    return access.readable_space_ids(person.id)


@pytest.mark.parametrize("question", BROAD)
def test_a_broad_question_recalls_all_moments_in_their_order_within_the_same_budget(memory, barn, question):
    results = memory.recall([question], spaces=barn).results

    assert [result.exchange.user_message for result in results] == list(STEPS)
    prompt = build_prompt_context(results, max_tokens=2000)
    assert all(step in prompt for step in STEPS)
    assert estimate_tokens(prompt) <= 2000 + 250  # the heading comes in addition


def test_another_question_recalls_at_most_five_whole_passages(memory, barn):
    results = memory.recall(["What is Vogt's offer for the barn roof?"], spaces=barn).results

    assert len(results) <= 5
    assert STEPS[2] in [result.exchange.user_message for result in results]


def test_broad_questions_are_few_among_others():
    from memory.embeddings.local import LocalEmbedder
    from memory.retrieval import probes
    from tests.questions.work import IN_OTHER_WORDS, NAMES_ONLY

    questions = [question for question, _key in (*NAMES_ONLY, *IN_OTHER_WORDS)]
    vectors = LocalEmbedder(probes.SHIPPED_MODEL).embed_queries(questions)
    found = [probes.read_traits(vector, "local", probes.SHIPPED_MODEL).broad for vector in vectors]

    assert sum(probability >= strategies._IS_BROAD for probability in found) <= 2
