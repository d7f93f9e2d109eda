"""Embed through an Ollama server with its /api/embed, which truncates texts that are too long for the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from memory.embeddings.base import Prefixes
from memory.embeddings.remote import TIMEOUT_SECONDS, RemoteEmbedder
from memory.errors import EmbeddingError

if TYPE_CHECKING:
    from httpx import Client

DEFAULT_URL = "http://127.0.0.1:11434"


class OllamaEmbedder(RemoteEmbedder["Client"]):
    """A model served by Ollama, by default on this machine; a key is only needed behind a proxy."""

    provider = "ollama"

    def default_prefixes(self) -> Prefixes:
        """Return the prefixes with which nomic-embed-text was trained (see its model card)."""
        if self.model.rpartition("/")[2].startswith("nomic-embed-text"):
            return Prefixes("search_query: ", "search_document: ")
        return Prefixes()

    def connect(self) -> Client:
        """Return a new client."""
        from httpx import Client

        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        # People often configure the address of Ollama's OpenAI-compatible API.
        base_url = (self.base_url or DEFAULT_URL).rstrip("/").removesuffix("/v1")
        return Client(base_url=base_url, headers=headers, timeout=TIMEOUT_SECONDS)

    def request_vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order, with one request. Raises EmbeddingError."""
        import httpx

        payload: dict[str, object] = {"model": self.model, "input": list(texts), "truncate": True}
        if self._dimensions is not None:
            payload["dimensions"] = self._dimensions
        try:
            response = self.client().post("/api/embed", json=payload)
        except httpx.TimeoutException as error:
            raise self.connection_error(_("it did not answer in time")) from error
        except httpx.HTTPError as error:
            raise self.connection_error(str(error)) from error
        if response.is_error:
            raise self.status_error(response.status_code, response.text[:300], response.headers)
        try:
            rows: list[list[float]] = response.json()["embeddings"]
        except (ValueError, KeyError, TypeError) as error:
            message = _("%(url)s does not answer like Ollama; check vector_store.embedding_base_url.")
            raise EmbeddingError(message % {"url": self.base_url or DEFAULT_URL}, permanent=True) from error
        return rows
