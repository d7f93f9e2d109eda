"""The row of which the sets of exchanges are made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """One exchange: its name in the sets, the session it belongs to, when it was said (ISO), and both sides."""

    key: str
    session: str
    said: str
    user: str
    assistant: str
