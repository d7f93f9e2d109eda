"""The row type of the exchanges."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LabelledExchange:
    """One exchange: its key, its session, its time (ISO), and both messages."""

    key: str
    session: str
    timestamp: str
    user: str
    assistant: str
