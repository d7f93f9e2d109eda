"""Recency, applied only where the question asks for what is latest; anywhere else it buries what is old and right."""

from __future__ import annotations

import re
from datetime import datetime

from memory.retrieval.candidates import Candidate

_LATEST = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|recently|lately|last time|currently|current|at the moment|these days|nowadays"
    r"|right now|today|up to date|aktuell\w*|neueste\w*|letzte\w*|zuletzt|derzeit|momentan|neulich|heute|kürzlich"
    r"|derni[eè]re?s? fois|dernièrement|récemment|actuellement|aujourd'hui|plus récente?"
    r"|últim\w+|recientemente|actualmente|hoy|más reciente)\b",
    re.IGNORECASE,
)


def asks_for_latest(text: str) -> bool:
    """Whether `text` asks how things stand now rather than for something of any time."""
    return bool(_LATEST.search(text))


def apply_recency_decay(candidates: list[Candidate], *, now: datetime, decay: float) -> None:
    """Multiply every score by `decay` for each day that has passed since it was said."""
    for candidate in candidates:
        days = max(0.0, (now - candidate.timestamp).total_seconds() / 86_400)
        candidate.score *= decay**days
