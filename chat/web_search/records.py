"""For which turns the web is searched, and what was found, as the row of the turn stores it.

What was found is shown and cited like what was recalled, but it is not part of the turn's exchange and never remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings

from chat.models import Thread, Turn

_MAX_QUERY = 400  # characters


@dataclass(frozen=True, slots=True)
class WebSource:
    """A page that was found: `text` is what is quoted of it, `published` its date in ISO 8601, "" if it is not known.

    `number` is that of its citations, 0 before the prompt is built.
    """

    title: str
    address: str
    text: str
    published: str = ""
    number: int = 0

    @property
    def item_id(self) -> str:
        """The id of its item in the margin, beside those of recalled passages."""
        return f"web-{self.number}"

    @property
    def published_at(self) -> datetime | None:
        """The date on which it was published."""
        return datetime.fromisoformat(self.published) if self.published else None


@dataclass(frozen=True, slots=True)
class WebSearch:
    """A query and the pages that it found; `error` says why the web could not be searched, after a colon."""

    query: str
    sources: tuple[WebSource, ...] = ()
    error: str = ""

    @classmethod
    def of(cls, turn: Turn) -> WebSearch | None:
        """Return the search for a turn, None if there was none."""
        return cls.from_json(turn.web_search) if turn.web_search else None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> WebSearch:
        """Return what `as_json` returned before."""
        return cls(stored["query"], tuple(WebSource(**source) for source in stored["sources"]), stored["error"])

    def as_json(self) -> dict[str, Any]:
        """Return the search as `Turn.web_search` stores it."""
        return asdict(self)

    def numbered(self, first_number: int) -> WebSearch:
        """Return the search with sources that are numbered from `first_number`."""
        sources = (replace(source, number=number) for number, source in enumerate(self.sources, start=first_number))
        return replace(self, sources=tuple(sources))


def is_available() -> bool:
    """Return whether an administrator has configured searches of the web."""
    return bool(settings.CATO.web_search.searxng_url)


def searches_web(turn: Turn) -> bool:
    """Return whether the web is searched for this turn (loaded with its thread): never for clients of the API and digests."""
    is_from_person = turn.api_token_id is None and turn.digest_scope is None
    return is_available() and turn.thread.has_web_search and is_from_person


def query_of(message: str) -> str:
    """Return what is sent to SearXNG: the beginning of what the author typed, and nothing else."""
    return " ".join(message.split())[:_MAX_QUERY].strip()


def set_web_search(thread: Thread, is_on: bool) -> None:
    """Search the web for the next messages of this thread, or stop doing so."""
    Thread.objects.filter(id=thread.id).update(has_web_search=is_on and is_available())
