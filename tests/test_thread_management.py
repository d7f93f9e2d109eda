"""Threads kept in order: titles, pins, the archive, and taking them away."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat import services
from chat.errors import InvalidMessageError, ThreadBusyError
from chat.models import Thread, Turn
from memory.models import Exchange, RecallLogEntry
from memory.retrieval.search import search
from memory.spaces import access
from tests.factories import PersonFactory, exchange, thread, turn

pytestmark = pytest.mark.django_db


def browser(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def told(person, title: str, *words: str) -> Thread:
    """A thread with a remembered turn for each of the words, each the child of the one before."""
    of_person, parent = thread(person, title=title), None
    for word in words:
        one = turn(of_person, f"What of the {word}?", f"The {word} is in the shed.", parent=parent)
        kept = exchange(person, one.message, one.answer, thread_id=of_person.id, turn_id=one.id)
        one.exchange_id = kept.id
        one.save()
        parent = one
    Thread.objects.filter(id=of_person.id).update(head=parent)
    of_person.refresh_from_db()
    return of_person


def sidebar(person) -> str:
    page = browser(person).get(reverse("stats")).content.decode()
    return page[page.index('id="threads"') : page.index("</nav>")]


def test_a_pinned_thread_stands_first_and_an_archived_one_not_at_all(memory, person):
    ladder, saw = told(person, "The ladder", "ladder"), told(person, "The saw", "saw")
    Thread.objects.filter(id=ladder.id).update(last_message_at=timezone.now() - timezone.timedelta(days=3))
    client = browser(person)

    client.post(reverse("mark", args=[ladder.id]), {"mark": "pin"})
    listed = sidebar(person)
    assert listed.index("Pinned") < listed.index("The ladder") < listed.index("The saw")

    client.post(reverse("mark", args=[saw.id]), {"mark": "archive"})
    assert "The saw" not in sidebar(person)
    assert "The saw" in client.get(reverse("threads"), {"archived": "yes"}).content.decode()
    client.post(reverse("mark", args=[saw.id]), {"mark": "unarchive"})
    assert "The saw" in sidebar(person)


def test_a_title_of_ones_own_is_kept_and_an_empty_one_refused(person):
    one = thread(person, title="Where is the key?")
    browser(person).post(reverse("rename", args=[one.id]), {"title": "  Keys \n and locks "})
    one.refresh_from_db()
    assert one.title == "Keys and locks"
    with pytest.raises(InvalidMessageError, match="empty"):
        services.rename_thread(one, "  ")


def test_a_deleted_thread_is_out_of_every_read_at_once_and_comes_back_when_taken_back(memory, person):
    one = told(person, "The saw", "saw")
    memory.index_pending()
    readable = access.readable_space_ids(person.id)
    assert search("saw", spaces=readable).results
    client = browser(person)

    page = client.post(reverse("delete_thread", args=[one.id]), follow=True).content.decode()
    assert reverse("take_back", args=[one.id]) in page
    assert search("saw", spaces=readable).results == ()
    assert client.get(reverse("thread", args=[one.id])).status_code == 404
    assert "The saw" not in client.get(reverse("threads")).content.decode()

    client.post(reverse("take_back", args=[one.id]))
    assert search("saw", spaces=readable).results
    assert client.get(reverse("thread", args=[one.id])).status_code == 200


def test_what_was_deleted_and_not_taken_back_is_gone_with_what_was_remembered(memory, person):
    one = told(person, "The saw", "saw", "ladder")
    memory.index_pending()
    memory.log_recall(one.turns.first().id, search("saw", spaces=access.readable_space_ids(person.id)).results)
    services.delete_thread(one)
    assert services.purge_deleted() == 0
    Thread.objects.update(deleted_at=timezone.now() - timezone.timedelta(minutes=1))

    assert services.purge_deleted() == 1
    memory.erase_forgotten()

    assert not Thread.objects.exists()
    assert not Turn.objects.exists()
    assert not RecallLogEntry.objects.exists()
    assert not Exchange.objects.exclude(user_message="").exists()
    assert browser(person).post(reverse("take_back", args=[one.id])).status_code == 404


def test_the_last_turns_are_taken_out_with_their_other_wordings_and_forgotten(memory, person):
    one = told(person, "Tools", "saw", "ladder", "axe")
    turns = list(one.turns.active_branch())
    other = services.edit_message(turns[1], person_id=person.id, message="What of the rope?", client_key=uuid.uuid4())
    Turn.objects.filter(id=other.posted.turn.id).update(state="complete", answer="Coiled.")
    services.switch_branch(turns[1], person_id=person.id)

    gone = services.delete_last_turns(one, 2, by=person.id)

    assert set(gone) == {turns[1].id, turns[2].id}
    assert [t.message for t in one.turns.active_branch()] == ["What of the saw?"]
    one.refresh_from_db()
    assert one.head_id == turns[0].id
    assert memory.memory_states([turns[2].exchange_id]) == {turns[2].exchange_id: "forgotten"}


def test_nothing_is_taken_away_while_an_answer_is_written(memory, person):
    one = told(person, "Tools", "saw")
    turn(one, "And the axe?", "", state="answering")
    for act in (lambda: services.delete_thread(one), lambda: services.delete_last_turns(one, 1, by=person.id)):
        with pytest.raises(ThreadBusyError, match="in progress"):
            act()


def test_another_reader_may_export_and_continue_but_not_change(memory, person):
    one = thread(person, space=access.team_space(), title="For all")
    other = browser(PersonFactory())

    assert other.get(reverse("export", args=[one.id, "md"])).status_code == 200
    assert other.post(reverse("continue", args=[one.id])).status_code == 302
    for name in ("rename", "delete_thread", "take_out"):
        assert other.get(reverse(name, args=[one.id])).status_code == 404
    assert other.post(reverse("mark", args=[one.id]), {"mark": "pin"}).status_code == 404


@pytest.mark.parametrize(("kind", "begins"), [("md", "# Tools"), ("json", "{"), ("html", "<!doctype html>")])
def test_a_thread_is_exported_as_a_file(memory, person, kind, begins):
    one = told(person, "Tools", "saw")
    answer = browser(person).get(reverse("export", args=[one.id, kind]))

    assert answer.headers["content-disposition"] == f'attachment; filename="tools.{kind}"'
    assert answer.content.decode().strip().lower().startswith(begins.lower())
    assert "in the shed" in answer.content.decode()


def test_threads_are_found_by_words_of_their_titles(memory, person):
    told(person, "Where the saw is", "saw")
    told(person, "Greenhouse", "key")
    page = browser(person).get(reverse("threads"), {"q": "SAW where"}).content.decode()
    assert page.count("Where the saw is") >= 1
    assert "Greenhouse</a>" not in page[page.index("thread-list") :]
