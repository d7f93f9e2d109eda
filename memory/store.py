"""The vector store: the only home of chromadb. Vectors and filter fields go in, nothing that can be read as text."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memory.errors import StoreDisabled, StoreDown

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
_client: ClientAPI | None = None
_collections: dict[str, Collection] = {}

# Seconds. Long enough for a batch of 1,000 large vectors, short enough that a server which hangs is noticed.
REQUEST_TIMEOUT = 20.0
CONNECT_TIMEOUT = 2.0
PING_TIMEOUT = 1.0


class CollectionMissing(StoreDown):
    """The server is there, but not this collection: its files were removed."""

    def __init__(self, collection: str) -> None:
        super().__init__(f"The index {collection} is missing and is being built again.")
        self.collection = collection


def speaking_to_chroma(call: Callable[P, R]) -> Callable[P, R]:
    """Make whatever goes wrong between us and the server a StoreDown that says so."""

    @functools.wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if not settings.CATO.vector_store.enabled:
            raise StoreDisabled("The vector store is disabled (vector_store.enabled).")
        import httpx
        from chromadb.errors import ChromaError

        try:
            return call(*args, **kwargs)
        except (httpx.HTTPError, ChromaError, ValueError, OSError) as error:
            # chromadb raises ValueError where it cannot connect at first, and keeps that in no type of its own.
            raise StoreDown(f"The vector store does not answer ({type(error).__name__}).") from error

    return wrapped


@speaking_to_chroma
def ping() -> None:
    """Return if the server answers at once. Raises StoreDown, StoreDisabled."""
    import httpx

    # Not by the client: a page that asks must not wait as long as a batch may take.
    url = settings.CATO.chroma_url or ""
    httpx.get(f"{url.rstrip('/')}/api/v2/heartbeat", headers=_headers(), timeout=PING_TIMEOUT).raise_for_status()


@speaking_to_chroma
def upsert(
    collection: str,
    ids: Sequence[str],
    vectors: NDArray[np.float32],
    fields: Sequence[dict[str, Any]],
) -> None:
    """Put `vectors` (n, dimension) under `ids` with their filter fields; makes the collection where it is missing."""
    from chromadb.errors import NotFoundError

    for fresh in (False, True):
        try:
            _collection(collection, create=True, fresh=fresh).upsert(
                ids=list(ids), embeddings=vectors, metadatas=list(fields)
            )
            return
        except NotFoundError:  # the cached handle is of a collection whose files were removed
            if fresh:
                raise


@speaking_to_chroma
def query(
    collection: str, vector: NDArray[np.float32], count: int, where: dict[str, Any] | None = None
) -> dict[str, float]:
    """Of the `count` nearest vectors each exchange (its id in hexadecimal) with its best similarity, nearest first.

    Similarity is 1 - cosine distance. Raises CollectionMissing.

    `where` filters in the index, as memory.filters says it; None takes all.
    """
    from chromadb.errors import NotFoundError

    try:
        found = _collection(collection).query(
            query_embeddings=cast(Any, [vector]), n_results=count, where=where, include=["distances"]
        )
    except NotFoundError as error:
        _collections.pop(collection, None)
        raise CollectionMissing(collection) from error
    best: dict[str, float] = {}
    for vector_id, distance in zip(found["ids"][0], (found["distances"] or [[]])[0], strict=True):
        best.setdefault(vector_id[:36].replace("-", ""), 1.0 - float(distance))
    return best


@speaking_to_chroma
def delete(collection: str, ids: Iterable[str]) -> None:
    """Remove the vectors with these ids; those that are not there are no error."""
    from chromadb.errors import NotFoundError

    wanted = list(ids)
    try:
        if wanted:
            _collection(collection).delete(ids=wanted)
    except NotFoundError:
        _collections.pop(collection, None)


@speaking_to_chroma
def present(collection: str, ids: Iterable[str]) -> set[str]:
    """Which of `ids` the collection holds."""
    from chromadb.errors import NotFoundError

    wanted = list(ids)
    try:
        return set(_collection(collection).get(ids=wanted, include=[])["ids"]) if wanted else set()
    except NotFoundError:
        _collections.pop(collection, None)
        return set()


@speaking_to_chroma
def count(collection: str) -> int:
    """How many vectors the collection holds; 0 where it is missing."""
    from chromadb.errors import NotFoundError

    try:
        return _collection(collection).count()
    except NotFoundError:
        _collections.pop(collection, None)
        return 0


@speaking_to_chroma
def drop(collection: str) -> None:
    """Remove the whole collection; one that is missing is no error."""
    from chromadb.errors import NotFoundError

    _collections.pop(collection, None)
    try:
        _connected().delete_collection(collection)
    except NotFoundError:
        return


def _collection(name: str, *, create: bool = False, fresh: bool = False) -> Collection:
    if fresh:
        _collections.pop(name, None)
    if name not in _collections:
        if create:
            hnsw = settings.CATO.vector_store.hnsw
            _collections[name] = _connected().get_or_create_collection(
                name,
                embedding_function=None,
                configuration={
                    "hnsw": {
                        "space": "cosine",  # the default is l2
                        "max_neighbors": hnsw.M,
                        "ef_construction": hnsw.ef_construction,
                        "ef_search": hnsw.ef_search,
                    }
                },
            )
        else:
            _collections[name] = _connected().get_collection(name, embedding_function=None)
    return _collections[name]


def _connected() -> ClientAPI:
    global _client
    with _lock:
        if _client is None:
            _client = _connect()
        return _client


def _headers() -> dict[str, str] | None:
    token = settings.CATO.chroma_token
    return {"x-chroma-token": token.get_secret_value()} if token else None


def _connect() -> ClientAPI:
    import chromadb
    import httpx
    from chromadb.config import Settings

    url = settings.CATO.chroma_url
    if url is None:
        raise StoreDown("No vector store is running: start Cato with serve, or set CHROMA_URL.")
    parts = urlsplit(url)
    client = chromadb.HttpClient(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or (443 if parts.scheme == "https" else 8000),
        ssl=parts.scheme == "https",
        headers=_headers(),
        settings=Settings(anonymized_telemetry=False),
        tenant=settings.CATO.chroma_tenant,
        database=settings.CATO.chroma_database,
    )
    # The client waits for ever by default and offers no setting; a server that hangs would hold our threads.
    client._server._session.timeout = httpx.Timeout(REQUEST_TIMEOUT, connect=CONNECT_TIMEOUT)  # type: ignore[attr-defined]
    return client
