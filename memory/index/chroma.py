"""The connection to the vector store: its client, its collections by name, and its errors.

The only module that imports chromadb.
"""

from __future__ import annotations

import functools
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from memory.errors import STORE_DISABLED, VectorStoreDisabledError, VectorStoreRequestError, VectorStoreUnavailableError

if TYPE_CHECKING:
    import httpx
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.models.Collection import Collection

P = ParamSpec("P")
R = TypeVar("R")
# For annotations, also of other modules.
Handle: TypeAlias = "Collection"

# Seconds. REQUEST_TIMEOUT is long enough for a batch of 1,000 large vectors and detects a server that hangs.
REQUEST_TIMEOUT = 20.0
CONNECT_TIMEOUT = 2.0
PING_TIMEOUT = 1.0
# Collections per page of the list.
_MAX_COLLECTIONS = 200
# HTTP statuses that mean that the request itself is wrong.
_REQUEST_ERROR_STATUSES = (400, 409, 413, 422)

_lock = threading.Lock()
_client: ClientAPI | None = None
_handles: dict[str, Handle] = {}


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


def run(name: str, operation: Callable[[Handle], R], *, create: bool = False) -> R:
    """Return the result of `operation` on the collection. Raises CollectionMissingError, unless `create` creates it."""
    from chromadb.errors import NotFoundError

    try:
        return operation(_handle(name, create=create))
    except NotFoundError:  # the handle may be of a former collection of this name
        _handles.pop(name, None)
    try:
        return operation(_handle(name, create=create))
    except NotFoundError as error:
        _handles.pop(name, None)
        raise CollectionMissingError(name) from error


def create_collection(name: str, metadata: dict[str, Any]) -> None:
    """Create an empty collection."""
    _handles[name] = _get_client().create_collection(
        name, embedding_function=None, configuration=_configuration(), metadata=metadata
    )


def delete_collection(name: str) -> None:
    """Delete the collection; ignore a missing one."""
    from chromadb.errors import NotFoundError

    _handles.pop(name, None)
    try:
        _get_client().delete_collection(name)
    except NotFoundError:
        return


def read_metadata(name: str) -> dict[str, Any] | None:
    """Return the metadata of the collection as it is now, None if it is missing."""
    from chromadb.errors import NotFoundError

    try:
        return dict(_get_client().get_collection(name, embedding_function=None).metadata or {})
    except NotFoundError:
        return None


def list_collections() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the metadata of each collection of the server."""
    for offset in itertools.count(step=_MAX_COLLECTIONS):
        page = _get_client().list_collections(limit=_MAX_COLLECTIONS, offset=offset)
        yield from ((handle.name, dict(handle.metadata or {})) for handle in page)
        if len(page) < _MAX_COLLECTIONS:
            return


def _handle(name: str, *, create: bool) -> Handle:
    # Other threads forget handles meanwhile, so the dictionary is read once.
    handle = _handles.get(name)
    if handle is None and create:
        handle = _get_client().get_or_create_collection(name, embedding_function=None, configuration=_configuration())
    elif handle is None:
        handle = _get_client().get_collection(name, embedding_function=None)
    _handles[name] = handle
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
