"""Everything of one person as a zip file, written while it is sent: no more of it is held than a piece of one member."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.core.files import File
from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from cato_web.accounts.export import rows as own_rows
from cato_web.accounts.models import AuditEntry, User
from chat import access
from chat.export import to_json, to_markdown
from chat.models import Image, ImportJob, Thread, Turn
from memory import api as memory
from memory.api import Chunk, Document, DocumentVersion, Exchange, Feedback, Space, SpaceIds, excerpt, iterate_by_pk

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PIECE = 64 * 1024
_PAGE = 200
# From here on a member's size is written in the newer way, which not every program unpacks.
_LARGE = 1_000_000_000
# About as much as a turn with a long answer and what was recalled for it takes.
_OF_A_TURN = 20_000
_GIVEN_UP = (DocumentVersion.Stage.CANCELLED, DocumentVersion.Stage.REMOVED)
M = TypeVar("M", bound=Model)

README = gettext_noop("""\
This is everything that this Cato keeps of one person. Times are ISO 8601 in UTC; *.jsonl is one JSON object a line.

account.json        the account, its choices, where it is signed in, by which accounts elsewhere, and the names of
                    the tokens that let programs in
threads/            each thread of this person as JSON, which Cato can import again, and as Markdown: what they said
                    there, with the answers. *.branches.json holds what was edited or answered once more
said-elsewhere.jsonl  what they said in threads of others
images/             the pictures that went with what they said; images.jsonl names the turns
exchanges.jsonl     what memory keeps: of their own space all of it, of shared spaces what this person said
notes.jsonl         the same, of what was written down by hand
documents/          the originals that are kept, with what is known of each
opinions.jsonl      what was pinned, and what was called not relevant
imports.jsonl       which files of conversations were taken in, and what became of each
reveals.jsonl       which administrators were shown the text of this person's own space, when, and their reasons
audit.jsonl         what the audit log says of this person's doings
left-out.txt        only where an administrator downloaded this: which spaces are not in it, and why

What was forgotten or deleted is not in it: turns that were forgotten are left out of the threads as well, though their
words still stand on the pages of these.
""")


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file of the archive: its path, when it was last changed, its content in pieces, and about how large that is."""

    path: str
    at: datetime
    pieces: Iterable[bytes]
    size: int = 0


class _StreamBuffer(io.RawIOBase):
    """What the archive is written into: gives out what came since the last time, and cannot be gone back in."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: Buffer, /) -> int:
        self._parts.append(bytes(data))
        self.size += len(self._parts[-1])
        return len(self._parts[-1])

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts, self.size = [], 0
        return taken


LEFT_OUT = gettext_noop("""\
An administrator downloaded this archive. It has nothing from the spaces below: this person reads them, but the
administrator is not a member and was not given access to them. Threads, exchanges, notes, documents and pictures
there are left out, and what was recalled from there for answers elsewhere is only counted.

""")


def stream_zip(person: User, *, by: User) -> Iterator[bytes]:
    """Return the archive for `by`, in pieces: whole for the person themselves, and for an administrator only what lies
    in spaces whose text they are shown at this moment."""
    readable = memory.readable_space_ids(person.pk)
    shown = readable if by.pk == person.pk else readable & memory.admin_visible_space_ids(by.pk)
    outlet = _StreamBuffer()
    with ZipFile(outlet, "w", ZIP_DEFLATED) as archive:
        for member in archive_files(person, shown):
            # A zip file's calendar begins in 1980.
            info = ZipInfo(member.path, date_time=max(member.at.astimezone(UTC).timetuple()[:6], (1980, 1, 1, 0, 0, 0)))
            info.compress_type = ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            with archive.open(info, "w", force_zip64=member.size > _LARGE) as file:
                for piece in member.pieces:
                    file.write(piece)
                    if outlet.size >= _PIECE:
                        yield outlet.take()
    yield outlet.take()


def archive_files(person: User, shown: SpaceIds) -> Iterator[ArchiveFile]:
    """The files of the archive, one after the other, with what lies in the spaces of `shown`."""
    now = timezone.now()
    yield ArchiveFile("README.txt", now, [_(README).encode()])
    if left_out := memory.readable_space_ids(person.pk) - shown:
        names = sorted(space.shown_name for space in Space.objects.filter(pk__in=left_out))
        yield ArchiveFile("left-out.txt", now, [_(LEFT_OUT).encode(), *(f"- {name}\n".encode() for name in names)])
    yield ArchiveFile("account.json", now, [_json(own_rows.account(person)).encode()])
    yield from _threads(person, shown)
    said = _turns_by(person, shown)
    yield ArchiveFile("said-elsewhere.jsonl", now, _lines(said.exclude(thread__owner_id=person.pk), own_rows.of_turn))
    yield from _images(person, said)
    remembered = _exchanges(person, shown)
    size = 12 * (remembered.aggregate(sum=Sum("size"))["sum"] or 0)
    is_note = Q(manual_entry=True) & ~Exists(Chunk.objects.filter(exchange=OuterRef("pk")))
    yield ArchiveFile("exchanges.jsonl", now, _lines(remembered.exclude(is_note), own_rows.of_exchange), size)
    yield ArchiveFile("notes.jsonl", now, _lines(remembered.filter(is_note), own_rows.of_exchange), size)
    yield from _documents(person, shown)
    yield ArchiveFile("opinions.jsonl", now, _lines(Feedback.objects.filter(person_id=person.pk), own_rows.of_opinion))
    yield ArchiveFile("imports.jsonl", now, _lines(ImportJob.objects.filter(owner_id=person.pk), own_rows.of_import))
    yield ArchiveFile(
        "reveals.jsonl", now, _lines(memory.list_reveals(memory.personal_space(person.pk)), own_rows.of_reveal)
    )
    yield ArchiveFile("audit.jsonl", now, _lines(AuditEntry.objects.filter(who=person), own_rows.of_audit))


def _threads(person: User, shown: SpaceIds) -> Iterator[ArchiveFile]:
    mine = memory.in_spaces(access.readable_threads(person.pk), shown).filter(owner_id=person.pk)
    for number, thread in enumerate((t for page in iterate_by_pk(mine, _PAGE) for t in page), start=1):
        thread.title = _title(thread)
        path = f"threads/{number:05d} {_safe(thread.title)[:60].strip()}"
        # A thread in a shared space, or one that was forked there, has turns of others as well.
        turns = thread.turns.select_related("author").filter(author_id=person.pk)
        at, standing, beside = thread.last_message_at, turns.filter(is_on_active_branch=True), turns.filter(is_on_active_branch=False)
        size = turns.count() * _OF_A_TURN
        yield ArchiveFile(f"{path}.json", at, _encoded(to_json(thread, _unforgotten(standing), shown=shown)), size)
        yield ArchiveFile(f"{path}.md", at, _encoded(to_markdown(thread, _unforgotten(standing), shown=shown)), size)
        if beside.exists():
            others = to_json(thread, _unforgotten(beside), shown=shown)
            yield ArchiveFile(f"{path}.branches.json", at, _encoded(others), size)


def _title(thread: Thread) -> str:
    """The thread's title, unless that is still the beginning of a message that was forgotten."""
    firsts = thread.turns.filter(parent=None)
    kept = {turn.pk for turn in _unforgotten(firsts)}
    gone = (excerpt(turn.message, 80) for turn in firsts if turn.pk not in kept)
    return _("Forgotten") if thread.title in gone else thread.title


def _unforgotten(turns: QuerySet[Turn]) -> Iterator[Turn]:
    """The turns in their order, read a page at a time: who downloads slowly keeps no cursor open."""
    page = list(turns.order_by("position")[:_PAGE])
    while page:
        states = memory.memory_states(turn.effective_exchange_id for turn in page if turn.effective_exchange_id)
        yield from (
            turn
            for turn in page
            if turn.effective_exchange_id is None or states.get(turn.effective_exchange_id) != "forgotten"
        )
        page = list(turns.filter(position__gt=page[-1].position).order_by("position")[:_PAGE])


def _turns_by(person: User, shown: SpaceIds) -> QuerySet[Turn]:
    """All that this person said in the spaces of `shown`, without what was forgotten."""
    forgotten = Exchange.objects.exclude(forgotten_at=None)
    rows: QuerySet[Turn] = Turn.objects.filter(
        author_id=person.pk, thread__in=memory.in_spaces(access.readable_threads(person.pk), shown)
    )
    for effective_exchange_id in ("exchange_id", "copied_exchange_id"):
        rows = rows.filter(~Exists(forgotten.filter(pk=OuterRef(effective_exchange_id))))
    return rows


def _images(person: User, said: QuerySet[Turn]) -> Iterator[ArchiveFile]:
    sent = Image.objects.filter(owner_id=person.pk, turns__in=said).distinct()
    told = []
    for number, image in enumerate((i for page in iterate_by_pk(sent, _PAGE) for i in page), start=1):
        path = f"images/{number:05d} {_safe(image.name)}"
        turn_ids = list(said.filter(images=image).values_list("id", flat=True))
        is_there = image.file.storage.exists(image.file.name or "")
        told.append({"file": path if is_there else None, "media_type": image.media_type, "turn_ids": turn_ids})
        if is_there:
            yield ArchiveFile(path, image.created_at, _bytes_of(image.file), image.file.size)
    yield ArchiveFile("images.jsonl", timezone.now(), [f"{_json(about)}\n".encode() for about in told])


def _exchanges(person: User, shown: SpaceIds) -> QuerySet[Exchange]:
    theirs = Q(space=memory.personal_space(person.pk)) | Q(owner_id=person.pk)
    rows: QuerySet[Exchange] = Exchange.objects.findable().filter(theirs).select_related("space")
    return memory.in_spaces(rows, shown)


def _documents(person: User, shown: SpaceIds) -> Iterator[ArchiveFile]:
    own = memory.personal_space(person.pk)
    theirs = Document.objects.filter(Q(space=own) | Q(owner_id=person.pk), forgotten_at=None)
    rows = memory.in_spaces(theirs, shown)
    for number, document in enumerate((d for page in iterate_by_pk(rows, _PAGE) for d in page), start=1):
        versions = document.versions.filter(removed_at=None).exclude(stage__in=_GIVEN_UP).order_by("number")
        if document.space_id != own.pk:
            versions = versions.filter(uploaded_by_id=person.pk)
        name = _safe(PurePosixPath(document.name).name)
        folder = f"documents/{number:05d} {PurePosixPath(name).stem[:60].strip()}"
        kept = [version for version in versions if version.original and _is_there(version)]
        for version in kept:
            path = f"{folder}/version {version.number}/{name}"
            yield ArchiveFile(path, version.created_at, _bytes_of(version.original), version.size)
        about = own_rows.of_document(document) | {
            "versions": [own_rows.of_version(version) | {"original_is_here": version in kept} for version in versions]
        }
        yield ArchiveFile(f"{folder}/about.json", document.created_at, [_json(about).encode()])


def _is_there(version: DocumentVersion) -> bool:
    return bool(version.original.storage.exists(version.original.name or ""))


def _lines(rows: QuerySet[M], fields: Callable[[M], dict[str, object]]) -> Iterator[bytes]:
    for page in iterate_by_pk(rows, _PAGE):
        yield "".join(f"{_json(fields(row))}\n" for row in page).encode()


def _bytes_of(file: File[bytes]) -> Iterator[bytes]:
    with file.open("rb"):
        yield from file.chunks(_PIECE)


def _encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode() for piece in pieces)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_written)


def _written(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)


def _safe(name: str) -> str:
    """The name as every system takes it for a file, and none for a path."""
    plain = re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*]+', "_", name).strip(" .")
    return plain[-120:] or "without a name"
