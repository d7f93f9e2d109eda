"""Probes tell from a message's vector what it asks for, in languages with and without labelled sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from memory.embeddings.local import LocalEmbedder
from memory.errors import EmbeddingError
from memory.index import generations
from memory.knowledge import unread
from memory.models import IndexGeneration, Probe
from memory.retrieval import corrections, gate, instruction_detection, probes, strategies
from memory.retrieval.probes import STANDING_INSTRUCTION
from memory.retrieval.tuning import probe_fitting
from memory.retrieval.tuning.probe_fitting import load_examples
from tests.questions import follow_ups, no_recall, updates, work
from tests.topology import IS_LONG

HELD_OUT = Path(__file__).parent / "traits"
# Sentences that were not at hand while those for fitting were written.
UNSEEN = HELD_OUT / "unseen"
# Languages without a sentence among those that the probes are fitted on.
NEW_LANGUAGES = ("nl", "pl", "ja")


@pytest.fixture(scope="module")
def embedder(embed_once):
    with pytest.MonkeyPatch.context() as patch:
        for name, method in embed_once.items():
            patch.setattr(LocalEmbedder, name, method)
        yield LocalEmbedder(probes.SHIPPED_MODEL)


class RandomEmbedder:
    """Gives each text the same arbitrary vector each time, and counts the texts."""

    def __init__(self, error: EmbeddingError | None = None) -> None:
        self.error, self.count, self.dimension = error, 0, 8

    def embed_queries(self, texts):
        if self.error:
            raise self.error
        self.count += len(texts)
        size = self.dimension
        return np.stack([np.random.default_rng(len(text)).normal(size=size).astype(np.float32) for text in texts])

    embed_documents = embed_queries


def read_instructions(embedder, texts):
    return read_document_trait(embedder, STANDING_INSTRUCTION, texts)


def read_document_trait(embedder, trait, texts):
    vectors = embedder.embed_documents(texts)
    return np.array(probes.read_document_trait(trait, vectors, "local", probes.SHIPPED_MODEL))


def held_out_probabilities(embedder, trait, folder=HELD_OUT):
    """Return the probabilities of the held-out sentences, their labels, and whether their language is new."""
    rows = load_examples(trait, folder)
    if trait in probes.DOCUMENT_TRAITS:
        found = read_document_trait(embedder, trait, rows.texts)
    else:
        traits = [probes.read_traits(v, "local", probes.SHIPPED_MODEL) for v in embedder.embed_queries(rows.texts)]
        found = np.array([getattr(each, trait) for each in traits])
    return found, np.array(rows.labels) == 1, np.isin(rows.languages, NEW_LANGUAGES)


def test_the_shipped_probes_were_fitted_on_the_shipped_sentences():
    assert set(probes.load_shipped()) == set(probes.TRAITS)
    assert probes.shipped_examples() == probe_fitting.examples_hash()


# One probe of each kind, for query and for document vectors; all of them take minutes.
@pytest.mark.parametrize("trait", probes.TRAITS if IS_LONG else ("latest_state", "correction"))
def test_fitting_a_probe_again_gives_the_shipped_one(embedder, trait):
    refitted, shipped = probe_fitting.fit_probes(embedder, [trait])[trait], probes.load_shipped()[trait]

    vectors = embedder.embed_queries(load_examples(trait, HELD_OUT).texts)
    # Vectors, and so the chosen landmarks, differ a little between processors.
    assert np.abs(refitted.probability(vectors) - shipped.probability(vectors)).mean() <= 0.02


def test_questions_want_memory_and_small_talk_and_general_tasks_do_not(embedder):
    found, has_trait, is_new = held_out_probabilities(embedder, "wants_memory")
    is_kept = found >= gate._MIN_EVIDENCE

    assert is_kept[has_trait].mean() >= 0.97
    assert (~is_kept)[~has_trait].mean() >= 0.85
    assert is_kept[has_trait & is_new].mean() >= 0.95
    assert (~is_kept)[~has_trait & is_new].mean() >= 0.85


def test_follow_ups_differ_from_complete_messages(embedder):
    found, has_trait, is_new = held_out_probabilities(embedder, "follow_up")

    assert (found[has_trait] >= gate._MIN_FOLLOW_UP).mean() >= 0.98
    assert (found[~has_trait] < gate._MIN_INCOMPLETE).mean() >= 0.95
    assert (found[has_trait & is_new] >= gate._MIN_FOLLOW_UP).mean() >= 0.95


def test_questions_for_the_latest_state_are_recognised(embedder):
    found, has_trait, is_new = held_out_probabilities(embedder, "latest_state")
    is_right = (found >= 0.5) == has_trait

    assert is_right.mean() >= 0.93
    assert is_right[is_new].mean() >= 0.9


@pytest.mark.parametrize("folder", [HELD_OUT, UNSEEN])
def test_instructions_are_told_from_wishes_for_one_answer_and_habits_of_people(embedder, folder):
    found, has_trait, is_new = held_out_probabilities(embedder, STANDING_INSTRUCTION, folder)
    levels = instruction_detection.OF_MESSAGE

    assert (found[has_trait] >= levels.recognised).mean() >= 0.92
    assert (found[has_trait & is_new] >= levels.recognised).mean() >= 0.88
    assert (found[has_trait] >= levels.suggested).mean() >= 0.95
    # The sentences without the trait resemble instructions as much as possible.
    assert (found[~has_trait] >= levels.recognised).mean() <= 0.12


def test_ambiguous_messages_are_hardly_ever_recognised_as_instructions(embedder):
    content = yaml.safe_load((UNSEEN / "standing_instruction.yaml").read_text(encoding="utf-8"))["ambiguous"]
    found = read_instructions(embedder, [text for texts in content.values() for text in texts])

    assert (found >= instruction_detection.OF_MESSAGE.recognised).mean() <= 0.1


def test_at_most_one_of_200_ordinary_messages_is_recognised_as_an_instruction(embedder):
    ordinary = [yaml.safe_load((f / "ordinary.yaml").read_text(encoding="utf-8")) for f in (HELD_OUT, UNSEEN)]
    others = [load_examples(trait, HELD_OUT).texts for trait in probes.MESSAGE_TRAITS]
    sentences = [rows for content in ordinary for rows in content.values()]
    texts = [*(text for rows in [*sentences, *others] for text in rows), *questions()]
    found = read_instructions(embedder, texts)
    levels = instruction_detection.OF_MESSAGE

    assert len(texts) > 1000
    assert (found >= levels.recognised).mean() <= 1 / 200
    assert (found >= levels.suggested).mean() <= 1 / 50


def questions():
    """Return the questions, tasks and small talk of the other tests."""
    follow_ups_ = [text for row in follow_ups.FOLLOW_UPS for text in (*row.before, row.asks, row.in_full)]
    asked = [question for question, _key in work.IN_OTHER_WORDS]
    return [*no_recall.SMALL_TALK, *no_recall.TASKS, *no_recall.NEAR_MISSES, *follow_ups_, *asked]


def test_questions_for_a_former_state_are_recognised(embedder):
    found, has_trait, is_new = held_out_probabilities(embedder, "former_state")
    is_former = found >= strategies._ASKS_FOR_FORMER

    assert is_former[has_trait].mean() >= 0.93
    assert (~is_former)[~has_trait].mean() >= 0.93
    assert is_former[has_trait & is_new].mean() >= 0.9
    assert (~is_former)[~has_trait & is_new].mean() >= 0.9


def test_unseen_questions_for_a_former_state_are_recognised(embedder):
    found, has_trait, _is_new = held_out_probabilities(embedder, "former_state", UNSEEN)
    is_former = found >= strategies._ASKS_FOR_FORMER

    assert is_former[has_trait].mean() >= 0.95
    assert (~is_former)[~has_trait].mean() >= 0.79


@pytest.mark.parametrize("folder", [HELD_OUT, UNSEEN])
def test_broad_questions_are_recognised(embedder, folder):
    found, has_trait, is_new = held_out_probabilities(embedder, "broad", folder)
    is_broad = found >= strategies._IS_BROAD

    assert is_broad[has_trait].mean() >= 0.66
    assert (~is_broad)[~has_trait].mean() >= 0.97
    assert is_broad[has_trait & is_new].mean() >= 0.5
    assert (~is_broad)[~has_trait & is_new].mean() >= 0.95


def test_messages_that_state_something_differ_from_small_talk_tasks_and_questions(embedder):
    found, has_trait, is_new = held_out_probabilities(embedder, "informative")
    is_kept = found >= unread._IS_INFORMATIVE

    # Nothing that is stated is passed over; what passes only costs a part of a request.
    assert is_kept[has_trait].mean() >= 0.98
    assert is_kept[has_trait & is_new].mean() >= 0.98
    assert (~is_kept)[~has_trait].mean() >= 0.5
    for texts, share in ((no_recall.SMALL_TALK, 0.97), (no_recall.TASKS, 0.9)):
        others = read_document_trait(embedder, "informative", texts)
        assert (others < unread._IS_INFORMATIVE).mean() >= share
    asked = [question for question, _key in work.IN_OTHER_WORDS]
    assert (read_document_trait(embedder, "informative", asked) < unread._IS_INFORMATIVE).mean() >= 0.7
    told = [text for row in updates.UPDATES for text in (row.earlier, row.later)]
    assert (read_document_trait(embedder, "informative", told) >= unread._IS_INFORMATIVE).mean() >= 0.98


@pytest.mark.parametrize(("folder", "recognised"), [(HELD_OUT, 0.95), (UNSEEN, 0.9)])
def test_corrections_differ_from_other_wishes_and_from_plain_statements(embedder, folder, recognised):
    found, has_trait, is_new = held_out_probabilities(embedder, probes.CORRECTION, folder)
    is_correction = found >= corrections.MIN_PROBABILITY

    assert is_correction[has_trait].mean() >= recognised
    assert is_correction[has_trait & is_new].mean() >= 0.8
    assert (~is_correction)[~has_trait].mean() >= 0.97


def test_few_questions_tasks_and_small_talk_are_taken_for_corrections(embedder):
    found = read_document_trait(embedder, probes.CORRECTION, questions())

    assert (found >= corrections.MIN_PROBABILITY).mean() <= 0.04


@pytest.mark.parametrize("path", sorted(HELD_OUT.rglob("*.yaml")), ids=lambda path: str(path.relative_to(HELD_OUT)))
def test_no_held_out_sentence_is_used_for_fitting(path):
    trait = STANDING_INSTRUCTION if path.stem == "ordinary" else path.stem
    held_out = {line.strip() for line in path.read_text(encoding="utf-8").splitlines()}

    assert held_out
    assert not held_out & {f'- "{text}"' for text in load_examples(trait).texts}


@pytest.fixture
def other_model(db, monkeypatch):
    """Return the embedder of an active generation whose model has no shipped probes."""
    embedder = RandomEmbedder()
    IndexGeneration.objects.create(provider="openai", model="other", state=IndexGeneration.State.ACTIVE)
    monkeypatch.setattr(generations, "embedder_for", lambda generation: embedder)
    monkeypatch.setattr(probe_fitting, "_next_attempts", {})
    # Few landmarks, which are fitted quickly.
    monkeypatch.setattr(probe_fitting, "_KERNEL_TRAITS", dict.fromkeys(probe_fitting._KERNEL_TRAITS, 20))
    yield embedder
    probes.forget_probes("openai", "other")


def test_another_model_gets_probes_of_its_own_once(other_model):
    vector = np.ones(8, dtype=np.float32)
    assert probes.read_traits(vector, "openai", "other") is None

    probe_fitting.fit_missing_probes()
    assert set(Probe.objects.values_list("trait", flat=True)) == set(probes.TRAITS)
    assert 0 < probes.read_traits(vector, "openai", "other").wants_memory < 1

    embedded = other_model.count
    probe_fitting.fit_missing_probes()
    assert embedded == other_model.count > 0


def test_probes_of_another_dimension_do_not_count(other_model):
    probe_fitting.fit_missing_probes()

    assert probes.read_traits(np.ones(8, dtype=np.float32), "openai", "other") is not None
    assert probes.read_traits(np.ones(16, dtype=np.float32), "openai", "other") is None
    assert probes.read_traits(np.ones(16, dtype=np.float32), "local", probes.SHIPPED_MODEL) is None


def test_probes_are_fitted_again_when_the_dimension_changes(other_model):
    old, new = np.ones(8, dtype=np.float32), np.ones(16, dtype=np.float32)
    generation = IndexGeneration.objects.get(provider="openai", model="other")
    generations.check_dimension(generation, 8)
    probe_fitting.fit_missing_probes()
    assert probes.read_traits(old, "openai", "other") is not None

    building = IndexGeneration.objects.create(provider="openai", model="other", state="building")
    other_model.dimension, embedded = 16, other_model.count
    probe_fitting.fit_missing_probes()
    assert other_model.count == embedded, "nothing shows yet that the dimension changed"
    generations.check_dimension(building, 16)
    probe_fitting.fit_missing_probes()
    probe_fitting.fit_missing_probes()

    assert other_model.count == 2 * embedded
    assert probes.read_traits(new, "openai", "other") is not None


def test_another_process_reads_probes_of_a_new_dimension(other_model):
    probe_fitting.fit_missing_probes()
    stale = probes._probes_of("openai", "other", 8)
    other_model.dimension = 16
    probe_fitting._store_probes("openai", "other", probe_fitting.fit_probes(other_model))
    probes._probes["openai", "other"] = stale

    assert probes.read_traits(np.ones(16, dtype=np.float32), "openai", "other") is not None


def test_changed_sentences_are_fitted_again(other_model, monkeypatch):
    probe_fitting.fit_missing_probes()
    embedded = other_model.count

    monkeypatch.setattr(probe_fitting, "examples_hash", lambda: "changed")
    probe_fitting.fit_missing_probes()

    assert other_model.count == 2 * embedded
    assert set(Probe.objects.values_list("examples", flat=True)) == {"changed"}


def test_probes_that_an_earlier_version_stored_are_fitted_again(other_model):
    probe_fitting.fit_missing_probes()
    Probe.objects.update(weights=np.ones(9, dtype="<f4").tobytes())
    probes.forget_probes("openai", "other")
    vector = np.ones(8, dtype=np.float32)
    assert probes.read_traits(vector, "openai", "other") is None
    assert probes.read_document_trait(STANDING_INSTRUCTION, vector[None], "openai", "other") is None

    probe_fitting.fit_missing_probes()

    assert 0 < probes.read_traits(vector, "openai", "other").broad < 1
    assert 0 < probes.read_document_trait(STANDING_INSTRUCTION, vector[None], "openai", "other")[0] < 1


def test_a_model_that_does_not_answer_is_asked_again_later(other_model, monkeypatch):
    other_model.error = EmbeddingError("away", permanent=False)
    probe_fitting.fit_missing_probes()
    other_model.error = None

    probe_fitting.fit_missing_probes()
    assert not Probe.objects.exists()

    monkeypatch.setattr(probe_fitting, "_next_attempts", {})
    probe_fitting.fit_missing_probes()
    assert Probe.objects.count() == len(probes.TRAITS)
