"""Speech and text: the model endpoint transcribes dictated recordings and reads answers aloud. Nothing of it is stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from chat.llm import failures
from chat.llm.client import openai_client
from chat.llm.endpoint import ModelEndpoint
from chat.llm.http import slow_timeout
from chat.llm.usage_counts import UsageCounts
from memory.api import clean_text

MAX_RECORDING_SECONDS, MAX_RECORDING_BYTES = 600, 25_000_000
# What browsers record, with the ending by which endpoints recognise it.
RECORDING_TYPES = {
    "audio/webm": "webm",
    "audio/mp4": "m4a",
    "audio/ogg": "ogg",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
}
_MAX_TOKENS = 10_000_000  # a reported number above this is an error


@dataclass(frozen=True, slots=True)
class Transcript:
    """The text of a recording, and what the request used: tokens only if the endpoint reports them."""

    text: str
    usage: UsageCounts


def can_transcribe() -> bool:
    """Return whether an administrator has set a model for dictation."""
    return bool(settings.CATO.llm.transcription_model)


def can_read_aloud() -> bool:
    """Return whether an administrator has set a model and a voice that read answers aloud."""
    return bool(settings.CATO.llm.speech_model and settings.CATO.llm.speech_voice)


async def transcribe(endpoint: ModelEndpoint, recording: bytes, *, content_type: str) -> Transcript:
    """Return the text of a recording of one of `RECORDING_TYPES`. Raises ModelError."""
    model = settings.CATO.llm.transcription_model or ""
    file = (f"dictation.{RECORDING_TYPES[content_type]}", recording, content_type)
    try:
        async with openai_client(endpoint, model=model) as openai:
            response: Any = await openai.audio.transcriptions.create(
                model=model, file=file, response_format="json", timeout=slow_timeout()
            )
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise failures.unreadable() from error
    text = getattr(response, "text", None)
    if not isinstance(text, str):
        raise failures.unreadable()
    usage = getattr(response, "usage", None)
    counts = UsageCounts(
        model, 1, prompt_tokens=_tokens(usage, "input_tokens"), completion_tokens=_tokens(usage, "output_tokens")
    )
    return Transcript(clean_text(text).strip()[: settings.CATO.chat.max_message_chars], counts)


async def speak(endpoint: ModelEndpoint, text: str) -> AsyncGenerator[bytes, None]:
    """Yield the MP3 of a text of at most 4,096 characters as it arrives. Raises ModelError, also after the first part."""
    model, voice = settings.CATO.llm.speech_model or "", settings.CATO.llm.speech_voice or ""
    async with openai_client(endpoint, model=model) as openai:
        request = openai.audio.speech.with_streaming_response.create(
            model=model, voice=voice, input=text, response_format="mp3", timeout=slow_timeout()
        )
        async with request as response:
            async for part in response.iter_bytes():
                yield part


def speech_usage() -> UsageCounts:
    """Return what a request to read aloud used: one request, because endpoints report no tokens with a sound."""
    return UsageCounts(settings.CATO.llm.speech_model or "", 1)


def _tokens(usage: Any, name: str) -> int:
    count = getattr(usage, name, None)
    return count if isinstance(count, int) and 0 <= count <= _MAX_TOKENS else 0
