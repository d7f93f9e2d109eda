"""Embed through OpenAI, or an endpoint with the same API."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from memory.embeddings.remote import TIMEOUT_SECONDS, RemoteEmbedder
from memory.errors import EmbeddingError

if TYPE_CHECKING:
    from openai import OpenAI


def default_url() -> str:
    """Return the address that is used if none is configured."""
    return os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"


class OpenAIEmbedder(RemoteEmbedder["OpenAI"]):
    """An endpoint with OpenAI's /embeddings; address and key default to OPENAI_BASE_URL and OPENAI_API_KEY."""

    provider = "openai"

    def connect(self) -> OpenAI:
        """Return a new client."""
        import_module("httpx")  # openai uses it also while another thread is still importing it
        from openai import OpenAI

        base_url = self.base_url or default_url()
        return OpenAI(base_url=base_url, api_key=self.api_key, timeout=TIMEOUT_SECONDS, max_retries=0)

    def request_vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order, with one request. Raises EmbeddingError."""
        import openai

        try:
            response = self.client().embeddings.create(
                model=self.model,
                input=list(texts),
                dimensions=openai.omit if self._dimensions is None else self._dimensions,
            )
        except openai.APIStatusError as error:
            message = error.message.removeprefix(f"Error code: {error.status_code} - ")
            raise self.status_error(error.status_code, message, error.response.headers) from error
        except openai.APITimeoutError as error:
            raise self.connection_error(_("it did not answer in time")) from error
        except openai.APIConnectionError as error:
            raise self.connection_error(str(error.__cause__ or error)) from error
        except (openai.OpenAIError, ValueError) as error:  # no key, or an answer without vectors
            message = _("The embedding provider %(name)s cannot be used: %(error)s")
            facts = {"name": self.provider, "error": error}
            raise EmbeddingError(message % facts, permanent=True) from error
        return [item.embedding for item in sorted(response.data, key=lambda item: item.index)]
