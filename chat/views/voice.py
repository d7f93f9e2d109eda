"""Dictation and reading aloud, where an administrator has set models for them. Neither is stored."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chat import access
from chat.errors import DataPolicyError, ModelError, UsageLimitError
from chat.llm import audio, client
from chat.llm import endpoint as endpoints
from chat.llm.endpoint import ModelEndpoint
from chat.rendering.speech import speech_parts
from chat.usage.counting import Purpose, count_usage
from chat.usage.limits import check_limits
from memory.api import DataPolicy, InvalidInputError, PageRequest, RateLimitedError, count_message, may_receive

_STATUSES: dict[type[Exception], int] = {
    RateLimitedError: 429,
    UsageLimitError: 429,
    InvalidInputError: 422,
    ModelError: 502,
}
_EXPECTED: tuple[type[Exception], ...] = tuple(_STATUSES)
_MAX_PART_DIGITS = 5


@require_POST
def dictation(request: PageRequest) -> HttpResponse:
    """Return the text of the recording that is the body of the request; an error is a sentence, too.

    The body is read here and not as a form, which would write a long recording to a file.
    """
    try:
        endpoint = _endpoint(audio.can_transcribe())
        if endpoint.policy.kind != DataPolicy.ALL:
            # A recording can become a message in any space.
            raise DataPolicyError(_("The model for dictation may not receive text of all spaces. Type the message."))
        count_message(request.user.pk)
        check_limits(request.user.pk, space=None)
        content_type, recording = _read_recording(request)
        transcript = client.run(audio.transcribe(endpoint, recording, content_type=content_type))
    except _EXPECTED as error:
        return _error(error)
    count_usage(transcript.usage, purpose=Purpose.DICTATION, person_id=request.user.pk)
    return _text(transcript.text)


@require_POST
async def speech(request: PageRequest, thread_id: uuid.UUID, turn_id: uuid.UUID) -> HttpResponseBase:
    """Stream the sound of a part of an answer, `part` from 0; 204 after the last one. An error is a sentence."""
    person_id = request.user.pk
    try:
        part = request.GET.get("part", "0")
        prepared = await sync_to_async(_prepare_speech)(person_id, thread_id, turn_id, part)
        if prepared is None:
            return HttpResponse(status=204)
        endpoint, text = prepared
        sound = audio.speak(endpoint, text)
        # Errors of the endpoint come before its first bytes, and a status cannot be sent later.
        first = await anext(sound, b"")
    except _EXPECTED as error:
        return _error(error)
    await sync_to_async(count_usage)(audio.speech_usage(), purpose=Purpose.SPEECH, person_id=person_id)

    async def parts() -> AsyncIterator[bytes]:
        yield first
        async for part in sound:
            yield part

    return StreamingHttpResponse(parts(), content_type="audio/mpeg")


def _prepare_speech(
    person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID, part: str
) -> tuple[ModelEndpoint, str] | None:
    """Return the endpoint and the text of this part, None after the last one.

    Raises NotFoundError, RateLimitedError, UsageLimitError and InvalidInputError.
    """
    turn = access.get_turn(person_id, thread_id, turn_id)
    endpoint = _endpoint(audio.can_read_aloud())
    if not may_receive(endpoint.policy, turn.thread.space):
        raise DataPolicyError(_("The model that reads aloud may not receive text of this space."))
    if not (part.isascii() and part.isdecimal() and len(part) <= _MAX_PART_DIGITS):
        raise InvalidInputError(_("There is no such part of the answer."))
    parts = [] if turn.is_running else speech_parts(turn.answer)
    if int(part) >= len(parts):
        return None
    count_message(person_id)
    check_limits(person_id, space=turn.thread.space)
    return endpoint, parts[int(part)]


def _read_recording(request: PageRequest) -> tuple[str, bytes]:
    """Return the type and the bytes of the recording. Raises InvalidInputError."""
    content_type = request.content_type or ""
    if content_type not in audio.RECORDING_TYPES:
        raise InvalidInputError(_("This browser records in a format that Cato does not know. Use another browser."))
    recording = request.read(audio.MAX_RECORDING_BYTES + 1)
    if len(recording) > audio.MAX_RECORDING_BYTES:
        raise InvalidInputError(_("The recording is too large. Dictate in shorter parts."))
    if not recording:
        raise InvalidInputError(_("The recording is empty. Check the microphone and try again."))
    return content_type, recording


def _endpoint(is_configured: bool) -> ModelEndpoint:
    """Return the model endpoint. Raises InvalidInputError if it has no model for this."""
    endpoint = endpoints.current() if is_configured else None
    if endpoint is None:
        raise InvalidInputError(_("No model is configured for this. An administrator can set one."))
    return endpoint


def _error(error: Exception) -> HttpResponse:
    return _text(str(error), next(status for kind, status in _STATUSES.items() if isinstance(error, kind)))


def _text(text: str, status: int = 200) -> HttpResponse:
    return HttpResponse(text, content_type="text/plain; charset=utf-8", status=status)
