"""Dictation and reading aloud: only where configured, within limits, and nothing of a recording is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.core.cache import cache

from cato_web.config.loader import ConfigError, load
from chat.llm import audio
from chat.models import Endpoint, Turn, UsageDay
from chat.rendering.speech import MAX_PART_CHARS, speech_parts
from tests.factories import PersonFactory, group, signed_in, thread, turn
from tests.usage import KEY, connect, limit, used

pytestmark = pytest.mark.django_db

TRANSCRIPTIONS, SPEECH = "/v1/audio/transcriptions", "/v1/audio/speech"
RECORDING = b"\x1aE\xdf\xa3" + b"sound" * 100


@pytest.fixture
def voice(settings: Any, endpoint: Any) -> Any:
    """Configure the models, and connect the fake endpoint."""
    names = {"transcription_model": "whisper-1", "speech_model": "tts-1", "speech_voice": "alloy"}
    settings.CATO = settings.CATO.model_copy(update={"llm": settings.CATO.llm.model_copy(update=names)})
    connect(endpoint)
    return endpoint


def dictate(person: Any, recording: bytes = RECORDING, content_type: str = "audio/webm") -> tuple[int, str]:
    response = signed_in(person).post("/dictation", recording, content_type=content_type, CONTENT_TYPE=content_type)
    return response.status_code, response.content.decode()


def answered(person: Any, answer: str = "The boat is **red** [1].", **fields: Any) -> Turn:
    return turn(thread(person, **fields), "What color is it?", answer)


async def _read(response: Any) -> bytes:
    return b"".join([part async for part in response])


def read_aloud(person: Any, one: Turn, part: object = 0) -> tuple[int, bytes]:
    response = signed_in(person).post(f"/t/{one.thread_id}/turns/{one.pk}/speech?part={part}")
    return response.status_code, asyncio.run(_read(response)) if response.streaming else response.content


# Where nothing is configured


def test_without_a_model_nothing_is_offered_and_nothing_is_sent(person, endpoint):
    connect(endpoint)
    one = answered(person)
    page = signed_in(person).get(f"/t/{one.thread_id}").content.decode()
    for trace in ("dictat", "data-speech", "read-aloud", "voice.css", "recorder.js"):
        assert trace not in page
    assert dictate(person)[0] == 422
    assert read_aloud(person, one)[0] == 422
    assert endpoint.requests(KEY, TRANSCRIPTIONS) + endpoint.requests(KEY, SPEECH) == []


def test_the_microphone_is_for_own_pages_only_and_only_if_it_is_used(person, voice, settings):
    client = signed_in(person)
    assert "microphone=(self)," in client.get("/").headers["Permissions-Policy"]
    llm = settings.CATO.llm.model_copy(update={"transcription_model": None})
    settings.CATO = settings.CATO.model_copy(update={"llm": llm})
    assert "microphone=()," in client.get("/").headers["Permissions-Policy"]


def test_with_models_both_are_offered(person, voice):
    one = answered(person)
    page = signed_in(person).get(f"/t/{one.thread_id}").content.decode()
    assert 'id="dictate"' in page
    assert f'data-speech="/t/{one.thread_id}/turns/{one.pk}/speech"' in page
    assert "data-speech" not in signed_in(person).get(f"/t/{answered(person, '').thread_id}").content.decode()


def test_a_voice_and_its_model_are_set_together(tmp_path):
    with pytest.raises(ConfigError, match="speech_voice"):
        load(environ={"CATO_LLM_SPEECH_MODEL": "tts-1", "CATO_DATA_DIR": str(tmp_path)})


# Dictation


def rows() -> dict[str, int]:
    """Return the number of rows of each table, except sign-ins and usage."""
    tables = [model for model in apps.get_models() if model is not UsageDay and "ession" not in model.__name__]
    return {model._meta.label: model._default_manager.count() for model in tables}


def files(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*") if path.is_file()}


def test_a_recording_becomes_text_and_nothing_of_it_is_kept(person, voice, tmp_path, settings, monkeypatch):
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    media = Path(django_settings.MEDIA_ROOT)
    before = rows(), files(media)
    # Longer than what Django keeps of a form in memory.
    recording = RECORDING + bytes(4_000_000)

    assert dictate(person, recording) == (200, "The boat is red.")

    assert (rows(), files(media), files(tmp_path)) == (*before, set())
    (request,) = voice.requests(KEY, TRANSCRIPTIONS)
    assert request["model"] == "whisper-1"
    assert request["file"] == {"name": "dictation.webm", "type": "audio/webm", "bytes": len(recording)}


def test_its_usage_is_counted_as_far_as_the_endpoint_reports_it(person, voice):
    dictate(person)
    row = UsageDay.objects.get()
    assert (row.purpose, row.model, row.person_id, row.requests) == ("dictation", "whisper-1", person.pk, 1)
    assert row.prompt_tokens == row.completion_tokens == 0

    reported = {"type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59}
    voice.script(KEY, transcription_usage=reported)
    dictate(person)
    row.refresh_from_db()
    assert (row.requests, row.prompt_tokens, row.completion_tokens) == (2, 14, 45)


@pytest.mark.parametrize(
    ("recording", "content_type", "reason"),
    [(b"", "audio/webm", "empty"), (b"x", "text/plain", "format"), (b"x", "", "format")],
)
def test_what_is_no_recording_is_refused(person, voice, recording, content_type, reason):
    status, text = dictate(person, recording, content_type)
    assert status == 422
    assert reason in text
    assert voice.requests(KEY, TRANSCRIPTIONS) == []


def test_a_recording_that_is_too_large_is_refused(person, voice, monkeypatch):
    monkeypatch.setattr(audio, "MAX_RECORDING_BYTES", 1000)
    assert dictate(person, bytes(1000))[0] == 200
    status, text = dictate(person, bytes(1001))
    assert status == 422
    assert "too large" in text
    assert len(voice.requests(KEY, TRANSCRIPTIONS)) == 1


@pytest.mark.parametrize(
    ("mode", "reason"), [("error-500", "failed"), ("error-401", "refuses the API key"), ("error-404", "whisper-1")]
)
def test_an_error_of_the_endpoint_is_a_sentence(person, voice, mode, reason):
    voice.script(KEY, mode=mode)
    status, text = dictate(person)
    assert status == 502
    assert reason in text
    assert "<" not in text
    assert not UsageDay.objects.exists()


def test_a_limit_of_usage_applies_to_both(person, voice):
    limit("person", person.pk, hard=100)
    used(person, 100)

    status, text = dictate(person)
    assert (status, "monthly limit" in text) == (429, True)
    assert read_aloud(person, answered(person))[0] == 429
    assert voice.requests(KEY, TRANSCRIPTIONS) == voice.requests(KEY, SPEECH) == []


def test_recordings_and_answers_read_aloud_count_as_messages_of_a_minute(person, voice, settings):
    cache.clear()
    chat = settings.CATO.chat.model_copy(update={"messages_per_minute": 1})
    settings.CATO = settings.CATO.model_copy(update={"chat": chat})
    other = PersonFactory()
    one = answered(other)

    assert [dictate(person)[0] for _time in range(2)] == [200, 429]
    assert [read_aloud(other, one)[0] for _time in range(2)] == [200, 429]
    assert len(voice.requests(KEY, TRANSCRIPTIONS)) == len(voice.requests(KEY, SPEECH)) == 1


# Reading aloud


def test_an_answer_is_read_aloud_in_parts(person, voice):
    one = answered(person)
    status, sound = read_aloud(person, one)
    assert (status, sound[:4]) == (200, b"RIFF")
    assert voice.requests(KEY, SPEECH) == [
        {"model": "tts-1", "voice": "alloy", "input": "The boat is red.", "response_format": "mp3"}
    ]
    assert read_aloud(person, one, 1)[0] == 204
    row = UsageDay.objects.get()
    assert (row.purpose, row.model, row.requests) == ("speech", "tts-1", 1)


def test_only_who_reads_the_thread_hears_it(person, voice):
    crew = group("Crew", person, colleague := PersonFactory())
    one = answered(person, space=crew)
    assert read_aloud(colleague, one)[0] == 200
    assert read_aloud(PersonFactory(), one)[0] == 404
    assert len(voice.requests(KEY, SPEECH)) == 1


def test_the_data_policy_of_the_endpoint_covers_voices(person, voice):
    crew = group("Crew", person)
    Endpoint.objects.update(policy="listed", allowed_in=[str(crew.id)])

    assert read_aloud(person, answered(person, space=crew))[0] == 200
    assert read_aloud(person, answered(person)) == (
        422,
        b"The model that reads aloud may not receive text of this space.",
    )
    # A recording can become a message in any space.
    assert dictate(person) == (422, "The model for dictation may not receive text of all spaces. Type the message.")
    assert len(voice.requests(KEY, SPEECH)) == 1
    assert voice.requests(KEY, TRANSCRIPTIONS) == []


@pytest.mark.parametrize("part", ["-1", "x", "", "999999"])
def test_a_wrong_part_is_refused(person, voice, part):
    assert read_aloud(person, answered(person), part)[0] == 422


def test_an_error_before_the_sound_is_a_sentence(person, voice):
    voice.script(KEY, mode="error-500")
    status, text = read_aloud(person, answered(person))
    assert status == 502
    assert b"failed" in text


@pytest.mark.parametrize(
    ("answer", "spoken"),
    [
        ("# The boat\n\nIt is **red** and _fast_ [1, 2].", "The boat.\nIt is red and fast."),
        ("- one\n- two\n  - three", "one.\ntwo.\nthree."),
        ("Run `make`:\n\n```sh\nmake run\n```\n\nDone", "Run make:\nDone."),
        ("See [the plan](https://example.org/a_b).", "See the plan."),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a, b.\n1, 2."),
        ("Two\nlines", "Two lines."),
        ("It is $$a^2$$ then", "It is  then."),
        ("```\ncode\n```", ""),
        ("", ""),
    ],
)
def test_marks_citations_and_code_are_not_read(answer, spoken):
    assert "\n".join(speech_parts(answer)) == spoken


@pytest.mark.parametrize("word", ["A sentence of some words. ", "word ", "x", "日本語です。"])
def test_no_part_is_longer_than_endpoints_accept_and_nothing_is_lost(word):
    text = (word * 30_000)[:30_000]
    parts = speech_parts(text)
    assert max(map(len, parts)) <= MAX_PART_CHARS
    assert len(parts[0]) <= 400, "reading begins soon"
    assert "".join("".join(parts).split()).rstrip(".") == "".join(text.split()).rstrip(".")
