"""Cutting a file's text into pieces: those whose words a version had already keep their exchange and its vectors."""

from __future__ import annotations

import time
import uuid
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from memory import jobs
from memory.documents.chunking import Span, split
from memory.documents.extraction import ExtractedText, Marker, location_label
from memory.documents.metadata import metadata_of_piece
from memory.errors import ExtractionError
from memory.exchanges.metadata import save_metadata_values
from memory.index import generations
from memory.lexical.indexing import build_entries, save_entries
from memory.models import Chunk, DocumentVersion, EmbeddingJob, Exchange, HiddenPassage, LexicalEntry
from memory.text import content_hash
from memory.utils.batching import batched

_TOGETHER = 25
# Seconds. SQLite's writers do not queue: who waits looks ten times a second whether the database is free.
_ROOM_FOR_OTHERS = 0.1

ReusableExchanges = dict[str, deque[uuid.UUID]]


def write_chunks(version: DocumentVersion, reading: ExtractedText, *, keep_on: Callable[[], None]) -> None:
    """Write the pieces of `version`, hidden until it serves; goes on where an earlier worker got to.

    A piece whose text stands in the serving version too is that one's exchange, and costs no embedding. `keep_on` is
    called between slices and may raise to end it. Raises ExtractionError for a text without pieces.
    """
    spans = _spans(reading.text)
    if not spans:
        raise ExtractionError(gettext_noop("There is no text in this file."))
    DocumentVersion.objects.filter(pk=version.pk).update(total_chunks=len(spans), title=reading.title[:255])
    _keep_hidden(version, reading)
    written = _written_already(version, spans)
    known = _known(version, skip=written)
    for some in batched(_placed(spans, reading, since=written), _TOGETHER):
        keep_on()
        _write(version, some, reading, known, total=len(spans))
        if connection.vendor == "sqlite":
            time.sleep(_ROOM_FOR_OTHERS)


def _keep_hidden(version: DocumentVersion, reading: ExtractedText) -> None:
    """Keep what nobody sees in the file, to be shown on the document's page and nowhere else."""
    with transaction.atomic():
        version.hidden_passages.all().delete()
        HiddenPassage.objects.bulk_create(
            HiddenPassage(
                version=version,
                start=hidden.start,
                location=location_label(reading.marks, hidden.start, hidden.start + 1, translate=gettext)[:300],
                text=hidden.text,
            )
            for hidden in reading.hidden
        )


def _spans(text: str) -> list[Span]:
    conf = settings.CATO.vector_store
    return split(
        text,
        strategy=conf.chunking_strategy,
        chunk_size=conf.chunk_size,
        chunk_overlap=conf.chunk_overlap,
        max_chunk_size=conf.max_chunk_size,
        preserve_sentence_boundaries=conf.preserve_sentence_boundaries,
    )


def _written_already(version: DocumentVersion, spans: list[Span]) -> int:
    """How many of the first spans an earlier attempt wrote; all are written anew where they were cut otherwise."""
    written = list(version.chunks.order_by("index").values_list("start", "end"))
    if written == [(span.start, span.end) for span in spans[: len(written)]]:
        return len(written)
    version.chunks.all().delete()
    return 0


def _known(version: DocumentVersion, *, skip: int) -> ReusableExchanges:
    """The exchanges of the serving version by the hash of their text, in its order; each may be used once."""
    live_version = version.document.live_version
    if live_version is None:
        return {}
    used = set(version.chunks.filter(index__lt=skip).values_list("exchange_id", flat=True))
    known: ReusableExchanges = defaultdict(deque)
    rows = live_version.chunks.filter(exchange__forgotten_at=None).order_by("index")
    for exchange_id, digest in rows.values_list("exchange_id", "exchange__content_hash"):
        if exchange_id not in used:
            known[digest].append(exchange_id)
    return known


def _placed(spans: list[Span], reading: ExtractedText, *, since: int) -> Iterator[tuple[int, Span, str]]:
    """Each span with its number and the white space before it, at most two characters of it."""
    end = spans[since - 1].end if since else 0
    for index, span in enumerate(spans[since:], start=since):
        gap = reading.text[end : span.start]
        separator = "\n\n" if gap.count("\n") > 1 else "\n" if "\n" in gap else " " if gap else ""
        yield index, span, separator if index else ""
        end = span.end


def _write(
    version: DocumentVersion,
    placed: list[tuple[int, Span, str]],
    reading: ExtractedText,
    known: ReusableExchanges,
    *,
    total: int,
) -> None:
    """Write these pieces. All that takes time is done before the transaction, or running answers would wait for it."""
    digests = [content_hash(reading.text[span.start : span.end], "", "") for _, span, _ in placed]
    taken = [known[digest].popleft() if known.get(digest) else None for digest in digests]
    places = [location_label(reading.marks, span.start, span.end, translate=gettext) for _, span, _ in placed]

    def made(at: int) -> Exchange:
        index, span, _ = placed[at]
        page = _page(reading.marks, span.start)
        text = reading.text[span.start : span.end]
        return _exchange(version, text, digests[at], index, total, page=page, location=places[at])

    fresh = {at: made(at) for at, exchange_id in enumerate(taken) if exchange_id is None}
    words = build_entries(fresh.values())
    with transaction.atomic():
        there = _still_there(taken)
        lost = {at: made(at) for at, id in enumerate(there) if id is None and at not in fresh}
        fresh |= lost
        _keep(list(fresh.values()), words + build_entries(lost.values()))
        Chunk.objects.bulk_create(
            Chunk(
                version=version,
                exchange_id=there[at] or fresh[at].pk,
                index=index,
                start=span.start,
                end=span.end,
                separator=separator,
                location=places[at][:300],
            )
            for at, (index, span, separator) in enumerate(placed)
        )
        jobs.wake_worker_on_commit("index_pending")


def _keep(fresh: list[Exchange], words: list[LexicalEntry]) -> None:
    Exchange.objects.bulk_create(fresh)
    save_entries(words)
    save_metadata_values(fresh)
    now, live = timezone.now(), generations.writable_generations()
    EmbeddingJob.objects.bulk_create([EmbeddingJob(exchange=e, generation=g, due_at=now) for e in fresh for g in live])


def _still_there(exchange_ids: list[uuid.UUID | None]) -> list[uuid.UUID | None]:
    """The exchanges, locked, with None for those that were forgotten meanwhile."""
    locked = Exchange.objects.select_for_update().filter(pk__in=[id for id in exchange_ids if id], forgotten_at=None)
    living = set(locked.values_list("pk", flat=True))
    return [id if id in living else None for id in exchange_ids]


def _page(marks: Sequence[Marker], at: int) -> int | None:
    """The number of the page on which the character `at` stands, where the file has pages."""
    before = bisect_right(marks, at, key=lambda mark: mark.start)
    page = next((mark for mark in reversed(marks[:before]) if mark.kind == "page"), None)
    return int(page.label) if page and page.label.isdecimal() else None


def _exchange(
    version: DocumentVersion, text: str, digest: str, index: int, total: int, *, page: int | None, location: str
) -> Exchange:
    document = version.document
    return Exchange(
        space=document.space,
        owner_id=version.uploaded_by_id,
        user_message=text,
        timestamp=version.created_at,
        source=document.source,
        manual_entry=True,
        source_file=document.name,
        chunk_index=index,
        total_chunks=total,
        metadata=metadata_of_piece(version, page=page, place=location),
        size=len(text),
        content_hash=digest,
        is_inactive=True,
    )
