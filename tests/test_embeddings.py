"""Embedding models: known vectors of the local one; batches and errors of remote ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memory import embeddings
from memory.embeddings import EmbedderOptions, make_embedder
from memory.embeddings.base import Embedder, Prefixes
from memory.embeddings.local import LocalEmbedder
from memory.embeddings.remote import MAX_INPUT_BYTES, batches
from memory.errors import EmbeddingDimensionError, EmbeddingError
from tests.fake_endpoint import FakeEndpoint
from tests.model_folders import WIDTH, write_bert_folder

MODEL = "multilingual-e5-small"


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEmbedder]:
    embedder = LocalEmbedder(MODEL, threads=1)
    yield embedder
    embedder.close()


def test_a_text_has_the_same_vector_alone_and_in_a_batch(local: LocalEmbedder) -> None:
    texts = ["Lunch?", "The boiler was replaced with a heat pump in March.", "Who has the key?" * 30]

    vectors = local.embed_documents(texts)

    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    alone = np.stack([local.embed_documents([text])[0] for text in texts])
    assert ((alone * vectors).sum(axis=1) > 0.99999).all()
    assert local.dimension == len(local.embed_query("Lunch?")) == 384


def test_no_texts_return_no_rows(local: LocalEmbedder) -> None:
    assert local.embed_documents([]).shape == (0, 384)


def test_an_unloaded_model_is_reloaded_safely_by_several_threads(local: LocalEmbedder) -> None:
    expected, found = local.embed_query("Lunch?"), list[float]()

    def embed_query() -> None:
        for _ in range(5):
            found.append(float(local.embed_query("Lunch?") @ expected))

    threads = [threading.Thread(target=embed_query) for _ in range(4)]
    for thread in threads:
        thread.start()
    local.close()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert min(found) > 0.99999


def test_a_model_that_is_not_used_for_a_minute_is_released_and_loads_again(
    local: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "_embedders", {("local", MODEL, EmbedderOptions()): local})
    before = local.embed_query("Lunch?")
    used_at = time.monotonic()

    assert embeddings.release_unused_models() == 0
    monkeypatch.setattr("memory.embeddings.local.time.monotonic", lambda: used_at + 61)
    assert embeddings.release_unused_models() == 1
    assert local._loaded is None
    assert embeddings.release_unused_models() == 0
    assert local.embed_query("Lunch?") @ before > 0.99999


def test_a_folder_with_safetensors_and_a_tokenizer_json_is_accepted(tmp_path: Path) -> None:
    embedder = LocalEmbedder(str(write_bert_folder(tmp_path)), threads=1)

    vectors = embedder.embed_documents(["lunch ?", "boiler key"])

    assert embedder.dimension == WIDTH
    assert vectors.shape == (2, WIDTH)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.embed_query("lunch ?") @ vectors[0] > 0.99999
    assert not np.allclose(vectors[0], vectors[1], atol=0.01)


def test_a_folder_determines_prefixes_length_and_pooling(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    length = {"max_seq_length": 5}
    folder = write_bert_folder(tmp_path, config_sentence_transformers=prompts, sentence_bert_config=length)
    plain = LocalEmbedder(str(folder), threads=1, prefixes=Prefixes())
    embedder = LocalEmbedder(str(folder), threads=1)

    assert embedder.embed_query("lunch") @ plain.embed_query("query: lunch") > 0.99999
    assert embedder.embed_documents(["lunch"])[0] @ plain.embed_query("passage: lunch") > 0.99999
    assert plain.embed_query("lunch key boiler") @ plain.embed_query("lunch key boiler lunch ?") > 0.99999
    mean = plain.embed_query("lunch")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}', encoding="utf-8")
    first_token = LocalEmbedder(str(folder), threads=1, prefixes=Prefixes()).embed_query("lunch")
    assert not np.allclose(first_token, mean, atol=0.01)


def test_a_folder_without_a_model_is_reported(tmp_path: Path) -> None:
    for model, message in (
        ("no-such-model", "not a folder with a model. Name a folder, or one of multilingual-e5-small"),
        (str(tmp_path), "neither tokenizer.json nor sentencepiece.bpe.model"),
    ):
        with pytest.raises(EmbeddingError, match=message) as caught:
            LocalEmbedder(model).embed_query("anything")
        assert caught.value.permanent


def test_a_batch_is_one_request(endpoint: FakeEndpoint) -> None:
    embedder = _openai(endpoint, "batches", batch_size=10)

    vectors = embedder.embed_documents([f"text {n}" for n in range(25)])

    assert vectors.shape == (25, 1536)
    assert [len(body["input"]) for body in endpoint.requests("batches", "/v1/embeddings")] == [10, 10, 5]
    assert vectors[3] @ embedder.embed_query("text 3") > 0.99999


def test_ollama_receives_prefixes_for_queries_and_documents(endpoint: FakeEndpoint) -> None:
    embedder = _ollama(endpoint, "prefixes")

    embedder.embed_documents(["a cat"])
    embedder.embed_query("which animal?")

    inputs = [body["input"] for body in endpoint.requests("prefixes", "/api/embed")]
    assert inputs == [["search_document: a cat"], ["search_query: which animal?"]]
    assert embedder.dimension == 768


@pytest.mark.parametrize("provider", ["openai", "ollama"])
@pytest.mark.parametrize(
    ("mode", "permanent", "retry_after"),
    [("error-500", False, None), ("error-429", False, 7.0), ("error-401", True, None), ("error-400", True, None)],
)
def test_an_error_is_marked_as_temporary_or_permanent(
    endpoint: FakeEndpoint, provider: str, mode: str, permanent: bool, retry_after: float | None
) -> None:
    key = f"{provider}-{mode}"
    embedder = _openai(endpoint, key) if provider == "openai" else _ollama(endpoint, key)
    endpoint.script(key, mode=mode, fail_times=1, retry_after=7)

    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_documents(["text"])

    assert (caught.value.permanent, caught.value.retry_after) == (permanent, retry_after)
    assert mode.removeprefix("error-") in str(caught.value)
    assert len(embedder.embed_documents(["text"])) == 1, "the next request succeeds"


def test_an_unavailable_endpoint_is_a_temporary_error() -> None:
    for provider in ("openai", "ollama"):
        embedder = make_embedder(provider, "model", EmbedderOptions(base_url="http://127.0.0.1:9", api_key="x"))
        with pytest.raises(EmbeddingError, match="cannot be reached") as caught:
            embedder.embed_query("text")
        assert not caught.value.permanent


def test_vectors_of_another_dimension_are_refused(endpoint: FakeEndpoint) -> None:
    with_dimensions = _openai(endpoint, "length", dimensions=512)
    assert with_dimensions.embed_documents(["text"]).shape == (1, 512)
    learned = _ollama(endpoint, "length-learned")
    assert learned.dimension == 768
    for key, embedder in (("length", with_dimensions), ("length-learned", learned)):
        endpoint.script(key, mode="wrong-dimension")
        with pytest.raises(EmbeddingDimensionError, match="100 numbers"):
            embedder.embed_documents(["text"])


def test_batches_respect_the_limits_of_a_request() -> None:
    found = list(batches(["é" * 20_000, "", "x"] * 60, size=1000))

    assert len(found) == 2
    assert sum(len(batch) for batch in found) == 180
    assert all(sum(len(text.encode()) for text in batch) / 3 < 300_000 for batch in found)
    assert [text for batch in found for text in batch][1:3] == [" ", "x"]
    assert len(found[0][0].encode()) <= MAX_INPUT_BYTES
    assert "\ufffd" not in found[0][0]


def test_a_process_has_one_embedder_per_model_and_knows_its_name_without_loading_it() -> None:
    assert embeddings.configured_model() == ("local", MODEL)
    assert embeddings.get_embedder() is embeddings.get_embedder(model=MODEL)


def test_an_older_index_does_not_use_the_key_of_the_new_provider(settings: Any) -> None:
    _configure(settings, embedding_provider="openai", embedding_dimensions=256, embedding_base_url="http://new.example")
    assert embeddings.configured_model() == ("openai", "text-embedding-3-small")
    older: Any = embeddings.get_embedder(provider="ollama", model="nomic-embed-text")
    assert (older.base_url, older.api_key, older._dimensions) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "variable", "host"),
    [
        ({}, "https://models.example/v1", ""),
        ({"embedding_provider": "openai"}, "", "api.openai.com"),
        ({"embedding_provider": "openai"}, "https://models.example/v1", "models.example"),
        ({"embedding_provider": "ollama"}, "https://models.example/v1", "127.0.0.1:11434"),
        (
            {"embedding_provider": "openai", "embedding_base_url": "https://ada:secret@vectors.example:8443/v1"},
            "https://models.example/v1",
            "vectors.example:8443",
        ),
    ],
)
def test_the_host_that_receives_texts_is_named_without_a_password(changes, variable, host, settings, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", variable)
    _configure(settings, **changes)
    assert embeddings.remote_host() == host


def test_an_empty_variable_is_no_address(monkeypatch):
    """Containers have it whether or not somebody has set it."""
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    embedder: Any = make_embedder("openai", "text-embedding-3-small", EmbedderOptions(api_key="hidden"))
    assert embedder.client().base_url.host == "api.openai.com"


def test_an_unknown_provider_is_named() -> None:
    with pytest.raises(EmbeddingError, match="no embedding provider acme; there are local, openai, ollama"):
        make_embedder("acme", "model")


def _openai(endpoint: FakeEndpoint, key: str, **options: Any) -> Embedder:
    return make_embedder(
        "openai", "text-embedding-3-small", EmbedderOptions(base_url=endpoint.openai_url, api_key=key, **options)
    )


def _ollama(endpoint: FakeEndpoint, key: str) -> Embedder:
    return make_embedder("ollama", "nomic-embed-text", EmbedderOptions(base_url=endpoint.url, api_key=key))


def _configure(settings: Any, **changes: Any) -> None:
    vector_store = settings.CATO.vector_store.model_copy(update=changes)
    settings.CATO = settings.CATO.model_copy(update={"vector_store": vector_store})


def test_prefixes_of_the_configured_model_do_not_apply_to_an_older_index(settings: Any) -> None:
    prefixes = SimpleNamespace(query="q: ", passage=None)
    _configure(settings, embedding_prefixes=prefixes, embedding_model="/models/new")

    configured: Any = embeddings.get_embedder()
    older: Any = embeddings.get_embedder(model="/models/old")

    assert configured._prefixes == Prefixes(query="q: ", document="")
    assert older._configured_prefixes is None
