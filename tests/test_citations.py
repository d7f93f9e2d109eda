"""Passages quoted in a prompt, and the numbers by which answers cite them."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse

from chat.rendering.blocks import GrowingAnswer, render_blocks
from chat.rendering.citations import Citations, Source, cited_numbers
from memory.documents.queries import list_chunks
from memory.models import RecallLogEntry
from memory.retrieval.passages import build_passages, group_adjacent
from memory.retrieval.prompt_context import HEADING, TokenBudget, build_prompt_context, estimate_tokens, format_passage
from memory.spaces import access
from tests.factories import PersonFactory, document, exchange, signed_in, thread, turn

TURN = uuid.UUID("6a1f2f54-65f5-4d4c-9f66-0f3f3b3f6a10")
HANDBOOK = "\n\n".join(
    f"Chapter {n} of the lighthouse handbook. " + f"Keeper number {n} trims the lamp of tower {n} at dusk. " * 10
    for n in range(1, 9)
)


def citations(count: int = 2) -> Citations:
    return Citations(
        TURN, {number: Source(uuid.UUID(int=number), f"Memory {number}", None) for number in range(1, count + 1)}
    )


def html(text: str, count: int = 2) -> str:
    return "".join(render_blocks(text, citations(count)))


def test_a_citation_links_to_its_item_on_the_page_and_names_its_source():
    link = html("It waits until midnight [1].")

    target = f"turn-{TURN}-r{uuid.UUID(int=1)}"
    assert f'href="#{target}"' in link
    assert f'aria-controls="{target}"' in link
    assert 'aria-expanded="false"' in link
    assert 'aria-label="Source 1: Memory 1"' in link


@pytest.mark.parametrize(
    ("is_forgotten", "label"),
    [(True, "Source 1, forgotten"), (False, "Source 1, no longer available in this thread")],
)
def test_a_citation_of_a_source_that_is_not_readable_says_so(is_forgotten, label):
    gone = Citations(TURN, {1: Source(uuid.UUID(int=1), "", None, is_forgotten)})

    drawn = "".join(render_blocks("Until midnight [1].", gone))
    assert f'aria-label="{label}"' in drawn
    assert "citation--missing" in drawn
    assert cited_numbers([drawn]) == [1]


def test_the_name_of_a_source_cannot_leave_its_attribute():
    name = '"><a class="citation" data-source="9" href="#x">'
    drawn = render_blocks("Until midnight [1].", Citations(TURN, {1: Source(uuid.UUID(int=1), name, None)}))

    assert "".join(drawn).count("<a ") == 1 + "".join(drawn).count('label="Source 1: &quot;&gt;<a ') + "".join(
        drawn
    ).count('label="Source 1: &quot;><a ')
    assert cited_numbers(drawn) == [1]


def test_one_bracket_may_contain_several_citations():
    assert cited_numbers([html("So it is [1, 2].")]) == [1, 2]


def test_a_colon_may_follow_a_citation_but_a_link_definition_cites_nothing():
    assert cited_numbers([html("According to [1]: until midnight.")]) == [1]
    assert cited_numbers([html("[1]: https://example.org\n\nUntil midnight.")]) == []


def test_a_citation_without_a_passage_is_marked_and_not_linked():
    drawn = html("So it is [7].")
    assert "[7]" in drawn
    assert "No passage has this number" in drawn
    assert "href" not in drawn


@pytest.mark.parametrize("text", ["`a[1]`", "```\na[1]\n```", "[1](https://example.org)", "[text]", "a[i]", "[123]"])
def test_text_that_resembles_a_citation_is_unchanged(text):
    assert "cite" not in html(text)


def test_without_recall_numbers_are_plain_text():
    assert "cite" not in html("The array [1] begins.", count=0)


def test_a_growing_answer_renders_the_same_citations_as_the_complete_one():
    text = "First [1].\n\nSecond [2] and [9].\n\n- third [1]\n"
    growing = GrowingAnswer(citations=citations())
    drawn = [block for char in text for block in growing.feed(char)] + growing.close()
    assert drawn == render_blocks(text, citations())


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("until midnight [1]. Then", "until midnigh<t 1.> Then"),
        ("until midnight.[1] Then", "until midnigh<t.1> Then"),
        ("ready?[1][2] [1], so", "read<y?12 1,> so"),
        ("ready\n[1, 2]", "ready<\n12>"),
        ("到深夜。[1]然后", "到深<夜。1>然后"),
        ("**bold** [1] it", "bold< 1> it"),
        ("[1] it", "<1> it"),
        ("(so it is “[1]”)", "(so it is <“1”)>"),
        ("so [1][2][1][2][1].", "s<o 1212><1.>"),
        ("`code`[1] and **so [2]**", "code<1> and s<o 2>"),
    ],
)
def test_a_citation_stays_in_the_line_of_the_word_before_it_and_the_text_is_unchanged(text, joined):
    drawn = html(text)
    marked = drawn.replace('<span class="citation__word">', "\x01").replace("</span>", "\x02")

    assert re.sub(r"<[^>]+>", "", marked).replace("\x01", "<").replace("\x02", ">") == joined


@pytest.fixture
def person(db):
    """Return a person whose name has no number, since names are searchable and the chapters differ by a number."""
    return PersonFactory(name="Kim Keeper")


@pytest.fixture
def handbook(memory, person):
    return document(person, "Handbook.txt", HANDBOOK)


def results(memory, person, *indexes: int):
    """Return search results for the chunks with these indexes, in this order."""
    hits = memory.search("lighthouse keeper tower", spaces=access.readable_space_ids(person.id), count=50).results
    by_index = {hit.exchange.location.index: hit for hit in hits if hit.exchange.location}
    return [by_index[index] for index in indexes]


@pytest.mark.django_db(transaction=True)
def test_adjacent_chunks_form_one_passage_and_count_once(memory, person, handbook):
    found = results(memory, person, 3, 6, 4, 1)

    assert [[r.exchange.location.index for r in group] for group in group_adjacent(found)] == [[3, 4], [6], [1]]
    budget = TokenBudget(limit=3, max_tokens=10_000)
    assert [budget.accept(result) for result in found] == [True] * 4
    assert budget.is_full


@pytest.mark.django_db(transaction=True)
def test_a_chunk_adjacent_to_a_passage_costs_no_frame_in_the_budget(memory, person, handbook):
    first, adjacent, distant = results(memory, person, 3, 4, 6)
    separate_costs = [
        estimate_tokens(format_passage(build_passages([result])[0])) for result in (first, adjacent, distant)
    ]
    budget = TokenBudget(limit=3, max_tokens=separate_costs[0] + max(separate_costs[1:]) - 10)

    assert budget.accept(first)
    assert not budget.accept(distant)
    assert budget.accept(adjacent)


@pytest.mark.django_db(transaction=True)
def test_a_chunk_between_two_passages_merges_them(memory, person, handbook):
    found = results(memory, person, 2, 4, 3)

    assert [{r.exchange.location.index for r in group} for group in group_adjacent(found)] == [{2, 3, 4}]


@pytest.mark.django_db(transaction=True)
def test_a_passage_is_verbatim_text_with_its_source(memory, person, handbook):
    quoted = build_prompt_context(results(memory, person, 4, 3), max_tokens=400)
    chunks = list_chunks(handbook, since=3, count=2)
    assert chunks[0].text + chunks[1].separator + chunks[1].text in quoted
    assert quoted.count("<passage-") == 1
    assert 'number="1"' in quoted
    assert 'source="Handbook.txt"' in quoted


@pytest.mark.django_db(transaction=True)
def test_a_passage_is_extended_by_its_neighbours_within_the_budget(memory, person, handbook):
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
def test_a_forgotten_chunk_is_not_added_as_a_neighbour(memory, person, handbook):
    (found,) = results(memory, person, 3)
    after = list_chunks(handbook, since=4, count=1)[0]
    memory.forget([after.exchange_id], by=person.id)

    assert after.text not in build_prompt_context([found], max_tokens=5000)


@pytest.mark.django_db(transaction=True)
def test_citations_of_an_earlier_answer_are_removed_when_it_is_quoted(memory, person):
    stored = exchange(person, "How long is the jetty?", "It is 40 metres [2], see [the plan](https://example.org).")
    memory.index_pending()
    (found, *_) = memory.search("length of the jetty", spaces=access.readable_space_ids(person.id)).results

    quoted = build_prompt_context([found], max_tokens=1000)
    assert found.exchange.id == stored.id
    assert "40 metres, see [the plan]" in quoted


@pytest.mark.django_db(transaction=True)
def test_a_citation_in_an_answer_leads_to_the_passage_of_its_prompt(memory, person, handbook):
    one = turn(thread(person), "What does keeper 4 do?", "He trims the lamp [1] at dusk [2].", state="complete")
    found = results(memory, person, 3, 6, 4)
    memory.log_recall(one.id, found)
    assert list(RecallLogEntry.objects.order_by("id").values_list("rank", flat=True)) == [1, 1, 2]

    client = signed_in(person)
    page = client.get(reverse("thread", args=[one.thread_id])).content.decode()
    target = f"turn-{one.id}-r{found[1].exchange.id}"
    assert f'href="#{target}"' in page
    assert page.count(f'id="{target}"') == 1
    location = found[1].exchange.location
    place = f"/d/{handbook.pk}?at={location.start}#passage-{location.index + 1}"
    assert f'href="{place}"' in page
    passage = client.get(place).content.decode()
    assert re.search(rf'class="passage passage--cited"\s+id="passage-{location.index + 1}"', passage)
