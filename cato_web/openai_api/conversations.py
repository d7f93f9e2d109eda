"""Submit a client's conversation and load the resulting answer."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.core.files.base import ContentFile
from django.http import HttpRequest
from django.utils.translation import gettext as _
from pydantic import BaseModel

from cato_web.api_auth import Principal
from cato_web.idempotency import MAX_KEY_LENGTH, message_key
from cato_web.openai_api.errors import OpenAIError
from cato_web.openai_api.messages import image_bytes
from cato_web.openai_api.requests import ChatRequest, generation_options, to_conversation
from chat import access, attachments, services
from chat.answers import runner
from chat.models import Thread, Turn
from chat.services import ForkPoint, ThreadOptions
from memory import api as memory
from memory.api import RecalledPassage, count_message, excerpt

_EXCERPT_LENGTH = 240


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """A finished answer and what was recalled for it."""

    turn: Turn
    recalled: list[dict[str, Any]]


def submit(
    principal: Principal,
    body: ChatRequest,
    request: HttpRequest,
    model: str | None,
    *,
    sent: BaseModel,
    thread: Thread | None = None,
    fork_point: ForkPoint | None = None,
    is_stored: bool = True,
) -> Turn:
    """Post the new part of the conversation in its thread and start the answer.

    `sent`: what the client sent, which is `body` or was converted to it. `thread` or `fork_point`: instead of the thread
    that the header names. `is_stored`: False keeps the thread out of memory, whatever the header says. Raises
    OpenAIError and CatoError.
    """
    person_id, headers = principal.person.pk, request.headers
    conversation = to_conversation(body)
    thread = thread or _thread_from_header(person_id, headers.get("X-Cato-Thread"))
    is_remembered = _memory_from_header(headers.get("X-Cato-Remember"))
    options = ThreadOptions(
        model=model,
        is_remembered=is_remembered if is_stored else False,
        generation=generation_options(body),
    )
    count_message(person_id)
    stored = [
        attachments.store_image(ContentFile(content, name=_("Picture")), owner_id=person_id)
        for content in image_bytes(body.messages)
    ]
    with message_key(
        principal.token_id,
        _key_from_header(headers.get("Idempotency-Key")),
        path=request.path,
        content=[
            sent.model_dump(mode="json", exclude={"stream", "stream_options"}),
            *(headers.get(name) for name in ("X-Cato-Thread", "X-Cato-Remember")),
        ],
    ) as client_key:
        submitted = services.submit_conversation(
            person_id,
            conversation,
            client_key=client_key,
            api_token_id=principal.token_id,
            thread=thread,
            fork_point=fork_point,
            options=options,
            attachments=[image.id for image in stored],
        )
    runner.publish_and_start(submitted.posted, removed_ids=submitted.removed_ids, added_ids=submitted.added_ids)
    return submitted.posted.turn


def load_result(person_id: uuid.UUID, turn: Turn) -> AnswerResult:
    """Load the finished answer of a turn. Raises NotFoundError if the user cannot read it any more."""
    turn = access.get_turn(person_id, turn.thread_id, turn.id)
    recalled = memory.recalled_for([turn.id], spaces=memory.readable_space_ids(person_id)).get(turn.id, [])
    return AnswerResult(turn, [_recalled_fields(passage) for passage in recalled])


def _thread_from_header(person_id: uuid.UUID, name: str | None) -> Thread | None:
    if not name:
        return None
    try:
        return access.get_thread(person_id, uuid.UUID(name))
    except ValueError as error:
        raise OpenAIError(_("X-Cato-Thread must be a thread ID."), param="X-Cato-Thread") from error


def _memory_from_header(value: str | None) -> bool | None:
    if not value:
        return None
    if value.lower() not in ("yes", "no"):
        raise OpenAIError(_("X-Cato-Remember is yes or no."), param="X-Cato-Remember")
    return value.lower() == "yes"


def _key_from_header(value: str | None) -> str | None:
    if value and len(value) > MAX_KEY_LENGTH:
        sentence = _("Idempotency-Key has at most %(count)s characters.") % {"count": MAX_KEY_LENGTH}
        raise OpenAIError(sentence, param="Idempotency-Key")
    return value or None


def _recalled_fields(passage: RecalledPassage) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": str(passage.exchange_id),
        "number": passage.number,
        "similarity": passage.similarity,
    }
    exchange = passage.exchange
    if exchange is None:
        return row
    return row | {
        "excerpt": excerpt(f"{passage.message}\n{passage.answer}", _EXCERPT_LENGTH),
        "who": exchange.owner_name,
        "said_at": exchange.timestamp.isoformat(),
        "source": exchange.source_file or exchange.source,
    }
