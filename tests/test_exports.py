"""A thread as a file to keep: whole, in order, saying who and when, and no more than its page shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from chat.export import to_html, to_json, to_markdown
from chat.models import Thread, Turn
from memory.models import RecallLogEntry
from tests.factories import PersonFactory, exchange, group, thread, turn

pytestmark = pytest.mark.django_db

ALL = pytest.mark.parametrize("write", [to_markdown, to_json, to_html])


def standing(of_thread: Thread) -> Iterator[Turn]:
    """The turns as the pages' views hand them over."""
    return of_thread.turns.active_branch().select_related("author").iterator(chunk_size=200)


def text(write: Any, of_thread: Thread) -> str:
    return "".join(write(of_thread, standing(of_thread)))


@pytest.fixture
def told(person):
    """A thread of two turns, the second of which recalled what stands in the first one's exchange."""
    of_person = thread(person, title="Harbour <notes> & more")
    first = turn(of_person, "Where is the *tender*?\n\nI looked <b>everywhere</b>.", "# In slip 4\n\nAsk **Ines** [1].")
    Turn.objects.filter(id=first.id).update(
        created_at=datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        completed_at=datetime(2026, 3, 1, 9, 31, tzinfo=UTC),
        model="m-7",
    )
    turn(of_person, "And the oars?", "Below deck [1].")
    return of_person


def recall(one: Turn, said: Any, rank: int = 1) -> None:
    RecallLogEntry.objects.create(turn_id=one.id, exchange=said, rank=rank, score=1, strategy="hybrid", reason="words")


@ALL
def test_it_says_all_that_was_said_in_order_with_who_and_when(told, person, write):
    whole = text(write, told)
    places = [
        whole.index(words) for words in (person.name, "2026-03-01T09:30:00Z", "In slip 4", "And the oars?", "Below")
    ]
    assert places == sorted(places)
    assert "m-7" in whole


def test_markdown_quotes_the_message_and_leaves_the_answer_as_it_is(told):
    whole = text(to_markdown, told)
    assert whole.startswith("# Harbour <notes> & more\n")
    assert "> Where is the *tender*?\n>\n> I looked <b>everywhere</b>.\n" in whole
    assert "\n# In slip 4\n\nAsk **Ines** [1].\n" in whole


def test_json_is_one_object_of_the_documented_fields(told, person):
    value = json.loads(text(to_json, told))
    first = value["turns"][0]
    assert (value["format"], value["version"]) == ("cato-thread", 1)
    assert set(value["thread"]) == {"id", "title", "created_at", "model", "is_remembered", "instructions"}
    assert first == {
        "id": str(told.turns.first().id),
        "author": person.name,
        "said_at": "2026-03-01T09:30:00Z",
        "message": "Where is the *tender*?\n\nI looked <b>everywhere</b>.",
        "pictures": [],
        "answer": "# In slip 4\n\nAsk **Ines** [1].",
        "answered_at": "2026-03-01T09:31:00Z",
        "model": "m-7",
        "state": "complete",
        "is_dummy": False,
        "is_forgotten": False,
        "recalled": [],
    }


def test_html_needs_nothing_from_elsewhere_and_runs_nothing(told):
    one = turn(told, "<script>alert(1)</script>", "<script>alert(2)</script> ![x](https://elsewhere.example/x.png)")
    whole = text(to_html, told)
    assert "<script" not in whole
    assert not re.search(r"<(?:link|img|iframe|object|form)\b|\ssrc=|@import|url\(|\son[a-z]+=", whole)
    assert "default-src 'none'" in whole
    assert f'id="turn-{one.id}"' in whole
    assert "Harbour &lt;notes&gt; &amp; more" in whole


def test_html_draws_answers_and_has_its_style_for_light_and_dark(told):
    whole = text(to_html, told)
    assert "<h1>In slip 4</h1>" in whole
    assert "<strong>Ines</strong>" in whole
    assert "I looked &lt;b&gt;everywhere&lt;/b&gt;." in whole
    assert re.search(r"<style>.*light-dark\(.*</style>", whole, re.DOTALL)
    assert whole.count("<html") == whole.count("</html>") == 1


def test_html_has_no_links_to_pages_that_are_not_in_the_file(told, person):
    recall(told.turns.last(), exchange(person, "The oars lie below deck"))
    assert "/cited/" not in text(to_html, told)
    assert 'href="/' not in text(to_html, told)


@ALL
def test_what_was_recalled_is_named_without_its_text(told, person, write):
    said = exchange(person, "The oars were moved", "A secret answer", thread_id=told.id)
    recall(told.turns.last(), said)
    whole = text(write, told)
    assert "A secret answer" not in whole
    assert "The oars were moved" not in whole
    assert said.timestamp.astimezone(UTC).isoformat()[:19] in whole
    assert re.search(r"\b(Recalled:|1 recalled)\s", whole) or json.loads(whole)["turns"][1]["recalled"] == [
        {
            "number": 1,
            "exchange_id": str(said.id),
            "who": person.name,
            "said_at": said.timestamp.isoformat().replace("+00:00", "Z"),
            "place": told.title,
        }
    ]


@ALL
def test_of_what_not_everybody_there_may_read_only_the_number_is_told(person, write):
    bob = PersonFactory(name="Bob Elsewhere")
    shared = thread(person, space=group("Crew", person, bob), title="Crew")
    private = thread(bob, title="A private title")
    one = turn(shared)
    recall(one, exchange(bob, "Private", thread_id=private.id))
    whole = text(write, shared)
    assert "A private title" not in whole
    assert "Bob Elsewhere" not in whole
    assert "forgotten" in whole


@ALL
def test_what_was_forgotten_is_marked_so(told, memory, person, write):
    one = told.turns.last()
    said = exchange(person, one.message, one.answer, thread_id=told.id, turn_id=one.id)
    Turn.objects.filter(id=one.id).update(exchange_id=said.id)
    assert "orgotten." not in text(write, told)
    memory.forget([said.id], by=person.id)
    whole = text(write, told)
    assert "Forgotten" in whole or [t["is_forgotten"] for t in json.loads(whole)["turns"]] == [False, True]


@ALL
def test_an_answer_that_did_not_end_well_says_so(told, write):
    turn(told, "And the sail?", "Half an ans", state="interrupted")
    assert "nterrupted" in text(write, told)


def test_a_branch_that_was_left_is_not_in_it(person):
    of_person = thread(person)
    turn(of_person, "First")
    turn(of_person, "Left behind", is_on_active_branch=False)
    turn(of_person, "Instead")
    assert [one["message"] for one in json.loads(text(to_json, of_person))["turns"]] == ["First", "Instead"]


def test_a_long_thread_is_read_a_page_at_a_time(person, django_assert_max_num_queries):
    of_person = thread(person)
    for n in range(401):
        turn(of_person, f"Line {n}.")
    pieces = to_markdown(of_person, standing(of_person))
    with django_assert_max_num_queries(10):
        assert next(pieces) == "# A thread\n"
        assert "Line 0." in next(pieces) + next(pieces)
    assert "Line 400." in "".join(pieces)


def test_an_empty_thread_is_a_file_too(person):
    empty = thread(person)
    assert json.loads(text(to_json, empty))["turns"] == []
    assert text(to_html, empty).rstrip().endswith("</html>")
