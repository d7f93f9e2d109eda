"""Common parts of remote embedders: batches within the limits of one request, and uniform errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from django.utils.translation import gettext as _

from memory.embeddings.base import Prefixes, Vectors, normalise
from memory.errors import EmbeddingDimensionError, EmbeddingError
from memory.utils.formatting import format_list

TIMEOUT_SECONDS = 60.0
# OpenAI's limits per request: 2,048 inputs, 300,000 tokens, 8,192 tokens in one input.
MAX_INPUTS = 2048
MAX_REQUEST_TOKENS = 300_000
# Ordinary text of any script has at least three bytes per token; code and numbers may have two.
BYTES_PER_TOKEN = 3
MAX_INPUT_BYTES = 8192 * 2


class Closable(Protocol):
    """A client with open connections."""

    def close(self) -> None:
        """Close the connections."""


Client = TypeVar("Client", bound=Closable)


class RemoteEmbedder(Generic[Client]):
    """Embeds texts in batches, one per request, without retries: the caller decides when to try again."""

    provider: str

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        batch_size: int = MAX_INPUTS,
        prefixes: Prefixes | None = None,
    ) -> None:
        """Request vectors of length `dimensions` if given, with up to `batch_size` texts per request."""
        self.model = model
        self.base_url, self.api_key = base_url, api_key
        self._dimensions = dimensions
        self._observed_dimension: int | None = None
        self._batch_size = batch_size
        self._prefixes = prefixes or self.default_prefixes()
        self._lock = threading.Lock()
        self._client: Client | None = None

    @property
    def dimension(self) -> int:
        """Return the length of a vector: the configured one, or that of a first vector."""
        return self._dimensions or self._observed_dimension or len(self.embed_query("a"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimension), rows in order. Raises EmbeddingError, EmbeddingDimensionError."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return self._vectors([self._prefixes.document + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """Return one vector (dimension,) to search with. Raises EmbeddingError, EmbeddingDimensionError."""
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return an array (texts, dimension) to search with. Raises EmbeddingError, EmbeddingDimensionError."""
        return self._vectors([self._prefixes.query + text for text in texts])

    def log_probabilities(self, words: Sequence[str]) -> None:
        """Return None: providers do not tell how common words are."""

    def request_vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order, with one request. Raises EmbeddingError."""
        raise NotImplementedError

    def connect(self) -> Client:
        """Return a new client."""
        raise NotImplementedError

    def default_prefixes(self) -> Prefixes:
        """Return the prefixes of the model if none are configured."""
        return Prefixes()

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def client(self) -> Client:
        """Return the client, connected at first use."""
        with self._lock:
            if self._client is None:
                self._client = self.connect()
            return self._client

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        rows: list[Sequence[float]] = []
        for batch in batches(texts, self._batch_size):
            vectors = self.request_vectors(batch)
            if len(vectors) != len(batch):
                message = _("%(name)s returned %(vectors)s vectors for %(texts)s texts.")
                facts = {"name": self.provider, "texts": len(batch), "vectors": len(vectors)}
                raise EmbeddingError(message % facts, permanent=False)
            rows += vectors
        self._check_lengths({len(row) for row in rows})
        return normalise(np.asarray(rows, dtype=np.float32))

    def _check_lengths(self, lengths: set[int]) -> None:
        expected = self._dimensions or self._observed_dimension
        if len(lengths) == 1 and expected in (None, *lengths):
            (self._observed_dimension,) = lengths
            return
        found = format_list([str(length) for length in sorted(lengths)])
        sentence = _(
            "%(model)s returned vectors of %(found)s numbers where %(expected)s was expected; "
            "check vector_store.embedding_dimensions."
        )
        raise EmbeddingDimensionError(
            sentence % {"model": self.model, "found": found, "expected": expected or _("one length")}
        )

    def connection_error(self, reason: str) -> EmbeddingError:
        """Return the error for an endpoint that did not answer."""
        sentence = _("The embedding provider %(name)s cannot be reached: %(reason)s.")
        return EmbeddingError(sentence % {"name": self.provider, "reason": reason}, permanent=False)

    def status_error(self, status: int, message: str, headers: Mapping[str, str]) -> EmbeddingError:
        """Return the error for an HTTP status: temporary for time-outs, limits and server errors, else permanent."""
        sentence = _("The embedding provider %(name)s answered with status %(status)s: %(said)s")
        return EmbeddingError(
            sentence % {"name": self.provider, "status": status, "said": message},
            permanent=status < 500 and status not in (408, 409, 425, 429),
            retry_after=_seconds(headers.get("retry-after")),
            is_about_input=status in (400, 413, 422),
        )


def batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    """Yield lists of texts, in order, for one request each; long texts are cut, empty ones become a blank."""
    batch: list[str] = []
    tokens = 0
    for text in texts:
        # A character that is cut in two is dropped.
        data = text.encode("utf-8", "ignore")[:MAX_INPUT_BYTES]
        cost = len(data) // BYTES_PER_TOKEN + 1
        if batch and (len(batch) >= min(size, MAX_INPUTS) or tokens + cost > MAX_REQUEST_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(data.decode("utf-8", "ignore") or " ")
        tokens += cost
    if batch:
        yield batch


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After header; the rare form with a date counts as missing."""
    try:
        return max(float(retry_after), 0.0) if retry_after else None
    except ValueError:
        return None
