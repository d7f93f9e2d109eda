"""What the page of a thread offers with the voice, where an administrator has set models for it."""

from __future__ import annotations

from dataclasses import dataclass

from chat.llm import audio


@dataclass(frozen=True, slots=True)
class VoiceRow:
    """The offer of dictation and of reading aloud on a page, and the limits of a recording."""

    dictates: bool
    reads_aloud: bool
    max_seconds: int = audio.MAX_RECORDING_SECONDS
    max_bytes: int = audio.MAX_RECORDING_BYTES


def voice_row() -> VoiceRow:
    """Return what is offered to everybody on this Cato; takes no statement."""
    return VoiceRow(audio.can_transcribe(), audio.can_read_aloud())
