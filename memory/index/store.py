"""The vector store: the only home of chromadb. Vectors and filter fields go in, nothing that can be read as text."""

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

from memory.errors import DISABLED, VectorStoreDisabledError, VectorStoreRequestError, VectorStoreUnavailableError
from memory.index.vectors import ScoredId
from memory.utils.batching import batched

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.models.Collection import Collection
    from chromadb.api.types import GetResult

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.Lock()
_client: ClientAPI | None = None
_collections: dict[str, Collection] = {}

# Seconds. Long enough for a batch of 1,000 large vectors, short enough that a server which hangs is noticed.
REQUEST_TIMEOUT = 20.0
CONNECT_TIMEOUT = 2.0
PING_TIMEOUT = 1.0
# Ids of one request, and collections of one list.
_MOST_IDS = 1000
_MOST_COLLECTIONS = 200
_TOUCHED = "touched"
# HTTP statuses that concern the request itself.
_REFUSALS = (400, 409, 413, 422)


class CollectionMissingError(VectorStoreUnavailableError):
    """The server is there, but not this collection: its files were removed."""

    def __init__(self, collection: str) -> None:
        super().__init__(_("The index %(name)s is missing and is being built again.") % {"name": collection})
        self.collection = collection


def map_chroma_errors(call: Callable[P, R]) -> Callable[P, R]:
    """Raise VectorStoreUnavailableError for whatever goes wrong between us and the server, VectorStoreRequestError for a request it refuses."""

    @functools.wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if not settings.CATO.vector_store.enabled:
            raise VectorStoreDisabledError(_(DISABLED))
        try:
            return call(*args, **kwargs)
        except VectorStoreUnavailableError:
            raise
        except Exception as error:  # chromadb raises a bare one for an answer that it cannot read
            if (failure := _failure_of(error)) is None:
                raise
            raise failure from error

    return wrapped


def _failure_of(error: Exception) -> VectorStoreUnavailableError | None:
    """The error of memory that says what this error of the client means; None if it is no error of the client."""
    import httpx
    from chromadb.errors import ChromaError

    name = {"error": type(error).__name__}
    refused = isinstance(error, ChromaError) and error.code() in _REFUSALS
    # chromadb raises ValueError for arguments that it does not send; an answer that is no JSON comes from a server in
    # between.
    if refused or (isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError)):
        return VectorStoreRequestError(_("The vector store refused the request (%(error)s).") % name)
    # For an error page of a server in between chromadb raises a bare Exception.
    if isinstance(error, httpx.HTTPError | ChromaError | ValueError | OSError) or type(error) is Exception:
        return VectorStoreUnavailableError(_("The vector store does not answer (%(error)s).") % name)
    return None


@map_chroma_errors
def ping() -> None:
    """Return if the server answers at once. Raises VectorStoreUnavailableError, VectorStoreDisabledError."""
    import httpx

    # Not by the client: a page that asks must not wait as long as a batch may take.
    url = settings.CATO.chroma_url or ""
    httpx.get(f"{url.rstrip('/')}/api/v2/heartbeat", headers=_headers(), timeout=PING_TIMEOUT).raise_for_status()


@map_chroma_errors
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


@map_chroma_errors
def query(
    collection: str, vector: NDArray[np.float32], count: int, where: dict[str, Any] | None = None
) -> list[ScoredId]:
    """The ids of the `count` nearest vectors with how near they are (1 - cosine distance), nearest first.

    `where` filters in the index, as memory.filters says it; None takes all. Raises CollectionMissingError.
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
    """Of the vectors with these ids those that are there, with how near they are to `vector`, in no order."""
    found = vectors(collection, ids)
    if not found:
        return []
    held = np.stack(list(found.values()))
    cosines = held @ vector / np.maximum(np.linalg.norm(held, axis=1) * np.linalg.norm(vector), 1e-12)
    return list(zip(found, cosines.tolist(), strict=True))


@map_chroma_errors
def vectors(collection: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Of the vectors with these ids those that are there, by their ids."""
    held: dict[str, NDArray[np.float32]] = {}
    for some in batched(dict.fromkeys(ids), _MOST_IDS):
        found = _asking(collection, partial(_vectors, some), missing=None)
        if found is not None and found["ids"]:
            held |= zip(found["ids"], np.asarray(found["embeddings"], dtype=np.float32), strict=True)
    return held


@map_chroma_errors
def delete(collection: str, ids: Iterable[str]) -> None:
    """Remove the vectors with these ids; those that are not there are no error."""
    # Chroma refuses a request in which an id stands twice, here and below.
    for some in batched(dict.fromkeys(ids), _MOST_IDS):
        _asking(collection, partial(_delete, some), missing=None)


@map_chroma_errors
def existing_ids(collection: str, ids: Iterable[str]) -> set[str]:
    """Which of `ids` the collection holds."""
    held: set[str] = set()
    for some in batched(dict.fromkeys(ids), _MOST_IDS):
        held |= _asking(collection, partial(_present, some), missing=set())
    return held


@map_chroma_errors
def count(collection: str) -> int:
    """How many vectors the collection holds; 0 where it is missing."""
    return _asking(collection, lambda found: found.count(), missing=0)


@map_chroma_errors
def list_ids(collection: str, offset: int, limit: int) -> list[str]:
    """The ids of `limit` vectors from `offset` on, in the order in which they came; none where it is missing."""
    return _asking(collection, lambda found: list(found.get(limit=limit, offset=offset, include=[])["ids"]), missing=[])


@map_chroma_errors
def copy(source: str, target: str, ids: Sequence[str]) -> set[str]:
    """Copy these vectors with their filter fields into another collection; returns those that were there to copy."""
    if not ids:
        return set()
    wanted = list(dict.fromkeys(ids))
    found = _asking(source, lambda found: found.get(ids=wanted, include=["embeddings", "metadatas"]), missing=None)
    if found is None or not found["ids"]:
        return set()
    vectors = np.asarray(found["embeddings"], dtype=np.float32)
    upsert(target, found["ids"], vectors, cast(Any, found["metadatas"]))
    return set(found["ids"])


@map_chroma_errors
def recreate_collection(collection: str, *, unless_touched_within: float) -> bool:
    """Make an empty collection, in place of one of that name which nobody has touched for so many seconds.

    False where somebody is just filling it.
    """
    from chromadb.errors import NotFoundError

    _collections.pop(collection, None)
    try:
        marks = _connected().get_collection(collection, embedding_function=None).metadata or {}
        if time.time() - float(marks.get(_TOUCHED, 0.0)) < unless_touched_within:
            return False
        _connected().delete_collection(collection)
    except NotFoundError:
        pass  # nobody has begun
    _collections[collection] = _connected().create_collection(
        collection, embedding_function=None, configuration=_configuration(), metadata={_TOUCHED: time.time()}
    )
    return True


@map_chroma_errors
def mark_in_use(collection: str) -> None:
    """Note on a collection that is being filled that somebody still is at it. Raises CollectionMissingError."""
    if not _asking(collection, _touch, missing=False):
        raise CollectionMissingError(collection)


@map_chroma_errors
def collections(prefix: str, *, untouched_for: float) -> list[str]:
    """The names of the collections that begin with `prefix` and that nobody has been filling for so many seconds."""
    names: list[str] = []
    for offset in itertools.count(step=_MOST_COLLECTIONS):
        some = _connected().list_collections(limit=_MOST_COLLECTIONS, offset=offset)
        names += [
            one.name
            for one in some
            if one.name.startswith(prefix)
            and time.time() - float((one.metadata or {}).get(_TOUCHED, 0.0)) >= untouched_for
        ]
        if len(some) < _MOST_COLLECTIONS:
            return names
    raise AssertionError("a list without an end")


def request_file_cleanup() -> Path | None:
    """Leave a note for whoever runs Chroma over files of this machine to clean them; returns the note's path.

    None where the files are not here: then a server that is not ours keeps what was dropped until it is cleaned.
    """
    files: Path = settings.CATO.vector_store.path
    if not files.is_dir():
        return None
    note = files.with_name(f"{files.name}.clean")
    note.touch(mode=0o600)
    return note


@map_chroma_errors
def drop(collection: str) -> None:
    """Remove the whole collection; one that is missing is no error."""
    from chromadb.errors import NotFoundError

    _collections.pop(collection, None)
    try:
        _connected().delete_collection(collection)
    except NotFoundError:
        return


def _asking(name: str, ask: Callable[[Collection], R], *, missing: R) -> R:
    """What `ask` says about the collection, `missing` where there is none."""
    from chromadb.errors import NotFoundError

    for fresh in (False, True):
        try:
            return ask(_collection(name, fresh=fresh))
        except NotFoundError:  # at first perhaps only the one that this process knew, and another bears its name now
            _collections.pop(name, None)
    return missing


def _vectors(ids: list[str], collection: Collection) -> GetResult:
    return collection.get(ids=ids, include=["embeddings"])


def _delete(ids: list[str], collection: Collection) -> None:
    collection.delete(ids=ids)


def _present(ids: list[str], collection: Collection) -> set[str]:
    return set(collection.get(ids=ids, include=[])["ids"])


def _touch(collection: Collection) -> bool:
    collection.modify(metadata={_TOUCHED: time.time()})
    return True


def _collection(name: str, *, create: bool = False, fresh: bool = False) -> Collection:
    if fresh:
        _collections.pop(name, None)
    if name not in _collections:
        if create:
            _collections[name] = _connected().get_or_create_collection(
                name, embedding_function=None, configuration=_configuration()
            )
        else:
            _collections[name] = _connected().get_collection(name, embedding_function=None)
    return _collections[name]


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
    except ValueError as error:  # chromadb has no type of its own for a server that cannot be reached
        raise VectorStoreUnavailableError(
            _("The vector store does not answer (%(error)s).") % {"error": "ConnectError"}
        ) from error
    # The client waits for ever by default and offers no setting; a server that hangs would hold our threads.
    client._server._session.timeout = httpx.Timeout(REQUEST_TIMEOUT, connect=CONNECT_TIMEOUT)  # type: ignore[attr-defined]
    return client
