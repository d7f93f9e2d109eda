"""Embed through OpenAI, or an endpoint with the same API."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from memory.embeddings.remote import MAX_INPUTS, TIMEOUT_SECONDS, RemoteEmbedder
from memory.errors import EmbeddingError

if TYPE_CHECKING:
    from openai import OpenAI


class OpenAIEmbedder(RemoteEmbedder):
    """An endpoint with OpenAI's /embeddings. Queries are embedded like documents."""

    provider = "openai"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        batch_size: int = MAX_INPUTS,
    ) -> None:
        """Use an endpoint; `base_url` and `api_key` default to OPENAI_BASE_URL and OPENAI_API_KEY."""
        super().__init__(model, dimensions=dimensions, batch_size=batch_size)
        self._base_url, self._api_key = base_url, api_key
        self._lock = threading.Lock()
        self._client: OpenAI | None = None

    def ask(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order, with one request. Raises EmbeddingError."""
        import openai

        try:
            answer = self._connected().embeddings.create(
                model=self.model,
                input=list(texts),
                dimensions=openai.omit if self._dimensions is None else self._dimensions,
            )
        except openai.APIStatusError as error:
            said = error.message.removeprefix(f"Error code: {error.status_code} - ")
            raise self.refused(error.status_code, said, error.response.headers) from error
        except openai.APITimeoutError as error:
            raise self.unreachable(_("it did not answer in time")) from error
        except openai.APIConnectionError as error:
            raise self.unreachable(str(error.__cause__ or error)) from error
        except (openai.OpenAIError, ValueError) as error:  # no key, or an answer without vectors
            message = _("The embedding provider %(name)s cannot be used: %(error)s")
            facts = {"name": self.provider, "error": error}
            raise EmbeddingError(message % facts, permanent=True) from error
        return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> OpenAI:
        from openai import OpenAI

        with self._lock:
            if self._client is None:
                self._client = OpenAI(
                    base_url=self._base_url, api_key=self._api_key, timeout=TIMEOUT_SECONDS, max_retries=0
                )
            return self._client
