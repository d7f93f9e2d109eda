"""Operations: threads and turns."""

from __future__ import annotations

import uuid
from typing import Annotated

from django.utils.translation import gettext as _
from ninja import Query, Router
from ninja.responses import Status

from cato_web.api import schemas, serializers, thread_schemas
from cato_web.api.auth import READ, WRITE, ApiRequest, Scope, create_once, current_user, readable_spaces, resolve_space
from cato_web.api.errors import CHANGE, FIND, responses
from cato_web.api.fields import Key, SpaceName, Text
from cato_web.api.paging import Cursor, Limit, paginate
from chat import access, services
from chat.models import Thread
from chat.quick_search import contains_all_words
from chat.threads.memory_settings import exchanges_of
from chat.threads.reader_marks import with_marks
from memory.api import InvalidInputError

router = Router(tags=["threads"])
_MAX_POSITION = 2**31 - 1


@router.get("/threads", auth=READ, response=responses(thread_schemas.Threads, *FIND))
def list_threads(
    request: ApiRequest,
    q: Annotated[Text | None, Query(max_length=200, description="Words in the title.")] = None,
    space: Annotated[SpaceName | None, Query()] = None,
    archived: Annotated[bool, Query(description="List archived threads instead of the others.")] = False,
    limit: Limit = 50,
    cursor: Annotated[Cursor, Query()] = None,
) -> thread_schemas.Threads:
    """List the threads that the user can read, most recently active first."""
    person_id = current_user(request).pk
    rows = with_marks(access.readable_threads(person_id), person_id).filter(archived_at__isnull=not archived)
    if space is not None:
        rows = rows.filter(space_id__in=list(readable_spaces(request, space)))
    rows = contains_all_words(rows.select_related("owner"), (q or "").split(), "title")
    page, after = paginate(rows, "last_message_at", cursor, limit)
    return thread_schemas.Threads(threads=[serializers.serialize_thread(thread) for thread in page], next=after)


@router.post("/threads", auth=WRITE, response=responses(thread_schemas.Thread, *CHANGE, status=201))
def begin_thread(
    request: ApiRequest, new: thread_schemas.NewThread, idempotency_key: Key = None
) -> Status[thread_schemas.Thread]:
    """Create an empty thread."""
    space = resolve_space(request, new.space)

    def create() -> list[uuid.UUID]:
        thread = services.create_thread(
            current_user(request).pk, title=new.title or "", space=space, is_remembered=new.is_remembered
        )
        return [thread.id]

    (id,) = create_once(request, idempotency_key, new.model_dump(mode="json"), create)
    return Status(201, _serialize(request, id))


@router.get("/threads/{uuid:thread_id}", auth=READ, response=responses(thread_schemas.ThreadDetail, *FIND))
def get_thread(
    request: ApiRequest,
    thread_id: uuid.UUID,
    after: Annotated[int, Query(ge=-1, le=_MAX_POSITION, description="`next` of the previous page.")] = -1,
    limit: Limit = 50,
) -> thread_schemas.ThreadDetail:
    """Return a thread with its turns in order, each with its sources."""
    thread = access.get_marked_thread(current_user(request).pk, thread_id)
    turns = list(thread.turns.active_branch().select_related("author").filter(position__gt=after)[: limit + 1])
    serialized = serializers.serialize_turns(thread, turns[:limit])
    next_position = turns[limit - 1].position if len(turns) > limit else None
    return thread_schemas.ThreadDetail(**serializers.thread_fields(thread), turns=serialized, next=next_position)


@router.get("/threads/{uuid:thread_id}/turns/{uuid:turn_id}", auth=READ, response=responses(thread_schemas.Turn, *FIND))
def get_turn(request: ApiRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> thread_schemas.Turn:
    """Return one turn, also while its answer is generated."""
    turn = access.get_turn(current_user(request).pk, thread_id, turn_id)
    return serializers.serialize_turns(turn.thread, [turn])[0]


@router.patch("/threads/{uuid:thread_id}", auth=WRITE, response=responses(thread_schemas.Thread, *CHANGE))
def change_thread(
    request: ApiRequest, thread_id: uuid.UUID, changes: thread_schemas.ThreadChanges
) -> thread_schemas.Thread:
    """Pin or archive a thread for the user; rename or move one of their own, or switch its memory on or off.

    Without the scope `read`, the response omits the title.
    """
    person_id = current_user(request).pk
    if changes.is_pinned and changes.is_archived:
        raise InvalidInputError(_("A thread is pinned or archived, not both."))
    is_for_everyone = any(value is not None for value in (changes.title, changes.is_remembered, changes.space))
    thread = _owned_thread(request, thread_id) if is_for_everyone else access.get_thread(person_id, thread_id)
    target = resolve_space(request, changes.space) if changes.space is not None else None
    if target is not None and target.pk != thread.space_id:
        services.move_thread(thread, to=target, by=person_id)
    if changes.title is not None:
        services.rename_thread(thread, changes.title)
    if changes.is_archived is not None:
        services.set_archived(thread, person_id, changes.is_archived)
    if changes.is_pinned is not None:
        services.set_pinned(thread, person_id, changes.is_pinned)
    if changes.is_remembered is not None:
        services.set_memory_enabled(thread, changes.is_remembered)
    serialized = _serialize(request, thread_id)
    return serialized if Scope.READ in request.auth.scopes else serialized.model_copy(update={"title": ""})


@router.delete("/threads/{uuid:thread_id}", auth=WRITE, response=responses(schemas.Receipt, *CHANGE))
def delete_thread(request: ApiRequest, thread_id: uuid.UUID) -> schemas.Receipt:
    """Delete one of the user's own threads and forget its exchanges."""
    thread = _owned_thread(request, thread_id)
    count = exchanges_of(thread).count()
    services.delete_thread(thread)
    return serializers.receipt(count, count)


def _owned_thread(request: ApiRequest, thread_id: uuid.UUID) -> Thread:
    return access.get_owned_thread(current_user(request).pk, thread_id)


def _serialize(request: ApiRequest, thread_id: uuid.UUID) -> thread_schemas.Thread:
    return serializers.serialize_thread(access.get_marked_thread(current_user(request).pk, thread_id))
