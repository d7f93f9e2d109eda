"""Embed in this process without a network: an installed model by name, or a model in a folder."""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from django.utils.translation import gettext as _

from memory.embeddings import multilingual_e5
from memory.embeddings.base import Prefixes, Vectors, normalise
from memory.embeddings.language_bias import reduce_language
from memory.embeddings.multilingual_e5 import LANGUAGE_DIRECTIONS
from memory.embeddings.onnxruntime import load_onnxruntime
from memory.errors import EmbeddingError, EmbeddingModelUnavailableError

if TYPE_CHECKING:
    from memory.embeddings.onnxruntime import InferenceSession
    from memory.embeddings.tokenizers import Tokenizer

log = logging.getLogger(__name__)

# Limit of a model without sentence_bert_config.json. Most BERT sentence embedders have this limit.
_MAX_TOKENS = 256
# Texts and tokens, with padding, that are computed at a time. More are no faster, and the memory that they take is kept:
# batches of eight texts of 512 tokens take 390 MB instead of 160.
_BATCH_SIZE, _BATCH_TOKENS = 8, 512
# Tokenizers process a whole text, with some 50 bytes per character, before it is truncated.
_MAX_CHARS = 16_384


class LocalEmbedder:
    """A BERT or XLM-RoBERTa sentence embedder: truncated input, pooled token vectors, length 1. Loads at first use."""

    provider = "local"

    def __init__(self, model: str, threads: int | None = None, prefixes: Prefixes | None = None) -> None:
        """Use `model`, the name of an installed model or a folder, with up to `threads` cores per call (None: all).

        `prefixes` replace those that the folder's config_sentence_transformers.json declares.
        """
        self.model = model
        self._threads = threads
        self._configured_prefixes = prefixes
        self._lock = threading.Lock()
        # Two batches at a time would keep 50 MB more; queries do not wait for documents.
        self._document_lock = threading.Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None
        self._used_at = 0.0

    @cached_property
    def dimension(self) -> int:
        """Return the length of a vector, from config.json or a first vector."""
        size = _read_json(_get_folder(self.model) / "config.json").get("hidden_size")
        return int(size) if size else len(self.embed_query("a"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimension), rows in order. Raises EmbeddingError if the model cannot load."""
        vectors = self._embed(texts, is_query=False)
        # A batch leaves holes in the heap, which grows by them with each of thousands of batches.
        _trim_heap()
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return one vector (dimension,). Raises EmbeddingError if the model cannot load."""
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimension), rows in order. Raises EmbeddingError if the model cannot load."""
        return self._embed(texts, is_query=True)

    def log_probabilities(self, words: Sequence[str]) -> list[float] | None:
        """Return the natural logarithm of each word's probability, None if the tokenizer has none. Raises EmbeddingError."""
        tokenizer, _session = self._load()
        found = [tokenizer.log_probability(word) for word in words]
        known = [value for value in found if value is not None]
        return known if len(known) == len(words) else None

    def close(self) -> None:
        """Release the model and the tokenizer; running calls finish."""
        with self._lock:
            self._loaded = None

    def close_if_unused_for(self, seconds: float) -> bool:
        """Release the model if the last call began that long ago; return whether it was released."""
        with self._lock:
            if self._loaded is None or time.monotonic() - self._used_at < seconds:
                return False
            self._loaded = None
        _return_freed_memory()
        return True

    def _embed(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        tokenizer, session = self._load()
        prefix = self._prefixes.query if is_query else self._prefixes.document
        encoded = [tokenizer.encode(prefix + text[:_MAX_CHARS]) for text in texts]
        # Texts of similar length share a batch, which needs little padding.
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for rows in _batches(order, encoded):
            with nullcontext() if is_query else self._document_lock:
                vectors[rows] = self._embed_batch([encoded[i] for i in rows], session)
        return vectors if self._language_directions is None else reduce_language(vectors, self._language_directions)

    def _embed_batch(self, batch: Sequence[Sequence[int]], session: InferenceSession) -> Vectors:
        ids = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask}
        if any(entry.name == "token_type_ids" for entry in session.get_inputs()):
            feeds["token_type_ids"] = np.zeros_like(ids)
        states: Vectors = session.run([session.get_outputs()[0].name], feeds)[0]
        if self._uses_first_token:
            return normalise(states[:, 0])
        weights = mask.astype(np.float32)
        sums = np.einsum("bth,bt->bh", states, weights)
        return normalise(sums / weights.sum(axis=1, keepdims=True))

    @cached_property
    def _uses_first_token(self) -> bool:
        pooling = _read_json(_get_folder(self.model) / "1_Pooling" / "config.json")
        return bool(pooling.get("pooling_mode_cls_token", False))

    @cached_property
    def _language_directions(self) -> Vectors | None:
        path = _get_folder(self.model) / LANGUAGE_DIRECTIONS
        return np.load(path) if path.is_file() else None

    @cached_property
    def _prefixes(self) -> Prefixes:
        if self._configured_prefixes is not None:
            return self._configured_prefixes
        prompts = _read_json(_get_folder(self.model) / "config_sentence_transformers.json").get("prompts") or {}
        if not prompts and self.model not in _INSTALLED:
            log.warning(
                "The model folder %s declares no prefixes in config_sentence_transformers.json, so texts are embedded "
                "without. If the model needs prefixes, set vector_store.embedding_prefixes and run reembed --again.",
                self.model,
            )
        return Prefixes(prompts.get("query", ""), prompts.get("document", prompts.get("passage", "")))

    def _load(self) -> tuple[Tokenizer, InferenceSession]:
        with self._lock:
            if self._loaded is None:
                folder = _verify_folder(self.model)
                self._loaded = _load_tokenizer(folder), _create_session(folder, self._threads)
            self._used_at = time.monotonic()
            return self._loaded


def _batches(order: Sequence[int], encoded: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the texts of `order`, which is by increasing length, in batches of limited size."""
    batch: list[int] = []
    for number in order:
        if batch and (len(batch) == _BATCH_SIZE or (len(batch) + 1) * len(encoded[number]) > _BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def is_installed(model: str) -> bool:
    """Return True if the folder of this local model exists; its files may still be damaged."""
    return _get_path(model).is_dir()


_INSTALLED = {multilingual_e5.NAME: multilingual_e5.folder}


def _get_path(model: str) -> Path:
    return _INSTALLED[model]() if model in _INSTALLED else Path(model).expanduser().resolve()


def _get_folder(model: str) -> Path:
    folder = _get_path(model)
    if folder.is_dir():
        return folder
    if model in _INSTALLED:
        sentence = _("The local embedding model %(model)s is not installed. Install it with `make model`.")
        raise EmbeddingModelUnavailableError(sentence % {"model": model})
    sentence = _(
        "vector_store.embedding_model: %(model)s is not a folder with a model. Name a folder, or one of %(known)s."
    )
    raise EmbeddingError(sentence % {"model": model, "known": ", ".join(_INSTALLED)}, permanent=True)


def _verify_folder(model: str) -> Path:
    folder = _get_folder(model)
    if model == multilingual_e5.NAME:
        try:
            multilingual_e5.verify(folder)
        except multilingual_e5.ModelFileError as error:
            sentence = _("The local embedding model cannot be used: %(error)s. Install it again with `make model`.")
            raise EmbeddingModelUnavailableError(sentence % {"error": error}) from error
    return folder


def _read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def _load_tokenizer(folder: Path) -> Tokenizer:
    from memory.embeddings import tokenizers

    max_tokens = _read_json(folder / "sentence_bert_config.json").get("max_seq_length") or _MAX_TOKENS
    try:
        return tokenizers.load(folder, max_tokens)
    except FileNotFoundError as error:
        sentence = _("The model folder %(folder)s has neither tokenizer.json nor sentencepiece.bpe.model.")
        raise EmbeddingError(sentence % {"folder": folder}, permanent=True) from error
    except Exception as error:  # a damaged file; the libraries' errors have no common class, the caller logs this one
        raise _unusable(folder, error) from error


def _unusable(folder: Path, error: Exception) -> EmbeddingError:
    sentence = _("The model in %(folder)s cannot be used: %(error)s.") % {"folder": folder, "error": error}
    return EmbeddingError(sentence, permanent=True)


def _return_freed_memory() -> None:
    """Return freed memory to the system; glibc keeps 60 MB of a tokenizer's many small allocations otherwise."""
    gc.collect()
    _trim_heap()


def _trim_heap() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _count_cores() -> int:
    """Return the number of cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _create_session(folder: Path, threads: int | None) -> InferenceSession:
    from memory.embeddings.bert import Shape, bert_graph
    from memory.embeddings.safetensors import SafetensorsWeights

    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    # By default, onnxruntime pins each of its threads to a core. If the calling thread is on the same core, one waits
    # for the other. Measured: 8 ms per query instead of 5.
    options.intra_op_num_threads = threads or _count_cores()
    options.log_severity_level = 3
    # Idle threads sleep instead of spinning on a core that others need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    model: str | bytes
    if (folder / "model.onnx").is_file():
        model = str(folder / "model.onnx")
    elif (folder / "model.safetensors").is_file():
        # onnxruntime refuses weights behind symbolic links that leave the folder.
        weights = (folder / "model.safetensors").resolve()
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(weights.parent))
        try:
            model = bert_graph(SafetensorsWeights(weights), Shape.from_config(_read_json(folder / "config.json")))
        except (ValueError, KeyError) as error:
            raise _unusable(folder, error) from error
    else:
        sentence = _("The model folder %(folder)s has neither model.onnx nor model.safetensors.")
        raise EmbeddingError(sentence % {"folder": folder}, permanent=True)
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common class; the caller logs this one
        raise _unusable(folder, error) from error
