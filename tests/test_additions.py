"""Notes and documents that commands added in a thread: kept in its history, for those who may read them."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from django.urls import reverse

from chat.models import Addition, Turn
from chat.realtime import sync
from memory import api
from memory.models import Document, Exchange, Membership
from tests.factories import PersonFactory, group, process_documents, signed_in, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def crew(person):
    return group("Crew", person, PersonFactory(name="Bea"))


@pytest.fixture
def bea(crew):
    return Membership.objects.get(space=crew, person__name="Bea").person


@pytest.fixture
def of_crew(memory, person, crew):
    """Return a thread of the crew with one turn."""
    found = thread(person, space=crew)
    turn(found)
    return found


def run(person, in_thread, command: str) -> str:
    sent = {"message": command, "client_key": str(uuid.uuid4())}
    url = reverse("post_message", args=[in_thread.id])
    return signed_in(person).post(url, sent, headers={"HX-Request": "true"}).content.decode()


def page(person, of_thread) -> str:
    return signed_in(person).get(reverse("thread", args=[of_thread.id])).content.decode()


def loaded(person, of_turn: Turn) -> str:
    return signed_in(person).get(reverse("turn_additions", args=[of_turn.id])).content.decode()


def test_a_note_stays_in_the_thread_and_is_no_exchange_of_its_own(person, of_crew):
    response = run(person, of_crew, "/vadd The winch is greased in May. --space Crew")

    assert "The winch is greased in May." in response
    assert "Saved in Crew" in page(person, of_crew)
    assert "The winch is greased in May." in page(person, of_crew)
    assert of_crew.turns.count() == 1
    assert "winch" not in of_crew.turns.get().message + of_crew.turns.get().answer


def test_every_reader_of_the_thread_sees_what_they_may_read(person, bea, of_crew):
    run(person, of_crew, "/vadd The winch is greased in May. --space Crew")
    run(person, of_crew, "/vadd My locker opens with a blue key.")

    assert "The winch is greased" in page(bea, of_crew)
    assert "The winch is greased" in loaded(bea, of_crew.turns.get())
    assert "blue key" in page(person, of_crew)
    assert "blue key" in loaded(person, of_crew.turns.get())
    assert "blue key" not in page(bea, of_crew)
    assert "blue key" not in loaded(bea, of_crew.turns.get())


def test_the_card_of_a_private_note_says_so(person, of_crew):
    run(person, of_crew, "/vadd The winch is greased in May. --space Crew")
    assert "Only you see this" not in page(person, of_crew)
    run(person, of_crew, "/vadd My locker opens with a blue key.")
    assert "Only you see this" in page(person, of_crew)


def test_a_forgotten_note_disappears_with_its_card(person, of_crew, django_capture_on_commit_callbacks):
    run(person, of_crew, "/vadd The winch is greased in May. --space Crew")
    assert Addition.objects.exists()
    with django_capture_on_commit_callbacks(execute=True):
        api.forget([Exchange.objects.get().id], by=person.id)

    assert "Saved in Crew" not in page(person, of_crew)
    assert not Addition.objects.exists()


def test_a_page_that_was_offline_reads_the_card_when_it_returns(person, bea, of_crew):
    only = of_crew.turns.get()
    run(person, of_crew, "/vadd The winch is greased in May. --space Crew")

    html, _revisions = sync.missing_updates(bea.id, of_crew.id, {only.id: only.revision})

    assert reverse("turn_additions", args=[only.id]) in html
    assert "winch" not in html, "each page asks for what its reader may read"


def test_open_pages_are_told_after_the_commit(person, of_crew, monkeypatch, django_capture_on_commit_callbacks):
    published = []
    monkeypatch.setattr("chat.turns.additions.publish", published.append)
    with django_capture_on_commit_callbacks(execute=True):
        run(person, of_crew, "/vadd The winch is greased in May. --space Crew")
        assert not published
    (frame,) = published
    assert frame.thread_id == of_crew.id
    assert reverse("turn_additions", args=[of_crew.turns.get().id]) in frame.html
    assert "winch" not in frame.html


def test_documents_of_a_command_stay_until_they_are_forgotten(person, of_crew, tmp_path: Path, settings):
    (tmp_path / "rent.txt").write_text("The rent of the barn is 950 euros. " * 10)
    settings.CATO = settings.CATO.model_copy(update={"locations": {"docs": tmp_path}})

    assert "1 file added" in run(person, of_crew, "/vdoc docs:rent.txt")
    process_documents()
    added = Document.objects.get()
    assert reverse("document", args=[added.id]) in page(person, of_crew)
    assert "Dismiss" not in loaded(person, of_crew.turns.get())
    with_chip = signed_in(person).get(reverse("document_row", args=[added.id]), {"as": "kept"}).content.decode()
    assert "Dismiss" not in with_chip

    api.forget_documents([added.id], by=person.id)
    assert "1 file added" not in page(person, of_crew)


def test_rejected_files_are_named_once_and_not_kept(person, of_crew, tmp_path: Path, settings):
    (tmp_path / "rent.txt").write_text("The rent of the barn is 950 euros. " * 10)
    (tmp_path / "empty.txt").write_text("")
    settings.CATO = settings.CATO.model_copy(update={"locations": {"docs": tmp_path}})

    response = run(person, of_crew, "/vdoc docs:rent.txt docs:empty.txt")

    assert "1 of 2 files added" in response
    assert 'role="alert"' in response
    assert "empty.txt" not in page(person, of_crew)
    assert Addition.objects.count() == 1


def test_a_thread_without_turns_keeps_nothing(memory, person):
    empty = thread(person)
    assert "Only you see this" in run(person, empty, "/vadd The winch is greased in May.")
    assert not Addition.objects.exists()


def test_the_card_belongs_to_the_last_turn_that_is_shown(person, of_crew):
    last = turn(of_crew, "A second one")
    turn(of_crew, "Waits", "", state=Turn.State.QUEUED)
    run(person, of_crew, "/vadd The winch is greased in May.")
    assert Addition.objects.get().turn_id == last.id
