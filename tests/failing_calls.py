"""Let one call to the database, the vector store, the embedding model or a file fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import httpx
from django.core.files.storage import FileSystemStorage
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections

from memory.embeddings.local import LocalEmbedder
from memory.errors import EmbeddingError


class Calls:
    """Counts the calls from outside this process's memory, and fails the one with the number `failing`, from 1.

    `is_done`: it takes effect, and only its result is lost, as when a connection breaks.
    """

    def __init__(self, failing: int, *, is_done: bool) -> None:
        self._failing, self._is_done = failing, is_done
        self.count = 0

    @property
    def has_failed(self) -> bool:
        """Return whether the call with this number was reached."""
        return self.count >= self._failing

    def pass_on(self, call: Callable[..., Any], error: Exception, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        if self.count != self._failing:
            return call(*args, **kwargs)
        if self._is_done:
            call(*args, **kwargs)
        raise error


@contextmanager
def failing_call(number: int, *, is_done: bool = False) -> Iterator[Calls]:
    """Fail the call with this number, and no other."""
    calls = Calls(number, is_done=is_done)
    failures: dict[tuple[Any, str], Exception] = {
        (httpx.Client, "send"): httpx.ConnectError("connection reset by peer"),
        (LocalEmbedder, "embed_documents"): EmbeddingError("The model does not answer.", permanent=False),
        (FileSystemStorage, "_save"): OSError(28, "No space left on device"),
        (FileSystemStorage, "_open"): OSError(5, "Input/output error"),
        (FileSystemStorage, "delete"): OSError(5, "Input/output error"),
        (type(connections[DEFAULT_DB_ALIAS]), "_commit"): OperationalError("server closed the connection unexpectedly"),
    }

    def execute(run: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        # The connection would be lost with these, and a lost connection is what a failing commit stands for.
        if sql.startswith(("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK")):
            return run(sql, params, many, context)
        return calls.pass_on(run, OperationalError("server closed the connection"), sql, params, many, context)

    with ExitStack() as stack:
        for (owner, name), error in failures.items():
            stack.enter_context(patch.object(owner, name, _failing(getattr(owner, name), error, calls)))
        stack.enter_context(connection.execute_wrapper(execute))
        yield calls


def _failing(call: Callable[..., Any], error: Exception, calls: Calls) -> Callable[..., Any]:
    def failing(*args: Any, **kwargs: Any) -> Any:
        return calls.pass_on(call, error, *args, **kwargs)

    return failing
