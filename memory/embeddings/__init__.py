"""Embedding models: the configured one (`get_embedder`), its name (`configured_model`), and the providers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from memory.embeddings.base import Prefixes
from memory.errors import EmbeddingError

if TYPE_CHECKING:
    from memory.embeddings.base import Embedder

# Default models by provider.
PRESETS: dict[str, str] = {
    "local": "multilingual-e5-small",
    "openai": "text-embedding-3-small",
    "ollama": "nomic-embed-text",
}


@dataclass(frozen=True)
class EmbedderOptions:
    """Options of a model: `threads` for local models, `prefixes` for all, the rest for remote ones."""

    threads: int | None = None
    prefixes: Prefixes | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    dimensions: int | None = None
    batch_size: int = 64

    def remote_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of a remote embedder."""
        return {name: value for name, value in vars(self).items() if name != "threads"}


_KEEP_UNUSED = 60.0  # seconds
_embedders: dict[tuple[str, str, EmbedderOptions], Embedder] = {}
_lock = threading.Lock()


def configured_model() -> tuple[str, str]:
    """Return the configured provider and model, without loading anything."""
    conf = settings.CATO.vector_store
    return conf.embedding_provider, conf.embedding_model or PRESETS.get(conf.embedding_provider, "")


def is_installed(provider: str, model: str) -> bool:
    """Return False if this is a local model whose files do not exist on this machine."""
    from memory.embeddings import local

    return provider != "local" or local.is_installed(model)


def remote_host() -> str:
    """Return the host and port to which texts are sent for embedding, "" for the local model."""
    conf = settings.CATO.vector_store
    if conf.embedding_provider == "local":
        return ""
    from memory.embeddings import ollama, openai

    default = ollama.DEFAULT_URL if conf.embedding_provider == "ollama" else openai.default_url()
    return urlsplit(conf.embedding_base_url or default).netloc.rpartition("@")[2]  # without a password


def get_embedder(*, provider: str | None = None, model: str | None = None) -> Embedder:
    """Return the configured embedder, or that of an older index by `provider` and `model`.

    A process has one embedder per provider, model and options. Raises EmbeddingError for an unknown provider. A model
    that cannot be loaded fails at first use.
    """
    conf, configured = settings.CATO.vector_store, configured_model()
    provider, model = provider or configured[0], model or configured[1]
    # URL and key apply to the configured provider, dimensions and prefixes only to the configured model.
    is_configured_provider = provider == configured[0]
    is_configured_model = (provider, model) == configured
    key = conf.embedding_api_key if is_configured_provider else None
    options = EmbedderOptions(
        threads=conf.embedding_threads,
        base_url=conf.embedding_base_url if is_configured_provider else None,
        api_key=key.get_secret_value() if key else None,
        dimensions=conf.embedding_dimensions if is_configured_model else None,
        prefixes=_configured_prefixes() if is_configured_model else None,
        batch_size=conf.embedding_batch_size,
    )
    with _lock:
        if (provider, model, options) not in _embedders:
            _embedders[provider, model, options] = make_embedder(provider, model, options)
        return _embedders[provider, model, options]


def release_unused_models() -> int:
    """Release local models that this process has not used for some time; return their number. They load again at use."""
    from memory.embeddings.local import LocalEmbedder

    with _lock:
        local = [embedder for embedder in _embedders.values() if isinstance(embedder, LocalEmbedder)]
    return sum(embedder.close_if_unused_for(_KEEP_UNUSED) for embedder in local)


def make_embedder(provider: str, model: str, options: EmbedderOptions | None = None) -> Embedder:
    """Return a new embedder. Raises EmbeddingError for an unknown provider."""
    if provider not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        sentence = _("There is no embedding provider %(name)s; there are %(known)s.")
        raise EmbeddingError(sentence % {"name": provider, "known": known}, permanent=True)
    return PROVIDERS[provider](model, options or EmbedderOptions())


def _configured_prefixes() -> Prefixes | None:
    prefixes = settings.CATO.vector_store.embedding_prefixes
    if prefixes.query is None and prefixes.passage is None:
        return None
    return Prefixes(prefixes.query or "", prefixes.passage or "")


def _local(model: str, options: EmbedderOptions) -> Embedder:
    from memory.embeddings.local import LocalEmbedder

    return LocalEmbedder(model, options.threads, options.prefixes)


def _openai(model: str, options: EmbedderOptions) -> Embedder:
    from memory.embeddings.openai import OpenAIEmbedder

    return OpenAIEmbedder(model, **options.remote_arguments())


def _ollama(model: str, options: EmbedderOptions) -> Embedder:
    from memory.embeddings.ollama import OllamaEmbedder

    return OllamaEmbedder(model, **options.remote_arguments())


PROVIDERS: dict[str, Callable[[str, EmbedderOptions], Embedder]] = {
    "local": _local,
    "openai": _openai,
    "ollama": _ollama,
}
