"""Start another attempt at an answer, from its beginning or from its partial text."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import access
from chat.errors import ConflictError
from chat.llm.choices import ensure_may_receive
from chat.models import Turn
from chat.realtime.notifications import notify_link_changed
from chat.threads.locks import ensure_not_answering, lock_person, lock_thread
from chat.tools.uses import ended_calls
from chat.turns.answer_limit import ensure_free_answer
from chat.usage.counting import count_before_deletion
from chat.usage.limits import ensure_within_limits
from memory import api as memory


def retry_turn(turn: Turn, *, by: uuid.UUID | None = None) -> Turn:
    """Restart a failed, interrupted or stopped answer from the beginning. Raises ConflictError and UsageLimitError.

    `by` is who acts; None: the author.
    """
    return restart(
        turn,
        lambda turn: turn.can_retry,
        by=by,
        answer="",
        reasoning="",
        memory_searches=[],
        tool_uses=[],
        web_search={},
        usage={},
    )


def resume_turn(turn: Turn, *, by: uuid.UUID | None = None) -> Turn:
    """Continue a failed, interrupted, stopped or cut off answer from its partial text.

    Raises ConflictError and UsageLimitError. `by` is who acts; None: the author.
    The options of an API client, such as a maximum length, do not apply to the rest, which a person requests.
    """
    return restart(turn, lambda turn: turn.can_resume, by=by, generation_options={})


@transaction.atomic
def restart(
    turn: Turn,
    is_allowed: Callable[[Turn], bool],
    *,
    by: uuid.UUID | None = None,
    is_continued: bool = False,
    **changes: object,
) -> Turn:
    """Start another attempt at a turn that `is_allowed`, with these changes of its columns.

    Raises ConflictError, DataPolicyError, UsageLimitError, and InvalidInputError in an archived project. `by` is who acts;
    None: the author. `is_continued`: an answer goes on that has not ended for its author, which no limit of usage cuts off.
    """
    author = lock_person(turn.author_id)
    thread = lock_thread(turn.thread_id)
    ensure_not_answering(thread)
    ensure_free_answer(turn.author_id)
    current = thread.turns.filter(id=turn.id).first()
    if current is None or not is_allowed(current):
        raise ConflictError(_("This answer is already complete or in progress."))
    if not current.is_on_active_branch:
        raise ConflictError(_("Another version of this message is shown. Switch to this one first."))
    memory.ensure_open(thread.space)
    if current.uncounted_usage is not None:
        count_before_deletion(thread.turns.filter(id=turn.id))
    if not is_continued:
        access.ensure_can_receive(current.author_id, thread, current.api_token_id)
        ensure_within_limits(author, space=thread.space, api_token_id=current.api_token_id, by=by)
    ensure_may_receive(author, space=thread.space, choice=current.requested_model or thread.model)
    # An answer that goes on keeps what was searched and done for its first part.
    calls = {"memory_searches": ended_calls(current.memory_searches), "tool_uses": ended_calls(current.tool_uses)}
    thread.turns.filter(id=turn.id).update(
        state=Turn.State.RECALLING,
        attempt=F("attempt") + 1,
        revision=F("revision") + 1,
        stop_requested=False,
        stopped_by=None,
        heartbeat_at=timezone.now(),
        error="",
        error_code="",
        endpoint_reason={},
        completed_at=None,
        **(calls | changes),
    )
    turn.refresh_from_db()
    notify_link_changed(thread, is_answering=True)
    return turn
