"""Chroma's own client, to compare Cato with it and to read what is really stored."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from chromadb.api import ClientAPI


def chroma_client(url: str) -> ClientAPI:
    """Return a client of the server at this address."""
    import chromadb
    from chromadb.config import Settings

    parts = urlsplit(url)
    return chromadb.HttpClient(parts.hostname or "", parts.port or 0, settings=Settings(anonymized_telemetry=False))
