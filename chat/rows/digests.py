"""The row of a person's digest, with the choices of its form."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.http import QueryDict
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _

from chat.digests.schedule import DEFAULT_TIME_ZONE, time_zones
from chat.llm import endpoint
from chat.models import Digest
from memory import api as memory

EVERY_DAY = "every"
_DEFAULT_TIME = "08:00"


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of the form; `kind` is that of a space."""

    value: str
    label: str
    is_chosen: bool
    kind: str = ""


@dataclass(frozen=True, slots=True)
class DigestRow:
    """The digest, or what the form suggests before it is switched on for the first time (`is_new`).

    `error` is why there was none at the last due time. `thread_id` is where the digests are, if there were any.
    """

    is_on: bool
    is_new: bool
    due_at: datetime | None
    posted_at: datetime | None
    error: str
    thread_id: uuid.UUID | None
    at: str
    is_of_all: bool
    days: tuple[Choice, ...]
    time_zones: tuple[Choice, ...]
    spaces: tuple[Choice, ...]
    has_model: bool


def digest_row(person_id: uuid.UUID, digest: Digest | None, *, sent: QueryDict | None = None) -> DigestRow:
    """Return the row; `sent` is a form that could not be saved, whose values it shows again."""
    if sent is not None:
        day, at, zone = sent.get("day", ""), sent.get("at", ""), sent.get("time_zone", "")
        chosen = set(sent.getlist("space")) if sent.get("of") == "chosen" else set()
        is_of_all = sent.get("of") != "chosen"
    elif digest is not None:
        day = EVERY_DAY if digest.weekday is None else str(digest.weekday)
        at, zone, chosen = digest.at.isoformat("minutes"), digest.time_zone, set(digest.space_ids)
        is_of_all = not chosen
    else:
        day, at, zone, chosen, is_of_all = EVERY_DAY, _DEFAULT_TIME, DEFAULT_TIME_ZONE, set(), True
    days = {EVERY_DAY: _("Every day"), **{str(number): str(name) for number, name in WEEKDAYS.items()}}
    thread = digest.thread if digest else None
    return DigestRow(
        is_on=digest is not None and digest.is_on,
        is_new=digest is None,
        due_at=digest.due_at if digest else None,
        posted_at=digest.posted_at if digest else None,
        error=digest.error if digest and digest.is_on else "",
        thread_id=thread.id if thread is not None and thread.deleted_at is None else None,
        at=at,
        is_of_all=is_of_all,
        days=tuple(Choice(value, label, value == day) for value, label in days.items()),
        time_zones=tuple(Choice(name, name.replace("_", " "), name == zone) for name in time_zones()),
        spaces=tuple(
            Choice(str(space.pk), space.display_name, str(space.pk) in chosen, space.kind)
            for space in memory.list_readable_spaces(person_id)
        ),
        has_model=endpoint.current() is not None,
    )
