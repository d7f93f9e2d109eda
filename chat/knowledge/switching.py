"""Switches extraction on and off for a space, with its model and daily budget, and wakes the worker that does it."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import PermissionDeniedError
from chat.knowledge.worker import spaces_to_read
from chat.signals import knowledge_set
from memory import api as memory
from memory.api import InvalidInputError, NotFoundError, Space, SpaceKnowledge, jobs

_MAX_MODEL_LENGTH, _MAX_DAILY_TOKENS = 120, 1_000_000_000


@transaction.atomic
def set_knowledge(
    person_id: uuid.UUID,
    space: Space,
    *,
    is_on: bool | None = None,
    is_paused: bool | None = None,
    model: str | None = None,
    daily_tokens: int | None = None,
) -> SpaceKnowledge:
    """Change how statements are extracted from a space; None leaves a setting as it is.

    The results of a worker that is extracting from the space meanwhile are not stored. Raises NotFoundError,
    PermissionDeniedError for readers of the space who do not decide it, and InvalidInputError.
    """
    if space.pk not in memory.settable_knowledge(person_id, [space]):
        if space.pk not in memory.readable_space_ids(person_id):
            raise NotFoundError(_("Not found."))
        raise PermissionDeniedError(_("Only administrators switch knowledge on and off for a shared space."))
    changed: dict[str, object] = {"is_on": is_on, "is_paused": is_paused}
    if model is not None:
        changed["model"] = memory.clean_text(model).strip()
        if len(str(changed["model"])) > _MAX_MODEL_LENGTH:
            sentence = _("The name of a model has at most %(most)s characters.")
            raise InvalidInputError(sentence % {"most": _MAX_MODEL_LENGTH})
    if daily_tokens is not None:
        if not 0 < daily_tokens <= _MAX_DAILY_TOKENS:
            sentence = _("Choose between 1 and %(most)s tokens a day.")
            raise InvalidInputError(sentence % {"most": memory.format_number(_MAX_DAILY_TOKENS)})
        changed["daily_tokens"] = daily_tokens
    SpaceKnowledge.objects.get_or_create(space=space, defaults={"due_at": timezone.now()})
    rows = SpaceKnowledge.objects.filter(space=space)
    rows.update(**{name: value for name, value in changed.items() if value is not None})
    knowledge = rows.get()
    if knowledge.is_on and not knowledge.is_paused:
        jobs.requeue(rows)
        memory.wake_worker_on_commit("extract_statements", module="chat.tasks")
    else:
        jobs.cancel(rows)
    knowledge_set.send(sender=SpaceKnowledge, by=person_id, knowledge=knowledge)
    return knowledge


def resume_extraction() -> None:
    """Wake a worker for the spaces that are due."""
    if jobs.has_due(spaces_to_read()):
        # In another task: it takes minutes, which would delay the rest of the sweep.
        memory.wake_worker_on_commit("extract_statements", module="chat.tasks")
