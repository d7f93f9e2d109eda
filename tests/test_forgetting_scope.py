"""Forgetting removes what belongs to the forgotten exchanges, nothing of others, and receipts count what was removed."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db.models import Model, QuerySet
from django.utils import timezone

from memory import jobs
from memory.errors import VectorStoreUnavailableError
from memory.exchanges import lifecycle, receipts
from memory.exchanges.feedback import set_feedback
from memory.exchanges.moving import move_thread
from memory.exchanges.receipts import receipt_for
from memory.exchanges.records import NewRecord, upsert_records
from memory.index import generations, store, vectors
from memory.models import (
    CachedEmbedding,
    Collection,
    EmbeddingJob,
    ErasureJob,
    Exchange,
    Feedback,
    Job,
    LexicalEntry,
    MetadataValue,
    Placement,
    RecallLogEntry,
    Record,
    Space,
)
from memory.spaces import access
from tests.factories import PersonFactory, ago, exchange, group

pytestmark = pytest.mark.django_db

# Tables with rows of an exchange that do not outlive it.
OF_AN_EXCHANGE: tuple[type[Model], ...] = (LexicalEntry, MetadataValue, Feedback, Record)


def used_exchange(memory: Any, person: Any, name: str) -> Exchange:
    """Return an embedded record with terms, metadata, feedback, and an entry in the recall log."""
    space = access.personal_space(person.id)
    upsert_records([NewRecord(id=name, text=f"The {name} is locked.", metadata={"zone": name})], space=space,
                   owner_id=person.id)  # fmt: skip
    memory.index_pending()
    stored = Record.objects.get(name=name).exchange
    set_feedback(person.id, stored, "pinned")
    RecallLogEntry.objects.create(turn_id=uuid.uuid4(), exchange=stored, rank=1, score=1, strategy="hybrid", reason="x")
    return stored


def rows_of(one: Exchange) -> dict[str, int]:
    """Return the numbers of rows of this exchange by table, and of its explained recalls and cached embeddings."""
    counts = {table.__name__: table._default_manager.filter(exchange=one).count() for table in OF_AN_EXCHANGE}
    one = Exchange.objects.get(pk=one.pk)
    counts["explanations"] = RecallLogEntry.objects.filter(exchange=one).exclude(reason="").count()
    counts["embeddings"] = EmbeddingJob.objects.filter(exchange=one).count()
    counts["cached"] = CachedEmbedding.objects.filter(content_hash=one.content_hash).count()
    counts["vectors"] = len(vectors_of(one))
    return counts


def vectors_of(one: Exchange, collection: str | None = None) -> set[str]:
    """Return the vectors of all versions of an exchange in a collection, by default the only one."""
    name = collection or Collection.objects.get().name
    return store.existing_ids(name, vectors.all_vector_ids(one.id, one.version))


def test_everything_of_the_forgotten_exchange_is_removed_and_nothing_of_another(memory, person):
    one, other = used_exchange(memory, person, "shed"), used_exchange(memory, person, "boathouse")
    before = rows_of(other)
    assert before == rows_of(one)
    assert min(before.values()) > 0

    memory.forget([one.id], by=person.id)
    assert rows_of(other) == before
    memory.erase_forgotten()

    assert set(rows_of(one).values()) == {0}
    assert rows_of(other) == before
    other.refresh_from_db()
    assert (other.user_message, other.metadata, other.forgotten_at, other.erased_at) == (
        "The boathouse is locked.",
        {"zone": "boathouse"},
        None,
        None,
    )


def test_rows_that_are_added_between_forgetting_and_erasure_are_removed_with_it(memory, person):
    one, other = used_exchange(memory, person, "shed"), used_exchange(memory, person, "boathouse")
    memory.forget([one.id], by=person.id)
    # A request that read the exchange before the commit writes afterwards.
    set_feedback(person.id, one, "pinned")
    Record.objects.create(exchange=one, space=one.space, name="late")

    memory.erase_forgotten()

    assert set(Feedback.objects.values_list("exchange", flat=True)) == {other.id}
    assert set(Record.objects.values_list("exchange", flat=True)) == {other.id}


def test_the_receipt_keeps_its_counts_through_the_erasure(memory, person):
    one = used_exchange(memory, person, "shed")
    RecallLogEntry.objects.create(turn_id=uuid.uuid4(), exchange=one, rank=1, score=1, strategy="hybrid", reason="x")
    used_exchange(memory, person, "boathouse")
    parts = EmbeddingJob.objects.get(exchange=one).parts

    memory.forget([one.id], by=person.id)
    receipt = receipt_for([one.id])
    assert (receipt.words, receipt.recalls, receipt.records, receipt.vectors, receipt.cached) == (1, 2, 1, 0, 0)

    memory.erase_forgotten()
    receipt = receipt_for([one.id])
    assert (receipt.words, receipt.recalls, receipt.records, receipt.vectors, receipt.cached) == (1, 2, 1, parts, 1)


def test_the_receipt_counts_neither_exchanges_that_are_not_forgotten_nor_their_metadata(memory, person):
    kept = exchange(person, "The shed is open.", metadata={"vectors": 7, "words": 7})
    assert receipt_for([kept.id]) == receipts.ErasureReceipt(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    memory.forget([kept.id], by=person.id)
    assert (receipt_for([kept.id]).vectors, receipt_for([kept.id]).words) == (0, 1)


def test_the_receipt_of_an_exchange_that_was_never_embedded_counts_no_vector(memory, person):
    one = exchange(person, "The shed is open.")

    memory.forget([one.id], by=person.id)

    assert memory.erase_forgotten() == 1
    receipt = receipt_for([one.id])
    assert (receipt.exchanges, receipt.vectors, receipt.cached, receipt.under_way) == (1, 0, 0, 0)


def test_a_cached_embedding_that_another_exchange_uses_stays_and_is_not_counted(memory, person):
    one, twin = (exchange(person, "The shed is open.") for _ in range(2))
    memory.index_pending()

    for forgotten, cached in ((one, 0), (twin, 1)):
        memory.forget([forgotten.id], by=person.id)
        memory.erase_forgotten()
        assert receipt_for([forgotten.id]).cached == cached
        assert CachedEmbedding.objects.count() == 1 - cached


def test_the_vectors_of_another_exchange_stay_while_its_new_text_waits_for_embedding(memory, person):
    one, other = (exchange(person, f"Buoy {number} is red.") for number in range(2))
    memory.index_pending()
    lifecycle.update_exchange(other, user_message="Buoy 1 is green.", assistant_message="Noted.")
    other.refresh_from_db()
    before = vectors_of(other)
    assert before
    assert other.version == 2

    memory.forget([one.id], by=person.id)
    memory.erase_forgotten()

    assert vectors_of(one) == set()
    assert vectors_of(other) == before


def moved(one: Exchange, to: Space) -> str:
    """Move the thread of an embedded exchange, and return the collection that still has its vectors."""
    collection = EmbeddingJob.objects.select_related("collection").get(exchange=one).collection
    assert move_thread(one.thread_id, to=to, by=one.owner_id) == 1
    return str(collection.name)


def test_an_exchange_that_was_moved_is_erased_from_the_collection_of_its_earlier_space(memory, person):
    one = exchange(person, "The shed is open.", thread_id=uuid.uuid4())
    memory.index_pending()
    earlier = moved(one, group("Crew", person))
    assert vectors_of(one, earlier)

    memory.forget([one.id], by=person.id)
    memory.erase_forgotten()

    assert vectors_of(one, earlier) == set()


@pytest.mark.usefixtures("dedicated_collections")
def test_a_follower_in_another_space_loses_its_vectors_with_the_forgotten_text(memory, person):
    session = uuid.uuid4()
    first = exchange(person, "The shed is open.", session_id=session)
    second = exchange(person, "Who knows it?", session_id=session, thread_id=uuid.uuid4())
    memory.index_pending()
    moved(second, group("Crew", person))
    memory.index_pending()
    collection = EmbeddingJob.objects.get(exchange=second).collection.name
    assert vectors_of(second, collection)

    memory.forget([first.id], by=person.id)
    memory.erase_forgotten()

    assert vectors_of(second, collection) == set()
    marked = Placement.objects.exclude(collection__purge_needed_since=None)
    assert {row.space for row in marked} == {access.personal_space(person.id), Space.objects.get(name="Crew")}


def test_a_follower_that_was_embedded_without_the_forgotten_text_keeps_its_new_vectors(memory, person):
    session = uuid.uuid4()
    first, second = (exchange(person, text, session_id=session) for text in ("The shed is open.", "Who knows it?"))
    memory.index_pending()
    memory.forget([first.id], by=person.id)
    memory.index_pending()
    second.refresh_from_db()
    assert second.version == 2

    memory.erase_forgotten()

    assert vectors_of(second) == set(vectors.vector_ids(second.id, 2, EmbeddingJob.objects.get().parts))


def test_vectors_that_were_deleted_for_a_new_text_before_the_exchange_was_forgotten_are_not_counted(memory, person):
    one = exchange(person, "The shed is open.")
    memory.index_pending()
    lifecycle.update_exchange(one, user_message="The shed is locked.", assistant_message="Noted.")
    store.delete(Collection.objects.get().name, vectors_of(one))

    memory.forget([one.id], by=person.id)
    memory.erase_forgotten()

    assert receipt_for([one.id]).vectors == 0


def test_vectors_are_erased_from_the_collection_that_a_rebuild_has_replaced_but_not_dropped(memory, person):
    one = exchange(person, "The shed is open.")
    memory.index_pending()
    first = Collection.objects.get()
    replaced, current = (generations.next_collection_name(first.name, step) for step in (1, 2))
    for name in (replaced, current):
        store.copy(first.name, name, sorted(vectors_of(one, first.name)))
    Collection.objects.update(name=current)

    memory.forget([one.id], by=person.id)
    memory.erase_forgotten()

    assert (vectors_of(one, replaced), vectors_of(one, current)) == (set(), set())


def jobs_of(rows: list[Exchange]) -> QuerySet[ErasureJob]:
    return ErasureJob.objects.filter(exchange__in=rows)


def test_a_verified_erasure_is_done_and_holds_no_lease(memory, person):
    one = exchange(person, "The shed is open.")
    memory.forget([one.id], by=person.id)
    assert memory.erase_forgotten() == 1
    job = ErasureJob.objects.get()
    assert (job.state, job.locked_until, job.error) == (Job.State.DONE, None, "")
    assert memory.erase_forgotten() == 0


def test_an_interrupted_erasure_is_retried_without_counting_twice(memory, person, monkeypatch):
    one = used_exchange(memory, person, "shed")
    parts = EmbeddingJob.objects.get(exchange=one).parts
    memory.forget([one.id], by=person.id)

    delete = store.delete

    def delete_and_lose_the_connection(collection: str, ids: set[str]) -> None:
        delete(collection, ids)
        raise VectorStoreUnavailableError

    with monkeypatch.context() as broken:
        broken.setattr(store, "delete", delete_and_lose_the_connection)
        assert memory.erase_forgotten() == 0
    one.refresh_from_db()
    assert one.erased_at is None
    assert one.user_message, "the text is erased after the vectors"
    receipt = receipt_for([one.id])
    assert (receipt.under_way, receipt.failed, receipt.vectors) == (1, 0, 0)
    assert ErasureJob.objects.get().failures == 0

    ErasureJob.objects.update(due_at=ago(seconds=1))
    assert memory.erase_forgotten() == 1
    receipt = receipt_for([one.id])
    assert (receipt.under_way, receipt.vectors, receipt.words, receipt.records) == (0, parts, 1, 1)


def test_only_the_exchange_that_is_being_embedded_waits(memory, person):
    busy, free = (exchange(person, f"Buoy {number} is red.") for number in range(2))
    lease = timezone.now() + jobs.LEASE
    EmbeddingJob.objects.filter(exchange=busy).update(locked_until=lease)
    memory.forget([busy.id, free.id], by=person.id)

    assert memory.erase_forgotten() == 1
    assert jobs_of([free]).get().state == Job.State.DONE
    waiting = jobs_of([busy]).get()
    assert (waiting.state, waiting.locked_until) == (Job.State.PENDING, None)
    assert waiting.due_at > timezone.now()

    EmbeddingJob.objects.update(locked_until=ago(seconds=1))
    ErasureJob.objects.update(due_at=ago(seconds=1))
    assert memory.erase_forgotten() == 1


def test_forgetting_queues_followers_only(memory, person):
    session = uuid.uuid4()
    first, second, third = (exchange(person, f"Buoy {n} is red.", session_id=session) for n in range(3))
    stranger = exchange(PersonFactory(), "The shed is open.")
    memory.index_pending()

    memory.forget([first.id], by=person.id)

    pending = EmbeddingJob.objects.filter(state=Job.State.PENDING).values_list("exchange", flat=True)
    assert set(pending) == {second.id}
    assert not Exchange.objects.filter(pk__in=[third.id, stranger.id]).exclude(version=1)
