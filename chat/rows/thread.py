"""What the page of a thread says about the thread itself: its place, its audience, its model and its marks."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory import api as memory
from memory.api import Space


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread, or one that is not created yet; `is_closed`: nothing can be posted, since its project is archived."""

    id: uuid.UUID | None
    title: str
    space_name: str
    space_kind: str
    space_url: str
    url: str
    post_url: str
    people_url: str
    move_url: str
    is_new: bool
    is_remembered: bool
    remember_url: str
    remember_label: str
    drop_text: str
    audience_text: str
    model_name: str
    model_url: str
    is_dummy: bool
    is_memory_off: bool
    socket_url: str
    is_own: bool
    roles: str
    is_shared: bool
    is_pinned: bool
    is_muted: bool
    is_archived: bool
    is_closed: bool


def thread_row(
    thread: Any | None,
    *,
    roles: Iterable[str],
    model_name: str,
    model_url: str,
    is_dummy: bool,
) -> ThreadRow:
    """Return the row of a thread, with its reader's marks, for a person with these roles in it; None: of a new one.

    `model_url` is the model picker, "" for people who may not change the model.
    """
    space = thread.space if thread else None
    kind = space.kind if space else Space.Kind.PERSONAL
    count = 1
    if space is not None and kind != Space.Kind.PERSONAL:
        count = memory.count_readers([space])[space.id]
    audience = ngettext("Visible to %(count)s person", "Visible to %(count)s people", count)
    if kind == Space.Kind.PERSONAL:
        audience = _("Visible only to you")
    remembered = thread is None or thread.is_remembered
    thread_id, is_own = thread.id if thread else None, "owner" in roles
    return ThreadRow(
        id=thread_id,
        title=thread.title if thread else _("New thread"),
        space_name=space.display_name if space else _("Only you"),
        space_kind=kind,
        space_url=reverse("space", args=[space.id]) if space else "",
        url=reverse("thread", args=[thread_id]) if thread_id else reverse("new_thread"),
        post_url=reverse("post_message", args=[thread_id]) if thread_id else reverse("new_thread"),
        people_url=reverse("people_to_mention") + (f"?thread={thread_id}" if thread_id else ""),
        move_url=reverse("move_thread", args=[thread_id]) if thread and is_own else "",
        is_new=thread is None,
        is_remembered=remembered,
        remember_url=reverse("set_thread_memory", args=[thread_id]) if thread and is_own else "",
        remember_label=_saved_text(space) if remembered else _("Not remembered"),
        drop_text=_drop_text(space),
        audience_text=audience % {"count": count} if remembered else _("Not saved to memory"),
        model_name=model_name,
        model_url=model_url,
        is_dummy=is_dummy,
        is_memory_off=not settings.CATO.vector_store.enabled,
        socket_url=f"/ws/t/{thread_id}" if thread_id else "",
        is_own=is_own,
        roles=" ".join(sorted(roles)),
        is_shared=kind != Space.Kind.PERSONAL,
        is_pinned=thread is not None and thread.pinned_at is not None,
        is_muted=thread is not None and thread.muted_at is not None,
        is_archived=thread is not None and thread.archived_at is not None,
        is_closed=space is not None and space.archived_at is not None,
    )


def _drop_text(space: Space | None) -> str:
    if space is None or space.kind == Space.Kind.PERSONAL:
        return _("Drop to add to this message")
    return _("Drop to add to %(space)s") % {"space": space.display_name}


def _saved_text(space: Space | None) -> str:
    if space is None or space.kind == Space.Kind.PERSONAL:
        return _("Saved in your personal space")
    if space.kind == Space.Kind.TEAM:
        return _("Saved for the team")
    return _("Saved in %(space)s") % {"space": space.name}
