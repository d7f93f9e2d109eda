"""Tokenizers of local models: `tokenizer.json` of Hugging Face's library, or `sentencepiece.bpe.model`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from memory.embeddings.sentencepiece import SentencePieceTokenizer


class Tokenizer(Protocol):
    """Converts text to token ids, with those of its beginning and end, truncated to the limit of the model."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""

    def log_probability(self, word: str) -> float | None:
        """Return the natural logarithm of the word's probability, None if the tokenizer has no model of it."""


class JsonTokenizer:
    """A tokenizer of Hugging Face's library."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        """Load a tokenizer.json, and truncate to `max_tokens`."""
        from tokenizers import Tokenizer as HuggingFaceTokenizer

        self._tokenizer = HuggingFaceTokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def log_probability(self, word: str) -> None:
        """Return None: most of these tokenizers have no probabilities."""


def load(folder: Path, max_tokens: int) -> Tokenizer:
    """Return the tokenizer of a model folder. Raises FileNotFoundError if it has none."""
    if (folder / "tokenizer.json").is_file():
        return JsonTokenizer(folder / "tokenizer.json", max_tokens)
    if (folder / "sentencepiece.bpe.model").is_file():
        return SentencePieceTokenizer(folder / "sentencepiece.bpe.model", max_tokens)
    raise FileNotFoundError(folder)
