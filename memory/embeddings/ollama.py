"""Embed through an Ollama server with its /api/embed, which truncates texts that are too long for the model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from memory.embeddings.remote import MAX_INPUTS, TIMEOUT_SECONDS, RemoteEmbedder
from memory.errors import EmbeddingError

if TYPE_CHECKING:
    from httpx import Client

DEFAULT_URL = "http://127.0.0.1:11434"


class OllamaEmbedder(RemoteEmbedder):
    """A model served by Ollama."""

    provider = "ollama"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        batch_size: int = MAX_INPUTS,
    ) -> None:
        """Use Ollama at `base_url`, by default on this machine; a key is only needed behind a proxy."""
        super().__init__(model, dimensions=dimensions, batch_size=batch_size)
        if model.rpartition("/")[2].startswith("nomic-embed-text"):
            # It was trained with these prefixes (see its model card).
            self.document_prefix, self.query_prefix = "search_document: ", "search_query: "
        # People often configure the address of Ollama's OpenAI-compatible API.
        self._base_url = (base_url or DEFAULT_URL).rstrip("/").removesuffix("/v1")
        self._api_key = api_key
        self._lock = threading.Lock()
        self._client: Client | None = None

    def ask(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order, with one request. Raises EmbeddingError."""
        import httpx

        question: dict[str, object] = {"model": self.model, "input": list(texts), "truncate": True}
        if self._dimensions is not None:
            question["dimensions"] = self._dimensions
        try:
            response = self._connected().post("/api/embed", json=question)
        except httpx.TimeoutException as error:
            raise self.unreachable(_("it did not answer in time")) from error
        except httpx.HTTPError as error:
            raise self.unreachable(str(error)) from error
        if response.is_error:
            raise self.refused(response.status_code, response.text[:300], response.headers)
        try:
            rows: list[list[float]] = response.json()["embeddings"]
        except (ValueError, KeyError, TypeError) as error:
            message = _("%(url)s does not answer like Ollama; look at vector_store.embedding_base_url.")
            raise EmbeddingError(message % {"url": self._base_url}, permanent=True) from error
        return rows

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Client:
        from httpx import Client

        with self._lock:
            if self._client is None:
                headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
                self._client = Client(base_url=self._base_url, headers=headers, timeout=TIMEOUT_SECONDS)
            return self._client
