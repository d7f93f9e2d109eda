"""The facts of a turn that the steps of its answer need, read once when the answer starts."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat import access
from chat.digests.scope import DigestScope
from chat.llm import endpoint
from chat.llm.endpoint import ModelEndpoint
from chat.models import Attachment, Turn
from chat.usage.limits import any_limit, has_limits
from memory import api as memory
from memory.api import SpaceIds

# The author may no longer read the thread, or the API token is no longer valid.
ACCESS_LOST = "access_lost"
ACCESS_LOST_TEXT = gettext_noop("Stopped: the person who asked no longer has access.")


@dataclass(frozen=True, slots=True)
class AnswerJob:
    """A turn to be answered, with the attachments of its message, and for whom and by which model.

    `turn` has its thread with its space, its session and its author loaded, and is not changed: the row is written with
    the lease of `attempt`, so nobody else changes the parts that are used here. `audience` are the spaces that all
    readers of the thread may read, for a digest only the chosen ones; the answer ends within three seconds after its author loses access.
    `is_only_version`: it is known that no turn has the same parent.
    """

    turn: Turn
    attachments: tuple[Attachment, ...] = ()
    audience: SpaceIds = frozenset()
    endpoint: ModelEndpoint | None = None
    is_only_version: bool = False

    @property
    def turn_id(self) -> uuid.UUID:
        """The id of the turn."""
        return self.turn.id

    @property
    def thread_id(self) -> uuid.UUID:
        """The id of the turn's thread."""
        return self.turn.thread_id

    @property
    def has_usage_limits(self) -> bool:
        """Return whether there was any limit of usage when the turn was posted, or else loaded."""
        return has_limits(self.turn.author)

    @property
    def attempt(self) -> int:
        """The number of this try, which fences older writers."""
        return self.turn.attempt

    @property
    def model(self) -> str:
        """The requested model, or that of the thread; empty: that of the endpoint."""
        return self.turn.requested_model or self.turn.thread.model


def build_job(turn: Turn, attachments: tuple[Attachment, ...], *, is_only_version: bool = False) -> AnswerJob:
    """Return the job of a turn (loaded as in `AnswerJob`) for which its author's access was just checked."""
    audience = memory.audience_space_ids(turn.thread.space)
    if turn.digest_scope is not None:
        audience = DigestScope.from_json(turn.digest_scope).limit(audience)
    return AnswerJob(turn, attachments, audience, endpoint.current(), is_only_version)


def load_job(turn_id: uuid.UUID) -> AnswerJob | Turn | None:
    """Return the job of this turn; None if it does not wait for an answer.

    A turn whose author lost access since it was posted is ended before anything is recalled for it, and returned.
    """
    waiting = Turn.objects.filter(id=turn_id, state=Turn.State.RECALLING).with_attachment_marks()
    allowed = ExpressionWrapper(access.author_has_access(), output_field=BooleanField())
    rows = waiting.select_related("author", "session", "thread__space")
    rows = rows.annotate(is_allowed=allowed, has_usage_limits=any_limit())
    turn: Any = rows.first()
    if turn is None:
        return None
    if not turn.is_allowed:
        return turn if end_without_access(turn_id) else None
    turn.author.has_usage_limits = turn.has_usage_limits
    return build_job(turn, tuple(turn.shown_attachments))


@transaction.atomic
def end_without_access(turn_id: uuid.UUID) -> bool:
    """End a turn whose author lost access since it was posted, before recall; return whether it was ended."""
    if turn_id not in access.turns_without_access([turn_id]):
        return False
    ended = Turn.objects.filter(id=turn_id, state=Turn.State.RECALLING).update(
        state=Turn.State.STOPPED,
        error_code=ACCESS_LOST,
        error=_(ACCESS_LOST_TEXT),
        revision=F("revision") + 1,
        completed_at=timezone.now(),
    )
    return bool(ended)
