"""What a prompt quotes of documents, and the numbers by which an answer cites it."""

from __future__ import annotations

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from chat.rendering.blocks import GrowingAnswer, render_blocks
from chat.rendering.citations import Citations
from memory.documents.queries import list_chunks
from memory.models import RecallLogEntry
from memory.retrieval.passages import build_passages, group_adjacent
from memory.retrieval.prompt_context import HEADING, TokenBudget, build_prompt_context, estimate_tokens, format_passage
from memory.spaces import access
from tests.factories import PersonFactory, document, exchange, thread, turn

TURN = uuid.UUID("6a1f2f54-65f5-4d4c-9f66-0f3f3b3f6a10")
HANDBOOK = "\n\n".join(
    f"Chapter {n} of the lighthouse handbook. " + f"Keeper number {n} trims the lamp of tower {n} at dusk. " * 10
    for n in range(1, 9)
)


def html(text: str, most: int = 2) -> str:
    return "".join(render_blocks(text, Citations(TURN, most)))


def test_a_number_leads_to_its_passage():
    assert f'href="/turns/{TURN}/cited/1"' in html("It waits until midnight [1].")


def test_several_numbers_stand_in_one_bracket():
    assert re.findall(r"/cited/(\d)", html("So it is [1, 2].")) == ["1", "2"]


def test_a_number_that_no_passage_has_is_shown_as_such_and_leads_nowhere():
    drawn = html("So it is [7].")
    assert "[7]" in drawn
    assert "No passage has this number" in drawn
    assert "href" not in drawn


@pytest.mark.parametrize("text", ["`a[1]`", "```\na[1]\n```", "[1](https://example.org)", "[text]", "a[i]", "[123]"])
def test_what_only_looks_like_a_citation_is_left_alone(text):
    assert "cite" not in html(text)


def test_where_nothing_was_recalled_numbers_are_just_text():
    assert "cite" not in html("The array [1] begins.", most=0)


def test_a_growing_answer_cites_as_the_whole_one_does():
    text = "First [1].\n\nSecond [2] and [9].\n\n- third [1]\n"
    growing = GrowingAnswer(citations=Citations(TURN, 2))
    drawn = [block for char in text for block in growing.feed(char)] + growing.close()
    assert drawn == render_blocks(text, Citations(TURN, 2))


@pytest.fixture
def person(db):
    """Without a number in the name: it is among the words of what they add, and chapters differ by a number alone."""
    return PersonFactory(name="Kim Keeper")


@pytest.fixture
def handbook(memory, person):
    return document(person, "Handbook.txt", HANDBOOK)


def results(memory, person, *indexes: int):
    """Search results for the pieces with these indexes, in this order."""
    hits = memory.search("lighthouse keeper tower", spaces=access.readable_space_ids(person.id), count=50).results
    by_index = {hit.exchange.place.index: hit for hit in hits if hit.exchange.place}
    return [by_index[index] for index in indexes]


@pytest.mark.django_db(transaction=True)
def test_neighbours_in_a_document_are_one_passage_and_count_once(memory, person, handbook):
    found = results(memory, person, 3, 6, 4, 1)

    assert [[r.exchange.place.index for r in group] for group in group_adjacent(found)] == [[3, 4], [6], [1]]
    budget = TokenBudget(limit=3, max_tokens=10_000)
    assert [budget.takes(result) for result in found] == [True] * 4
    assert budget.is_spent


@pytest.mark.django_db(transaction=True)
def test_a_piece_beside_one_that_was_taken_costs_the_budget_no_frame_of_its_own(memory, person, handbook):
    first, beside, apart = results(memory, person, 3, 4, 6)
    alone = [estimate_tokens(format_passage(build_passages([result])[0])) for result in (first, beside, apart)]
    budget = TokenBudget(limit=3, max_tokens=alone[0] + max(alone[1:]) - 10)

    assert budget.takes(first)
    assert not budget.takes(apart)
    assert budget.takes(beside)


@pytest.mark.django_db(transaction=True)
def test_what_closes_the_gap_between_two_passages_makes_them_one(memory, person, handbook):
    found = results(memory, person, 2, 4, 3)

    assert [{r.exchange.place.index for r in group} for group in group_adjacent(found)] == [{2, 3, 4}]


@pytest.mark.django_db(transaction=True)
def test_a_passage_is_the_text_as_it_stands_in_the_file_with_its_source(memory, person, handbook):
    quoted = build_prompt_context(results(memory, person, 4, 3), max_tokens=400)
    pieces = list_chunks(handbook, since=3, count=2)
    assert pieces[0].text + pieces[1].separator + pieces[1].text in quoted
    assert quoted.count("<passage-") == 1
    assert 'number="1"' in quoted
    assert 'source="Handbook.txt"' in quoted


@pytest.mark.django_db(transaction=True)
def test_a_passage_is_widened_by_its_neighbours_while_the_budget_lasts(memory, person, handbook):
    (found,) = results(memory, person, 3)
    cost = estimate_tokens(found.exchange.user_message)

    narrow = build_prompt_context([found], max_tokens=cost + 60)
    wide = build_prompt_context([found], max_tokens=6 * cost)

    before, after = list_chunks(handbook, since=2, count=1)[0], list_chunks(handbook, since=4, count=1)[0]
    assert before.text not in narrow
    assert after.text not in narrow
    assert before.text in wide
    assert after.text in wide
    assert estimate_tokens(wide.removeprefix(HEADING)) <= 6 * cost


@pytest.mark.django_db(transaction=True)
def test_what_was_forgotten_of_a_document_does_not_come_back_as_a_neighbour(memory, person, handbook):
    (found,) = results(memory, person, 3)
    after = list_chunks(handbook, since=4, count=1)[0]
    memory.forget([after.exchange_id], by=person.id)

    assert after.text not in build_prompt_context([found], max_tokens=5000)


@pytest.mark.django_db(transaction=True)
def test_numbers_of_an_earlier_answer_are_not_quoted(memory, person):
    said = exchange(person, "How long is the jetty?", "It is 40 metres [2], see [the plan](https://example.org).")
    memory.index_pending()
    (found, *_) = memory.search("length of the jetty", spaces=access.readable_space_ids(person.id)).results

    quoted = build_prompt_context([found], max_tokens=1000)
    assert found.exchange.id == said.id
    assert "40 metres, see [the plan]" in quoted


@pytest.mark.django_db(transaction=True)
def test_the_number_in_an_answer_is_that_of_the_passage_in_the_prompt_and_opens_it(memory, person, handbook):
    one = turn(thread(person), "What does keeper 4 do?", "He trims the lamp [1] at dusk [2].", state="complete")
    found = results(memory, person, 3, 6, 4)
    memory.log_recall(one.id, found)
    assert list(RecallLogEntry.objects.order_by("id").values_list("rank", flat=True)) == [1, 1, 2]

    client = Client()
    client.force_login(person)
    page = client.get(reverse("thread", args=[one.thread_id])).content.decode()
    assert reverse("cited", args=[one.id, 2]) in page
    answer = client.get(reverse("cited", args=[one.id, 2]))
    place = found[1].exchange.place
    assert answer.headers["location"] == f"/d/{handbook.pk}?at={place.start}#passage-{place.index + 1}"
    passage = client.get(answer.headers["location"]).content.decode()
    assert re.search(rf'class="passage passage--cited"\s+id="passage-{place.index + 1}"', passage)

    memory.forget([found[1].exchange.id], by=person.id)
    back = client.get(reverse("cited", args=[one.id, 2]), follow=True)
    assert "Passage 2 is no longer in memory." in back.content.decode()
