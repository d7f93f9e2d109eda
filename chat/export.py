"""A thread as a file to keep: Markdown, JSON that can be imported again, or one HTML page that needs nothing else.

Each writer takes the turns to tell, in their order and loaded with their authors, and gives the file in pieces.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db.models import prefetch_related_objects
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.imports.formats.cato import FORMAT
from chat.llm.prompts import data_url
from chat.models import Thread, Turn
from chat.rendering.blocks import render_blocks
from chat.rows.recall import RecallItemRow, recalled_row, thread_titles_of_recalled
from memory import api as memory
from memory.api import SpaceIds, batched

_PAGE = 200
_VERSION = 1
_STATES = {
    Turn.State.QUEUED: gettext_noop("Not answered yet"),
    Turn.State.RECALLING: gettext_noop("Not answered yet"),
    Turn.State.ANSWERING: gettext_noop("Still being answered"),
    Turn.State.STOPPED: gettext_noop("Stopped"),
    Turn.State.INTERRUPTED: gettext_noop("Interrupted"),
    Turn.State.FAILED: gettext_noop("Failed"),
}


@dataclass(frozen=True, slots=True)
class ExportedTurn:
    """A turn as its thread's page shows it: with what was recalled for it, and whether it was forgotten since."""

    turn: Turn
    recalled: tuple[RecallItemRow, ...]
    is_forgotten: bool

    @property
    def said_at(self) -> str:
        return _to_the_second(self.turn.created_at)

    @property
    def note(self) -> str:
        """How the answer ended and what became of it, in words; "" where there is nothing to say."""
        ending = _STATES.get(Turn.State(self.turn.state), "")
        return ". ".join(filter(None, (ending and _(ending), _("Forgotten") if self.is_forgotten else "")))

    @property
    def pictures(self) -> list[tuple[str, str]]:
        """The message's pictures: the name of each, and an address that carries it."""
        return [(image.name, data_url(image)) for image in self.turn.images.all()]

    @property
    def blocks_html(self) -> SafeString:
        # Its numbers stay text: the passages they lead to are not in the file.
        return mark_safe("".join(render_blocks(self.turn.answer)))

    @property
    def recalled_lines(self) -> list[str]:
        return [_recalled_line(item) for item in self.recalled]


def to_markdown(thread: Thread, turns: Iterable[Turn], *, shown: SpaceIds | None = None) -> Iterator[str]:
    """The thread as Markdown, in pieces: what was said quoted, answers as they are, times in UTC.

    `shown` names what was recalled from these spaces only, where whoever gets the file does not read the thread.
    """
    yield f"# {_one_line(thread.title)}\n"
    for told in _exported_turns(thread, turns, shown):
        yield f"\n---\n\n**{_one_line(told.turn.author.name)}**, {told.said_at}\n\n"
        yield "\n".join(f"> {line}".rstrip() for line in told.turn.message.split("\n")) + "\n"
        yield "".join(
            "\n*" + _("Picture: %(name)s") % {"name": _one_line(image.name)} + "*\n" for image in told.turn.images.all()
        )
        if told.turn.answer.strip():
            head = told.turn.model or _("Answer")
            yield f"\n**{head}**\n\n{told.turn.answer.strip()}\n"
        if told.note:
            yield f"\n*{told.note}.*\n"
        if told.recalled:
            yield "\n" + _("Recalled:") + "\n\n" + "".join(f"- {line}\n" for line in told.recalled_lines)


def to_json(thread: Thread, turns: Iterable[Turn], *, shown: SpaceIds | None = None) -> Iterator[str]:
    """The thread as one JSON object, in pieces; `chat.imports.formats` reads it again.

    `format` ("cato-thread"), `version` (1), `thread` (id, title, created_at, model, is_remembered, and the instructions of
    a program) and `turns`, in their order: id, author (a name), said_at, message, pictures (their names), answer, answered_at (null while there is
    none), model, state, is_dummy, is_forgotten, and `recalled`, each with number, exchange_id, and who, said_at and
    place, or is_forgotten alone where it was forgotten or may not be read. Times are ISO 8601 in UTC. `shown` is the
    same as for Markdown.
    """
    about = {
        "id": str(thread.id),
        "title": thread.title,
        "created_at": _iso(thread.created_at),
        "model": thread.model,
        "is_remembered": thread.is_remembered,
        "instructions": thread.instructions,
    }
    yield f'{{"format": {_json(FORMAT)}, "version": {_VERSION}, "thread": {_json(about)}, "turns": ['
    for number, told in enumerate(_exported_turns(thread, turns, shown)):
        yield (",\n" if number else "\n") + _json(_turn_fields(told))
    yield "\n]}\n"


def to_html(thread: Thread, turns: Iterable[Turn]) -> Iterator[str]:
    """The thread as one HTML page, in pieces: light and dark, without script, and nothing in it loads from elsewhere."""
    # Pages may have no style of their own, this file has nowhere else to have one; so it is not in the template.
    colors = (Path(settings.BASE_DIR) / "static/css/colors.css").read_text()
    style = mark_safe(f"<style>{colors}{render_to_string('chat/export.css')}</style>")
    yield render_to_string("chat/export.html", {"part": "head", "title": thread.title, "style": style})
    for page in batched(_exported_turns(thread, turns), _PAGE):
        yield render_to_string("chat/export.html", {"part": "turns", "turns": page})
    yield render_to_string("chat/export.html", {"part": "foot"})


def _exported_turns(thread: Thread, turns: Iterable[Turn], shown: SpaceIds | None = None) -> Iterator[ExportedTurn]:
    readers = memory.space_ids_shared_by_all_readers(thread.space_id)
    if shown is not None:
        readers &= shown
    for page in batched(turns, _PAGE):
        prefetch_related_objects(page, "images")
        recalled = memory.recalled_for((turn.id for turn in page), spaces=readers)
        places = thread_titles_of_recalled(recalled)
        states = memory.memory_states(turn.effective_exchange_id for turn in page if turn.effective_exchange_id)
        for turn in page:
            rows = tuple(recalled_row(item, places) for item in recalled.get(turn.id, []))
            forgotten = turn.effective_exchange_id is not None and states.get(turn.effective_exchange_id) == "forgotten"
            yield ExportedTurn(turn, rows, forgotten)


def _turn_fields(told: ExportedTurn) -> dict[str, object]:
    turn = told.turn
    return {
        "id": str(turn.id),
        "author": turn.author.name,
        "said_at": _iso(turn.created_at),
        "message": turn.message,
        "pictures": [image.name for image in turn.images.all()],
        "answer": turn.answer,
        "answered_at": _iso(turn.completed_at) if turn.completed_at else None,
        "model": turn.model,
        "state": turn.state,
        "is_dummy": turn.is_dummy,
        "is_forgotten": told.is_forgotten,
        "recalled": [_recalled_fields(item) for item in told.recalled],
    }


def _recalled_fields(item: RecallItemRow) -> dict[str, object]:
    known = {"number": item.number, "exchange_id": str(item.exchange_id)}
    if item.is_forgotten or item.created_at is None:
        return known | {"is_forgotten": True}
    return known | {"who": item.author_name, "said_at": _iso(item.created_at), "place": item.location}


def _recalled_line(item: RecallItemRow) -> str:
    if item.is_forgotten or item.created_at is None:
        return f"[{item.number}] " + _("forgotten, or not to be read here any more")
    return _one_line(
        ", ".join(filter(None, (f"[{item.number}] {item.author_name}", _to_the_second(item.created_at), item.location)))
    )


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _to_the_second(moment: datetime) -> str:
    return _iso(moment.replace(microsecond=0))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
