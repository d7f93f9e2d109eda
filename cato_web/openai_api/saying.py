"""From a program's request to the turn that answers it, and from there to what the program is told of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.files.base import ContentFile
from django.utils.translation import gettext as _

from cato_web.api_auth import Principal
from cato_web.openai_api.refusals import OpenAIError
from cato_web.openai_api.requests import ChatRequest, pictures_of, to_conversation
from chat import access, images, services
from chat.answers import runner
from chat.models import Thread, Turn
from chat.services import ThreadOptions
from memory import api as memory
from memory.api import RecalledItem, count_message, excerpt

_KEYS = uuid.UUID("5f0c1b1e-0e39-5a3c-8c2b-6d7a1f3f9e52")
_EXCERPT = 240


@dataclass(frozen=True, slots=True)
class Ended:
    """How an answer ended, as its row has it, and what was recalled for it."""

    turn: Turn
    recalled: list[dict[str, Any]]


def say(principal: Principal, asked: ChatRequest, headers: Mapping[str, str], model: str | None) -> Turn:
    """Put what is new of the conversation into its thread and have it answered. Raises OpenAIError and CatoError."""
    person_id = principal.person.pk
    conversation = to_conversation(asked)
    thread = _named_thread(person_id, headers.get("X-Cato-Thread"))
    options = ThreadOptions(model=model, is_remembered=_remember(headers.get("X-Cato-Remember")))
    count_message(person_id)
    pictures = [
        images.store_image(ContentFile(content, name=_("Picture")), owner_id=person_id)
        for content in pictures_of(asked)
    ]
    switched = services.submit_conversation(
        person_id,
        conversation,
        client_key=_key(person_id, headers.get("Idempotency-Key")),
        api_token_id=principal.token_id,
        thread=thread,
        options=options,
        images=[picture.id for picture in pictures],
    )
    runner.publish_and_start(switched.posted, removed_ids=switched.removed_ids, added_ids=switched.added_ids)
    return switched.posted.turn


def ended(person_id: uuid.UUID, turn: Turn) -> Ended:
    """How the answer to this turn ended. Raises NotFoundError where this person does not read it any more."""
    found = access.get_turn(person_id, turn.thread_id, turn.id)
    recalled = memory.recalled_for([found.id], spaces=memory.readable_space_ids(person_id)).get(found.id, [])
    return Ended(found, [_row(item) for item in recalled])


def _named_thread(person_id: uuid.UUID, name: str | None) -> Thread | None:
    if not name:
        return None
    try:
        return access.get_thread(person_id, uuid.UUID(name))
    except ValueError as error:
        raise OpenAIError(_("X-Cato-Thread must be a thread ID."), param="X-Cato-Thread") from error


def _remember(word: str | None) -> bool | None:
    if not word:
        return None
    if word.lower() not in ("yes", "no"):
        raise OpenAIError(_("X-Cato-Remember is yes or no."), param="X-Cato-Remember")
    return word.lower() == "yes"


def _key(person_id: uuid.UUID, name: str | None) -> uuid.UUID:
    return uuid.uuid5(_KEYS, f"{person_id}/{name}") if name else uuid.uuid4()


def _row(item: RecalledItem) -> dict[str, Any]:
    row: dict[str, Any] = {"id": str(item.exchange_id), "number": item.rank, "similarity": item.similarity}
    if item.exchange is None:
        return row
    said = item.exchange
    return row | {
        "excerpt": excerpt(f"{said.user_message}\n{said.assistant_message}", _EXCERPT),
        "who": said.owner_name,
        "said_at": said.timestamp.isoformat(),
        "source": said.source_file or said.source,
    }
