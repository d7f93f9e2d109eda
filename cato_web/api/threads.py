"""Operations: threads and their turns."""

from __future__ import annotations

import uuid
from typing import Annotated

from django.utils.translation import gettext as _
from ninja import Query, Router
from ninja.responses import Status

from cato_web.api import schemas, serializers
from cato_web.api.responses import CHANGE, FIND, responses, gone_by
from cato_web.api.auth import READ, WRITE, ApiRequest, current_user, readable_spaces, resolve_space
from cato_web.api.fields import SpaceName, Text
from cato_web.api.paging import Cursor, Limit, paginate
from chat import access, services
from chat.models import Thread
from chat.quick_search import contains_all_words
from chat.threads.memory_settings import exchanges_of
from memory.api import InvalidInputError

router = Router(tags=["threads"])
_MAX_POSITION = 2**31 - 1


@router.get("/threads", auth=READ, response=responses(schemas.Threads, *FIND))
def list_threads(
    request: ApiRequest,
    q: Annotated[Text | None, Query(max_length=200, description="Words that the title has.")] = None,
    space: Annotated[SpaceName | None, Query()] = None,
    archived: Annotated[bool, Query(description="Those that were put away, instead of the others.")] = False,
    limit: Limit = 50,
    cursor: Annotated[Cursor, Query()] = None,
) -> schemas.Threads:
    """The threads this person may read; in which somebody spoke last comes first."""
    wanted = access.readable_threads(current_user(request).pk).filter(archived_at__isnull=not archived)
    if space is not None:
        wanted = wanted.filter(space_id__in=list(readable_spaces(request, space)))
    named = contains_all_words(wanted.select_related("owner"), (q or "").split(), "title")
    page, after = paginate(named, "spoken_at", cursor, limit)
    return schemas.Threads(threads=[serializers.serialize_thread(thread) for thread in page], next=after)


@router.post("/threads", auth=WRITE, response=responses(schemas.Thread, *FIND, status=201))
def begin_thread(request: ApiRequest, new: schemas.NewThread) -> Status[schemas.Thread]:
    """A thread in which nothing was said yet."""
    space = resolve_space(request, new.space)
    begun = services.create_thread(
        current_user(request).pk, title=new.title or "", space=space, is_remembered=new.is_remembered
    )
    return Status(201, _shown(request, begun.id))


@router.get("/threads/{uuid:thread_id}", auth=READ, response=responses(schemas.ThreadDetail, *FIND))
def get_thread(
    request: ApiRequest,
    thread_id: uuid.UUID,
    after: Annotated[int, Query(ge=-1, le=_MAX_POSITION, description="`next` of the page before.")] = -1,
    limit: Limit = 50,
) -> schemas.ThreadDetail:
    """A thread with its turns in their order, with what was recalled for each answer."""
    thread = access.get_thread(current_user(request).pk, thread_id)
    turns = list(thread.turns.active_branch().select_related("author").filter(position__gt=after)[: limit + 1])
    shown = serializers.serialize_turns(thread, turns[:limit])
    following = turns[limit - 1].position if len(turns) > limit else None
    return schemas.ThreadDetail(**serializers.thread_fields(thread), turns=shown, next=following)


@router.get("/threads/{uuid:thread_id}/turns/{uuid:turn_id}", auth=READ, response=responses(schemas.Turn, *FIND))
def get_turn(request: ApiRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> schemas.Turn:
    """One turn, while its answer grows and after."""
    turn = access.get_turn(current_user(request).pk, thread_id, turn_id)
    return serializers.serialize_turns(turn.thread, [turn])[0]


@router.patch("/threads/{uuid:thread_id}", auth=WRITE, response=responses(schemas.Thread, *CHANGE))
def change_thread(request: ApiRequest, thread_id: uuid.UUID, changes: schemas.ThreadChanges) -> schemas.Thread:
    """Rename a thread of this person's own, pin or archive it, have it remembered or not, move it to another space."""
    thread = _own(request, thread_id)
    if changes.is_pinned and changes.is_archived:
        raise InvalidInputError(_("A thread is pinned or archived, not both."))
    to = resolve_space(request, changes.space) if changes.space is not None else None
    if to is not None and to.pk != thread.space_id:
        services.move_thread(thread, to=to, by=current_user(request).pk)
    if changes.title is not None:
        services.rename_thread(thread, changes.title)
    if changes.is_archived is not None:
        services.set_archived(thread, changes.is_archived)
    if changes.is_pinned is not None:
        services.set_pinned(thread, changes.is_pinned)
    if changes.is_remembered is not None:
        services.set_memory_enabled(thread, changes.is_remembered)
    return _shown(request, thread_id)


@router.delete("/threads/{uuid:thread_id}", auth=WRITE, response=responses(schemas.Receipt, *CHANGE))
def delete_thread(request: ApiRequest, thread_id: uuid.UUID) -> schemas.Receipt:
    """Delete a thread of this person's own, and forget what memory has of it."""
    thread = _own(request, thread_id)
    count = exchanges_of(thread).count()
    services.delete_thread(thread)
    return schemas.Receipt(exchanges=count, under_way=count, gone_by=gone_by())


def _own(request: ApiRequest, thread_id: uuid.UUID) -> Thread:
    return access.get_owned_thread(current_user(request).pk, thread_id)


def _shown(request: ApiRequest, thread_id: uuid.UUID) -> schemas.Thread:
    return serializers.serialize_thread(access.get_thread(current_user(request).pk, thread_id))
