"""The texts that are embedded for an exchange: few, and each short enough for the local model to read whole."""

from __future__ import annotations

import json

import pytest
from django.conf import settings

from memory.documents.chunking import split
from memory.embeddings import language_bias, multilingual_e5, tokenizers
from memory.index.parts import embedding_texts
from memory.index.vectors import PARTS
from memory.models import Exchange

SENTENCES = json.loads(language_bias._SENTENCES.read_text(encoding="utf-8"))


def texts_of(message: str, answer: str) -> list[str]:
    exchange = Exchange(user_message=message, assistant_message=answer)
    exchange.previous = None
    return embedding_texts(exchange)


@pytest.fixture(scope="module")
def tokenizer() -> tokenizers.Tokenizer:
    return tokenizers.load(multilingual_e5.folder(), max_tokens=100_000)


def test_a_short_exchange_is_embedded_whole_and_by_message() -> None:
    assert texts_of("Lunch?", "At noon.") == ["User: Lunch?\nAssistant: At noon.", "Lunch?", "At noon."]


def test_a_long_answer_has_at_most_four_pieces_which_follow_each_other() -> None:
    answer = " ".join(f"Sentence number {number} is about the harbour." for number in range(1000))

    whole, message, *pieces = texts_of("Tell me all of it.", answer)

    assert whole.startswith("User: Tell me all of it.\nAssistant: Sentence number 0 ")
    assert message == "Tell me all of it."
    assert len(pieces) == 4
    assert " ".join(pieces) == answer[: len(" ".join(pieces))]
    assert len(texts_of(answer, answer)) == len(PARTS)


@pytest.mark.parametrize("language", SENTENCES)
def test_the_local_model_reads_every_piece_whole(tokenizer: tokenizers.Tokenizer, language: str) -> None:
    answer = " ".join(SENTENCES[language]) * 40

    pieces = texts_of("Tell me all of it.", answer)[2:]

    tokens = [len(tokenizer.encode(f"passage: {piece}")) for piece in pieces]
    assert len(pieces) == 4
    assert max(tokens) <= multilingual_e5.MAX_TOKENS
    assert min(tokens) > multilingual_e5.MAX_TOKENS / 2


@pytest.mark.parametrize("language", SENTENCES)
def test_the_local_model_reads_every_chunk_whole(tokenizer: tokenizers.Tokenizer, language: str) -> None:
    # One sentence, which chunks follow up to the maximum, and a change of language within it.
    sentence = "，".join(text.rstrip("。.?!？") for text in SENTENCES[language] + SENTENCES["English"]) * 3
    sizes = settings.CATO.vector_store
    spans = list(
        split(
            sentence,
            strategy="semantic",
            chunk_size=sizes.max_chunk_size,
            chunk_overlap=0,
            max_chunk_size=sizes.max_chunk_size,
            preserve_sentence_boundaries=True,
        )
    )

    tokens = [len(tokenizer.encode(f"passage: {sentence[span.start : span.end]}")) for span in spans]
    assert len(tokens) > 1
    assert max(tokens) <= multilingual_e5.MAX_TOKENS
