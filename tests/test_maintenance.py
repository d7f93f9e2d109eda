"""Maintenance commands: backfill, reconcile, reindex and erase, with bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import InterfaceError, OperationalError
from django.utils import timezone
from tqdm import tqdm

from cato_web.celery import run_startup_backfills, sweep
from cato_web.management import store_command
from chat import services as chat_services
from memory.administration import operations
from memory.documents import deletion
from memory.documents.deletion import forget_documents
from memory.embeddings import local
from memory.errors import EmbeddingError, VectorStoreUnavailableError
from memory.exchanges import lifecycle
from memory.index import generations, purge, reconcile, store, vectors
from memory.lexical.indexing import index_terms
from memory.models import (
    CachedEmbedding,
    Collection,
    EmbeddingJob,
    ErasureJob,
    Exchange,
    IndexGeneration,
    Job,
    LexicalEntry,
    Operation,
)
from memory.spaces import access
from tests import server
from tests.factories import AdministratorFactory, document, exchange, group, sweep_memory
from tests.topology import IS_LONG, TOPOLOGY, only_long

pytestmark = pytest.mark.django_db(transaction=True)

FACTS = ("The boiler was replaced by a heat pump.", "Two colonies of bees stand in the orchard.", "Rent is 950 euros.")


def run(command: str, *arguments: str) -> str:
    out = StringIO()
    call_command(command, *arguments, stdout=out, stderr=out)
    return out.getvalue()


@pytest.fixture
def indexed_facts(memory, person):
    """Return three remembered and indexed facts."""
    rows = [exchange(person, fact) for fact in FACTS]
    memory.index_pending()
    return rows


def found_by(memory: Any, person: Any, text: str) -> str:
    found = memory.search(text, spaces=access.readable_space_ids(person.id)).results
    return next((hit.exchange.user_message for hit in found if hit.similarity is not None), "")


def is_idle() -> bool:
    return reconcile.measure_drift() == reconcile.Drift(0, 0)


def test_backfill_rebuilds_the_index_after_its_files_were_deleted(memory, person, indexed_facts):
    store.drop(Collection.objects.get().name)
    assert not is_idle()

    assert "3 exchanges embedded" in run("backfill")

    assert is_idle()
    assert found_by(memory, person, "what warms the house") == FACTS[0]


def test_backfill_creates_missing_jobs_retries_failed_ones_and_adds_missing_terms(memory, person, indexed_facts):
    EmbeddingJob.objects.filter(exchange=indexed_facts[0]).delete()
    EmbeddingJob.objects.filter(exchange=indexed_facts[1]).update(state=Job.State.FAILED, error="HTTP 500")
    LexicalEntry.objects.filter(exchange=indexed_facts[2]).delete()

    assert "2 exchanges embedded" in run("backfill")

    assert set(memory.memory_states([row.id for row in indexed_facts]).values()) == {"remembered"}
    assert LexicalEntry.objects.count() == 3


def test_a_new_worker_writes_terms_that_an_earlier_version_did_not(memory, person, indexed_facts):
    LexicalEntry.objects.all().delete()

    run_startup_backfills()

    assert LexicalEntry.objects.count() == 3


@pytest.mark.parametrize(
    "error", [ValueError("unexpected"), InterfaceError("connection already closed"), VectorStoreUnavailableError()]
)
@pytest.mark.parametrize(("module", "step"), [(chat_services, "purge_deleted"), (deletion, "_forget_batch")])
def test_a_step_of_the_sweep_that_fails_prevents_none_of_the_others(
    memory, person, indexed_facts, monkeypatch, error, module, step
):
    def fail() -> None:
        raise error

    monkeypatch.setattr(module, step, fail)
    stored = exchange(person, "The ladder leans behind the shed.")
    assert memory.memory_states([stored.id]) == {stored.id: "remembering"}
    memory.forget([indexed_facts[0].id], by=person.id)

    sweep()

    assert memory.memory_states([stored.id]) == {stored.id: "remembered"}
    assert memory.receipt_for([indexed_facts[0].id]).under_way == 0


def test_the_sweep_goes_on_while_an_unfinished_index_cannot_be_dropped(
    memory, person, indexed_facts, monkeypatch, caplog
):
    building = IndexGeneration.objects.create(
        provider="local", model="/models/another", state=IndexGeneration.State.BUILDING
    )
    Collection.objects.create(generation=building, name="unfinished", is_shared=True)
    IndexGeneration.objects.filter(state=IndexGeneration.State.ACTIVE).update(model="/models/no-longer-there")
    away = VectorStoreUnavailableError("The vector store cannot be reached.")
    monkeypatch.setattr(store, "drop", lambda name: (_ for _ in ()).throw(away))
    memory.forget([indexed_facts[0].id], by=person.id)

    sweep()

    assert "replace_uninstalled_model could not run: The vector store cannot be reached." in caplog.messages
    assert memory.receipt_for([indexed_facts[0].id]).under_way == 0


def test_exchanges_forgotten_during_backfill_get_no_terms(memory, person, indexed_facts, monkeypatch):
    LexicalEntry.objects.all().delete()
    listed = reconcile.iterate_by_pk

    def forget_listed(*args: Any) -> Any:
        for page in listed(*args):
            memory.forget([indexed_facts[0].id], by=person.id)
            yield page

    monkeypatch.setattr(reconcile, "iterate_by_pk", forget_listed)
    assert memory.index_missing_terms() == 2

    assert not LexicalEntry.objects.filter(exchange=indexed_facts[0]).exists()


def test_backfill_reports_what_could_not_be_embedded(memory, person, monkeypatch):
    exchange(person, FACTS[0])
    away = EmbeddingError("The provider answered HTTP 401.", permanent=True)
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", lambda *a: (_ for _ in ()).throw(away))

    with pytest.raises(CommandError, match=r"1 failed and 0 will be retried.*HTTP 401"):
        run("backfill")


@pytest.mark.parametrize("command", [("backfill",), ("reembed", "--again")])
def test_what_embeds_reports_a_disabled_vector_store_instead_of_waiting(memory, person, settings, command):
    exchange(person, FACTS[0])
    disabled = settings.CATO.vector_store.model_copy(update={"enabled": False})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": disabled})

    with pytest.raises(CommandError, match="The vector store is disabled"):
        run(*command)


def test_reconcile_repairs_every_kind_of_drift_and_a_dry_run_only_counts(memory, person, indexed_facts):
    lost, outdated, forgotten = indexed_facts
    index = Collection.objects.get()
    parts = EmbeddingJob.objects.first().parts
    store.delete(index.name, vectors.vector_ids(lost.id, 1, parts)[:1])
    Exchange.objects.filter(pk=outdated.pk).update(version=2)
    memory.forget([forgotten.id], by=person.id)
    memory.erase_forgotten()
    stray = vectors.vector_ids(forgotten.id, 1, 1)
    store.upsert(index.name, [*stray, "not one of ours"], np.ones((2, 384), dtype=np.float32), [{"said": 1.0}] * 2)
    LexicalEntry.objects.filter(exchange=lost).delete()
    index_terms([forgotten])
    CachedEmbedding.objects.create(content_hash="0" * 64, provider="local", model="m", vectors=b"")
    unnamed = generations.next_collection_name(index.name)
    store.copy(index.name, unnamed, stray)
    expected = reconcile.ReconcileReport(
        queued=2,
        vectors_removed=2,
        collections_dropped=1,
        words_written=1,
        words_removed=1,
        cached_removed=1,
        files_removed=0,
    )

    assert reconcile.reconcile(dry_run=True) == expected
    assert "2 exchanges queued" in run("reconcile", "--dry-run")
    assert reconcile.reconcile() == expected

    memory.index_pending()
    assert reconcile.reconcile() == reconcile.ReconcileReport(0, 0, 0, 0, 0, 0, 0)
    assert is_idle()
    assert store.list_ids(index.name, 0, 100) != []
    assert found_by(memory, person, "what warms the house") == FACTS[0]


def test_reconcile_ignores_exchanges_that_are_just_being_embedded(memory, person, indexed_facts, monkeypatch):
    lifecycle.update_exchange(indexed_facts[0], user_message="The boiler is a heat pump now.", assistant_message="")
    real = store.upsert

    def reconcile_in_the_middle(collection: str, *args: Any) -> None:
        real(collection, *args)
        assert reconcile.reconcile().vectors_removed == 0

    monkeypatch.setattr(store, "upsert", reconcile_in_the_middle)
    assert memory.index_pending() == 1
    assert is_idle()


@pytest.mark.parametrize("dry_run", [True, False])
def test_reconcile_misses_nothing_in_a_collection_rebuilt_meanwhile(
    memory, person, indexed_facts, monkeypatch, dry_run
):
    real = store.stored_spaces

    def after_rebuild(collection: str, ids: Any) -> dict[str, str]:
        monkeypatch.setattr(store, "stored_spaces", real)
        assert purge.rebuild_collection(Collection.objects.get())
        return real(collection, ids)

    monkeypatch.setattr(store, "stored_spaces", after_rebuild)

    assert reconcile.reconcile(dry_run=dry_run).queued == 0
    assert is_idle()


def test_reconcile_repairs_vectors_that_are_stored_with_a_former_space(memory, person, indexed_facts):
    """An older copy of the index has an exchange as it was before it was moved within its collection."""
    crew, moved = group("Crew", person), indexed_facts[0]
    exchange(person, "The crew has this collection, too.", space=crew)
    memory.index_pending()
    Exchange.objects.filter(pk=moved.pk).update(space=crew)

    assert reconcile.reconcile().queued == 1
    memory.index_pending()
    stored = store.stored_spaces(Collection.objects.get().name, vectors.vector_ids(moved.id, 1, 1))
    assert list(stored.values()) == [str(crew.id)]
    assert is_idle()


def test_drift_is_counted_in_both_directions_and_shown_to_administrators(memory, person, indexed_facts, client):
    assert is_idle()
    index = Collection.objects.get()
    store.delete(index.name, vectors.vector_ids(indexed_facts[0].id, 1, 1))
    assert reconcile.measure_drift() == reconcile.Drift(rows_without_vector=1, vectors_without_row=0)
    EmbeddingJob.objects.filter(exchange=indexed_facts[1]).delete()
    assert reconcile.measure_drift().vectors_without_row > 0

    client.force_login(person)
    assert "Drift" not in client.get("/stats", {"of": "everything"}).text
    client.force_login(AdministratorFactory())
    assert "Drift" in client.get("/stats", {"of": "everything"}).text


def test_a_reindex_shows_its_progress_as_a_share_of_what_waits(memory, person, indexed_facts, monkeypatch):
    bars: list[tuple[str, int | None, int]] = []

    class Bar(tqdm):
        def close(self) -> None:
            if not self.disable:
                bars.append((self.desc, self.total, self.n))
            super().close()

    monkeypatch.setattr(
        store_command, "tqdm", lambda **options: Bar(**options | {"disable": False, "file": StringIO()})
    )

    run("reembed", "--again")

    assert bars == [("embedded", len(indexed_facts), len(indexed_facts))]


def test_a_reindex_builds_a_second_generation_and_can_be_reverted(memory, person, indexed_facts, monkeypatch):
    embedded: list[str] = []
    real = local.LocalEmbedder.embed_documents
    monkeypatch.setattr(
        local.LocalEmbedder, "embed_documents", lambda self, texts: embedded.extend(texts) or real(self, texts)
    )
    old = generations.active_generation()
    assert "already" in run("reembed")

    assert "now" in run("reembed", "--again")
    new = generations.active_generation()
    assert new.pk != old.pk
    assert set(FACTS) <= set(embedded), "nothing came from the cache"
    later = exchange(person, "The gate code hangs on the fridge.")
    memory.index_pending()
    assert not EmbeddingJob.objects.filter(exchange=later, generation=old)

    run("reembed", "--back")
    assert generations.active_generation().pk == old.pk
    assert found_by(memory, person, "how to open the gate") == later.user_message
    assert is_idle()

    collections = [index.name for index in new.collections.all()]
    assert "1 index generations dropped" in run("reembed", "--drop-old")
    assert [store.count(collection) for collection in collections] == [0]
    assert list(IndexGeneration.objects.all()) == [old]
    with pytest.raises(CommandError, match="There is no previous index"):
        run("reembed", "--back")


class _Shortened:
    """The embedder of a model that is configured to answer with shorter vectors."""

    dimension = 256

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> Any:
        return self._embedder.embed_documents(texts)[:, : self.dimension]


def _shorten_vectors(patch: pytest.MonkeyPatch) -> None:
    real = generations.embedder_for
    patch.setattr(generations, "embedder_for", lambda generation: _Shortened(real(generation)))


def test_an_unfinished_index_of_another_dimension_is_built_anew(memory, person, indexed_facts, monkeypatch):
    with monkeypatch.context() as shorter:
        _shorten_vectors(shorter)
        unfinished = generations.start_reindex(again=True)
        memory.index_pending()
        exchange(person, "The gate code hangs on the fridge.")
        unfinished.refresh_from_db()
        assert (unfinished.state, unfinished.dimension) == ("building", 256)

    assert "now" in run("reembed", "--again")

    assert generations.active_generation().dimension == 384
    assert not IndexGeneration.objects.filter(dimension=256).exists()
    assert is_idle()


def test_cached_vectors_of_another_dimension_are_computed_anew(memory, person, indexed_facts, monkeypatch):
    # The model was replaced by another one and its index dropped; then its dimension was changed.
    IndexGeneration.objects.update(model="/models/another")
    exchange(person, "The gate code hangs on the fridge.")
    _shorten_vectors(monkeypatch)

    assert "now" in run("reembed")

    assert generations.active_generation().dimension == 256
    assert is_idle()
    assert {len(cached.vectors) for cached in CachedEmbedding.objects.all()} == {2 + 3 * 256 * 4}


def test_a_reindex_with_a_model_that_is_not_installed_is_refused(memory, person, indexed_facts, settings):
    run("reembed", "--again")
    before = set(IndexGeneration.objects.values_list("pk", "state"))
    misspelt = settings.CATO.vector_store.model_copy(update={"embedding_model": "/models/misspelt"})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": misspelt})
    with pytest.raises(CommandError, match="The embedding model /models/misspelt is not installed"):
        run("reembed")

    IndexGeneration.objects.filter(state="retired").update(model="/models/no-longer-there")
    exchange(person, "The gate code hangs on the fridge.")
    with pytest.raises(CommandError, match="The embedding model /models/no-longer-there is not installed"):
        run("reembed", "--back")

    assert set(IndexGeneration.objects.values_list("pk", "state")) == before, "the previous index is kept"


@pytest.mark.parametrize(("state", "hours"), [(Job.State.FAILED, 0), (Job.State.PENDING, 1)])
def test_failures_of_the_old_index_do_not_prevent_the_switch_to_the_new_one(
    memory, person, indexed_facts, state, hours
):
    old = generations.active_generation()
    due_at = timezone.now() + timedelta(hours=hours)
    broken = EmbeddingJob.objects.filter(exchange=indexed_facts[0])
    broken.update(state=state, error="The model is gone.", due_at=due_at)

    assert "now" in run("reembed", "--again")

    assert generations.active_generation() != old
    assert is_idle()


def test_failures_of_the_new_index_prevent_the_switch_to_it(memory, person, indexed_facts, monkeypatch):
    old = generations.active_generation()
    refused = EmbeddingError("The provider answered HTTP 401.", permanent=True)
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", lambda *a: (_ for _ in ()).throw(refused))

    with pytest.raises(CommandError, match=r"3 exchanges failed and 0 wait: .*HTTP 401"):
        run("reembed", "--again")

    assert generations.active_generation() == old


def test_an_incomplete_generation_never_becomes_active(memory, person, indexed_facts, monkeypatch):
    """Not even if the sweep runs while exchanges are being queued."""
    monkeypatch.setattr(generations, "_PAGE_SIZE", 1)
    real = EmbeddingJob.objects.bulk_create
    switched: list[bool] = []

    def sweep_in_between(*args: Any, **kwargs: Any) -> Any:
        result = real(*args, **kwargs)
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(EmbeddingJob.objects, "bulk_create", real)
            memory.index_pending()
            switched.append(generations.activate_built_generation())
        return result

    old = generations.active_generation()
    monkeypatch.setattr(EmbeddingJob.objects, "bulk_create", sweep_in_between)
    generations.start_reindex(again=True)

    assert switched == [False]
    assert generations.active_generation().pk == old.pk
    memory.index_pending()
    assert generations.activate_built_generation()
    assert is_idle()


def test_a_rebuild_whose_start_was_interrupted_is_completed_by_the_sweep(memory, person, indexed_facts, monkeypatch):
    IndexGeneration.objects.update(model="/models/no-longer-there")
    with monkeypatch.context() as killed:
        killed.setattr(generations, "enqueue_missing", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            sweep_memory()
    assert found_by(memory, person, "what warms the house") == ""

    for _ in range(3):
        sweep_memory()

    assert found_by(memory, person, "what warms the house") == FACTS[0]
    assert is_idle()


def test_changes_during_a_rebuild_are_correct_afterwards(memory, person, indexed_facts, monkeypatch):
    _, changed, forgotten = indexed_facts
    real = store.copy
    stored: list[Exchange] = []

    def in_the_middle(source: str, target: str, ids: list[str]) -> set[str]:
        copied = real(source, target, ids)
        if not stored:
            stored.append(exchange(person, "The gate code hangs on the fridge."))
            lifecycle.update_exchange(changed, user_message="The bees were sold.", assistant_message="")
            memory.forget([forgotten.id], by=person.id)
            memory.index_pending()
            assert memory.erase_forgotten() == 2
            assert store.existing_ids(target, vectors.all_vector_ids(forgotten.id, 1)) == set()
        return copied

    monkeypatch.setattr(store, "copy", in_the_middle)
    memory.forget([exchange(person, "Something else entirely.").id], by=person.id)
    before = Collection.objects.get().name
    assert purge.rebuild_collection(Collection.objects.get())

    index = Collection.objects.get()
    assert index.name == generations.next_collection_name(before)
    assert store.count(before) == 0
    memory.index_pending()
    assert is_idle()
    assert found_by(memory, person, "how to open the gate") == stored[0].user_message
    assert found_by(memory, person, "what became of the bees") == "The bees were sold."
    assert store.existing_ids(index.name, vectors.all_vector_ids(forgotten.id, 1)) == set()
    assert store.existing_ids(index.name, vectors.all_vector_ids(changed.id, 1)) == set()


def test_the_replaced_collection_is_no_orphan_before_it_is_dropped(memory, person, indexed_facts, monkeypatch):
    unnamed: list[int] = []

    def pause(_: float) -> None:
        unnamed.append(reconcile.reconcile(dry_run=True).collections_dropped)

    monkeypatch.setattr("memory.index.purge.time.sleep", pause)
    assert purge.rebuild_collection(Collection.objects.get())
    assert unnamed == [0]
    assert is_idle()


def test_a_collection_whose_files_were_deleted_can_be_rebuilt(memory, person, indexed_facts):
    store.drop(Collection.objects.get().name)
    assert purge.rebuild_collection(Collection.objects.get())
    memory.index_pending()
    assert is_idle()


def test_one_worker_at_a_time_rebuilds_and_another_takes_over_from_a_dead_one(
    memory, person, indexed_facts, monkeypatch
):
    index = Collection.objects.get()
    target = generations.next_collection_name(index.name)
    assert store.recreate_collection(target, unless_touched_within=60)

    assert not purge.rebuild_collection(index), "somebody is at it"

    monkeypatch.setattr(purge, "ABANDONED", 0.0)
    assert purge.rebuild_collection(index)
    assert is_idle()


def test_an_interrupted_erase_is_completed_by_the_next(memory, person, indexed_facts, monkeypatch):
    monkeypatch.setattr(purge, "ABANDONED", 0.0)
    monkeypatch.setattr(reconcile, "ABANDONED", 0.0)
    for name in ("recreate_collection", "copy", "list_ids", "drop", "request_file_cleanup"):
        one = exchange(person, f"Forget this before {name}.")
        memory.index_pending()
        memory.forget([one.id], by=person.id)
        memory.erase_forgotten()
        with monkeypatch.context() as broken:
            broken.setattr(store, name, lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                purge.purge_pending()
        assert Collection.objects.exclude(purge_needed_since=None).exists(), name

        run("erase")

        assert not Collection.objects.exclude(purge_needed_since=None).exists(), name
        assert is_idle()
        collection_names = set(Collection.objects.values_list("name", flat=True))
        name_prefix = f"{Collection.objects.get().name.rpartition('.')[0]}"
        assert set(store.collections(name_prefix, untouched_for=0)) <= collection_names, name
    assert found_by(memory, person, "what warms the house") == FACTS[0]


def test_erase_takes_what_is_left_of_deleted_documents_with_it(memory, person):
    read = document(person, "notes.txt", FACTS[0])
    memory.index_pending()
    chunk = Exchange.objects.get(chunks__version__document=read)
    forget_documents([read.pk], by=person.pk)

    run("erase")

    chunk.refresh_from_db()
    assert chunk.erased_at is not None
    assert chunk.user_message == ""


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (Job.State.FAILED, "1 exchange could not be erased. Retry it in Admin"),
        (Job.State.PENDING, "still being erased"),
    ],
)
def test_erase_reports_what_could_not_be_erased(memory, person, indexed_facts, state, message):
    memory.forget([indexed_facts[0].id], by=person.id)
    later = timezone.now() + timedelta(minutes=1)
    ErasureJob.objects.update(state=state, error="The vector store refused it.", due_at=later)

    with pytest.raises(CommandError, match=message):
        run("erase")

    operation = operations.create_operation(Operation.Kind.ERASE, by=person.id)
    assert not operations.run_operations()
    operation.refresh_from_db()
    assert message in operation.error


def test_the_sweep_purges_within_the_configured_time(memory, person, indexed_facts, monkeypatch):
    memory.forget([indexed_facts[0].id], by=person.id)
    sweep_memory()
    collection = Collection.objects.get()
    assert collection.purge_needed_since is not None

    Collection.objects.update(
        purge_needed_since=collection.purge_needed_since
        - 0.6 * (collection.purge_needed_since - _hours_before(collection.purge_needed_since, 24))
    )
    sweep_memory()

    assert Collection.objects.get().purge_needed_since is None
    assert Collection.objects.get().name != collection.name


def test_what_an_interrupted_purge_leaves_is_removed_by_the_next_sweep(memory, person, indexed_facts, monkeypatch):
    memory.forget([indexed_facts[0].id], by=person.id)
    sweep_memory()
    Collection.objects.update(purge_needed_since=_hours_before(timezone.now(), 24))
    before = Collection.objects.get().name
    for _ in range(2):
        with monkeypatch.context() as broken:
            # As if the worker was killed right after the swap.
            broken.setattr(purge, "queue_missing_vectors", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                sweep_memory()
    assert store.collections(before, untouched_for=0), "with what was forgotten"

    sweep_memory()

    collection = Collection.objects.get()
    assert collection.purge_needed_since is None
    assert store.collections(before, untouched_for=0) == [collection.name]


@pytest.fixture
def full_disk(memory, person, indexed_facts, monkeypatch) -> Callable[[], None]:
    """Forget a fact, let every vacuum fail and count them in `calls`; return the function that frees the disk."""
    real, calls = purge.vacuum_database, []

    def fail() -> None:
        calls.append(1)
        raise OperationalError("database or disk is full")

    def free() -> None:
        monkeypatch.setattr(purge, "vacuum_database", real)

    free.calls = calls
    memory.forget([indexed_facts[0].id], by=person.id)
    memory.erase_forgotten()
    monkeypatch.setattr(purge, "_next_attempt", 0.0)
    monkeypatch.setattr(purge, "vacuum_database", fail)
    return free


def test_after_a_failed_vacuum_the_files_are_removed_and_only_the_vacuum_is_repeated(full_disk, monkeypatch):
    requested: list[bool] = []
    monkeypatch.setattr(store, "request_file_cleanup", lambda: requested.append(True))
    before = Collection.objects.get()
    for _ in range(2):
        with pytest.raises(OperationalError):
            purge.purge_pending()
        assert requested.pop()
        unpurged = Collection.objects.get()
        assert unpurged.name == generations.next_collection_name(before.name)
        assert unpurged.purge_needed_since == before.purge_needed_since

    full_disk()
    assert purge.purge_pending() == 1
    purged = Collection.objects.get()
    assert (purged.name, purged.purge_needed_since) == (unpurged.name, None)
    assert is_idle()


def test_what_is_forgotten_after_a_failed_vacuum_is_purged_from_the_files_as_well(
    memory, person, indexed_facts, full_disk
):
    with pytest.raises(OperationalError):
        purge.purge_pending()
    memory.forget([indexed_facts[1].id], by=person.id)
    memory.erase_forgotten()
    rebuilt = Collection.objects.get().name

    full_disk()
    assert purge.purge_pending() == 1
    assert Collection.objects.get().name == generations.next_collection_name(rebuilt)
    assert Collection.objects.get().purge_needed_since is None


def test_the_sweep_repeats_a_failed_vacuum_only_after_an_hour(full_disk, monkeypatch):
    Collection.objects.update(purge_needed_since=_hours_before(timezone.now(), 24))
    for _ in range(3):
        assert purge.purge_overdue() == 0
    assert len(full_disk.calls) == 1

    full_disk()
    monkeypatch.setattr(purge, "_next_attempt", purge._next_attempt - 3600)
    assert purge.purge_overdue() == 1


def _hours_before(moment: Any, hours: float) -> Any:
    from datetime import timedelta

    return moment - timedelta(hours=hours)


MEASURED = """
import json, resource, sys, uuid
import django
django.setup()
import numpy as np
import psutil
from django.core.management import call_command
from django.db import connection
from cato_web.accounts.services import create_person
from memory import api, maintenance
from memory.models import EmbeddingJob, Exchange, Job, LexicalEntry
from memory.index import generations, placement, purge, reconcile, store
from memory.spaces import access

COUNT, DIMENSION = int(sys.argv[1]), 16
call_command("migrate", verbosity=0)

class Model:
    provider, model, dimension = "local", "random", DIMENSION
    def embed_documents(self, texts):
        rows = np.random.default_rng(len(texts)).standard_normal((len(texts), DIMENSION), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
    def embed_query(self, text):
        return self.embed_documents([text])[0]
    def log_probabilities(self, words):
        return None

generations.embedder_for = lambda generation: Model()
person = create_person(name="Ada", email=f"{uuid.uuid4()}@halden.example", password="four plain words are fine")
space = access.personal_space(person.pk)
generation = generations.active_generation()
generations.check_dimension(generation, DIMENSION)
placement.MAX_SHARED_SPACE = -1  # a dedicated collection
collection = placement.get_collection(space, generation)

# Copy rows by SQL; `fixed` maps columns to expressions.
def insert(table, fixed, source, limit):
    columns = [field.column for field in table._meta.concrete_fields if field.column in fixed or field.column != "id"]
    values = ", ".join(str(fixed.get(column, column)) for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table._meta.db_table} ({', '.join(columns)}) SELECT {values} FROM {source} LIMIT {limit}")

# Double the exchanges with random vectors, up to `limit` in all and 1,000 at once.
def fill(limit):
    collection.refresh_from_db()
    stored = Exchange.objects.filter(forgotten_at=None).count()
    count = min(stored, limit - stored, 1000)
    insert(Exchange, {"id": "lower(hex(randomblob(16)))" if connection.vendor == "sqlite" else "gen_random_uuid()"},
        "memory_exchange WHERE forgotten_at IS NULL", count)
    fresh = "(SELECT e.id AS new FROM memory_exchange e LEFT JOIN memory_embeddingjob m ON m.exchange_id = e.id " \\
        "WHERE m.id IS NULL AND e.forgotten_at IS NULL) AS fresh, "
    insert(LexicalEntry, {"exchange_id": "new"}, fresh + "(SELECT * FROM memory_lexicalentry LIMIT 1) AS one", count)
    insert(EmbeddingJob, {"exchange_id": "new", "collection_id": collection.pk, "version": 1},
        fresh + "(SELECT * FROM memory_embeddingjob LIMIT 1) AS one", count)
    ids = list(EmbeddingJob.objects.order_by("-pk").values_list("exchange_id", flat=True)[:count])
    store.upsert(collection.name, [f"{id}:whole:1" for id in ids], Model().embed_documents(["x"] * count),
        [{"said": 1.0, "space": str(space.pk)}] * count)
    return stored + count

def run_all():
    api.search("gardening borrow", spaces=frozenset({space.pk}), count=100)
    api.recall(["what about gardening?"], spaces=frozenset({space.pk}))
    doomed = list(Exchange.objects.filter(space=space, forgotten_at=None).values_list("pk", flat=True)[:300])
    api.forget(doomed, by=person.pk)
    api.erase_forgotten()
    EmbeddingJob.objects.filter(pk__in=list(EmbeddingJob.objects.values_list("pk", flat=True)[:200])).delete()
    maintenance.backfill()
    reconcile.reconcile()
    purge.purge_all()
    return reconcile.measure_drift()

api.remember(api.NewExchange(
    space=space, owner_id=person.pk, source="import", user_message="gardening borrow melted " * 60))
maintenance.backfill()
while fill(1000) < 1000:
    pass
run_all()
process = psutil.Process()
while fill(COUNT) < COUNT:
    pass
max_bytes = process.memory_info().vms + 150_000_000
resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
drift = run_all()
collection.refresh_from_db()
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
print(json.dumps({"grown_kb": grown, "rows": Exchange.objects.filter(forgotten_at=None).count(),
    "drift": [drift.rows_without_vector, drift.vectors_without_row], "vectors": store.count(collection.name)}))
"""


@pytest.fixture
def empty_database(tmp_path):
    """Return the environment of a process with a separate database and collections."""
    database = server._create_database() if TOPOLOGY == "services" else ""
    yield os.environ | {
        "DJANGO_SETTINGS_MODULE": "cato_web.settings",
        "CATO_DATA_DIR": str(tmp_path),
        "DATABASE_URL": database,
        "CATO_VECTOR_STORE_COLLECTION_NAME": "measured",
        # A poor but fast index.
        "CATO_VECTOR_STORE_HNSW_M": "4",
        "CATO_VECTOR_STORE_HNSW_EF_CONSTRUCTION": "8",
    }
    if database:
        server._drop_database(database)


@only_long
def test_memory_use_does_not_grow_with_the_number_of_rows_or_vectors(chroma, empty_database):
    """Run all maintenance over many exchanges in a process that needs hardly more memory than for 1,000."""
    count, max_kb = (50_000, 30_000) if IS_LONG else (12_000, 15_000)
    completed = subprocess.run(
        [sys.executable, "-c", MEASURED, str(count)],
        cwd=server.ROOT, env=empty_database, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr[-3000:]
    measured = json.loads(completed.stdout.splitlines()[-1])

    assert measured["grown_kb"] < max_kb
    assert measured["rows"] == measured["vectors"] == count - 300
    assert measured["drift"] == [0, 0]
