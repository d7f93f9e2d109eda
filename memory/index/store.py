"""Client of the vector store; the only module that imports chromadb. It stores vectors and filter fields, no text."""

from __future__ import annotations

import functools
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast
from urllib.parse import urlsplit

import numpy as np
from django.conf import settings
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from memory.errors import STORE_DISABLED, VectorStoreDisabledError, VectorStoreRequestError, VectorStoreUnavailableError
from memory.index.vectors import ScoredId
from memory.utils.batching import batched

if TYPE_CHECKING:
    import httpx
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.models.Collection import Collection
    from chromadb.api.types import GetResult

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
_client: ClientAPI | None = None
_collections: dict[str, Collection] = {}

# Seconds. REQUEST_TIMEOUT is long enough for a batch of 1,000 large vectors and detects a server that hangs.
REQUEST_TIMEOUT = 20.0
CONNECT_TIMEOUT = 2.0
PING_TIMEOUT = 1.0
# Maximum ids per request, and collections per page of the list.
_MAX_IDS = 1000
_MAX_COLLECTIONS = 200
# Metadata key of a collection that is being filled: the time at which it was last marked as in use.
_TOUCHED = "touched"
# HTTP statuses that mean that the request itself is wrong.
_REQUEST_ERROR_STATUSES = (400, 409, 413, 422)


class CollectionMissingError(VectorStoreUnavailableError):
    """The server answers, but the collection does not exist because its files were removed."""

    def __init__(self, collection: str) -> None:
        super().__init__(_("The index %(name)s is missing and is being built again.") % {"name": collection})
        self.collection = collection


def map_chroma_errors(call: Callable[P, R]) -> Callable[P, R]:
    """Convert errors of the client and the connection to VectorStoreUnavailableError.

    A refused request raises VectorStoreRequestError. A disabled store raises VectorStoreDisabledError.
    """

    @functools.wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if not settings.CATO.vector_store.enabled:
            raise VectorStoreDisabledError(_(STORE_DISABLED))
        try:
            return call(*args, **kwargs)
        except VectorStoreUnavailableError:
            raise
        except Exception as error:  # chromadb raises a bare Exception for an unreadable response
            if (converted := _convert_error(error)) is None:
                raise
            raise converted from error

    return wrapped


def _convert_error(error: Exception) -> VectorStoreUnavailableError | None:
    """Return the corresponding error of `memory.errors`, or None if the error does not come from the client."""
    import httpx
    from chromadb.errors import ChromaError

    name = {"error": type(error).__name__}
    refused = isinstance(error, ChromaError) and error.code() in _REQUEST_ERROR_STATUSES
    # chromadb raises ValueError for arguments that it does not send. A response that is not JSON comes from a proxy.
    if refused or (isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError)):
        return VectorStoreRequestError(_("The vector store refused the request (%(error)s).") % name)
    # chromadb raises a bare Exception for the error page of a proxy.
    if isinstance(error, httpx.HTTPError | ChromaError | ValueError | OSError) or type(error) is Exception:
        return VectorStoreUnavailableError(_("The vector store does not answer (%(error)s).") % name)
    return None


@map_chroma_errors
def ping_vector_store() -> None:
    """Check that the server answers within 1 s. Raises VectorStoreUnavailableError and VectorStoreDisabledError."""
    # A direct request: the client's timeout allows for a batch, which is too long for a page.
    url = settings.CATO.chroma_url or ""
    _ping_client().get(f"{url.rstrip('/')}/api/v2/heartbeat", headers=_headers()).raise_for_status()


@functools.cache
def _ping_client() -> httpx.Client:
    """Return a client that is kept, since a new one loads certificates, which takes longer than the request."""
    import httpx

    return httpx.Client(timeout=PING_TIMEOUT)


@map_chroma_errors
def connect_vector_store() -> None:
    """Load the client and connect it, which takes most of a second. Raises VectorStoreUnavailableError if it cannot."""
    _get_client()


@map_chroma_errors
def upsert(
    collection: str,
    ids: Sequence[str],
    vectors: NDArray[np.float32],
    fields: Sequence[dict[str, Any]],
) -> None:
    """Store `vectors` (n, dimension) under `ids` with their filter fields; create the collection if it is missing."""
    from chromadb.errors import NotFoundError

    for fresh in (False, True):
        try:
            _collection(collection, create=True, fresh=fresh).upsert(
                ids=list(ids), embeddings=vectors, metadatas=list(fields)
            )
            return
        except NotFoundError:  # the cached handle refers to a collection whose files were removed
            if fresh:
                raise


@map_chroma_errors
def query(
    collection: str, vector: NDArray[np.float32], count: int, where: dict[str, Any] | None = None
) -> list[ScoredId]:
    """Return the ids and similarities (1 - cosine distance) of the `count` nearest vectors, nearest first.

    `where` is a Chroma filter from `memory.filters`; None applies no filter. Raises CollectionMissingError.
    """
    from chromadb.errors import NotFoundError

    try:
        found = _collection(collection).query(
            query_embeddings=cast(Any, [vector]), n_results=count, where=where, include=["distances"]
        )
    except NotFoundError as error:
        _collections.pop(collection, None)
        raise CollectionMissingError(collection) from error
    distances = (found["distances"] or [[]])[0]
    return [(id, 1.0 - distance) for id, distance in zip(found["ids"][0], distances, strict=True)]


@map_chroma_errors
def similarities(vector: NDArray[np.float32], collection: str, ids: Sequence[str]) -> list[ScoredId]:
    """Return those of `ids` that exist with their cosine similarity to `vector`, unordered."""
    found = vectors(collection, ids)
    if not found:
        return []
    matrix = np.stack(list(found.values()))
    cosines = matrix @ vector / np.maximum(np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector), 1e-12)
    return list(zip(found, cosines.tolist(), strict=True))


@map_chroma_errors
def vectors(collection: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the existing vectors of `ids`, by id."""
    vectors_by_id: dict[str, NDArray[np.float32]] = {}
    for batch in batched(dict.fromkeys(ids), _MAX_IDS):
        found = _call(collection, partial(_vectors, batch), missing=None)
        if found is not None and found["ids"]:
            vectors_by_id |= zip(found["ids"], np.asarray(found["embeddings"], dtype=np.float32), strict=True)
    return vectors_by_id


@map_chroma_errors
def delete(collection: str, ids: Iterable[str]) -> None:
    """Delete the vectors with these ids; ignore missing ones."""
    # Chroma refuses a request with a duplicate id.
    for batch in batched(dict.fromkeys(ids), _MAX_IDS):
        _call(collection, partial(_delete, batch), missing=None)


@map_chroma_errors
def existing_ids(collection: str, ids: Iterable[str]) -> set[str]:
    """Return those of `ids` that the collection contains."""
    existing: set[str] = set()
    for batch in batched(dict.fromkeys(ids), _MAX_IDS):
        existing |= _call(collection, partial(_existing, batch), missing=set())
    return existing


@map_chroma_errors
def stored_spaces(collection: str, ids: Iterable[str]) -> dict[str, str]:
    """Return the space that is stored with each of `ids` that the collection contains, "" without one."""
    spaces: dict[str, str] = {}
    for batch in batched(dict.fromkeys(ids), _MAX_IDS):
        spaces |= _call(collection, partial(_stored_spaces, batch), missing=dict[str, str]())
    return spaces


@map_chroma_errors
def count(collection: str) -> int:
    """Return the number of vectors in the collection, 0 if it is missing."""
    return _call(collection, lambda handle: handle.count(), missing=0)


@map_chroma_errors
def list_ids(collection: str, offset: int, limit: int) -> list[str]:
    """Return up to `limit` vector ids from `offset`, in insertion order; empty if the collection is missing."""
    return _call(collection, lambda handle: list(handle.get(limit=limit, offset=offset, include=[])["ids"]), missing=[])


@map_chroma_errors
def copy(source: str, target: str, ids: Sequence[str]) -> set[str]:
    """Copy these vectors with their filter fields to another collection; return the ids that the source had."""
    if not ids:
        return set()
    unique_ids = list(dict.fromkeys(ids))
    found = _call(source, lambda handle: handle.get(ids=unique_ids, include=["embeddings", "metadatas"]), missing=None)
    if found is None or not found["ids"]:
        return set()
    vectors = np.asarray(found["embeddings"], dtype=np.float32)
    upsert(target, found["ids"], vectors, cast(Any, found["metadatas"]))
    return set(found["ids"])


@map_chroma_errors
def recreate_collection(collection: str, *, unless_touched_within: float) -> bool:
    """Create an empty collection and replace any abandoned collection of the same name.

    Return False if the existing collection was marked as in use within the last `unless_touched_within` seconds.
    """
    from chromadb.errors import NotFoundError

    _collections.pop(collection, None)
    try:
        metadata = _get_client().get_collection(collection, embedding_function=None).metadata or {}
        if time.time() - float(metadata.get(_TOUCHED, 0.0)) < unless_touched_within:
            return False
        _get_client().delete_collection(collection)
    except NotFoundError:
        pass  # no previous attempt exists
    _collections[collection] = _get_client().create_collection(
        collection, embedding_function=None, configuration=_configuration(), metadata={_TOUCHED: time.time()}
    )
    return True


@map_chroma_errors
def mark_in_use(collection: str) -> None:
    """Store the current time on a collection that is being filled. Raises CollectionMissingError."""
    if not _call(collection, _touch, missing=False):
        raise CollectionMissingError(collection)


@map_chroma_errors
def collections(prefix: str, *, untouched_for: float) -> list[str]:
    """Return the collections with this name prefix that were not marked as in use for `untouched_for` seconds."""
    names: list[str] = []
    for offset in itertools.count(step=_MAX_COLLECTIONS):
        page = _get_client().list_collections(limit=_MAX_COLLECTIONS, offset=offset)
        names += [
            handle.name
            for handle in page
            if handle.name.startswith(prefix)
            and time.time() - float((handle.metadata or {}).get(_TOUCHED, 0.0)) >= untouched_for
        ]
        if len(page) < _MAX_COLLECTIONS:
            return names
    raise AssertionError("unreachable")


def request_file_cleanup() -> Path | None:
    """Create the file that tells the supervisor to clean Chroma's directory, and return its path.

    Return None if Chroma's files are not on this machine. An external server keeps dropped files until it is cleaned.
    """
    directory: Path = settings.CATO.vector_store.path
    if not directory.is_dir():
        return None
    marker = directory.with_name(f"{directory.name}.clean")
    marker.touch(mode=0o600)
    return marker


@map_chroma_errors
def drop(collection: str) -> None:
    """Drop the collection; ignore a missing one."""
    from chromadb.errors import NotFoundError

    _collections.pop(collection, None)
    try:
        _get_client().delete_collection(collection)
    except NotFoundError:
        return


def _call(name: str, operation: Callable[[Collection], R], *, missing: R) -> R:
    """Return the result of `operation` on the collection, or `missing` if the collection does not exist."""
    from chromadb.errors import NotFoundError

    for fresh in (False, True):
        try:
            return operation(_collection(name, fresh=fresh))
        except NotFoundError:  # the cached handle may be stale while a new collection has the same name
            _collections.pop(name, None)
    return missing


def _vectors(ids: list[str], collection: Collection) -> GetResult:
    return collection.get(ids=ids, include=["embeddings"])


def _delete(ids: list[str], collection: Collection) -> None:
    collection.delete(ids=ids)


def _existing(ids: list[str], collection: Collection) -> set[str]:
    return set(collection.get(ids=ids, include=[])["ids"])


def _stored_spaces(ids: list[str], collection: Collection) -> dict[str, str]:
    rows = collection.get(ids=ids, include=["metadatas"])
    return {
        id: str((fields or {}).get("space", ""))
        for id, fields in zip(rows["ids"], rows["metadatas"] or [], strict=True)
    }


def _touch(collection: Collection) -> bool:
    collection.modify(metadata={_TOUCHED: time.time()})
    return True


def _collection(name: str, *, create: bool = False, fresh: bool = False) -> Collection:
    # Other threads forget handles meanwhile, so the dictionary is read once.
    handle = None if fresh else _collections.get(name)
    if handle is None and create:
        handle = _get_client().get_or_create_collection(name, embedding_function=None, configuration=_configuration())
    elif handle is None:
        handle = _get_client().get_collection(name, embedding_function=None)
    _collections[name] = handle
    return handle


def _configuration() -> CreateCollectionConfiguration:
    hnsw = settings.CATO.vector_store.hnsw
    return {
        "hnsw": {
            "space": "cosine",  # the default is l2
            "max_neighbors": hnsw.M,
            "ef_construction": hnsw.ef_construction,
            "ef_search": hnsw.ef_search,
        }
    }


def _get_client() -> ClientAPI:
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
        raise VectorStoreUnavailableError(_("No vector store is running: start Cato with serve, or set CHROMA_URL."))
    parts = urlsplit(url)
    try:
        client = chromadb.HttpClient(
            host=parts.hostname or "127.0.0.1",
            port=parts.port or (443 if parts.scheme == "https" else 8000),
            ssl=parts.scheme == "https",
            headers=_headers(),
            settings=Settings(anonymized_telemetry=False),
            tenant=settings.CATO.chroma_tenant,
            database=settings.CATO.chroma_database,
        )
    except ValueError as error:  # chromadb raises ValueError if the server cannot be reached
        raise VectorStoreUnavailableError(
            _("The vector store does not answer (%(error)s).") % {"error": "ConnectError"}
        ) from error
    # The client has no timeout by default and no setting for one. A server that hangs would block the threads.
    client._server._session.timeout = httpx.Timeout(REQUEST_TIMEOUT, connect=CONNECT_TIMEOUT)  # type: ignore[attr-defined]
    return client
