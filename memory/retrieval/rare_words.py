"""Rare words of a query: names, technical terms and compounds, by their probability in the tokenizer of the model.

How few texts contain a word says little in a small store, where most words of ordinary language occur once. The unigram
model of a tokenizer knows how common a word is in a hundred languages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.errors import EmbeddingError

# Natural logarithms of the probabilities of a common and of a rare word. "garden" has -13, "promised" -21, "Bergmann" -23,
# "axolotl" -36.
_COMMON, _RARE = -21.0, -30.0


def rarities(
    words: Sequence[str], get_log_probabilities: Callable[[Sequence[str]], list[float] | None]
) -> NDArray[np.float64]:
    """Return the rarity of each word, from 0 for a common to 1 for a rare one; 0 if the model does not tell."""
    try:
        found = get_log_probabilities(words) if words else None
    except EmbeddingError:
        found = None
    if found is None:
        return np.zeros(len(words))
    result: NDArray[np.float64] = np.clip((_COMMON - np.array(found)) / (_COMMON - _RARE), 0.0, 1.0)
    return result
