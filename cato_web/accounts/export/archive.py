"""The files of the archive with all data of a user."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.core.files import File
from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Length
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from cato_web.accounts.export import rows as export_rows
from cato_web.accounts.export.selection import Selection
from cato_web.accounts.export.zip_stream import ArchiveFile, stream_zip
from cato_web.accounts.models import AuditEntry, User
from chat.export import to_json, to_markdown
from chat.models import Thread, Turn
from chat.services import receipts_of
from chat.usage.reports import usage_rows_of
from memory import api as memory
from memory.api import (
    Chunk,
    DocumentVersion,
    Feedback,
    ProgressCallback,
    Record,
    Space,
    Supersession,
    excerpt,
    iterate_by_pk,
    no_progress,
)

_CHUNK_SIZE = 64 * 1024
_BATCH_SIZE = 200
_CHECK_INTERVAL = 2.0  # seconds, as for answers
# Bytes of a turn with a long answer and its passages.
_ESTIMATED_TURN_SIZE = 20_000
# Bytes of a number of a vector as JSON, per byte as it is stored.
_VECTOR_FACTOR = 6
M = TypeVar("M", bound=Model)

README = gettext_noop("""\
This is everything that this Cato stores about one person. Times are ISO 8601 in UTC; *.jsonl is one JSON object a line.

account.json        the account with its settings, login sessions and accounts at identity providers, and the names of
                    its API tokens
threads/            this person's threads as JSON, which Cato can import again, with all versions of messages and
                    answers, and as Markdown with the versions that are shown
said-elsewhere.jsonl  this person's messages in the threads of others
attachments/        the files sent with their messages; attachments.jsonl names the turns
exchanges.jsonl     exchanges in memory: all of their personal space, and this person's own in shared spaces
notes.jsonl         the same for notes
records.jsonl       the same for records, which other programs stored here under their own ids
statements.jsonl    the knowledge extracted from this person's messages: statements with their sources
documents/          the original files that are kept, with a description of each document
opinions.jsonl      the sources that this person pinned or marked as not relevant
instructions.jsonl  the standing instructions that this person wrote, for themselves and for shared spaces
prompts.jsonl       the prompts that this person saved, for themselves and for shared spaces
superseded.jsonl    the recalled messages that this person marked as superseded or as being on another subject
receipts.jsonl      what this person forgot everywhere: ids and counts, without texts
imports.jsonl       the files with conversations that were imported, with the results
usage.jsonl         the use of models for this person's answers, titles and knowledge, by day
reveals.jsonl       the administrators who got access to this person's personal space, when and for what reason
audit.jsonl         this person's actions in the audit log
left-out.txt        only if an administrator downloaded the archive: the spaces that are not in it, and why

What was forgotten or deleted is not in the archive. Forgotten turns are also left out of the threads, although the text is
still on the pages of these threads.
""")


LEFT_OUT = gettext_noop("""\
An administrator downloaded this archive. It has nothing from the spaces below: this person reads them, but the
administrator is not a member and was not given access to them. Threads, exchanges, notes, documents and pictures
there are left out, and what was recalled from there for answers elsewhere is only counted.

""")


def select_for(person: User, *, by: User) -> Selection:
    """Return what an administrator gets of another person now: readable and revealed spaces."""
    spaces = memory.readable_space_ids(person.pk) & memory.admin_visible_space_ids(by.pk)
    return Selection(person, spaces, timezone.now())


def stream_for(person: User, *, by: User) -> Iterator[bytes]:
    """Yield the archive of another person while the administrator sees all its spaces; they are checked every two seconds.

    Raises PermissionDenied, which breaks the download off instead of ending it as if it was complete.
    """
    selection, checked_at = select_for(person, by=by), time.monotonic()
    for chunk in stream_zip(archive_files(selection)):
        if time.monotonic() - checked_at >= _CHECK_INTERVAL:
            if not selection.spaces <= select_for(person, by=by).spaces:
                raise PermissionDenied
            checked_at = time.monotonic()
        yield chunk


def count_entries(selection: Selection) -> int:
    """Return how many messages, exchanges and files `archive_files` reports as progress."""
    own_turns = selection.turns().filter(thread__owner_id=selection.person.pk)
    rows = (
        own_turns,
        selection.exchanges(),
        selection.statements(),
        selection.attachments(),
        selection.versions(),
    )
    return sum(each.count() for each in rows)


def archive_files(selection: Selection, *, progress: ProgressCallback = no_progress) -> Iterator[ArchiveFile]:
    """Yield the files of the archive; `progress` counts "entries" while they are read."""
    person, now = selection.person, selection.until
    yield ArchiveFile("README.txt", now, [_(README).encode()])
    if left_out := memory.readable_space_ids(person.pk) - selection.spaces:
        names = sorted(space.display_name for space in Space.objects.filter(pk__in=left_out))
        yield ArchiveFile("left-out.txt", now, [_(LEFT_OUT).encode(), *(f"- {name}\n".encode() for name in names)])
    yield ArchiveFile("account.json", now, [_json(export_rows.account(person)).encode()])
    yield from _thread_files(selection, progress)
    said_elsewhere = selection.turns().exclude(thread__owner_id=person.pk)
    yield ArchiveFile("said-elsewhere.jsonl", now, _lines(said_elsewhere, export_rows.of_turn))
    yield from _attached_files(selection, progress)
    yield from _memory_files(selection, progress)
    yield from _document_files(selection, progress)
    for name, lines in (
        ("opinions", _lines(_opinions(person), export_rows.of_opinion)),
        ("instructions", _lines(selection.instructions(), export_rows.of_instruction)),
        ("prompts", _lines(selection.prompts(), export_rows.of_prompt)),
        ("superseded", _lines(_decisions(person), export_rows.of_supersession)),
        ("receipts", _lines(receipts_of(person.pk), export_rows.of_receipt)),
        ("imports", _lines(selection.imports(), export_rows.of_import)),
        ("usage", _lines(usage_rows_of(person.pk), export_rows.of_usage)),
        ("reveals", _lines(memory.list_reveals(memory.personal_space(person.pk)), export_rows.of_reveal)),
        ("audit", _lines(AuditEntry.objects.filter(actor=person), export_rows.of_audit)),
    ):
        yield ArchiveFile(f"{name}.jsonl", now, lines)


def _memory_files(selection: Selection, progress: ProgressCallback) -> Iterator[ArchiveFile]:
    now, exchanges = selection.until, selection.exchanges()
    size = 12 * (exchanges.aggregate(sum=Sum("size"))["sum"] or 0)
    is_note = Q(manual_entry=True) & ~Exists(Chunk.objects.filter(exchange=OuterRef("pk")))
    said = exchanges.exclude(is_note).filter(record=None)
    yield ArchiveFile("exchanges.jsonl", now, _lines(said, export_rows.of_exchange, progress), size)
    notes = exchanges.filter(is_note)
    yield ArchiveFile("notes.jsonl", now, _lines(notes, export_rows.of_exchange, progress), size)
    records = Record.objects.filter(exchange__in=exchanges).select_related("exchange__space")
    size += _VECTOR_FACTOR * (records.aggregate(sum=Sum(Length("vector")))["sum"] or 0)
    yield ArchiveFile("records.jsonl", now, _lines(records, export_rows.of_record, progress), size)
    of_statement = partial(export_rows.of_statement, person=selection.person)
    yield ArchiveFile("statements.jsonl", now, _lines(selection.statements(), of_statement, progress))


def _thread_files(selection: Selection, progress: ProgressCallback) -> Iterator[ArchiveFile]:
    threads, spaces = selection.threads(), selection.spaces
    for number, thread in enumerate((t for page in iterate_by_pk(threads, _BATCH_SIZE) for t in page), start=1):
        thread.title = _title(thread)
        path = f"threads/{number:05d} {_safe_name(thread.title)[:60].strip()}"
        turns = selection.turns_of(thread).select_related("author")
        at, active = thread.last_message_at, turns.filter(is_on_active_branch=True)
        size = turns.count() * _ESTIMATED_TURN_SIZE
        said = _counted(_unforgotten(turns), progress)
        yield ArchiveFile(f"{path}.json", at, _encode(to_json(thread, said, spaces=spaces)), size)
        yield ArchiveFile(f"{path}.md", at, _encode(to_markdown(thread, _unforgotten(active), spaces=spaces)), size)


def _counted(rows: Iterable[M], progress: ProgressCallback) -> Iterator[M]:
    for row in rows:
        progress("entries", 1)
        yield row


def _title(thread: Thread) -> str:
    """Return the thread's title, unless it is the beginning of a forgotten message, or what the model made of it."""
    first_turns = thread.turns.filter(parent=None)
    remembered = {turn.pk for turn in _unforgotten(first_turns)}
    forgotten_titles = [excerpt(turn.message, 80) for turn in first_turns if turn.pk not in remembered]
    is_from_model = thread.title_source == Thread.TitleSource.MODEL and bool(forgotten_titles)
    return _("Forgotten") if is_from_model or thread.title in forgotten_titles else thread.title


def _unforgotten(turns: QuerySet[Turn]) -> Iterator[Turn]:
    """Yield the turns in order, in batches, so that a slow download does not keep a cursor open."""
    page = list(turns.order_by("position")[:_BATCH_SIZE])
    while page:
        states = memory.memory_states(turn.effective_exchange_id for turn in page if turn.effective_exchange_id)
        yield from (
            turn
            for turn in page
            if turn.effective_exchange_id is None or states.get(turn.effective_exchange_id) != "forgotten"
        )
        page = list(turns.filter(position__gt=page[-1].position).order_by("position")[:_BATCH_SIZE])


def _attached_files(selection: Selection, progress: ProgressCallback) -> Iterator[ArchiveFile]:
    entries, turns = [], selection.turns()
    rows = (row for page in iterate_by_pk(selection.attachments(), _BATCH_SIZE) for row in page)
    for number, row in enumerate(rows, start=1):
        path = f"attachments/{number:05d} {_safe_name(row.name)}"
        turn_ids = list(turns.filter(attachments=row).values_list("id", flat=True))
        exists = row.file.storage.exists(row.file.name or "")
        entry = {"id": row.id, "name": row.name, "file": path if exists else None}
        entries.append(entry | {"media_type": row.media_type, "turn_ids": turn_ids})
        if exists:
            yield ArchiveFile(path, row.created_at, _read_file(row.file), row.file.size)
        progress("entries", 1)
    lines = [f"{_json(entry)}\n".encode() for entry in entries]
    yield ArchiveFile("attachments.jsonl", selection.until, lines)


def _opinions(person: User) -> QuerySet[Feedback]:
    return Feedback.objects.filter(person_id=person.pk).select_related("exchange")


def _decisions(person: User) -> QuerySet[Supersession]:
    return Supersession.objects.filter(person_id=person.pk).select_related("later", "earlier")


def _document_files(selection: Selection, progress: ProgressCallback) -> Iterator[ArchiveFile]:
    documents = (d for page in iterate_by_pk(selection.documents(), _BATCH_SIZE) for d in page)
    for number, document in enumerate(documents, start=1):
        name = _safe_name(PurePosixPath(document.name).name)
        folder = f"documents/{number:05d} {PurePosixPath(name).stem[:60].strip()}"
        entries = []
        for version in selection.versions().filter(document=document).order_by("number"):
            path = f"{folder}/version {version.number}/{name}"
            exists = bool(version.original) and _has_original(version)
            entries.append(export_rows.of_version(version) | {"file": path if exists else None})
            if exists:
                yield ArchiveFile(path, version.created_at, _read_file(version.original), version.size)
            progress("entries", 1)
        entry = export_rows.of_document(document) | {"versions": entries}
        yield ArchiveFile(f"{folder}/about.json", document.created_at, [_json(entry).encode()])


def _has_original(version: DocumentVersion) -> bool:
    return bool(version.original.storage.exists(version.original.name or ""))


def _lines(
    rows: QuerySet[M], fields: Callable[[M], dict[str, object]], progress: ProgressCallback = no_progress
) -> Iterator[bytes]:
    for page in iterate_by_pk(rows, _BATCH_SIZE):
        yield "".join(f"{_json(fields(row))}\n" for row in page).encode()
        progress("entries", len(page))


def _read_file(file: File[bytes]) -> Iterator[bytes]:
    with file.open("rb"):
        yield from file.chunks(_CHUNK_SIZE)


def _encode(chunks: Iterable[str]) -> Iterator[bytes]:
    return (chunk.encode() for chunk in chunks)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_serialize_value)


def _serialize_value(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)


def _safe_name(name: str) -> str:
    """Return a file name that is valid on every system and contains no path."""
    plain = re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*]+', "_", name).strip(" .")
    return plain[-120:] or "without a name"
