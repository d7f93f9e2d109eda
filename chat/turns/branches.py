"""Branches of a thread: edit a message, regenerate an answer, switch between versions."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from chat import access
from chat.errors import ConflictError
from chat.llm.choices import ensure_may_receive
from chat.models import Thread, Turn
from chat.threads.locks import ensure_idle, lock_person
from chat.turns.answer_limit import ensure_free_answer
from chat.turns.placing import ApiOrigin, create_turn, find_place
from chat.turns.posting import PostedTurn, validate_message
from chat.usage.limits import ensure_within_limits
from memory import api as memory
from memory.api import NotFoundError


@dataclass(frozen=True, slots=True)
class BranchSwitch:
    """The turn of an edit, regeneration or switch, and the turns that left and joined the active branch, in order."""

    posted: PostedTurn
    removed_ids: tuple[uuid.UUID, ...] = ()
    added_ids: tuple[uuid.UUID, ...] = ()


def edit_message(
    turn: Turn,
    *,
    person_id: uuid.UUID,
    message: str,
    client_key: uuid.UUID,
    origin: ApiOrigin | None = None,
    is_typed: bool = False,
) -> BranchSwitch:
    """Create a sibling turn with another message and activate its branch.

    `person_id` is the editor: the author of the turn or the owner of the thread. `is_typed`: they typed the message on a
    page. Raises InvalidMessageError, DataPolicyError, ConflictError, UsageLimitError, and NotFoundError if the turn was deleted
    or the thread moved meanwhile.
    """
    return _add_sibling(turn, person_id, person_id, validate_message(message), client_key, origin, is_typed=is_typed)


def regenerate(
    turn: Turn, *, person_id: uuid.UUID, client_key: uuid.UUID, origin: ApiOrigin | None = None
) -> BranchSwitch:
    """Create a sibling turn with the same message, of the same date, and activate its branch.

    `person_id` is the author of the turn or the owner of the thread. Raises ConflictError, DataPolicyError,
    UsageLimitError, and NotFoundError as `edit_message` does.
    """
    return _add_sibling(
        turn,
        person_id,
        turn.author_id,
        None,
        client_key,
        origin,
        written_at=turn.created_at,
        digest_scope=turn.digest_scope,
    )


@transaction.atomic
def switch_branch(turn: Turn, *, person_id: uuid.UUID) -> BranchSwitch:
    """Activate the branch through this turn, continued by its latest descendants. Raises ConflictError.

    `person_id` is the author of the turn or the owner of the thread. Raises NotFoundError as `edit_message` does.
    """
    thread = access.get_locked_thread(person_id, turn.thread_id)
    ensure_idle(thread)
    children: dict[uuid.UUID | None, list[uuid.UUID]] = defaultdict(list)
    parents = dict(thread.turns.order_by("position").values_list("id", "parent_id"))
    if turn.id not in parents:
        raise NotFoundError
    for id, parent_id in parents.items():
        children[parent_id].append(id)
    leaf = turn.id
    while children[leaf]:
        leaf = children[leaf][-1]
    removed_ids, added_ids = _activate_branch(thread, leaf, person_id)
    return BranchSwitch(PostedTurn(turn, is_new=False), removed_ids, added_ids)


@transaction.atomic
def _add_sibling(
    turn: Turn,
    person_id: uuid.UUID,
    author_id: uuid.UUID,
    message: str | None,
    client_key: uuid.UUID,
    origin: ApiOrigin | None,
    *,
    is_typed: bool = False,
    written_at: datetime | None = None,
    digest_scope: dict[str, Any] | None = None,
) -> BranchSwitch:
    """Add a turn with this message; None: that of `turn`."""
    author = lock_person(author_id)
    thread = access.get_locked_thread(person_id, turn.thread_id)
    place = find_place(thread, author_id=author_id, client_key=client_key)
    if place.existing_id is not None:
        return BranchSwitch(PostedTurn(thread.turns.get(id=place.existing_id), is_new=False))
    # It can have been deleted, or forgotten everywhere, before its thread was locked.
    original = thread.turns.filter(id=turn.id).first()
    if original is None:
        raise NotFoundError
    if not original.message:
        raise ConflictError(_("This message was forgotten everywhere; its text is deleted."))
    ensure_idle(thread)
    if author_id != person_id:
        access.ensure_can_receive(author_id, thread)
    ensure_free_answer(author_id)
    token_id = origin.api_token_id if origin else None
    ensure_within_limits(author, space=thread.space, api_token_id=token_id, by=person_id)
    choice = (origin.requested_model if origin else "") or thread.model
    ensure_may_receive(author, space=thread.space, choice=choice)
    sibling = create_turn(
        thread,
        place,
        parent_id=original.parent_id,
        author=author,
        client_key=client_key,
        message=original.message if message is None else message,
        state=Turn.State.RECALLING,
        attachments=tuple(original.attachments.all()),
        origin=origin,
        is_typed=is_typed,
        written_at=written_at,
        digest_scope=digest_scope,
    )
    removed_ids, added_ids = _activate_branch(thread, sibling.id, person_id)
    return BranchSwitch(PostedTurn(sibling, is_new=True), removed_ids, added_ids)


def _activate_branch(
    thread: Thread, leaf: uuid.UUID, person_id: uuid.UUID
) -> tuple[tuple[uuid.UUID, ...], tuple[uuid.UUID, ...]]:
    """Activate the branch that ends with `leaf`, in the thread and in memory; return the removed and the added turns.

    Raises ConflictError if that hides another person's turn from memory and `person_id` does not own the thread.
    """
    fields = ("id", "parent_id", "is_on_active_branch", "exchange_id", "position", "author_id")
    rows = {row.id: row for row in thread.turns.values_list(*fields, named=True)}
    branch: set[uuid.UUID] = set()
    turn_id: uuid.UUID | None = leaf
    while turn_id is not None:
        branch.add(turn_id)
        turn_id = rows[turn_id].parent_id
    in_order = sorted(rows, key=lambda id: rows[id].position)
    removed_ids = tuple(id for id in in_order if rows[id].is_on_active_branch and id not in branch)
    added_ids = tuple(id for id in in_order if id in branch and (not rows[id].is_on_active_branch or id == leaf))
    if thread.owner_id != person_id and any(rows[id].author_id != person_id for id in removed_ids):
        raise ConflictError(_("This would hide messages that other people wrote after it. Fork the thread instead."))
    thread.turns.filter(id__in=removed_ids).update(is_on_active_branch=False)
    thread.turns.filter(id__in=added_ids).update(is_on_active_branch=True)
    removed = [rows[id].exchange_id for id in removed_ids if rows[id].exchange_id]
    added = [rows[id].exchange_id for id in added_ids if rows[id].exchange_id]
    memory.lock_with_statements([*removed, *added])
    memory.deactivate(removed, are_citable=True)
    memory.activate(added)
    Thread.objects.filter(id=thread.id).update(head=leaf)
    return removed_ids, added_ids
