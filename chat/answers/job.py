"""The facts of a turn that the steps of its answer need, read once when the answer starts."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat import access
from chat.errors import ModelError
from chat.llm import endpoint
from chat.llm.endpoint import ModelEndpoint
from chat.llm.policy_texts import changed_text, refusal_text
from chat.models import Attachment, Turn
from chat.turns.digest_scope import DigestScope
from chat.usage.limits import any_limit, has_limits
from memory import api as memory
from memory.api import SpaceIds, may_receive, permitted_spaces, personal_among

# The author may no longer read the thread, or the API token is no longer valid.
ACCESS_LOST = "access_lost"
ACCESS_LOST_TEXT = gettext_noop("Stopped: the person who asked no longer has access.")


@dataclass(frozen=True, slots=True)
class AnswerJob:
    """A turn to be answered, with the attachments of its message, and for whom and by which model.

    `turn` has its thread with its space, its session and its author loaded, and is not changed: the row is written with
    the lease of `attempt`, so nobody else changes the parts that are used here. `audience` are the spaces that all
    readers of the thread may read, for a digest only the chosen ones; the answer ends within three seconds after its author
    loses access. `is_only_version`: it is known that no turn has the same parent. `model` is one of the endpoint, "" its
    default one.
    """

    turn: Turn
    attachments: tuple[Attachment, ...] = ()
    audience: SpaceIds = frozenset()
    endpoint: ModelEndpoint | None = None
    is_only_version: bool = False
    model: str = ""

    @property
    def permitted(self) -> SpaceIds:
        """The spaces of the audience whose text the endpoint may receive."""
        return self.permitted_among(self.audience)

    def permitted_among(self, spaces: SpaceIds) -> SpaceIds:
        """Return those of these spaces, which the audience may read, whose text the endpoint may receive."""
        if self.endpoint is None:
            return spaces
        # No other personal space can be read in a thread.
        return permitted_spaces(self.endpoint.policy, spaces, personal=personal_among([self.turn.thread.space]))

    def ensure_permitted(self) -> None:
        """Raise ModelError if the endpoint may not receive the thread itself."""
        space = self.turn.thread.space
        if self.endpoint is not None and not may_receive(self.endpoint.policy, space):
            text = refusal_text(self.endpoint.label, space, is_removed=self.endpoint.is_removed)
            raise ModelError(text, "data_policy")

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
    def choice(self) -> str:
        """The model as threads store it, with its endpoint."""
        if self.endpoint is None:
            return self.model
        name = self.model or self.endpoint.model
        return self.endpoint.choice_of(name) if name else self.endpoint.name


def build_job(turn: Turn, attachments: tuple[Attachment, ...], *, is_only_version: bool = False) -> AnswerJob:
    """Return the job of a turn (loaded as in `AnswerJob`) for which its author's access was just checked."""
    audience = memory.audience_space_ids(turn.thread.space)
    if turn.digest_scope is not None:
        audience = DigestScope.from_json(turn.digest_scope).limit(audience)
    return with_endpoint(AnswerJob(turn, attachments, audience, is_only_version=is_only_version))


def with_endpoint(job: AnswerJob) -> AnswerJob:
    """Return the job with the endpoint of the requested model, or else of the thread's, as it is now."""
    choice = job.turn.requested_model or job.turn.thread.model
    chosen = endpoint.find(choice)
    if chosen is None:
        return replace(job, endpoint=None, model=choice)
    return replace(job, endpoint=chosen.endpoint, model=chosen.model)


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


def find_fallback(job: AnswerJob, space_ids: SpaceIds) -> AnswerJob | None:
    """Return the job with the endpoint that an administrator allows instead of the job's, which did not answer.

    None if there is none, or if it may not receive text of all these spaces, which are those of the prompt.
    """
    present = endpoint.find_named(job.endpoint.name) if job.endpoint else None
    if present is None or present.fallback is None:
        return None
    other = endpoint.find_named(present.fallback)
    if other is None or other.is_removed:
        return None
    instead = replace(job, endpoint=other, model="")
    return instead if instead.permitted_among(space_ids) == space_ids else None


def ensure_sendable(job: AnswerJob, space_ids: SpaceIds) -> None:
    """Raise ModelError unless the job's endpoint may receive text of all these spaces now; takes one statement."""
    if job.endpoint is None:
        return
    present = endpoint.find_named(job.endpoint.name)
    if present is None or replace(job, endpoint=present).permitted_among(space_ids) != space_ids:
        raise ModelError(changed_text(job.endpoint.label), "data_policy")


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
