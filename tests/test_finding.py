"""One box for threads, memories, documents and commands."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from chat.services.finding import look_up
from memory.errors import StoreDown
from tests.factories import PersonFactory, document, exchange, thread, turn

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stored(memory, person):
    """A remembered thread, one that is not, and a document, all about boats."""
    kept = thread(person, title="Where the boats lie")
    one = turn(kept, "Where does the red boat lie?", "At the north quay.")
    exchange(person, one.message, one.answer, thread_id=kept.id, turn_id=one.id)
    quiet = thread(person, title="A surprise", is_remembered=False)
    turn(quiet, "What boat shall we give Ingrid?", "A dinghy.")
    document(person, "boat list.txt", "The red boat is called Petrel and has two oars. " * 20)
    return person


def test_everything_one_may_read_is_found_in_groups(stored):
    found = look_up("boat", person_id=stored.id)

    assert [t.title for t in found.threads] == ["Where the boats lie"]
    assert {hit.exchange.source_file for hit in found.memories} >= {""}
    assert [t.message for t in found.turns] == ["What boat shall we give Ingrid?"]
    assert [d.name for d in found.documents] == ["boat list.txt"]


def test_commands_are_found_by_how_they_begin_and_fill_the_composer(stored):
    assert [c.name for c in look_up("/vst", person_id=stored.id).commands] == ["vstats"]
    client = Client()
    client.force_login(stored)
    page = client.get(reverse("find"), {"q": "vstats"}).content.decode()
    assert "/?say=/vstats" in page
    assert "/vstats" in client.get("/?say=/vstats").content.decode()


def test_before_anything_is_typed_the_latest_threads_stand_there(stored):
    found = look_up("", person_id=stored.id)
    assert {t.title for t in found.threads} == {"Where the boats lie", "A surprise"}
    assert found.memories == []


def test_nothing_of_anothers_is_found(stored):
    assert look_up("boat", person_id=PersonFactory().id).is_empty


def test_with_the_index_down_the_rest_is_found_all_the_same(stored, monkeypatch):
    from memory import store

    monkeypatch.setattr(store, "query", lambda *a, **k: (_ for _ in ()).throw(StoreDown()))
    found = look_up("boat", person_id=stored.id)
    assert found.threads
    assert found.documents
