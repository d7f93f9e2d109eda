"""Optional last stage: rerank hits with a cross-encoder, which reads query and passage together.

`vector_store.reranker` names a folder with `tokenizer.json` and `model.onnx`. The model takes pairs of texts and
returns one relevance score per pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _

from memory.embeddings.onnxruntime import load_onnxruntime
from memory.errors import InvalidInputError
from memory.retrieval.types import Hit

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from memory.embeddings.onnxruntime import InferenceSession

_MAX_TOKENS = 512


def is_configured() -> bool:
    """Return True if a reranker is configured."""
    return settings.CATO.vector_store.reranker is not None


def rerank(text: str, results: list[Hit]) -> list[Hit]:
    """Return `results` ordered by cross-encoder score, or unchanged if no reranker is configured.

    Raises InvalidInputError if the configured folder lacks the model's files.
    """
    folder = settings.CATO.vector_store.reranker
    if folder is None or not results:
        return results
    passages = [f"{r.exchange.user_message}\n{r.exchange.assistant_message}".strip() for r in results]
    scored = zip(cross_encoder_scores(folder, text, passages), results, strict=True)
    return [replace(result, score=score) for score, result in sorted(scored, key=lambda pair: -pair[0])]


def cross_encoder_scores(folder: Path, text: str, passages: Sequence[str]) -> list[float]:
    """Return the relevance score of each passage for `text`. Raises InvalidInputError if the model's files are missing."""
    tokenizer, session = _load(folder)
    encoded = tokenizer.encode_batch([(text, passage) for passage in passages])
    columns = {
        "input_ids": [e.ids for e in encoded],
        "attention_mask": [e.attention_mask for e in encoded],
        "token_type_ids": [e.type_ids for e in encoded],
    }
    input_names = {model_input.name for model_input in session.get_inputs()}
    feed = {name: np.array(rows, dtype=np.int64) for name, rows in columns.items() if name in input_names}
    (logits, *_) = session.run(None, feed)
    return [float(value) for value in np.asarray(logits).reshape(len(passages), -1)[:, 0]]


@lru_cache(maxsize=1)
def _load(folder: Path) -> tuple[Tokenizer, InferenceSession]:
    from tokenizers import Tokenizer

    files = folder / "tokenizer.json", folder / "model.onnx"
    if not all(file.is_file() for file in files):
        sentence = _("vector_store.reranker: %(folder)s should hold tokenizer.json and model.onnx.")
        raise InvalidInputError(sentence % {"folder": folder})
    tokenizer = Tokenizer.from_file(str(files[0]))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    return tokenizer, load_onnxruntime().InferenceSession(str(files[1]), providers=["CPUExecutionProvider"])
