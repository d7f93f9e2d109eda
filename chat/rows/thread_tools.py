"""What the composer shows about the tools of its thread."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from chat.tools.offered import active_servers, choosable_servers


@dataclass(frozen=True, slots=True)
class ThreadToolsRow:
    """The names of the servers that are switched on; `url` changes them, "" for people who may not and without any server.

    `new_ids` are those that the first message of a new thread carries.
    """

    names: Sequence[str] = ()
    url: str = ""
    new_ids: Sequence[uuid.UUID] = ()


def thread_tools_row(thread: Any, *, can_change: bool) -> ThreadToolsRow:
    """Return the row of a thread of `access.get_marked_thread`."""
    names = [server.name for server in active_servers(thread)]
    return ThreadToolsRow(
        names, reverse("thread_tools", args=[thread.id]) if can_change and thread.has_tool_servers else ""
    )


def new_thread_tools_row(chosen: Sequence[uuid.UUID], query: QueryDict) -> ThreadToolsRow:
    """Return the row of a new thread; `query` is what its URL says, which choosing tools keeps."""
    servers = choosable_servers()
    on = [server for server in servers if server.id in chosen]
    url = reverse("new_thread_tools", query=query)
    return ThreadToolsRow([server.name for server in on], url if servers else "", [server.id for server in on])
