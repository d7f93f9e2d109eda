"""What somebody forgets is out of every read at once and then really gone; nothing brings it back."""

from __future__ import annotations

import uuid

import pytest

from memory import spaces, store
from memory.errors import StoreDown
from memory.models import CachedEmbedding, Embedding, Erasure, Exchange, Job
from memory.services import indexing
from tests.factories import exchange

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def said(memory, person):
    """Something that is remembered, searchable and was recalled for a turn."""
    one = exchange(person, "The safe combination is 12-34-56.", "I will keep it to myself.")
    memory.index_pending()
    return one


def test_it_is_out_of_search_recall_and_panels_at_once(memory, person, said):
    readable = spaces.readable_by(person.id)
    turn_id = uuid.uuid4()
    memory.note_recall(turn_id, memory.recall(["safe combination"], spaces=readable).results)
    assert memory.recalled_for([turn_id], spaces=readable)[turn_id][0].exchange is not None

    assert memory.forget([said.id], by=person.id) == [said.id]

    assert memory.find("safe combination", spaces=readable) == []
    assert memory.recall(["safe combination"], spaces=readable).results == ()
    panel = memory.recalled_for([turn_id], spaces=readable)[turn_id][0]
    assert panel.is_forgotten
    assert panel.exchange is None
    assert memory.figures(readable).exchanges == 0


def test_vectors_cache_and_text_are_gone_after_the_erasure(memory, person, said):
    collection = Embedding.objects.get().index.collection
    ids = indexing.ids_up_to(said.id, said.version)
    assert store.present(collection, ids)
    assert CachedEmbedding.objects.count() == 1

    memory.forget([said.id], by=person.id)
    assert memory.erase_forgotten() == 1

    assert store.present(collection, ids) == set()
    assert CachedEmbedding.objects.count() == 0
    said.refresh_from_db()
    assert (said.user_message, said.assistant_message, said.content_hash) == ("", "", "")
    assert said.erased_at is not None


def test_the_cached_embedding_stays_while_another_exchange_says_the_same(memory, person, said):
    twin = exchange(person, said.user_message, said.assistant_message)
    memory.index_pending()

    memory.forget([said.id], by=person.id)
    memory.erase_forgotten()
    assert CachedEmbedding.objects.count() == 1

    memory.forget([twin.id], by=person.id)
    memory.erase_forgotten()
    assert CachedEmbedding.objects.count() == 0


def test_while_the_store_is_down_it_waits_and_is_gone_when_it_is_back(memory, person, said, monkeypatch):
    def down(*args: object) -> None:
        raise StoreDown

    memory.forget([said.id], by=person.id)
    with monkeypatch.context() as broken:
        broken.setattr(store, "delete", down)
        assert memory.erase_forgotten() == 0
    assert Erasure.objects.get().state == Job.State.PENDING
    assert memory.find("safe combination", spaces=spaces.readable_by(person.id)) == []

    Erasure.objects.update(due_at=said.created_at)
    assert memory.erase_forgotten() == 1


def test_what_is_forgotten_while_it_is_being_embedded_leaves_no_vector(memory, person, monkeypatch):
    one = exchange(person, "The safe combination is 12-34-56.")
    real = store.upsert

    def forget_in_the_middle(collection: str, *args: object) -> None:
        memory.forget([one.id], by=person.id)
        assert memory.erase_forgotten() == 0, "the erasure waits for the worker that is embedding"
        real(collection, *args)

    monkeypatch.setattr(store, "upsert", forget_in_the_middle)
    memory.index_pending()
    collection = Embedding.objects.get().index.collection

    assert store.present(collection, indexing.ids_up_to(one.id, one.version)) == set()


def test_a_forgotten_turn_stays_forgotten_when_its_answer_is_resumed(memory, person):
    turn_id = uuid.uuid4()
    one = exchange(person, "The safe combination is 12-34-56.", "Not", turn_id=turn_id)
    memory.forget([one.id], by=person.id)

    again = exchange(person, "The safe combination is 12-34-56.", "Noted for good.", turn_id=turn_id)

    assert again.id == one.id
    memory.index_pending()
    assert memory.find("safe combination", spaces=spaces.readable_by(person.id)) == []
    assert Exchange.objects.get().assistant_message == "Not"
