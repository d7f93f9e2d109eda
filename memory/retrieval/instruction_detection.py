"""Detect standing instructions: the sentences of a message that say how answers should be from now on.

The probe of the trait *standing instruction* reads the document vector of the message, which shows this trait more
clearly than its query vector. A message of several sentences is split, and each sentence is read by itself, because its
other sentences hide an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.documents.chunking.sentences import sentences
from memory.embeddings.base import Vectors
from memory.index import generations
from memory.retrieval import probes
from memory.retrieval.neutralising import as_it_looks
from memory.retrieval.query_embedding import embed_each_async
from memory.retrieval.types import Query

MAX_INSTRUCTION_LENGTH = 240  # characters
# Longer messages are texts to work on. Their vector represents only their beginning and end.
_MAX_MESSAGE_LENGTH, _MAX_SENTENCES = 1000, 8


@dataclass(frozen=True, slots=True)
class _Levels:
    """The probabilities from which an instruction is recognised, and from which it is suggested."""

    recognised: float
    suggested: float


# At most one of 200 ordinary messages is recognised; docs/decisions/0011-standing-instructions.md has the figures. A
# message of several sentences has as many chances to be mistaken, so more is needed unless the whole is one as well.
OF_MESSAGE = _Levels(recognised=0.4, suggested=0.25)
OF_SENTENCE = _Levels(recognised=0.7, suggested=0.5)
# A statement never is an instruction. So one that might be costs little, and one that is overlooked costs more.
_OF_OTHERS = 0.2
_QUOTATION = re.compile(r"[\"“”„«‹][^\"“”«»›]*[\"“”»›]")
_CLAUSE_END = re.compile(r"[,;:，、；：]")


@dataclass(frozen=True, slots=True)
class DetectedInstruction:
    """The sentences of a message that say how answers should be; not `is_certain`: they only might."""

    text: str
    is_certain: bool


def detect_async(message: str, query: Query) -> Callable[[], DetectedInstruction | None]:
    """Start to embed the sentences of a message, and return a function that waits for the instruction in it, if any.

    `query` is the recall of this message alone. The function reads the probes, so it may use the database.
    """
    if len(message) > _MAX_MESSAGE_LENGTH:
        return lambda: None
    parts = _split(message)
    if not 1 <= len(parts) <= _MAX_SENTENCES:
        return lambda: None
    texts = parts if len(parts) == 1 else [" ".join(parts), *parts]
    get_vectors = embed_each_async(texts, generations.embedder_for(query.generation))
    return lambda: _detect(parts, query, get_vectors())


def are_instructions(texts: Sequence[str]) -> list[bool]:
    """Return for each text whether a part of it might tell an assistant what to do. Raises EmbeddingError.

    A question or a quotation hides the instruction beside it, so sentences and clauses are read by themselves.
    """
    parts = [(number, part) for number, text in enumerate(texts) for part in _parts(text)]
    if not parts:
        return [False] * len(texts)
    generation = generations.active_generation()
    vectors = generations.embedder_for(generation).embed_documents([part for _number, part in parts])
    values = probes.read_document_trait(probes.STANDING_INSTRUCTION, vectors, generation.provider, generation.model)
    if values is None:
        return [False] * len(texts)
    found = {number for (number, _part), value in zip(parts, values, strict=True) if value >= _OF_OTHERS}
    return [number in found for number in range(len(texts))]


def _parts(text: str) -> list[str]:
    """Return the sentences of a text, with and without its quotations, and the clauses of the latter, as they look."""
    text = as_it_looks(text)
    bare = _split(_QUOTATION.sub(" ", text))
    clauses = [clause.strip() for sentence in bare for clause in _CLAUSE_END.split(sentence)]
    return list(dict.fromkeys(part for part in (*_split(text), *bare, *clauses) if part))


def _split(message: str) -> list[str]:
    """Return the sentences of a message, each on one line; a line break ends a sentence as well."""
    return [
        " ".join(line[span.start : span.end].split())
        for line in message.splitlines()
        for span in sentences(line, 0, len(line))
    ]


def _detect(parts: Sequence[str], query: Query, vectors: Vectors | None) -> DetectedInstruction | None:
    """Choose by the document vectors of the whole message and, if it has several parts, of each of them."""
    if vectors is None:
        return None
    values = probes.read_document_trait(
        probes.STANDING_INSTRUCTION, vectors, query.generation.provider, query.generation.model
    )
    if values is None:
        return None
    if len(parts) == 1:
        return _choose(parts, values, OF_MESSAGE)
    whole, *of_parts = values
    if whole < OF_MESSAGE.recognised:
        return _choose(parts, of_parts, OF_SENTENCE)
    return _choose(parts, of_parts, OF_MESSAGE) or _choose([" ".join(parts)], [whole], OF_MESSAGE)


def _choose(parts: Sequence[str], values: Sequence[float], levels: _Levels) -> DetectedInstruction | None:
    """Return the first of the parts that reach a level and fit into the length of an instruction, joined."""
    is_certain = max(values) >= levels.recognised
    level = levels.recognised if is_certain else levels.suggested
    text = ""
    for part, value in zip(parts, values, strict=True):
        longer = f"{text} {part}".lstrip()
        if value >= level and len(longer) <= MAX_INSTRUCTION_LENGTH:
            text = longer
    return DetectedInstruction(text, is_certain) if text else None
