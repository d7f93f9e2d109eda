"""Workers that read a document: they take over from each other, and write nothing once it is deleted."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from memory import jobs
from memory.documents import chunks as chunk_writing
from memory.documents import extraction, extraction_runs
from memory.documents.publishing import retry_document
from memory.documents.queries import document_statuses
from memory.models import Document, DocumentVersion, EmbeddingJob, Event, Exchange, Job
from memory.views.document_rows import state_text
from tests.factories import document, process_documents, upload

pytestmark = pytest.mark.django_db(transaction=True)

COAST = "\n\n".join(f"Paragraph {n} speaks of the {n}th lighthouse on the coast. " * 10 for n in range(12))


def stage(version: DocumentVersion) -> str:
    return str(DocumentVersion.objects.get(pk=version.pk).stage)


def shown_state(version: DocumentVersion) -> str:
    (status,) = document_statuses([Document.objects.get(pk=version.document_id)])
    return state_text(status.newest)


def die_after(count: int, function: Any) -> Any:
    """Return the function, but the process ends instead of the call after `count`."""
    calls: list[None] = []

    def call(*args: Any, **options: Any) -> Any:
        if len(calls) == count:
            raise KeyboardInterrupt
        calls.append(None)
        return function(*args, **options)

    return call


def test_another_worker_takes_over_a_reading_job(memory, person):
    version = upload(person, "coast.txt", COAST).version
    jobs.claim(DocumentVersion.objects.filter(pk=version.pk), 1)
    assert memory.read_documents() == 0
    DocumentVersion.objects.update(locked_until="2020-01-01T00:00:00Z")

    process_documents()
    assert stage(version) == "ready"


def test_chunks_of_a_dead_worker_are_reused(memory, person, monkeypatch):
    version = upload(person, "coast.txt", COAST).version
    monkeypatch.setattr(chunk_writing, "_BATCH_SIZE", 4)
    monkeypatch.setattr(chunk_writing, "_write", die_after(2, chunk_writing._write))
    with pytest.raises(KeyboardInterrupt):
        memory.read_documents()
    memory.index_pending()
    early = set(EmbeddingJob.objects.filter(state=Job.State.DONE).values_list("exchange_id", flat=True))
    assert len(early) == 8

    monkeypatch.undo()
    DocumentVersion.objects.update(locked_until=None)
    process_documents()
    uploaded = Document.objects.get(pk=version.document_id)
    ids = list(uploaded.live_version.chunks.order_by("index").values_list("exchange_id", flat=True))
    assert set(ids[:8]) == early
    assert len(ids) == len(set(ids)) == uploaded.live_version.total_chunks


def test_chunks_of_an_earlier_split_are_forgotten(memory, person, monkeypatch, settings):
    version = upload(person, "coast.txt", COAST).version
    monkeypatch.setattr(chunk_writing, "_BATCH_SIZE", 4)
    monkeypatch.setattr(chunk_writing, "_write", die_after(2, chunk_writing._write))
    with pytest.raises(KeyboardInterrupt):
        memory.read_documents()
    early = set(Exchange.objects.values_list("pk", flat=True))
    assert len(early) == 8

    monkeypatch.undo()
    smaller = settings.CATO.vector_store.model_copy(update={"chunk_size": settings.CATO.vector_store.chunk_size // 2})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": smaller})
    DocumentVersion.objects.update(locked_until=None)
    process_documents()

    assert stage(version) == "ready"
    assert set(Exchange.objects.exclude(forgotten_at=None).values_list("pk", flat=True)) == early
    assert not Exchange.objects.filter(pk__in=early).exclude(user_message="").exists()


def test_a_worker_writes_nothing_more_of_a_document_that_was_deleted_meanwhile(memory, person, monkeypatch):
    version = upload(person, "coast.html", f"<title>Lighthouses</title><p>{COAST}").version
    monkeypatch.setattr(chunk_writing, "_BATCH_SIZE", 4)
    label, labels = chunk_writing.location_label, []

    def delete_in_the_second_batch(*args: Any, **options: Any) -> str:
        labels.append(label(*args, **options))
        if len(labels) == 5:
            memory.forget_documents([version.document_id], by=person.id)
            memory.cleanup_documents()
        return labels[-1]

    monkeypatch.setattr(chunk_writing, "location_label", delete_in_the_second_batch)
    assert memory.read_documents() == 0
    process_documents()

    version.refresh_from_db()
    assert Exchange.objects.exclude(forgotten_at=None).count() == 4
    assert not Exchange.objects.exclude(user_message="").exists()
    assert not EmbeddingJob.objects.exists()
    assert (version.stage, version.title) == ("removed", "")


def test_a_version_deleted_while_it_is_split_gets_no_title(memory, person, monkeypatch):
    version = upload(person, "coast.html", f"<title>Lighthouses</title><p>{COAST}").version
    split = chunk_writing.split_as_configured

    def delete_while_splitting(*args: Any, **options: Any) -> Any:
        memory.forget_documents([version.document_id], by=person.id)
        memory.cleanup_documents()
        return split(*args, **options)

    monkeypatch.setattr(chunk_writing, "split_as_configured", delete_while_splitting)
    assert memory.read_documents() == 0

    version.refresh_from_db()
    assert (version.stage, version.title, version.total_chunks) == ("removed", "", None)
    assert not Exchange.objects.exists()


def test_the_lease_is_renewed_while_a_long_text_is_split(memory, person, monkeypatch):
    version = upload(person, "coast.txt", COAST).version
    monkeypatch.setattr(chunk_writing, "_SPANS_BETWEEN_CHECKS", 2)
    monkeypatch.setattr(jobs, "_RENEWAL_INTERVAL", 0.0)
    split, leases = chunk_writing.split_as_configured, []

    def note_leases(*args: Any, **options: Any) -> Any:
        for span in split(*args, **options):
            leases.append(DocumentVersion.objects.get(pk=version.pk).locked_until)
            yield span

    monkeypatch.setattr(chunk_writing, "split_as_configured", note_leases)
    assert memory.read_documents() == 1

    assert len(leases) > 4
    assert leases == sorted(leases)
    assert len(set(leases)) == -(-len(leases) // 2)


def test_a_version_that_is_read_again_has_chunks_for_those_that_were_already_forgotten(memory, person):
    version = document(person, "coast.txt", COAST).live_version
    chunks = list(version.chunks.order_by("index").values_list("exchange_id", flat=True))
    memory.forget(chunks[:2], by=person.id, as_part_of_a_document=True)
    Document.objects.update(live_version=None)
    DocumentVersion.objects.update(stage="received", state=Job.State.PENDING)

    process_documents()

    texts = (
        Document.objects.get().live_version.chunks.order_by("index").values_list("exchange__user_message", flat=True)
    )
    assert len(texts) == len(chunks)
    assert all(texts)


def test_a_full_disk_is_reported_and_tried_again(memory, person, monkeypatch):
    version = upload(person, "coast.txt", COAST).version

    def full(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(extraction, "read", full)
    assert memory.read_documents() == 0
    version.refresh_from_db()
    assert "OSError" in version.error
    assert (version.state, version.locked_until) == (Job.State.PENDING, None)
    assert shown_state(version) == "Interrupted; will retry"

    for _attempt in range(jobs.MAX_FAILURES):
        DocumentVersion.objects.update(due_at=version.created_at)
        memory.read_documents()
    assert stage(version) == "failed"
    assert Event.objects.filter(kind="document.failed").count() == 1

    monkeypatch.undo()
    retry_document(version)
    process_documents()
    assert stage(version) == "ready"


def test_a_file_that_ends_its_worker_each_time_is_given_up(memory, person, monkeypatch):
    version = upload(person, "coast.txt", COAST).version
    monkeypatch.setattr(extraction_runs, "write_chunks", die_after(0, extraction_runs.write_chunks))
    for _attempt in range(jobs.MAX_FAILURES):
        with pytest.raises(KeyboardInterrupt):
            memory.read_documents()
        DocumentVersion.objects.update(locked_until=None)

    assert memory.read_documents() == 0
    version.refresh_from_db()
    assert (version.stage, version.error) == ("failed", "All attempts failed. See the worker log.")


def test_attempts_before_a_success_do_not_count_later(memory, person, monkeypatch):
    version = upload(person, "coast.txt", COAST).version
    monkeypatch.setattr(extraction_runs, "write_chunks", die_after(0, extraction_runs.write_chunks))
    with pytest.raises(KeyboardInterrupt):
        memory.read_documents()
    monkeypatch.undo()
    DocumentVersion.objects.update(locked_until=None)
    process_documents()

    version.refresh_from_db()
    assert (version.stage, version.failures) == ("ready", 0)
