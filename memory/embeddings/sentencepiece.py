"""The tokenizer of XLM-RoBERTa models: SentencePiece with a unigram model, and the ids of its reference implementation.

`tokenizers` takes 289 MB and 1.5 s for a vocabulary of 250,000 pieces, SentencePiece some 50 MB and .3 s.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from memory.embeddings.protobuf import bytes_field, float_field, number_field, text_field

# Ids of the reference implementation. SentencePiece has <unk>, <s> and </s> as 0 to 2, so other ids are shifted by one.
_BEGIN, _END, _UNKNOWN = 0, 2, 3
_SHIFT = 1
# Below the scores of all pieces.
_UNKNOWN_SCORE = -20.0
# Before NFKC normalisation, control characters are removed; white space, invisible marks and U+2581 become a space.
_CHARACTERS: dict[int, str | None] = {
    **dict.fromkeys([*range(1, 32), 0x7F, 0x8F, 0x9F]),
    **dict.fromkeys([9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD], " "),
}
# Kinds of pieces and of models in sentencepiece_model.proto.
_KIND_NORMAL, _KIND_UNKNOWN, _KIND_CONTROL = 1, 2, 3
_UNIGRAM = 1


class SentencePieceTokenizer:
    """Converts text to token ids, truncated to `max_tokens`. It can be used from several threads."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        """Load a model file. Raises RuntimeError if it is damaged."""
        from sentencepiece import SentencePieceProcessor

        self._processor = SentencePieceProcessor(model_file=str(path))
        self._max_pieces = max_tokens - 2

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` between those of its beginning and end."""
        normal = unicodedata.normalize("NFKC", text.translate(_CHARACTERS))
        pieces = self._processor.encode(normal)[: self._max_pieces]
        return [_BEGIN, *(piece + _SHIFT if piece else _UNKNOWN for piece in pieces), _END]

    def log_probability(self, word: str) -> float:
        """Return the natural logarithm of a word's probability in the unigram model: the sum of its pieces' scores."""
        pieces = self._processor.encode(unicodedata.normalize("NFKC", word))
        return sum(self._processor.get_score(piece) if piece else _UNKNOWN_SCORE for piece in pieces)


def build_model(pieces: Sequence[tuple[str, float]]) -> bytes:
    """Return a model file for pieces with their scores; field numbers are those of sentencepiece_model.proto."""
    special = [("<unk>", 0.0, _KIND_UNKNOWN), ("<s>", 0.0, _KIND_CONTROL), ("</s>", 0.0, _KIND_CONTROL)]
    entries = [*special, *((text, score, _KIND_NORMAL) for text, score in pieces)]
    fields = [
        bytes_field(1, text_field(1, text) + float_field(2, score) + number_field(3, kind))
        for text, score, kind in entries
    ]
    trainer = number_field(3, _UNIGRAM) + number_field(4, len(entries))
    normalizer = text_field(1, "identity") + b"".join(number_field(field, 1) for field in (3, 4, 5))
    return b"".join([*fields, bytes_field(2, trainer), bytes_field(3, normalizer)])
