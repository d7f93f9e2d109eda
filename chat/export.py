"""Exports of threads as Markdown, JSON that can be imported again, or a self-contained HTML page.

Each function takes the turns in order, loaded with their authors, and yields parts of the file.
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
from chat.rows.recall import RecallItemRow, recalled_rows, thread_titles_of_recalled
from chat.web_search.records import WebSearch, WebSource
from memory import api as memory
from memory.api import SpaceIds, batched

_BATCH_SIZE = 200
_VERSION = 1
_STATES = {
    Turn.State.QUEUED: gettext_noop("Not answered yet"),
    Turn.State.RECALLING: gettext_noop("Not answered yet"),
    Turn.State.ANSWERING: gettext_noop("Still being answered"),
    Turn.State.WAITING: gettext_noop("Still being answered"),
    Turn.State.STOPPED: gettext_noop("Stopped"),
    Turn.State.INTERRUPTED: gettext_noop("Interrupted"),
    Turn.State.FAILED: gettext_noop("Failed"),
}


@dataclass(frozen=True, slots=True)
class ExportedTurn:
    """A turn with its recalled exchanges, and whether it is forgotten."""

    turn: Turn
    recalled: tuple[RecallItemRow, ...]
    is_forgotten: bool

    @property
    def created_at(self) -> str:
        """The time in ISO 8601, without fractions of a second."""
        return _to_the_second(self.turn.created_at)

    @property
    def note(self) -> str:
        """Return the state of an incomplete answer and whether it is forgotten, as a text; "" for neither."""
        ending = _STATES.get(Turn.State(self.turn.state), "")
        return ". ".join(filter(None, (ending and _(ending), _("Forgotten") if self.is_forgotten else "")))

    @property
    def images(self) -> list[tuple[str, str]]:
        """The names and data URLs of the images of the message."""
        return [(row.name, data_url(row)) for row in self.turn.attachments.all() if row.is_image]

    @property
    def files(self) -> list[str]:
        """The names of the other files of the message."""
        return [row.name for row in self.turn.attachments.all() if not row.is_image]

    @property
    def blocks_html(self) -> SafeString:
        """The answer as HTML, without links for citations: the passages are not in the file."""
        return mark_safe("".join(render_blocks(self.turn.answer)))

    @property
    def recalled_lines(self) -> list[str]:
        """A line of text for each recalled exchange."""
        return [_recalled_line(item) for item in self.recalled]

    @property
    def web_sources(self) -> tuple[WebSource, ...]:
        """The pages that were found on the web; like recalled exchanges, they are named and not quoted."""
        search = WebSearch.of(self.turn)
        return search.sources if search else ()

    @property
    def web_lines(self) -> list[str]:
        """A line of text for each page that was found on the web."""
        return [_web_line(source) for source in self.web_sources]


def to_markdown(thread: Thread, turns: Iterable[Turn], *, spaces: SpaceIds | None = None) -> Iterator[str]:
    """Yield the thread as Markdown: messages quoted, answers unchanged, times in UTC.

    `spaces` limits the recalled exchanges to these spaces, for a recipient who cannot read the thread.
    """
    yield f"# {_one_line(thread.title)}\n"
    for exported in _exported_turns(thread, turns, spaces):
        yield f"\n---\n\n**{_one_line(exported.turn.author.name)}**, {exported.created_at}\n\n"
        yield "\n".join(f"> {line}".rstrip() for line in exported.turn.message.split("\n")) + "\n"
        for row in exported.turn.attachments.all():
            label = _("Picture: %(name)s") if row.is_image else _("File: %(name)s")
            yield f"\n*{label % {'name': _one_line(row.name)}}*\n"
        if exported.turn.answer.strip():
            head = exported.turn.model or _("Answer")
            yield f"\n**{head}**\n\n{exported.turn.answer.strip()}\n"
        if exported.note:
            yield f"\n*{exported.note}.*\n"
        if exported.recalled:
            yield "\n" + _("Recalled:") + "\n\n" + "".join(f"- {line}\n" for line in exported.recalled_lines)
        if exported.web_lines:
            yield "\n" + _("Found on the web:") + "\n\n" + "".join(f"- {line}\n" for line in exported.web_lines)


def to_json(thread: Thread, turns: Iterable[Turn], *, spaces: SpaceIds | None = None) -> Iterator[str]:
    """Yield the thread as a JSON object, which `chat.imports.formats` can read; `spaces` as in `to_markdown`.

    Its keys: `format` ("cato-thread"), `version` (1), `thread` (id, title, created_at, model, is_remembered, instructions
    of a client) and `turns`, in order: id, parent_id (of the turn before it), is_on_active_branch, author (name), said_at,
    message, pictures and files (names), answer, answered_at (null without an answer), model, state, is_dummy,
    is_forgotten, `recalled`: number, exchange_id, and either who, said_at and place, or is_forgotten if it was
    forgotten or is not readable, and `web_sources`: number, title, address and published ("" if unknown). Times are ISO
    8601 in UTC.
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
    for number, exported in enumerate(_exported_turns(thread, turns, spaces)):
        yield (",\n" if number else "\n") + _json(_turn_fields(exported))
    yield "\n]}\n"


def to_html(thread: Thread, turns: Iterable[Turn]) -> Iterator[str]:
    """Yield the thread as an HTML page with light and dark colours, which has no script and loads nothing."""
    # The style is inserted here, because templates must not contain style elements.
    colors = (Path(settings.BASE_DIR) / "static/css/colors.css").read_text()
    style = mark_safe(f"<style>{colors}{render_to_string('chat/export.css')}</style>")
    yield render_to_string("chat/export.html", {"part": "head", "title": thread.title, "style": style})
    for batch in batched(_exported_turns(thread, turns), _BATCH_SIZE):
        yield render_to_string("chat/export.html", {"part": "turns", "turns": batch})
    yield render_to_string("chat/export.html", {"part": "foot"})


def _exported_turns(thread: Thread, turns: Iterable[Turn], spaces: SpaceIds | None = None) -> Iterator[ExportedTurn]:
    readers = memory.space_ids_shared_by_all_readers(thread.space_id)
    if spaces is not None:
        readers &= spaces
    for batch in batched(turns, _BATCH_SIZE):
        prefetch_related_objects(batch, "attachments")
        recalled = memory.recalled_for((turn.id for turn in batch), spaces=readers)
        titles = thread_titles_of_recalled(recalled)
        states = memory.memory_states(turn.effective_exchange_id for turn in batch if turn.effective_exchange_id)
        for turn in batch:
            rows = tuple(recalled_rows(recalled.get(turn.id, []), titles))
            forgotten = turn.effective_exchange_id is not None and states.get(turn.effective_exchange_id) == "forgotten"
            yield ExportedTurn(turn, rows, forgotten)


def _turn_fields(exported: ExportedTurn) -> dict[str, object]:
    turn = exported.turn
    return {
        "id": str(turn.id),
        "parent_id": str(turn.parent_id) if turn.parent_id else None,
        "is_on_active_branch": turn.is_on_active_branch,
        "author": turn.author.name,
        "said_at": _iso(turn.created_at),
        "message": turn.message,
        "pictures": [row.name for row in turn.attachments.all() if row.is_image],
        "files": exported.files,
        "answer": turn.answer,
        "answered_at": _iso(turn.completed_at) if turn.completed_at else None,
        "model": turn.model,
        "state": turn.state,
        "is_dummy": turn.is_dummy,
        "is_forgotten": exported.is_forgotten,
        "recalled": [_recalled_fields(item) for item in exported.recalled],
        "web_sources": [_web_fields(source) for source in exported.web_sources],
    }


def _recalled_fields(item: RecallItemRow) -> dict[str, object]:
    fields = {"number": item.number, "exchange_id": str(item.exchange_id)}
    if item.is_missing or item.created_at is None:
        return fields | {"is_forgotten": True}
    return fields | {"who": item.author_name, "said_at": _iso(item.created_at), "place": item.location}


def _recalled_line(item: RecallItemRow) -> str:
    if item.is_missing or item.created_at is None:
        return f"[{item.number}] " + _("forgotten, or not to be read here any more")
    return _one_line(
        ", ".join(filter(None, (f"[{item.number}] {item.author_name}", _to_the_second(item.created_at), item.location)))
    )


def _web_fields(source: WebSource) -> dict[str, object]:
    return {
        "number": source.number,
        "title": source.title,
        "address": source.address,
        "published": source.published,
    }


def _web_line(source: WebSource) -> str:
    return _one_line(", ".join(filter(None, (f"[{source.number}] {source.title}", source.published, source.address))))


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _to_the_second(moment: datetime) -> str:
    return _iso(moment.replace(microsecond=0))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
