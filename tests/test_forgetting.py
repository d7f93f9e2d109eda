"""Forgotten exchanges disappear from every read at once, are then erased, and nothing restores them."""

from __future__ import annotations

import hashlib
import threading
import uuid
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from memory import jobs, signals
from memory.embeddings import cache, local
from memory.errors import VectorStoreRequestError, VectorStoreUnavailableError
from memory.exchanges import erasure, forgetting, lifecycle, receipts
from memory.exchanges.feedback import set_feedback
from memory.index import generations, placement, store, vectors
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
    Operation,
    Placement,
    RecallLogEntry,
    Record,
)
from memory.spaces import access
from tests.crashes import crashes_at
from tests.factories import PersonFactory, exchange, statement, sweep_memory
from tests.topology import IS_LONG

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def forgettable(memory, person):
    """Return an exchange that is indexed and was recalled for a turn."""
    one = exchange(person, "The safe combination is 12-34-56.", "I will keep it to myself.")
    memory.index_pending()
    return one


def test_a_forgotten_exchange_disappears_from_search_recall_and_panels_at_once(memory, person, forgettable):
    readable = access.readable_space_ids(person.id)
    turn_id = uuid.uuid4()
    memory.log_recall(turn_id, memory.recall(["What is the combination of the safe?"], spaces=readable).results)
    assert memory.recalled_for([turn_id], spaces=readable)[turn_id][0].exchange is not None

    assert memory.forget([forgettable.id], by=person.id) == [forgettable.id]

    assert memory.search("safe combination", spaces=readable).results == ()
    assert memory.recall(["What is the combination of the safe?"], spaces=readable).results == ()
    panel = memory.recalled_for([turn_id], spaces=readable)[turn_id][0]
    assert panel.is_forgotten
    assert panel.exchange is None
    assert memory.memory_counts(readable).exchanges == 0


def test_vectors_cache_and_text_are_gone_after_the_erasure(memory, person, forgettable):
    collection = EmbeddingJob.objects.get().collection.name
    ids = vectors.all_vector_ids(forgettable.id, forgettable.version)
    assert store.existing_ids(collection, ids)
    assert CachedEmbedding.objects.count() == 1

    memory.forget([forgettable.id], by=person.id)
    assert memory.erase_forgotten() == 1

    assert store.existing_ids(collection, ids) == set()
    assert CachedEmbedding.objects.count() == 0
    forgettable.refresh_from_db()
    assert (forgettable.user_message, forgettable.assistant_message, forgettable.content_hash) == ("", "", "")
    assert forgettable.erased_at is not None


def test_the_cached_embedding_stays_while_another_exchange_has_the_same_text(memory, person, forgettable):
    twin = exchange(person, forgettable.user_message, forgettable.assistant_message)
    memory.index_pending()

    memory.forget([forgettable.id], by=person.id)
    memory.erase_forgotten()
    assert CachedEmbedding.objects.count() == 1

    memory.forget([twin.id], by=person.id)
    memory.erase_forgotten()
    assert CachedEmbedding.objects.count() == 0


def test_while_the_store_is_unavailable_the_erasure_waits(memory, person, forgettable, monkeypatch):
    def down(*args: object) -> None:
        raise VectorStoreUnavailableError

    memory.forget([forgettable.id], by=person.id)
    with monkeypatch.context() as broken:
        broken.setattr(store, "delete", down)
        assert memory.erase_forgotten() == 0
    assert ErasureJob.objects.get().state == Job.State.PENDING
    assert memory.search("safe combination", spaces=access.readable_space_ids(person.id)).results == ()

    ErasureJob.objects.update(due_at=forgettable.created_at)
    assert memory.erase_forgotten() == 1


def test_an_exchange_forgotten_while_it_is_embedded_leaves_no_vector(memory, person, monkeypatch):
    one = exchange(person, "The safe combination is 12-34-56.")
    real = store.upsert

    def forget_in_the_middle(collection: str, *args: object) -> None:
        memory.forget([one.id], by=person.id)
        assert memory.erase_forgotten() == 0, "the erasure waits for the worker that is embedding"
        real(collection, *args)

    monkeypatch.setattr(store, "upsert", forget_in_the_middle)
    memory.index_pending()
    collection = EmbeddingJob.objects.get().collection.name

    assert store.existing_ids(collection, vectors.all_vector_ids(one.id, one.version)) == set()


@pytest.mark.parametrize("is_forgotten", [True, False])
def test_an_embedding_that_takes_longer_than_its_lease_is_not_cached_for_a_text_that_is_gone(
    memory, person, monkeypatch, is_forgotten
):
    one = exchange(person, "The safe combination is 12-34-56.")
    real = cache.store_documents

    def erase_in_the_middle(*args: object) -> None:
        EmbeddingJob.objects.update(locked_until=timezone.now())
        if is_forgotten:
            memory.forget([one.id], by=person.id)
            assert memory.erase_forgotten() == 1
        real(*args)

    monkeypatch.setattr(cache, "store_documents", erase_in_the_middle)
    memory.index_pending()

    assert CachedEmbedding.objects.exists() is not is_forgotten


def test_a_vector_that_cannot_be_deleted_then_does_not_stop_the_others_and_is_removed_later(
    memory, person, monkeypatch
):
    one, other = exchange(person, "The safe combination is 12-34-56."), exchange(person, "The boat is painted in June.")
    real = store.upsert
    indexed: list[uuid.UUID] = []

    def forget_in_the_middle(collection: str, *args: object) -> None:
        memory.forget([one.id], by=person.id)
        Collection.objects.update(purge_needed_since=None)  # as if it had been rebuilt since
        real(collection, *args)

    def down(*args: object) -> None:
        raise VectorStoreUnavailableError

    def record_indexed(exchange_ids: list[uuid.UUID], **kwargs: object) -> None:
        indexed.extend(exchange_ids)

    signals.exchanges_indexed.connect(record_indexed)
    with monkeypatch.context() as broken:
        broken.setattr(store, "upsert", forget_in_the_middle)
        broken.setattr(store, "delete", down)
        assert memory.index_pending() == 1
    signals.exchanges_indexed.disconnect(record_indexed)

    assert indexed == [other.id]
    assert Collection.objects.get().purge_needed_since is not None


def test_resuming_its_answer_does_not_restore_a_forgotten_exchange(memory, person):
    turn_id = uuid.uuid4()
    one = exchange(person, "The safe combination is 12-34-56.", "Not", turn_id=turn_id)
    memory.forget([one.id], by=person.id)

    second = exchange(person, "The safe combination is 12-34-56.", "Noted for good.", turn_id=turn_id)

    assert second.id == one.id
    memory.index_pending()
    assert memory.search("safe combination", spaces=access.readable_space_ids(person.id)).results == ()
    assert Exchange.objects.get().assistant_message == "Not"


def test_terms_metadata_feedback_records_and_explanations_are_deleted_in_the_same_transaction(memory, person):
    one = exchange(person, "The safe combination is 12-34-56.", metadata={"zone": "cellar"})
    memory.index_pending()
    memory.log_recall(
        uuid.uuid4(),
        memory.recall(["What is the combination of the safe?"], spaces=access.readable_space_ids(person.id)).results,
    )
    set_feedback(person.id, one, "pinned")
    Record.objects.create(exchange=one, space=one.space, name="safe")
    assert RecallLogEntry.objects.get().reason

    memory.forget([one.id], by=person.id)

    counts = [table.objects.count() for table in (LexicalEntry, MetadataValue, Feedback, Record)]
    assert (counts, RecallLogEntry.objects.get().reason) == ([0, 0, 0, 0], "")
    assert "zone" not in Exchange.objects.get().metadata


def test_followers_lose_vectors_that_contain_forgotten_text_before_they_are_embedded_again(memory, person):
    session = uuid.uuid4()
    first = exchange(person, "The safe combination is 12-34-56.", session_id=session)
    second = exchange(person, "And who else knows it?", session_id=session)
    memory.index_pending()
    collection, with_traces = EmbeddingJob.objects.get(exchange=second).collection.name, second.content_hash
    assert store.existing_ids(collection, vectors.all_vector_ids(second.id, 1))

    memory.forget([first.id], by=person.id)
    memory.erase_forgotten()

    assert store.existing_ids(collection, vectors.all_vector_ids(second.id, 1)) == set()
    assert not CachedEmbedding.objects.filter(content_hash=with_traces)
    memory.index_pending()
    assert (
        memory.search("who knows it", spaces=access.readable_space_ids(person.id)).results[0].exchange.id == second.id
    )


def test_the_erasure_waits_for_a_worker_that_embeds_a_follower(memory, person):
    session = uuid.uuid4()
    first = exchange(person, "The safe combination is 12-34-56.", session_id=session)
    second = exchange(person, "And who else knows it?", session_id=session)
    lease = timezone.now() + timedelta(seconds=30)
    EmbeddingJob.objects.filter(exchange=second).update(locked_until=lease)

    memory.forget([first.id], by=person.id)

    assert ErasureJob.objects.get().due_at == lease
    assert memory.erase_forgotten() == 0


def test_vectors_are_removed_from_every_generation_and_from_a_collection_being_rebuilt(memory, person, forgettable):
    other = generations.IndexGeneration.objects.create(
        provider="local", model="earlier", state="retired", dimension=384
    )
    old = placement.get_collection(forgettable.space, other)
    row = EmbeddingJob.objects.get()
    ids = vectors.vector_ids(forgettable.id, 1, row.parts)
    counts = generations.next_collection_name(row.collection.name)
    for collection in (old.name, counts):
        store.copy(row.collection.name, collection, ids)
        assert store.existing_ids(collection, ids) == set(ids)

    memory.forget([forgettable.id], by=person.id)
    memory.erase_forgotten()

    assert [store.count(collection) for collection in (row.collection.name, old.name, counts)] == [0, 0, 0]


def test_the_receipt_counts_what_was_removed_and_what_is_pending(memory, person, forgettable):
    memory.log_recall(
        uuid.uuid4(),
        memory.recall(["What is the combination of the safe?"], spaces=access.readable_space_ids(person.id)).results,
    )
    parts = EmbeddingJob.objects.get().parts
    twin = exchange(person, forgettable.user_message, forgettable.assistant_message)
    memory.index_pending()

    memory.forget([forgettable.id, twin.id], by=person.id)
    now = receipts.receipt_for([forgettable.id, twin.id, uuid.uuid4()])
    assert (now.exchanges, now.words, now.recalls, now.under_way, now.in_files) == (2, 2, 1, 2, 2)
    assert (now.vectors, now.cached) == (0, 0)

    memory.erase_forgotten()
    later = receipts.receipt_for([forgettable.id, twin.id])
    assert (later.vectors, later.cached, later.under_way, later.in_files) == (2 * parts, 1, 0, 2)

    Collection.objects.update(purge_needed_since=None)
    assert receipts.receipt_for([forgettable.id, twin.id]).in_files == 0


def test_a_forgotten_exchange_is_not_forgotten_again(memory, person, forgettable):
    other = PersonFactory()
    twin = exchange(person, "The shed is open.")
    assert memory.forget([forgettable.id], by=person.id) == [forgettable.id]
    assert memory.forget([forgettable.id, twin.id], by=other.id) == [twin.id]
    forgettable.refresh_from_db()
    twin.refresh_from_db()
    assert (forgettable.forgotten_by_id, twin.forgotten_by_id) == (person.id, other.id)
    assert receipts.receipt_for([forgettable.id]).words == 1


def test_forgetting_clears_the_query_cache_and_wakes_a_worker_if_anything_is_forgotten(
    memory, person, forgettable, monkeypatch
):
    woken: list[str] = []
    monkeypatch.setattr(jobs, "_send_task", woken.append)
    memory.search("safe combination", spaces=access.readable_space_ids(person.id))
    assert cache._queries

    assert memory.forget([forgettable.id], by=person.id)
    assert woken == ["memory.tasks.erase_forgotten"]
    assert not cache._queries
    assert memory.forget([forgettable.id], by=person.id) == []
    assert woken == ["memory.tasks.erase_forgotten"]


def test_the_signal_distinguishes_a_document_and_a_bulk_operation_from_single_exchanges(memory, person):
    received: list[bool] = []

    def receive(*, by_itself: bool, **_: Any) -> None:
        received.append(by_itself)

    signals.exchanges_forgotten.connect(receive)
    now = timezone.now()
    bulk = Operation.objects.create(kind=Operation.Kind.FORGET, created_by=person, created_at=now, due_at=now)
    single, part, listed = (exchange(person, f"Buoy {number} is red.") for number in range(3))
    try:
        memory.forget([single.id], by=person.id)
        forgetting.forget([part.id], by=person.id, as_part_of_a_document=True)
        forgetting.forget([listed.id], by=person.id, operation=bulk)
    finally:
        signals.exchanges_forgotten.disconnect(receive)
    assert received == [True, False, False]


def test_a_receipt_counts_failed_erasures_of_its_own_exchanges_only(memory, person, forgettable):
    twin = exchange(person, "The shed is open.")
    memory.forget([forgettable.id, twin.id], by=person.id)
    ErasureJob.objects.filter(exchange=twin).update(state=Job.State.FAILED)
    assert receipts.receipt_for([forgettable.id]).failed == 0
    assert receipts.receipt_for([forgettable.id, twin.id]).failed == 1


@pytest.mark.usefixtures("dedicated_collections")
def test_forgetting_marks_only_its_own_space_for_purging_even_without_vectors(memory, person):
    other = PersonFactory()
    exchange(other, "The shed is open.")
    memory.index_pending()
    one = exchange(person, "The safe combination is 12-34-56.")
    memory.forget([one.id], by=person.id)
    marked = Placement.objects.exclude(collection__purge_needed_since=None)
    assert {row.space_id for row in marked} == {access.personal_space(person.id).id}
    assert Placement.objects.filter(space=access.personal_space(other.id)).exists()


def updated_followers(memory: Any, person: Any) -> tuple[Exchange, Exchange]:
    """Return two embedded exchanges of a session; the second was updated, as by a resumed answer."""
    session = uuid.uuid4()
    first = exchange(person, "The safe combination is 12-34-56.", session_id=session)
    second = exchange(person, "And who else knows it?", session_id=session)
    memory.index_pending()
    lifecycle.update_exchange(second, user_message="And who else knows it?", assistant_message="Nobody.")
    memory.index_pending()
    second.refresh_from_db()
    assert second.version > 1
    return first, second


def test_an_exchange_and_its_updated_follower_are_erased_together(memory, person):
    pair = updated_followers(memory, person)
    parts = sum(EmbeddingJob.objects.values_list("parts", flat=True))

    memory.forget([one.id for one in pair], by=person.id)

    assert memory.erase_forgotten() == 2
    assert set(Exchange.objects.filter(user_message="").exclude(erased_at=None)) == set(pair)
    receipt = receipts.receipt_for([one.id for one in pair])
    assert (receipt.vectors, receipt.under_way, receipt.failed) == (parts, 0, 0)


def test_repeated_ids_are_counted_once(memory, person, forgettable):
    row = EmbeddingJob.objects.get()
    collection, ids = row.collection.name, vectors.vector_ids(forgettable.id, forgettable.version, row.parts)
    counts = generations.next_collection_name(collection)

    assert store.existing_ids(collection, ids * 2) == set(ids)
    assert {id for id, _ in store.similarities(np.ones(384, dtype=np.float32), collection, ids * 2)} == set(ids)
    assert store.copy(collection, counts, ids * 2) == set(ids)
    store.delete(collection, ids * 2)
    assert store.existing_ids(collection, ids) == set()
    store.drop(counts)


def test_an_erasure_that_the_index_refuses_fails_alone_and_is_shown(memory, person, monkeypatch):
    rows = [exchange(person, f"Note {number}") for number in range(5)]
    memory.index_pending()
    bad, real = rows[3], store.delete

    def refuse_one(collection: str, ids: set[str]) -> None:
        if any(id.startswith(str(bad.id)) for id in ids):
            raise VectorStoreRequestError("refused")
        real(collection, ids)

    monkeypatch.setattr(store, "delete", refuse_one)
    memory.forget([row.id for row in rows], by=person.id)

    assert memory.erase_forgotten() == 4
    job = ErasureJob.objects.get(exchange=bad)
    assert (job.state, job.failures, job.error) == (Job.State.PENDING, 1, "refused")
    for _ in range(jobs.MAX_FAILURES):
        ErasureJob.objects.update(due_at=bad.created_at)
        memory.erase_forgotten()
    assert ErasureJob.objects.get(exchange=bad).state == Job.State.FAILED
    receipt = receipts.receipt_for([row.id for row in rows])
    assert (receipt.under_way, receipt.failed) == (1, 1)

    monkeypatch.setattr(store, "delete", real)
    jobs.requeue(ErasureJob.objects.filter(state=Job.State.FAILED))
    assert memory.erase_forgotten() == 1


def test_vectors_that_remain_after_deletion_are_a_failure(memory, person, forgettable, monkeypatch):
    monkeypatch.setattr(store, "delete", lambda collection, ids: None)
    memory.forget([forgettable.id], by=person.id)

    assert memory.erase_forgotten() == 0

    assert ErasureJob.objects.get().failures == 1


def embed_fast(embedder: object, texts: list[str]) -> np.ndarray:
    """Return a distinct vector for each text without a model."""
    seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") for text in texts]
    rows = np.stack([np.random.default_rng(seed).standard_normal(384, dtype=np.float32) for seed in seeds])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_crash_at_any_line_of_the_erasure_ends_in_erasure(memory, person, monkeypatch):
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", embed_fast)
    readable = access.readable_space_ids(person.id)
    step, stride = -1, 1 if IS_LONG else 3
    crashed = True
    while crashed:
        step += stride
        session = uuid.uuid4()
        one = exchange(person, f"The safe combination is {step}.", session_id=session)
        after = exchange(person, f"Who knows it, {step}?", session_id=session)
        memory.index_pending()
        rows = EmbeddingJob.objects.filter(exchange__in=[one, after]).select_related("collection")
        parts, collection = rows.get(exchange=one).parts, rows.get(exchange=one).collection.name
        memory.forget([one.id], by=person.id)
        crashed = crashes_at(step, memory.erase_forgotten, {erasure.__file__})
        assert one.id not in {hit.exchange.id for hit in memory.search("safe combination", spaces=readable).results}

        ErasureJob.objects.update(locked_until=None)
        sweep_memory()

        one.refresh_from_db()
        assert (one.user_message, one.content_hash, one.erased_at is None) == ("", "", False), step
        old = [*vectors.all_vector_ids(one.id, 1), *vectors.all_vector_ids(after.id, 1)]
        assert store.existing_ids(collection, old) == set(), step
        assert not CachedEmbedding.objects.filter(content_hash=after.content_hash), step
        assert receipts.receipt_for([one.id]).vectors == parts, step
    assert step > 30
    assert CachedEmbedding.objects.count() == Exchange.objects.filter(forgotten_at=None).count()
    assert cache.delete_unreferenced(CachedEmbedding.objects.values_list("content_hash", flat=True)) == 0


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time")
def test_two_sources_of_a_statement_are_forgotten_at_the_same_time(memory, person, monkeypatch):
    first, second = exchange(person, "A buoy makes 28 retries."), exchange(person, "It makes 28 retries a day.")
    based = statement(first, second)
    has_begun, delete_statements = threading.Event(), forgetting.delete_statements

    def forget_second() -> None:
        memory.forget([second.pk], by=person.id)
        connection.close()

    def delete_and_wait(exchange_ids: list[uuid.UUID]) -> None:
        delete_statements(exchange_ids)
        if first.pk in exchange_ids:
            other.start()
            while not (has_begun.wait(0.02) or waits_for_lock()):
                pass
        elif second.pk in exchange_ids:
            has_begun.set()

    def waits_for_lock() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            return bool(cursor.fetchone()[0])

    other = threading.Thread(target=forget_second)
    monkeypatch.setattr(forgetting, "delete_statements", delete_and_wait)
    memory.forget([first.pk], by=person.id)
    other.join()

    forgotten = Exchange.objects.exclude(forgotten_at=None)
    assert set(forgotten.values_list("id", flat=True)) == {first.pk, second.pk, based.pk}
