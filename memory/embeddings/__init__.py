"""Which embedding models there are, and the one in use: `get_embedder` gives it, `configured_model` only its name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from memory.errors import EmbeddingError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from memory.embeddings.base import Embedder

# What each provider embeds with where no model is named.
PRESETS: dict[str, str] = {
    "local": "all-MiniLM-L6-v2",
    "openai": "text-embedding-3-small",
    "ollama": "nomic-embed-text",
}


@dataclass(frozen=True)
class EmbedderOptions:
    """How to reach or run a model: `threads` is for local ones, the rest for remote ones."""

    threads: int | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    dimensions: int | None = None
    batch_size: int = 64

    def remote(self) -> dict[str, Any]:
        """What an endpoint's embedder takes."""
        return {name: value for name, value in asdict(self).items() if name != "threads"}


_in_use: dict[tuple[str, str, EmbedderOptions], Embedder] = {}
_lock = threading.Lock()


class EmbeddingSettings(Protocol):
    """The keys of the vector_store section that matter here."""

    @property
    def embedding_provider(self) -> str: ...
    @property
    def embedding_model(self) -> str | None: ...
    @property
    def embedding_base_url(self) -> str | None: ...
    @property
    def embedding_api_key(self) -> SecretStr | None: ...
    @property
    def embedding_dimensions(self) -> int | None: ...
    @property
    def embedding_batch_size(self) -> int: ...
    @property
    def embedding_threads(self) -> int | None: ...


def configured_model(vector_store: EmbeddingSettings) -> tuple[str, str]:
    """Provider and model that are configured; loads nothing."""
    provider = vector_store.embedding_provider
    return provider, vector_store.embedding_model or PRESETS.get(provider, "")


def remote_host(vector_store: EmbeddingSettings) -> str:
    """The host to which texts are sent to be embedded; "" for the local model, which sends nothing."""
    if vector_store.embedding_provider == "local":
        return ""
    return urlsplit(vector_store.embedding_base_url or "").netloc or vector_store.embedding_provider


def get_embedder(vector_store: EmbeddingSettings, *, provider: str | None = None, model: str | None = None) -> Embedder:
    """The configured embedder, or that of an older index by `provider` and `model`; one of each per process.

    Raises EmbeddingError where there is no such provider; a model that cannot load fails at first use.
    """
    own = configured_model(vector_store)
    provider, model = provider or own[0], model or own[1]
    # Address and key belong to the configured provider, dimensions only to the configured model.
    same = provider == own[0]
    key = vector_store.embedding_api_key if same else None
    options = EmbedderOptions(
        threads=vector_store.embedding_threads,
        base_url=vector_store.embedding_base_url if same else None,
        api_key=key.get_secret_value() if key else None,
        dimensions=vector_store.embedding_dimensions if (provider, model) == own else None,
        batch_size=vector_store.embedding_batch_size,
    )
    with _lock:
        if (provider, model, options) not in _in_use:
            _in_use[provider, model, options] = make_embedder(provider, model, options)
        return _in_use[provider, model, options]


def unload_models() -> None:
    """Free what this process's models hold, some 100 MB for the local one; the next use loads it again."""
    with _lock:
        embedders = list(_in_use.values())
    for embedder in embedders:
        embedder.close()


def make_embedder(provider: str, model: str, options: EmbedderOptions | None = None) -> Embedder:
    """A new embedder. Raises EmbeddingError where there is no such provider."""
    if provider not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        sentence = _("There is no embedding provider %(name)s; there are %(known)s.")
        raise EmbeddingError(sentence % {"name": provider, "known": known}, permanent=True)
    return PROVIDERS[provider](model, options or EmbedderOptions())


def _local(model: str, options: EmbedderOptions) -> Embedder:
    from memory.embeddings.local import LocalEmbedder

    return LocalEmbedder(model, options.threads)


def _openai(model: str, options: EmbedderOptions) -> Embedder:
    from memory.embeddings.openai import OpenAIEmbedder

    return OpenAIEmbedder(model, **options.remote())


def _ollama(model: str, options: EmbedderOptions) -> Embedder:
    from memory.embeddings.ollama import OllamaEmbedder

    return OllamaEmbedder(model, **options.remote())


PROVIDERS: dict[str, Callable[[str, EmbedderOptions], Embedder]] = {
    "local": _local,
    "openai": _openai,
    "ollama": _ollama,
}
