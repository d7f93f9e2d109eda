"""Small spaces share collections: what a reader's query can return, where spaces are placed, and how they move."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from cato_web.accounts.models import User
from memory import jobs
from memory.errors import VectorStoreUnavailableError
from memory.exchanges.receipts import receipt_for
from memory.filters import parse_filter
from memory.index import chroma, claiming, generations, indexing, placement, purge, reconcile, store, vectors
from memory.models import Collection, EmbeddingJob, Exchange, Job, Placement, Space
from memory.spaces import access, groups
from tests.crashes import crashes_at
from tests.factories import PersonFactory, exchange, group, sweep_memory
from tests.topology import IS_LONG, only_long

pytestmark = pytest.mark.django_db(transaction=True)

HARBOUR = "The lamp of the harbour is green."
LAMP = "what colour is the lamp"


@pytest.fixture
def limits(monkeypatch) -> Callable[[int, int], None]:
    def set_limits(capacity: int, of_a_space: int) -> None:
        monkeypatch.setattr(placement, "CAPACITY", capacity)
        monkeypatch.setattr(placement, "MAX_SHARED_SPACE", of_a_space)

    return set_limits


@pytest.fixture
def candidates(memory, monkeypatch) -> Callable[..., set[uuid.UUID]]:
    """Return a function that searches, and returns the exchanges of all vectors that Chroma returned for it."""
    returned: set[uuid.UUID] = set()
    real = store.query

    def query(*args: Any) -> Any:
        found = real(*args)
        returned.update(uuid.UUID(vectors.parse_exchange_id(id)) for id, _ in found)
        return found

    monkeypatch.setattr(store, "query", query)

    def search(reader: User, text: str = LAMP, **options: Any) -> set[uuid.UUID]:
        returned.clear()
        memory.search(text, spaces=access.readable_space_ids(reader.id), **options)
        return set(returned)

    return search


def notes(owner: User, count: int, *, space: Space | None = None, text: str = "Buoy", **fields: Any) -> list[Exchange]:
    """Remember notes, which have one vector each."""
    return [exchange(owner, f"{text} {number} is red.", "", space=space, **fields) for number in range(count)]


def collection_of(space: Space) -> Collection:
    return Placement.objects.select_related("collection").get(space=space, is_current=True).collection


def own(person: User) -> Space:
    return access.personal_space(person.id)


def stored_spaces(exchanges: Iterable[Exchange], collection: Collection) -> set[str]:
    """Return the field `space` of all vectors that these exchanges have in the collection."""
    ids = [id for one in exchanges for id in vectors.all_vector_ids(one.id, 2)]
    if not store.existing_ids(collection.name, ids):
        return set()
    found = chroma.run(collection.name, lambda handle: handle.get(ids=ids, include=["metadatas"]))
    return {fields["space"] for fields in found["metadatas"]}


def assert_consistent() -> None:
    assert reconcile.measure_drift() == reconcile.Drift(0, 0)
    assert set(EmbeddingJob.objects.values_list("state", flat=True)) <= {Job.State.DONE}
    assert not Placement.objects.filter(is_current=False).exists()


# Access


@pytest.mark.parametrize("is_shared", [True, False])
def test_only_readable_vectors_are_candidates(memory, candidates, limits, is_shared):
    limits(4000, 1000 if is_shared else -1)
    alice, bob, carol = PersonFactory(), PersonFactory(), PersonFactory()
    crew, team = group("Crew", alice, bob), access.team_space()
    spaces = {
        space: exchange(alice, HARBOUR, space=space).id for space in (own(alice), own(bob), own(carol), crew, team)
    }
    memory.index_pending()
    assert Collection.objects.count() == (1 if is_shared else 5)

    for reader, readable in (
        (alice, [own(alice), crew, team]),
        (bob, [own(bob), crew, team]),
        (carol, [own(carol), team]),
    ):
        assert candidates(reader) == {spaces[space] for space in readable}


def test_the_filter_of_a_query_and_the_readable_spaces_both_apply(memory, candidates, monkeypatch):
    monkeypatch.setattr("memory.retrieval.candidates.MAX_EXACT", 0)  # Chroma applies the filter
    alice, bob = PersonFactory(), PersonFactory()
    green = exchange(alice, HARBOUR, metadata={"colour": "green"})
    exchange(bob, HARBOUR, metadata={"colour": "green"})
    exchange(alice, "The lamp of the pier is red.", metadata={"colour": "red"})
    memory.index_pending()
    asked: list[dict[str, Any]] = []
    real = store.query
    monkeypatch.setattr(store, "query", lambda *args: asked.append(args[3]) or real(*args))

    candidates(alice, filters=parse_filter({"colour": "green"}))

    assert asked[-1] == {"$and": [{"space": {"$in": [str(own(alice).id)]}}, {"metadata.colour": {"$in": ["green"]}}]}
    name, vector = collection_of(own(alice)).name, np.ones(384, dtype=np.float32)
    assert {vectors.parse_exchange_id(id) for id, _ in real(name, vector, 50, asked[-1])} == {green.id.hex}


def test_a_person_without_vectors_gets_no_candidates(memory, candidates):
    exchange(PersonFactory(), HARBOUR)
    memory.index_pending()
    stranger = PersonFactory()
    assert candidates(stranger) == set()
    exchange(stranger, "Something else.")
    sweep_memory()
    assert len(candidates(stranger)) == 1


@pytest.mark.parametrize("is_shared", [True, False])
def test_vectors_of_a_moved_thread_follow_when_the_worker_has_run(memory, candidates, limits, is_shared):
    limits(4000, 1000 if is_shared else -1)
    alice, bob = PersonFactory(), PersonFactory()
    crew, thread_id = group("Crew", bob, alice), uuid.uuid4()
    exchange(bob, "The pier is closed.", space=crew)
    moved = exchange(alice, HARBOUR, thread_id=thread_id)
    memory.index_pending()
    count = sum(EmbeddingJob.objects.values_list("parts", flat=True))
    assert (collection_of(crew) == collection_of(own(alice))) == is_shared

    memory.move_thread(thread_id, to=crew, by=alice.id)
    assert moved.id not in candidates(bob), "its vectors are still in the other space"
    assert moved.id in {hit.exchange.id for hit in memory.search("harbour", spaces=frozenset({crew.id})).results}
    memory.index_pending()

    assert moved.id in candidates(bob)
    assert stored_spaces([moved], collection_of(crew)) == {str(crew.id)}
    assert sum(store.count(collection.name) for collection in Collection.objects.all()) == count
    assert_consistent()
    # And back: who may no longer read the thread finds nothing, even while its vectors still have the field.
    memory.move_thread(thread_id, to=own(alice), by=alice.id)
    assert moved.id in candidates(bob)
    found = memory.search(LAMP, spaces=access.readable_space_ids(bob.id)).results
    assert moved.id not in {hit.exchange.id for hit in found}
    memory.index_pending()
    assert moved.id not in candidates(bob)
    assert_consistent()


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_worker_that_is_overtaken_by_a_move_leaves_no_vector_in_the_earlier_space(
    memory, candidates, limits, monkeypatch, is_shared
):
    limits(4000, 1000 if is_shared else -1)
    alice, bob = PersonFactory(), PersonFactory()
    crew, thread_id = group("Crew", alice), uuid.uuid4()
    exchange(bob, "The pier is closed.")
    memory.index_pending()
    moved = exchange(bob, HARBOUR, thread_id=thread_id)
    real = store.upsert

    def overtaken(*args: Any) -> None:
        monkeypatch.setattr(store, "upsert", real)
        memory.move_thread(thread_id, to=crew, by=bob.id)
        assert memory.index_pending() == 1, "another worker"
        real(*args)

    monkeypatch.setattr(store, "upsert", overtaken)
    memory.index_pending()
    EmbeddingJob.objects.update(locked_until=None)
    memory.index_pending()

    assert moved.id not in candidates(bob)
    assert moved.id in candidates(alice)
    assert_consistent()


# Placement


def test_spaces_fill_a_shared_collection_and_large_ones_get_their_own(memory, limits):
    limits(10, 5)
    people = [PersonFactory() for _ in range(4)]
    for person, count in zip(people, (4, 6, 4, 4), strict=True):
        notes(person, count)
    memory.index_pending()

    first, large, third, fourth = (collection_of(own(person)) for person in people)
    assert (first.is_shared, large.is_shared, fourth.is_shared) == (True, False, True)
    assert first == third
    assert len({first, large, fourth}) == 3, "four more vectors exceed the capacity"
    assert_consistent()


def test_spaces_are_placed_by_the_expected_vectors_of_their_queued_exchanges(memory, limits, monkeypatch):
    people = [PersonFactory() for _ in range(3)]
    for person in people:
        exchange(person, HARBOUR)  # the whole and each message
    limits(6, 5)
    moves: list[Collection] = []
    monkeypatch.setattr(placement, "_place_elsewhere", moves.append)

    memory.index_pending()

    first, second, third = (collection_of(own(person)) for person in people)
    assert first == second != third
    assert moves == []
    assert_consistent()


def test_the_fullest_collection_with_room_is_chosen(memory, limits):
    limits(10, 10)
    people = [PersonFactory() for _ in range(4)]
    for person, count in zip(people, (4, 7, 3, 4), strict=True):
        notes(person, count)
        memory.index_pending()

    first, second, third, fourth = (collection_of(own(person)) for person in people)
    assert third == second
    assert fourth == first
    assert first != second


def test_a_space_that_grows_moves_to_its_own_collection_and_stays_searchable(memory, candidates, limits):
    alice, bob = PersonFactory(), PersonFactory()
    kept, first = notes(bob, 2), notes(alice, 3)
    memory.index_pending()
    shared = collection_of(own(alice))
    assert shared == collection_of(own(bob))
    limits(100, 5)

    added = notes(alice, 3, text="Mast")
    assert memory.index_pending() >= 3

    dedicated = collection_of(own(alice))
    assert not dedicated.is_shared
    assert stored_spaces([*first, *added], dedicated) == {str(own(alice).id)}
    sweep_memory()
    assert stored_spaces([*first, *added], shared) == set()
    assert stored_spaces(kept, shared) == {str(own(bob).id)}
    assert candidates(alice) == {one.id for one in [*first, *added]}
    assert candidates(bob) == {one.id for one in kept}
    assert_consistent()


def test_a_full_collection_gives_its_largest_space_to_another_shared_one(memory, candidates, limits):
    alice, bob, carol = PersonFactory(), PersonFactory(), PersonFactory()
    written = {person: notes(person, count) for person, count in ((alice, 4), (bob, 2), (carol, 3))}
    memory.index_pending()
    shared = collection_of(own(alice))
    limits(8, 5)

    written[bob] += notes(bob, 1, text="Mast")
    memory.index_pending()
    sweep_memory()

    assert collection_of(own(alice)) != shared
    assert collection_of(own(alice)).is_shared
    assert collection_of(own(bob)) == collection_of(own(carol)) == shared
    for person, rows in written.items():
        assert candidates(person) == {one.id for one in rows}
    assert_consistent()


def test_both_collections_are_searched_while_a_space_moves(memory, candidates, limits, monkeypatch):
    alice = PersonFactory()
    first = notes(alice, 4)
    memory.index_pending()
    shared = collection_of(own(alice))
    limits(100, 5)
    added = notes(alice, 2, text="Mast")
    monkeypatch.setattr(claiming, "_BATCH_SIZE", 2)

    memory.index_pending(limit=2)

    expected = {one.id for one in [*first, *added]}
    assert not collection_of(own(alice)).is_shared
    assert candidates(alice) == expected
    memory.index_pending(limit=2)
    assert stored_spaces([*first, *added], shared), "only a part has moved"
    assert candidates(alice) == expected
    memory.index_pending()
    sweep_memory()
    assert candidates(alice) == expected
    assert stored_spaces([*first, *added], shared) == set()
    assert_consistent()


def test_a_space_that_returns_to_a_collection_uses_its_placement_again(memory, candidates, limits):
    alice, bob, carol = PersonFactory(), PersonFactory(), PersonFactory()
    rows = notes(alice, 4)
    notes(bob, 1)
    memory.index_pending()
    first = collection_of(own(alice))
    limits(4, 100)
    placement.rebalance(first)
    second = collection_of(own(alice))
    assert second != first
    Placement.objects.create(space=own(carol), generation=first.generation, collection=second, vector_count=4)
    limits(7, 100)

    placement.rebalance(second)
    memory.index_pending()
    sweep_memory()

    assert collection_of(own(alice)) == first
    assert Placement.objects.filter(space=own(alice)).count() == 1
    assert candidates(alice) == {one.id for one in rows}
    assert_consistent()


def test_concurrent_workers_place_a_space_once(memory):
    spaces = [own(PersonFactory()) for _ in range(6)]
    generation = generations.active_generation()
    results: list[tuple[Space, int]] = []

    def place_all() -> None:
        results.extend((space, placement.get_collection(space, generation).pk) for space in spaces)
        connection.close()

    workers = [threading.Thread(target=place_all) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert len(results) == 24
    assert Placement.objects.count() == 6
    assert Collection.objects.count() == 1


def test_concurrent_workers_move_the_same_space_once(memory, limits):
    alice, bob = PersonFactory(), PersonFactory()
    notes(alice, 4), notes(bob, 4)
    memory.index_pending()
    shared = collection_of(own(alice))
    limits(6, 5)

    def move() -> None:
        placement.rebalance(shared)
        connection.close()

    workers = [threading.Thread(target=move) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    memory.index_pending()
    sweep_memory()

    assert Placement.objects.filter(collection=shared).count() == 1
    assert Collection.objects.count() == 2
    assert_consistent()


@pytest.mark.parametrize("moment", ["_delete_outdated_vectors", "_mark_indexed"])
def test_a_batch_whose_space_moves_meanwhile_ends_in_the_new_collection(
    memory, candidates, limits, monkeypatch, moment
):
    """Before its collection is recorded the batch is queued again; afterwards it is finished, and moved later."""
    alice = PersonFactory()
    first = notes(alice, 4)
    memory.index_pending()
    shared = collection_of(own(alice))
    added = notes(alice, 1, text="Mast")
    real = getattr(indexing, moment)

    def move_meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(indexing, moment, real)
        limits(100, 3)
        placement.rebalance(shared)
        return real(*args)

    monkeypatch.setattr(indexing, moment, move_meanwhile)
    written: list[str] = []
    monkeypatch.setattr(store, "upsert", lambda *args, real=store.upsert: written.append(args[0]) or real(*args))
    memory.index_pending()
    sweep_memory()
    sweep_memory()

    assert (shared.name in written) == (moment == "_mark_indexed")
    assert not collection_of(own(alice)).is_shared
    assert candidates(alice) == {one.id for one in [*first, *added]}
    assert store.count(shared.name) == 0
    assert_consistent()


def test_a_worker_that_lost_its_job_before_writing_writes_nothing(memory, candidates, monkeypatch):
    alice = PersonFactory()
    rows = notes(alice, 1)
    real, written = indexing._delete_outdated_vectors, list[str]()

    def overtaken(*args: Any) -> None:
        monkeypatch.setattr(indexing, "_delete_outdated_vectors", real)
        jobs.requeue(EmbeddingJob.objects.all())
        assert memory.index_pending() == 1, "another worker"
        real(*args)

    monkeypatch.setattr(indexing, "_delete_outdated_vectors", overtaken)
    monkeypatch.setattr(store, "upsert", lambda *args, real=store.upsert: written.append(args[0]) or real(*args))
    memory.index_pending()

    assert len(written) == 1
    assert candidates(alice) == {one.id for one in rows}
    assert_consistent()


def test_a_crash_at_any_line_of_a_move_loses_nothing(memory, candidates, limits):
    alice, bob = PersonFactory(), PersonFactory()
    kept = notes(bob, 1)
    step, stride, crashed = -1, 1 if IS_LONG else 9, True
    files = {placement.__file__, indexing.__file__}
    while crashed:
        step += stride
        limits(4000, 1000)
        crew = group(f"Crew {step}", alice)
        first = notes(alice, 3, space=crew)
        memory.index_pending()
        limits(100, 3)
        added = notes(alice, 1, space=crew, text="Mast")

        crashed = crashes_at(step, memory.index_pending, files)
        EmbeddingJob.objects.update(locked_until=None)
        # If the process died before it counted the vectors, those of the next batch are counted with them.
        added += notes(alice, 1, space=crew, text="Sail")
        for _ in range(3):
            sweep_memory()

        assert candidates(alice) == {one.id for one in [*first, *added]}, step
        assert candidates(bob) == {one.id for one in kept}, step
        assert not collection_of(crew).is_shared, step
        assert_consistent()
        memory.forget([one.id for one in [*first, *added]], by=alice.id)
        memory.erase_forgotten()
    assert step > 60


# Forgetting, rebuilding and reconciling


def test_forgetting_and_purging_leave_the_vectors_of_the_other_spaces(memory, candidates):
    alice, bob = PersonFactory(), PersonFactory()
    forgotten, *kept = notes(alice, 3)
    others = notes(bob, 3)
    memory.index_pending()
    shared = collection_of(own(alice))

    memory.forget([forgotten.id], by=alice.id)
    assert candidates(bob) == {one.id for one in others}
    memory.erase_forgotten()
    assert (receipt_for([forgotten.id]).vectors, receipt_for([forgotten.id]).in_files) == (1, 1)
    assert purge.purge_pending() == 1

    assert collection_of(own(alice)).name == generations.next_collection_name(shared.name)
    assert receipt_for([forgotten.id]).in_files == 0
    assert candidates(bob) == {one.id for one in others}
    assert candidates(alice) == {one.id for one in kept}
    assert_consistent()


def test_the_purge_mark_stays_while_another_space_of_the_collection_erases(memory):
    alice, bob = PersonFactory(), PersonFactory()
    (mine,), (other,) = notes(alice, 1), notes(bob, 1)
    memory.index_pending()
    memory.forget([mine.id], by=alice.id)
    memory.erase_forgotten()
    memory.forget([other.id], by=bob.id)

    purge.purge_pending()
    assert receipt_for([mine.id]).in_files == 1
    memory.erase_forgotten()
    purge.purge_pending()
    assert receipt_for([mine.id, other.id]).in_files == 0


@pytest.mark.parametrize("answers", [True, False])
def test_a_collection_that_cannot_be_purged_stops_the_others_only_if_the_store_does_not_answer(
    memory, limits, monkeypatch, answers
):
    limits(1, 1)
    people = [PersonFactory() for _ in range(3)]
    first, *others = [notes(person, 2) for person in people]
    memory.index_pending()
    broken = collection_of(own(people[0]))
    real = purge.rebuild_collection

    def rebuild(collection: Collection, **options: Any) -> bool:
        if collection == broken:
            if not answers:
                monkeypatch.setattr(purge, "ping_vector_store", lambda: rebuild(broken))
            raise VectorStoreUnavailableError("It refuses this one.")
        return real(collection, **options)

    monkeypatch.setattr(purge, "rebuild_collection", rebuild)
    for person, (forgotten, _kept) in zip(people, [first, *others], strict=True):
        memory.forget([forgotten.id], by=person.id)
    memory.erase_forgotten()

    with pytest.raises(VectorStoreUnavailableError):
        purge.purge_pending()

    assert receipt_for([first[0].id]).in_files == 1
    assert receipt_for([rows[0].id for rows in others]).in_files == (0 if answers else 2)


def test_a_collection_that_a_space_has_left_is_purged_once_its_vectors_are_deleted(memory, limits, monkeypatch):
    alice, bob = PersonFactory(), PersonFactory()
    rows = notes(alice, 4)
    notes(bob, 1)
    memory.index_pending()
    shared = collection_of(own(alice))
    limits(100, 3)
    real = store.copy

    def move_meanwhile(source: str, target: str, ids: list[str]) -> set[str]:
        copied = real(source, target, ids)
        monkeypatch.setattr(store, "copy", real)
        placement.rebalance(shared)
        memory.index_pending()
        return copied

    generations.mark_purge_needed(Collection.objects.filter(pk=shared.pk))
    monkeypatch.setattr(store, "copy", move_meanwhile)
    purge.purge_pending()

    sweep_memory()
    assert stored_spaces(rows, collection_of(own(bob))) == set()
    shared.refresh_from_db()
    assert shared.purge_needed_since is not None, "the copied vectors are in its files"
    purge.purge_pending()
    shared.refresh_from_db()
    assert shared.purge_needed_since is None
    assert_consistent()


def test_workers_of_all_spaces_embed_again_after_a_switch(memory, candidates, monkeypatch):
    alice, bob = PersonFactory(), PersonFactory()
    notes(alice, 1)
    memory.index_pending()
    late = notes(bob, 2)
    real = store.upsert

    def rebuild_meanwhile(*args: Any) -> None:
        monkeypatch.setattr(store, "upsert", real)
        assert purge.rebuild_collection(collection_of(own(alice)))
        real(*args)

    monkeypatch.setattr(store, "upsert", rebuild_meanwhile)
    memory.index_pending()

    assert candidates(bob) == {one.id for one in late}
    assert_consistent()


def test_a_rebuild_keeps_vectors_that_wait_to_be_moved(memory, candidates, limits):
    alice = PersonFactory()
    rows = notes(alice, 4)
    memory.index_pending()
    shared = collection_of(own(alice))
    limits(100, 3)
    placement.rebalance(shared)

    assert purge.rebuild_collection(shared)

    assert candidates(alice) == {one.id for one in rows}
    memory.index_pending()
    sweep_memory()
    assert_consistent()


def test_a_missing_shared_collection_is_rebuilt_for_all_its_spaces(memory, candidates):
    people = [PersonFactory() for _ in range(3)]
    written = {person: {one.id for one in notes(person, 2)} for person in people}
    memory.index_pending()
    store.drop(collection_of(own(people[0])).name)

    assert memory.recall([LAMP], spaces=access.readable_space_ids(people[0].id)).note == "words"
    memory.index_pending()

    assert {person: candidates(person) for person in people} == written
    assert_consistent()


def test_reconcile_repairs_vectors_in_a_collection_of_other_spaces(memory, candidates, limits):
    alice = PersonFactory()
    rows = notes(alice, 2)
    memory.index_pending()
    shared = collection_of(own(alice))
    other = Collection.objects.create(generation=shared.generation, name=placement._new_name(), is_shared=True)
    Placement.objects.update(collection=other)

    assert candidates(alice) == set()
    assert reconcile.reconcile().queued == 2
    memory.index_pending()

    assert candidates(alice) == {one.id for one in rows}
    assert store.count(shared.name) == 0


def test_only_unnamed_collections_of_this_installation_are_orphans(memory, monkeypatch):
    monkeypatch.setattr(reconcile, "ABANDONED", 0.0)
    alice = PersonFactory()
    notes(alice, 1)
    memory.index_pending()
    name = collection_of(own(alice)).name
    vector, prefix = np.ones((1, 384), dtype=np.float32), name.partition("-")[0]
    of_an_earlier_version = f"{prefix}-{own(alice).id.hex}-1.2"
    foreign = f"{prefix}-{uuid.uuid4().hex}-{'0' * 16}"
    unnamed = placement._new_name()
    for orphan in (of_an_earlier_version, foreign, unnamed):
        store.upsert(orphan, ["x"], vector, [{"said": 1.0}])

    assert reconcile.drop_orphan_collections(dry_run=True) == 2
    assert reconcile.drop_orphan_collections() == 2

    assert [store.count(row) for row in (name, of_an_earlier_version, foreign, unnamed)] == [1, 0, 1, 0]
    store.drop(foreign)


def test_another_generation_places_the_spaces_anew(memory, candidates, limits):
    limits(4000, -1)
    alice, bob = PersonFactory(), PersonFactory()
    written = {person: {one.id for one in notes(person, 2)} for person in (alice, bob)}
    memory.index_pending()
    assert Collection.objects.count() == 2
    limits(4000, 1000)

    generations.start_reindex(again=True)
    sweep_memory()
    generations.drop_retired_generations()

    assert Collection.objects.get().is_shared
    assert Placement.objects.count() == 2
    assert {person: candidates(person) for person in (alice, bob)} == written
    assert_consistent()


def test_a_group_whose_exchanges_were_moved_away_can_be_removed(memory):
    alice = PersonFactory()
    crew, thread_id = group("Crew", alice), uuid.uuid4()
    exchange(alice, HARBOUR, space=crew, thread_id=thread_id)
    memory.index_pending()
    memory.move_thread(thread_id, to=own(alice), by=alice.id)
    assert groups.is_group_empty(crew)

    groups.remove_group(crew)
    memory.index_pending()

    assert not Placement.objects.exclude(space=own(alice)).exists()
    assert_consistent()


@only_long
def test_an_earlier_version_s_collections_become_dedicated(memory, limits):
    """The migration keeps the vectors where they are."""
    alice = PersonFactory()
    space, generation = own(alice), generations.active_generation()
    executor = MigrationExecutor(connection)
    executor.migrate([("memory", "0001_initial")])
    try:
        old = executor.loader.project_state([("memory", "0001_initial")]).apps.get_model("memory", "Collection")
        marked = timezone.now()
        old.objects.create(space_id=space.pk, generation_id=generation.pk, name="cato-1", purge_needed_since=marked)
    finally:
        call_command("migrate", verbosity=0)

    kept = Collection.objects.get()
    assert (kept.name, kept.is_shared, kept.purge_needed_since) == ("cato-1", False, marked)
    assert placement.get_collection(space, generation) == kept
