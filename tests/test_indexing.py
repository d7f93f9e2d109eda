"""Indexing: after any failure between database and index, an exchange is either searchable or reported as failed."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from chromadb.errors import DuplicateIDError, InternalError, InvalidDimensionException, RateLimitError
from django.utils import timezone

from cato_web import context_processors
from memory import signals
from memory.embeddings import local, multilingual_e5
from memory.errors import EmbeddingDimensionError, EmbeddingError, VectorStoreRequestError, VectorStoreUnavailableError
from memory.index import chroma, generations, parts, store
from memory.models import CachedEmbedding, Collection, EmbeddingJob, IndexGeneration, Job
from memory.spaces import access
from tests.factories import exchange, sweep_memory
from tests.model_folders import link_model

pytestmark = pytest.mark.django_db


def make_jobs_due() -> None:
    EmbeddingJob.objects.update(due_at=timezone.now() - timedelta(seconds=1), locked_until=None)


def test_many_exchanges_are_embedded_in_batches(memory, person, monkeypatch):
    batches: list[int] = []
    real = local.LocalEmbedder.embed_documents

    def counting(self: local.LocalEmbedder, texts: list[str]) -> np.ndarray:
        batches.append(len(texts))
        return real(self, texts)

    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", counting)
    own = access.personal_space(person.id)
    memory.remember_many(
        [
            memory.NewExchange(space=own, owner_id=person.id, user_message=f"Fact number {number}", source="import")
            for number in range(50)
        ]
    )

    assert memory.index_pending() == 50
    assert batches == [50]


def embedded_texts(monkeypatch) -> list[list[str]]:
    """Return the list to which the texts of each following call of the model are added."""
    batches: list[list[str]] = []
    real = local.LocalEmbedder.embed_documents
    monkeypatch.setattr(
        local.LocalEmbedder, "embed_documents", lambda self, texts: batches.append(list(texts)) or real(self, texts)
    )
    return batches


def test_long_exchanges_are_embedded_in_small_batches(memory, person, monkeypatch):
    answer = "The boiler was replaced with a heat pump. " * 100
    stored = [exchange(person, f"What about boiler {number}?", answer) for number in range(5)]
    exchange(person, "A message of megabytes.", answer * 100)
    batches = embedded_texts(monkeypatch)

    assert memory.index_pending() == 6
    assert [sum(row.user_message in batch for row in stored) for batch in batches] == [2, 2, 1, 0]


@pytest.mark.parametrize("work", ["import", "records", "new index"])
def test_a_message_is_embedded_next_during_large_work(memory, person, monkeypatch, work):
    text = "The boiler was replaced with a heat pump. " * 100
    if work == "records":
        records = [memory.NewRecord(id=str(number), text=f"Imported {number} {text}") for number in range(6)]
        memory.upsert_records(records, space=access.personal_space(person.id), owner_id=person.id)
    else:
        for number in range(6):
            exchange(person, f"Imported {number}", text, source="import" if work == "import" else "chat")
    if work == "new index":
        memory.index_pending()
        generations.start_reindex(again=True)
    batches = embedded_texts(monkeypatch)
    memory.index_pending(limit=1)

    posted = exchange(person, "Who repairs the boiler?", "Ines does.")
    memory.index_pending(limit=1)

    assert any("Imported" in text for text in batches[0]), "the large work has begun"
    assert "Who repairs the boiler?" in batches[1]
    assert memory.memory_states([posted.id]) == {posted.id: "remembered"}
    assert EmbeddingJob.objects.filter(state="pending").exists(), "the rest of the large work still waits"
    while memory.index_pending():
        pass
    assert not EmbeddingJob.objects.filter(state="pending").exists()


def test_exchanges_of_one_batch_are_embedded_with_the_context_of_their_predecessor(memory, person):
    """Checked by the links between an exchange and its predecessor in each session."""
    own, continued, new = access.personal_space(person.id), uuid.uuid4(), uuid.uuid4()
    earlier = exchange(person, "The boiler was replaced.", session_id=continued)
    messages = [("By whom?", continued), ("The bees are back.", new), ("And when?", continued), ("Both colonies?", new)]

    stored = memory.remember_many(
        [
            memory.NewExchange(space=own, owner_id=person.id, user_message=text, session_id=session, source="import")
            for text, session in messages
        ]
    )

    assert [row.previous for row in stored] == [earlier, None, stored[0], stored[1]]


def test_equal_texts_are_embedded_once(memory, person, monkeypatch):
    exchange(person, "The boiler was replaced.")
    memory.index_pending()
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", lambda *a: pytest.fail("embedded again"))

    exchange(person, "The boiler was replaced.")

    assert memory.index_pending() == 1
    assert CachedEmbedding.objects.count() == 1


def test_a_text_that_several_exchanges_of_a_batch_share_is_embedded_once(memory, person, monkeypatch):
    batches: list[list[str]] = []
    embed = local.LocalEmbedder.embed_documents
    monkeypatch.setattr(
        local.LocalEmbedder, "embed_documents", lambda self, texts: batches.append(list(texts)) or embed(self, texts)
    )
    for n in range(3):
        exchange(person, "What does it cost?", f"It costs {n} euros.")

    assert memory.index_pending() == 3
    assert len(batches) == 1
    assert sorted(Counter(batches[0]).values()) == [1] * 7  # the message once, and each whole and answer


def test_an_unavailable_store_is_retried_indefinitely(memory, person, monkeypatch):
    one = exchange(person, "The boiler was replaced.")
    with monkeypatch.context() as broken:
        broken.setattr(store, "upsert", lambda *a: (_ for _ in ()).throw(VectorStoreUnavailableError("down")))
        for _ in range(8):
            assert memory.index_pending() == 0
            make_jobs_due()
    assert memory.memory_states([one.id]) == {one.id: "waiting"}

    assert memory.index_pending() == 1
    assert memory.memory_states([one.id]) == {one.id: "remembered"}


def test_a_provider_that_keeps_failing_ends_in_a_failed_job_that_can_be_retried(memory, person, monkeypatch):
    one = exchange(person, "The boiler was replaced.")
    failures: list[bool] = []

    def record_failure(final: bool, **kwargs: object) -> None:
        failures.append(final)

    signals.indexing_failed.connect(record_failure)
    with monkeypatch.context() as broken:
        broken.setattr(
            local.LocalEmbedder, "embed_documents", lambda *a: (_ for _ in ()).throw(EmbeddingError("HTTP 500", False))
        )
        for _ in range(5):
            memory.index_pending()
            make_jobs_due()
    signals.indexing_failed.disconnect(record_failure)

    assert memory.memory_states([one.id]) == {one.id: "failed"}
    assert failures == [False] * 4 + [True]
    assert memory.memory_counts(None).failed == 1
    assert memory.retry_failed(EmbeddingJob.objects.all()) == 1
    assert memory.index_pending() == 1
    assert memory.memory_counts(None).failed == 0


def test_one_text_refused_by_index_or_provider_fails_alone(memory, person, monkeypatch):
    rows = [exchange(person, f"Note {number}", "") for number in range(5)]
    refused_by_index, refused_by_provider = rows[1], rows[3]
    upsert, embed = store.upsert, local.LocalEmbedder.embed_documents

    def refuse_vectors(collection: str, ids: list[str], *vectors: object) -> None:
        if any(id.startswith(str(refused_by_index.id)) for id in ids):
            raise VectorStoreRequestError("refused by the index")
        upsert(collection, ids, *vectors)

    def refuse_text(embedder: object, texts: list[str]) -> np.ndarray:
        if any(refused_by_provider.user_message in text for text in texts):
            raise EmbeddingError("refused by the provider", permanent=True, is_about_input=True)
        return embed(embedder, texts)

    monkeypatch.setattr(store, "upsert", refuse_vectors)
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", refuse_text)

    assert memory.index_pending() == 3
    waiting, failed = (EmbeddingJob.objects.get(exchange=row) for row in (refused_by_index, refused_by_provider))
    assert (waiting.state, waiting.failures, waiting.error) == (Job.State.PENDING, 1, "refused by the index")
    assert (failed.state, failed.error) == (Job.State.FAILED, "refused by the provider")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DuplicateIDError("ids"), VectorStoreRequestError),
        (InvalidDimensionException("4"), VectorStoreRequestError),
        (ValueError("Expected metadata"), VectorStoreRequestError),
        (InternalError("full"), VectorStoreUnavailableError),
        (RateLimitError("slow"), VectorStoreUnavailableError),
        (json.JSONDecodeError("html", "", 0), VectorStoreUnavailableError),
        (Exception("<h1>Bad gateway</h1>"), VectorStoreUnavailableError),
        (ConnectionError("refused"), VectorStoreUnavailableError),
    ],
)
def test_a_refused_request_differs_from_an_unavailable_index(memory, monkeypatch, error, expected):
    def fail(*args: object, **more: object) -> None:
        raise error

    monkeypatch.setattr(store, "_call", fail)
    with pytest.raises(VectorStoreUnavailableError) as raised:
        store.count("any")
    assert type(raised.value) is expected


def test_a_collection_can_be_used_while_another_thread_forgets_it(memory, person, monkeypatch):
    class Forgotten(dict[str, object]):
        """What is stored is forgotten at once."""

        def __setitem__(self, name: str, handle: object) -> None:
            pass

    exchange(person, "The boiler was replaced.")
    memory.index_pending()
    monkeypatch.setattr(chroma, "_handles", Forgotten())
    assert store.count(Collection.objects.get().name) > 0


def test_the_retry_after_of_a_provider_is_respected(memory, person, monkeypatch):
    exchange(person, "The boiler was replaced.")
    monkeypatch.setattr(
        local.LocalEmbedder, "embed_documents", lambda *a: (_ for _ in ()).throw(EmbeddingError("429", False, 120.0))
    )
    memory.index_pending()

    wait = EmbeddingJob.objects.get().due_at - timezone.now()
    assert timedelta(seconds=110) < wait <= timedelta(seconds=120)


def test_a_model_of_another_dimension_never_writes_into_the_index(memory, person):
    exchange(person, "The boiler was replaced.")
    memory.index_pending()

    with pytest.raises(EmbeddingDimensionError, match="384, or build a new index with `reembed --again`"):
        generations.check_dimension(generations.active_generation(), 768)


def test_an_index_filled_from_cached_vectors_alone_knows_their_dimension(memory, person):
    exchange(person, "The boiler was replaced.")
    memory.index_pending()
    building = generations.start_reindex()

    assert memory.index_pending() == 1

    building.refresh_from_db()
    assert building.dimension == 384


def test_a_worker_that_lost_its_lease_changes_nothing(memory, person, monkeypatch):
    one = exchange(person, "The boiler was replaced.")
    real = store.upsert

    def take_over(*args: object) -> None:
        EmbeddingJob.objects.update(attempt=99)
        real(*args)

    with monkeypatch.context() as slow:
        slow.setattr(store, "upsert", take_over)
        assert memory.index_pending(limit=1) == 0
    assert EmbeddingJob.objects.get(exchange=one).state == Job.State.PENDING


def test_a_job_whose_worker_died_is_taken_over_when_the_lease_expires(memory, person):
    exchange(person, "The boiler was replaced.")
    EmbeddingJob.objects.update(locked_until=timezone.now() + timedelta(seconds=60), attempt=1)
    assert memory.index_pending() == 0

    EmbeddingJob.objects.update(locked_until=timezone.now() - timedelta(seconds=1))
    assert memory.index_pending() == 1


def test_the_sweep_finds_jobs_without_a_wake_up(memory, person):
    one = exchange(person, "The boiler was replaced.")
    two = exchange(person, "The safe combination is 12-34-56.")
    memory.forget([two.id], by=person.id)

    sweep_memory()

    assert memory.memory_states([one.id, two.id]) == {one.id: "remembered", two.id: "forgotten"}
    two.refresh_from_db()
    assert two.user_message == ""


def test_a_new_model_builds_its_index_while_the_old_one_answers_until_the_switch(memory, person, monkeypatch):
    stored_exchange = exchange(person, "The boiler was replaced with a heat pump.")
    memory.index_pending()
    readable = access.readable_space_ids(person.id)
    old = generations.active_generation()
    assert not memory.embedding_model_status().differ
    generations.IndexGeneration.objects.filter(pk=old.pk).update(model="multilingual-e5-small-old")
    monkeypatch.setattr(generations, "embedder_for", lambda generation: _local(generation))

    assert memory.embedding_model_status().differ
    generations.start_reindex()
    assert not generations.activate_built_generation(), "no exchange is embedded yet"
    assert memory.search("boiler", spaces=readable).results[0].exchange.id == stored_exchange.id

    memory.index_pending()
    collection = EmbeddingJob.objects.get(generation=old).collection.name
    assert generations.activate_built_generation()

    assert not memory.embedding_model_status().differ
    assert memory.search("boiler", spaces=readable).results[0].exchange.id == stored_exchange.id
    assert store.count(collection) > 0, "the old collection is kept for a rollback"
    assert generations.drop_retired_generations() == 1
    assert store.count(collection) == 0
    assert IndexGeneration.objects.count() == 1


def test_an_index_without_an_installed_model_is_rebuilt_and_search_is_lexical_meanwhile(
    memory, person, client, monkeypatch
):
    client.force_login(person)
    before = exchange(person, "The boiler was replaced with a heat pump.")
    memory.index_pending()
    readable = access.readable_space_ids(person.id)
    IndexGeneration.objects.update(model="/models/no-longer-there")
    after = exchange(person, "The heat pump needs a new boiler valve.")

    found = memory.search("boiler", spaces=readable)
    assert found.is_lexical_only
    assert {hit.exchange.id for hit in found.results} == {before.id, after.id}
    page = client.get("/").content.decode()
    assert "The search index is being rebuilt." in page
    assert "Until it is complete, search and recall compare keywords instead of meaning." in page
    assert memory.index_pending() == 0, "jobs of a missing model wait"
    assert not EmbeddingJob.objects.exclude(error="").exists()

    generations.replace_uninstalled_model()
    memory.index_pending(limit=1)
    monkeypatch.setattr(context_processors, "_STORE_CHECK_INTERVAL", 0)
    assert "2 of 2 exchanges are indexed." in client.get("/").content.decode()
    old = Collection.objects.get(generation__model="/models/no-longer-there").name
    assert store.count(old) > 0
    sweep_memory()  # starts the new index
    sweep_memory()  # activates it when it is complete

    found = memory.search("boiler", spaces=readable)
    assert not found.is_lexical_only
    assert {hit.exchange.id for hit in found.results} == {before.id, after.id}
    assert "The search index is being rebuilt." not in client.get("/").content.decode()
    assert memory.memory_states([before.id, after.id]) == dict.fromkeys([before.id, after.id], "remembered")
    assert not IndexGeneration.objects.filter(state="retired").exists()
    assert store.count(old) == 0


def test_an_index_is_not_dropped_while_its_replacement_is_built_or_its_model_is_installed(memory, person):
    exchange(person, "The boiler was replaced with a heat pump.")
    memory.index_pending()
    IndexGeneration.objects.update(model="/models/no-longer-there")
    generations.replace_uninstalled_model()
    assert generations.drop_uninstalled_generations() == 0

    memory.index_pending()
    assert generations.activate_built_generation()
    retired = IndexGeneration.objects.get(state="retired")
    IndexGeneration.objects.filter(pk=retired.pk).update(model=multilingual_e5.NAME)
    assert generations.drop_uninstalled_generations() == 0

    IndexGeneration.objects.filter(pk=retired.pk).update(model="/models/no-longer-there")
    assert generations.drop_uninstalled_generations() == 1


def test_the_banner_says_that_no_embedding_model_is_installed(memory, person, client, monkeypatch):
    client.force_login(person)
    exchange(person, "The boiler was replaced with a heat pump.")
    memory.index_pending()
    monkeypatch.setattr(local, "_INSTALLED", {multilingual_e5.NAME: lambda: Path("/models/no-longer-there")})

    sweep_memory()

    page = client.get("/").content.decode()
    assert "The embedding model local/multilingual-e5-small is not installed." in page
    assert "make model" in page
    assert "is being rebuilt" not in page


def test_exchanges_wait_while_a_file_of_the_model_is_damaged_and_are_embedded_after_its_repair(
    memory, person, monkeypatch, tmp_path
):
    monkeypatch.undo()  # the vectors that the fixture caches
    name = "model.onnx"
    folder = link_model(multilingual_e5.NAME, tmp_path / "model", without=name)
    (folder / name).write_bytes(b"damaged")
    monkeypatch.setattr(local, "_INSTALLED", {multilingual_e5.NAME: lambda: folder})
    monkeypatch.setattr(generations, "embedder_for", lambda generation: local.LocalEmbedder(generation.model))
    one = exchange(person, "The boiler was replaced with a heat pump.")
    readable = access.readable_space_ids(person.id)

    for _ in range(8):
        assert memory.index_pending() == 0
        make_jobs_due()
    assert memory.memory_states([one.id]) == {one.id: "waiting"}
    assert "make model" in EmbeddingJob.objects.get().error
    found = memory.search("boiler", spaces=readable)
    assert found.is_lexical_only
    assert [hit.exchange.id for hit in found.results] == [one.id]

    (folder / name).unlink()
    (folder / name).symlink_to(multilingual_e5.folder() / name)
    assert memory.index_pending() == 1
    assert not memory.search("boiler", spaces=readable).is_lexical_only


def _local(generation: IndexGeneration) -> local.LocalEmbedder:

    from memory import embeddings

    return embeddings.get_embedder()


def test_only_a_bounded_part_of_a_huge_message_is_split(memory, person, monkeypatch):
    split_texts: list[str] = []
    embed = local.LocalEmbedder.embed_documents

    def record_sizes(embedder: object, texts: list[str]) -> np.ndarray:
        split_texts.extend(texts)
        return embed(embedder, texts)

    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", record_sizes)
    split = parts.split
    monkeypatch.setattr(parts, "split", lambda text, **options: split_texts.append(text) or split(text, **options))
    exchange(person, "Tell me all of it.", "It is a long story of the sea. " * 100_000)
    exchange(person, "It is a long note of the sea. " * 100_000, "")

    assert memory.index_pending() == 2

    assert max(map(len, split_texts)) < 20_000
    (found, *_others) = memory.search("story of the sea", spaces=access.readable_space_ids(person.id)).results
    assert found.exchange.user_message == "Tell me all of it."
