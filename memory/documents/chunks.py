"""Write the chunks of a version; chunks with unchanged text share the exchange and vectors of the live version."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop

from memory import jobs
from memory.documents.chunking import Span
from memory.documents.chunking.configured import split_as_configured
from memory.documents.extraction import ExtractedText, Marker, location_label
from memory.documents.metadata import metadata_of_chunk
from memory.errors import ExtractionError
from memory.exchanges.erasure import passage_hash
from memory.exchanges.forgetting import forget
from memory.exchanges.metadata import save_metadata_values
from memory.index import generations
from memory.jobs import Lease
from memory.lexical.indexing import build_entries, save_entries
from memory.models import Chunk, DocumentVersion, EmbeddingJob, Exchange, HiddenPassage, LexicalEntry
from memory.text import content_hash
from memory.utils.batching import batched
from memory.utils.write_pauses import pause_after_writing

_BATCH_SIZE = 25
_SPANS_BETWEEN_CHECKS = 100

ReusableExchanges = dict[str, deque[uuid.UUID]]


@dataclass(frozen=True, slots=True)
class _NewChunk:
    """A chunk to write, with the white space before it, at most two characters, and its place in the file."""

    index: int
    span: Span
    separator: str
    text: str
    digest: str
    location: str
    page: int | None


def write_chunks(lease: Lease[DocumentVersion], extracted: ExtractedText) -> None:
    """Write the chunks of the leased version, inactive until it is published; continue where an earlier worker stopped.

    A chunk with the same text as one of the live version shares its exchange and needs no embedding. One with the text of a
    passage that was forgotten separately shares the tombstone of that passage, so that the text does not come back. Each
    transaction renews the lease first, which locks the version's row: nothing is written once the version is deleted or
    cancelled. Raises ExtractionError for a text without chunks, and LeaseLostError.
    """
    version = lease.job
    spans = _spans(extracted.text, lease)
    if not spans:
        raise ExtractionError(gettext_noop("There is no text in this file."))
    _save_text_properties(lease, extracted, total=len(spans))
    written = _count_written(lease, spans)
    reusable = _reusable_exchanges(version, skip=written)
    for batch in batched(_new_chunks(spans, extracted, since=written), _BATCH_SIZE):
        with pause_after_writing():
            _write(lease, batch, reusable, total=len(spans))


def _save_text_properties(lease: Lease[DocumentVersion], extracted: ExtractedText, *, total: int) -> None:
    """Store title, number of chunks, and the text that is invisible in the file; only the document's page shows it."""
    version = lease.job
    with transaction.atomic():
        lease.renew(total_chunks=total, title=extracted.title[:255])
        version.hidden_passages.all().delete()
        HiddenPassage.objects.bulk_create(
            HiddenPassage(
                version=version,
                start=hidden.start,
                location=location_label(extracted.marks, hidden.start, hidden.start + 1, translate=gettext)[:300],
                text=hidden.text,
            )
            for hidden in extracted.hidden
        )


def _spans(text: str, lease: Lease[DocumentVersion]) -> list[Span]:
    """Split the text. Splitting the largest texts takes longer than a lease. Raises LeaseLostError."""
    spans: list[Span] = []
    for batch in batched(split_as_configured(text), _SPANS_BETWEEN_CHECKS):
        lease.check()
        spans += batch
    return spans


@transaction.atomic
def _count_written(lease: Lease[DocumentVersion], spans: list[Span]) -> int:
    """Return how many of the first spans an earlier attempt wrote.

    If they differ, or some are forgotten because the version had been replaced before, all are deleted.
    """
    lease.renew()
    version = lease.job
    written = list(version.chunks.order_by("index").values_list("start", "end"))
    is_same = written == [(span.start, span.end) for span in spans[: len(written)]]
    exchanges = Exchange.objects.select_for_update().filter(pk__in=version.chunks.values("exchange"))
    if is_same and not any(exchanges.values_list("forgotten_at", flat=True)):
        return len(written)
    others = Chunk.objects.exclude(version=version).filter(exchange=OuterRef("exchange"))
    unshared = version.chunks.filter(~Exists(others), exchange__forgotten_at=None).values_list("exchange_id", flat=True)
    forget(list(unshared), by=version.uploaded_by_id, as_part_of_a_document=True)
    version.chunks.all().delete()
    return 0


def _reusable_exchanges(version: DocumentVersion, *, skip: int) -> ReusableExchanges:
    """Return the exchanges of the live version by content hash, in order; each is used once."""
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


def _new_chunks(spans: list[Span], extracted: ExtractedText, *, since: int) -> Iterator[_NewChunk]:
    end = spans[since - 1].end if since else 0
    for index, span in enumerate(spans[since:], start=since):
        gap, text = extracted.text[end : span.start], extracted.text[span.start : span.end]
        separator = "\n\n" if gap.count("\n") > 1 else "\n" if "\n" in gap else " " if gap else ""
        location = location_label(extracted.marks, span.start, span.end, translate=gettext)[:300]
        page = _page(extracted.marks, span.start)
        digest = content_hash(text, "", "")
        yield _NewChunk(index, span, separator if index else "", text, digest, location, page)
        end = span.end


def _write(lease: Lease[DocumentVersion], chunks: list[_NewChunk], reusable: ReusableExchanges, *, total: int) -> None:
    """Write these chunks. Slow work is done before the transaction, which would block running answers."""
    version = lease.job
    known = _forgotten_passages(version, chunks)
    unknown = [chunk for chunk in chunks if chunk.index not in known]
    known |= {chunk.index: reusable[chunk.digest].popleft() for chunk in unknown if reusable.get(chunk.digest)}
    new = {chunk.index: _build_exchange(version, chunk, total) for chunk in unknown if chunk.index not in known}
    entries = build_entries(new.values())
    with transaction.atomic():
        lease.renew()
        existing = _lock_existing(known.values())
        lost = [chunk for chunk in chunks if chunk.index in known and known[chunk.index] not in existing]
        forgotten = _forgotten_passages(version, lost)
        known |= forgotten
        replaced = {c.index: _build_exchange(version, c, total) for c in lost if c.index not in forgotten}
        new |= replaced
        _save_exchanges(list(new.values()), entries + build_entries(replaced.values()))
        Chunk.objects.bulk_create(
            Chunk(
                version=version,
                exchange_id=new[chunk.index].pk if chunk.index in new else known[chunk.index],
                index=chunk.index,
                start=chunk.span.start,
                end=chunk.span.end,
                separator=chunk.separator,
                # A heading can say what the text under it said, and often begins it.
                location="" if chunk.index in forgotten else chunk.location,
                page=chunk.page,
            )
            for chunk in chunks
        )
        jobs.wake_worker_on_commit("index_pending")


def _save_exchanges(exchanges: list[Exchange], entries: list[LexicalEntry]) -> None:
    Exchange.objects.bulk_create(exchanges)
    save_entries(entries)
    save_metadata_values(exchanges)
    now, live = timezone.now(), generations.writable_generations()
    EmbeddingJob.objects.bulk_create(
        [EmbeddingJob(exchange=e, generation=g, due_at=now) for e in exchanges for g in live]
    )


def _forgotten_passages(version: DocumentVersion, chunks: Sequence[_NewChunk]) -> dict[int, uuid.UUID]:
    """Return the exchanges of those of these chunks that were forgotten separately in their document, by index."""
    hashes = {chunk.index: passage_hash(version.document_id, chunk.digest) for chunk in chunks}
    rows = Exchange.objects.filter(content_hash__in=set(hashes.values())).exclude(forgotten_at=None)
    ids = dict(rows.values_list("content_hash", "id"))
    return {index: ids[digest] for index, digest in hashes.items() if digest in ids}


def _lock_existing(exchange_ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Lock these exchanges; return those that were not forgotten."""
    locked = Exchange.objects.select_for_update().filter(pk__in=list(exchange_ids), forgotten_at=None)
    return set(locked.values_list("pk", flat=True))


def _page(marks: Sequence[Marker], at: int) -> int | None:
    """Return the number of the page with the character at `at`, None if the file has no pages."""
    preceding = bisect_right(marks, at, key=lambda mark: mark.start)
    page = next((mark for mark in reversed(marks[:preceding]) if mark.kind == "page"), None)
    return int(page.label) if page and page.label.isdecimal() else None


def _build_exchange(version: DocumentVersion, chunk: _NewChunk, total: int) -> Exchange:
    document = version.document
    return Exchange(
        space=document.space,
        owner_id=version.uploaded_by_id,
        user_message=chunk.text,
        timestamp=version.created_at,
        source=document.source,
        manual_entry=True,
        source_file=document.name,
        chunk_index=chunk.index,
        total_chunks=total,
        metadata=metadata_of_chunk(version, page=chunk.page, location=chunk.location),
        size=len(chunk.text),
        content_hash=chunk.digest,
        is_inactive=True,
    )
