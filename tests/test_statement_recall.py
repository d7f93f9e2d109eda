"""Statements are recalled instead of their sources, with their state, and superseded ones only for a former state."""

from __future__ import annotations

from typing import Any

import pytest

from memory.exchanges.feedback import set_feedback
from memory.filters import parse_filter
from memory.knowledge import decisions
from memory.models import Exchange, Statement
from memory.retrieval.prompt_context import build_prompt_context
from memory.retrieval.types import Hit
from memory.spaces import access
from tests.factories import PersonFactory, ago, exchange, group, statement

pytestmark = pytest.mark.django_db

NOW = "How many retries a day did we agree on for our buoys?"
FORMER = "How many retries a day did a buoy make before that was changed?"
BUOYS = "A buoy makes at most 28 retries a day."
OLD_BUOYS = "A buoy makes at most 40 retries a day."


def said(person: Any, text: str, space: Any = None, **fields: Any) -> Exchange:
    return exchange(person, text, "Noted.", space=space or access.team_space(), **fields)


def recalled(memory: Any, person: Any, question: str) -> list[Hit]:
    memory.index_pending()
    return list(memory.recall([question], spaces=access.readable_space_ids(person.id), person_id=person.id).results)


def texts(hits: list[Hit]) -> list[str]:
    return [hit.exchange.user_message for hit in hits]


def update(memory: Any, person: Any) -> tuple[Statement, Statement]:
    old = statement(said(person, "A buoy may make 40 retries a day.", timestamp=ago(days=30)), text=OLD_BUOYS)
    new = statement(said(PersonFactory(), "From now on 28 retries a day per buoy."), text=BUOYS)
    decisions.supersede(old, by_statement=new, by=None)
    return old, new


def test_a_statement_stands_for_its_sources(memory, person):
    people = [person, PersonFactory(), PersonFactory()]
    sources = [said(each, f"Buoys: from now on 28 retries a day, says number {n}.") for n, each in enumerate(people)]
    statement(*sources, text=BUOYS)

    found = texts(recalled(memory, person, NOW))

    assert found == [BUOYS]


def test_a_superseded_statement_is_recalled_only_for_a_former_state(memory, person):
    update(memory, person)

    assert OLD_BUOYS not in texts(recalled(memory, person, NOW))
    hits = recalled(memory, person, FORMER)
    assert OLD_BUOYS in texts(hits)
    assert 'state="superseded, no longer true"' in build_prompt_context(hits, max_tokens=2000)


def test_the_search_finds_no_superseded_statement_either(memory, person):
    update(memory, person)
    memory.index_pending()

    found = memory.search(NOW, spaces=access.readable_space_ids(person.id)).results

    assert BUOYS in texts(found)
    assert OLD_BUOYS not in texts(found)


def test_conflicting_statements_are_recalled_together_and_marked(memory, person):
    one = statement(said(person, "The limit of a buoy is 28 retries a day."), text=BUOYS)
    other = statement(said(PersonFactory(), "Forty tries, not more."), text="The modem stops after 40 attempts.")
    decisions.contradict(one, other)

    hits = recalled(memory, person, NOW)

    found = texts(hits)
    assert found.index("The modem stops after 40 attempts.") == found.index(BUOYS) + 1
    assert build_prompt_context(hits, max_tokens=2000).count('state="contradicted by another statement"') == 2


def test_a_contradicting_statement_that_the_query_excludes_is_not_recalled(memory, person):
    one = statement(said(person, "The limit of a buoy is 28 retries a day."), text=BUOYS)
    other = statement(said(PersonFactory(), "Forty tries, not more."), text="The modem stops after 40 attempts.")
    decisions.contradict(one, other)
    memory.index_pending()
    readable = access.readable_space_ids(person.id)
    said_by = parse_filter({"said_by": str(person.id)})
    for options in ({"exclude": {other.pk}}, {"filters": said_by}):
        hits = memory.recall([NOW], spaces=readable, **options).results
        assert texts(hits) == [BUOYS]

    set_feedback(person.id, other.exchange, "irrelevant")
    assert "The modem stops after 40 attempts." not in texts(recalled(memory, person, NOW))


def test_a_rejected_statement_is_not_recalled(memory, person):
    one = statement(said(person, "The limit of a buoy is 28 retries a day."), text=BUOYS)
    decisions.reject(person.id, one.pk, revision=1)

    assert BUOYS not in texts(recalled(memory, person, NOW))


def test_a_statement_of_a_space_that_one_cannot_read_is_not_recalled(memory, person):
    statement(said(person, "The limit of a buoy is 28 retries a day.", group("Crew", person)), text=BUOYS)
    memory.index_pending()

    assert recalled(memory, PersonFactory(), NOW) == []
    assert BUOYS in texts(recalled(memory, person, NOW))


def test_a_question_that_could_be_a_general_one_recalls_a_statement_with_its_words(memory, person):
    question = "How many retries does a buoy make a day?"
    source = said(person, BUOYS)
    assert recalled(memory, person, question) == []

    statement(source, text=BUOYS)

    assert texts(recalled(memory, person, question)) == [BUOYS]
    for other in ("What is a buoy?", "How do I repair a buoy?", "Write a poem about a buoy.", "Thanks a lot!"):
        assert recalled(memory, person, other) == [], other
