"""Embeds through an Ollama server, by its own /api/embed, which cuts texts too long for the model."""

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
    """A model that Ollama serves."""

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
        """`base_url` None means Ollama on this machine; a key is only wanted behind a proxy."""
        super().__init__(model, dimensions=dimensions, batch_size=batch_size)
        if model.rpartition("/")[2].startswith("nomic-embed-text"):
            # It was trained with these words before each text (its model card).
            self.document_prefix, self.query_prefix = "search_document: ", "search_query: "
        # Ollama's OpenAI-compatible address is the one people have at hand.
        self._base_url = (base_url or DEFAULT_URL).rstrip("/").removesuffix("/v1")
        self._api_key = api_key
        self._lock = threading.Lock()
        self._client: Client | None = None

    def ask(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One request: a vector for each text, in order. Raises EmbeddingError."""
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
