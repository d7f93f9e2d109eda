"""Detect standing instructions: the sentences of a message that say how answers should be from now on.

The probe of the trait *standing instruction* reads the document vector of the message, which shows this trait more
clearly than its query vector. A message of several sentences is split, and each sentence is read by itself, because its
other sentences hide an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.index import generations
from memory.index.embedding_policy import ensure_embeddable
from memory.models import Space
from memory.retrieval import probes
from memory.retrieval.neutralising import as_it_looks
from memory.retrieval.sentence_vectors import MessageSentences, split_sentences

MAX_INSTRUCTION_LENGTH = 240  # characters


@dataclass(frozen=True, slots=True)
class _Levels:
    """The probabilities from which an instruction is recognised, and from which it is suggested."""

    recognised: float
    suggested: float


# At most one of 200 ordinary messages is recognised; docs/decisions/0011-standing-instructions.md has the figures. A
# message of several sentences has as many chances to be mistaken, so more is needed unless the whole is one as well.
OF_MESSAGE = _Levels(recognised=0.36, suggested=0.22)
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


def detect(sentences: MessageSentences) -> DetectedInstruction | None:
    """Return the instruction in a message, if any: chosen by the vectors of the whole and of each sentence."""
    values = sentences.read(probes.STANDING_INSTRUCTION)
    if values is None:
        return None
    parts = sentences.parts
    if len(parts) == 1:
        return _choose(parts, values, OF_MESSAGE)
    whole, *of_parts = values
    if whole < OF_MESSAGE.recognised:
        return _choose(parts, of_parts, OF_SENTENCE)
    return _choose(parts, of_parts, OF_MESSAGE) or _choose([" ".join(parts)], [whole], OF_MESSAGE)


def are_instructions(texts: Sequence[str], *, space: Space) -> list[bool]:
    """Return for each text of `space` whether a part of it might tell an assistant what to do. Raises EmbeddingError.

    A question or a quotation hides the instruction beside it, so sentences and clauses are read by themselves.
    """
    parts = [(number, part) for number, text in enumerate(texts) for part in _parts(text)]
    if not parts:
        return [False] * len(texts)
    ensure_embeddable(space)
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
    bare = split_sentences(_QUOTATION.sub(" ", text))
    clauses = [clause.strip() for sentence in bare for clause in _CLAUSE_END.split(sentence)]
    return list(dict.fromkeys(part for part in (*split_sentences(text), *bare, *clauses) if part))


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
