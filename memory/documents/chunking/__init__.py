"""Split text into spans that are embedded whole and shown in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from memory.documents.chunking.filling import hybrid, semantic
from memory.documents.chunking.spans import ChunkSizes, Span
from memory.documents.chunking.windows import fixed_size, truncate
from memory.errors import InvalidInputError

STRATEGIES: dict[str, Callable[[str, ChunkSizes], Iterable[Span]]] = {
    "truncate": truncate,
    "fixed_size": fixed_size,
    "semantic": semantic,
    "hybrid": hybrid,
}
__all__ = ["STRATEGIES", "Span", "split"]


def split(
    text: str,
    *,
    strategy: str,
    chunk_size: int,
    chunk_overlap: int,
    max_chunk_size: int,
    preserve_sentence_boundaries: bool,
) -> Iterator[Span]:
    """Return the spans of `text` in order, without white space at their ends, each found when it is asked for.

    Sizes are in characters, of which those of Chinese, Japanese and Korean count as 2.25 (`lengths`).
    A blank text has no spans. Except with "truncate", they cover every character that is not white space. No span is
    longer than `max_chunk_size`, and only "semantic" exceeds `chunk_size`. Neighbours share at most `chunk_overlap`
    characters. `preserve_sentence_boundaries` applies to "fixed_size". Raises InvalidInputError for an unknown strategy
    and inconsistent sizes.
    """
    if strategy not in STRATEGIES:
        raise InvalidInputError(f"There is no chunking strategy {strategy!r}; allowed are {', '.join(STRATEGIES)}.")
    if chunk_size < 1:
        raise InvalidInputError(f"chunk_size should be at least 1, not {chunk_size}.")
    if not 0 <= chunk_overlap < chunk_size:
        raise InvalidInputError(
            f"chunk_overlap should be at least 0 and below chunk_size ({chunk_size}), not {chunk_overlap}."
        )
    if max_chunk_size < chunk_size:
        raise InvalidInputError(
            f"max_chunk_size should not be below chunk_size ({chunk_size}); it is {max_chunk_size}."
        )
    sizes = ChunkSizes(chunk_size, chunk_overlap, max_chunk_size, preserve_sentence_boundaries)
    # A span of one character may be the space that a combining accent belongs to, and is blank.
    return (span for span in STRATEGIES[strategy](text, sizes) if text[span.start : span.end].strip())
