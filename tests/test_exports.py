"""Export of a thread as Markdown, JSON or HTML."""

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


def active_turns(of_thread: Thread) -> Iterator[Turn]:
    """Return the turns as the views pass them to the exporters."""
    return of_thread.turns.active_branch().select_related("author").iterator(chunk_size=200)


def exported(write: Any, of_thread: Thread) -> str:
    return "".join(write(of_thread, active_turns(of_thread)))


@pytest.fixture
def exported_thread(person):
    """Return a thread of two turns, the second of which recalled the first."""
    of_person = thread(person, title="Harbour <notes> & more")
    first = turn(of_person, "Where is the *tender*?\n\nI looked <b>everywhere</b>.", "# In slip 4\n\nAsk **Ines** [1].")
    Turn.objects.filter(id=first.id).update(
        created_at=datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        completed_at=datetime(2026, 3, 1, 9, 31, tzinfo=UTC),
        model="m-7",
    )
    turn(of_person, "And the oars?", "Below deck [1].")
    return of_person


def log_recall_of(one: Turn, stored: Any, rank: int = 1) -> None:
    RecallLogEntry.objects.create(
        turn_id=one.id, exchange=stored, rank=rank, score=1, strategy="hybrid", reason="words"
    )


@ALL
def test_an_export_contains_all_messages_in_order_with_author_and_time(exported_thread, person, write):
    content = exported(write, exported_thread)
    positions = [
        content.index(words) for words in (person.name, "2026-03-01T09:30:00Z", "In slip 4", "And the oars?", "Below")
    ]
    assert positions == sorted(positions)
    assert "m-7" in content


def test_markdown_quotes_messages_and_keeps_answers_unchanged(exported_thread):
    content = exported(to_markdown, exported_thread)
    assert content.startswith("# Harbour <notes> & more\n")
    assert "> Where is the *tender*?\n>\n> I looked <b>everywhere</b>.\n" in content
    assert "\n# In slip 4\n\nAsk **Ines** [1].\n" in content


def test_json_is_one_object_of_the_documented_fields(exported_thread, person):
    value = json.loads(exported(to_json, exported_thread))
    first = value["turns"][0]
    assert (value["format"], value["version"]) == ("cato-thread", 1)
    assert set(value["thread"]) == {"id", "title", "created_at", "model", "is_remembered", "instructions"}
    assert first == {
        "id": str(exported_thread.turns.first().id),
        "parent_id": None,
        "is_on_active_branch": True,
        "author": person.name,
        "said_at": "2026-03-01T09:30:00Z",
        "message": "Where is the *tender*?\n\nI looked <b>everywhere</b>.",
        "pictures": [],
        "files": [],
        "answer": "# In slip 4\n\nAsk **Ines** [1].",
        "answered_at": "2026-03-01T09:31:00Z",
        "model": "m-7",
        "state": "complete",
        "is_dummy": False,
        "is_forgotten": False,
        "recalled": [],
        "web_sources": [],
    }


def test_html_loads_nothing_external_and_runs_no_scripts(exported_thread):
    one = turn(
        exported_thread, "<script>alert(1)</script>", "<script>alert(2)</script> ![x](https://elsewhere.example/x.png)"
    )
    content = exported(to_html, exported_thread)
    assert "<script" not in content
    assert not re.search(r"<(?:link|img|iframe|object|form)\b|\ssrc=|@import|url\(|\son[a-z]+=", content)
    assert "default-src 'none'" in content
    assert f'id="turn-{one.id}"' in content
    assert "Harbour &lt;notes&gt; &amp; more" in content


def test_html_renders_answers_and_contains_styles_for_light_and_dark(exported_thread):
    content = exported(to_html, exported_thread)
    assert "<h1>In slip 4</h1>" in content
    assert "<strong>Ines</strong>" in content
    assert "I looked &lt;b&gt;everywhere&lt;/b&gt;." in content
    assert re.search(r"<style>.*light-dark\(.*</style>", content, re.DOTALL)
    assert content.count("<html") == content.count("</html>") == 1


def test_html_links_only_within_the_file(exported_thread, person):
    log_recall_of(exported_thread.turns.last(), exchange(person, "The oars lie below deck"))
    assert 'href="/' not in exported(to_html, exported_thread)


@ALL
def test_recalled_exchanges_are_named_without_their_text(exported_thread, person, write):
    stored = exchange(person, "The oars were moved", "A secret answer", thread_id=exported_thread.id)
    log_recall_of(exported_thread.turns.last(), stored)
    content = exported(write, exported_thread)
    assert "A secret answer" not in content
    assert "The oars were moved" not in content
    assert stored.timestamp.astimezone(UTC).isoformat()[:19] in content
    assert re.search(r"\b(Recalled:|1 recalled)\s", content) or json.loads(content)["turns"][1]["recalled"] == [
        {
            "number": 1,
            "exchange_id": str(stored.id),
            "who": person.name,
            "said_at": stored.timestamp.isoformat().replace("+00:00", "Z"),
            "place": exported_thread.title,
        }
    ]


@ALL
def test_recalled_exchanges_that_not_every_reader_may_read_are_only_counted(person, write):
    bob = PersonFactory(name="Bob Elsewhere")
    shared = thread(person, space=group("Crew", person, bob), title="Crew")
    private = thread(bob, title="A private title")
    one = turn(shared)
    log_recall_of(one, exchange(bob, "Private", thread_id=private.id))
    content = exported(write, shared)
    assert "A private title" not in content
    assert "Bob Elsewhere" not in content
    assert "forgotten" in content


@ALL
def test_forgotten_turns_are_marked(exported_thread, memory, person, write):
    one = exported_thread.turns.last()
    stored = exchange(person, one.message, one.answer, thread_id=exported_thread.id, turn_id=one.id)
    Turn.objects.filter(id=one.id).update(exchange_id=stored.id)
    assert "orgotten." not in exported(write, exported_thread)
    memory.forget([stored.id], by=person.id)
    content = exported(write, exported_thread)
    assert "Forgotten" in content or [t["is_forgotten"] for t in json.loads(content)["turns"]] == [False, True]


@ALL
def test_an_incomplete_answer_is_marked(exported_thread, write):
    turn(exported_thread, "And the sail?", "Half an ans", state="interrupted")
    assert "nterrupted" in exported(write, exported_thread)


def test_inactive_branches_are_omitted(person):
    of_person = thread(person)
    turn(of_person, "First")
    turn(of_person, "Left behind", is_on_active_branch=False)
    turn(of_person, "Instead")
    assert [one["message"] for one in json.loads(exported(to_json, of_person))["turns"]] == ["First", "Instead"]


def test_a_long_thread_is_read_in_batches(person, django_assert_max_num_queries):
    of_person = thread(person)
    for n in range(401):
        turn(of_person, f"Line {n}.")
    parts = to_markdown(of_person, active_turns(of_person))
    with django_assert_max_num_queries(10):
        assert next(parts) == "# A thread\n"
        assert "Line 0." in next(parts) + next(parts)
    assert "Line 400." in "".join(parts)


def test_an_empty_thread_can_be_exported(person):
    empty = thread(person)
    assert json.loads(exported(to_json, empty))["turns"] == []
    assert exported(to_html, empty).rstrip().endswith("</html>")
