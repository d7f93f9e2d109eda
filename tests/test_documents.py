"""A document from its bytes to its pieces in memory: served whole, replaced whole, gone when deleted."""

from __future__ import annotations

import os
import threading
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from memory import jobs
from memory.documents import chunks as pieces
from memory.documents import deletion, publishing
from memory.documents.deletion import document_receipt
from memory.documents.queries import document_statuses, list_chunks, list_versions, readable_document
from memory.embeddings import local
from memory.errors import EmbeddingError, InvalidInputError
from memory.index import indexing
from memory.index.vectors import all_vector_ids
from memory.models import Chunk, Collection, Document, DocumentVersion, EmbeddingJob, Exchange, Job
from memory.spaces import access
from tests.factories import PersonFactory, document, exchange, process_documents, upload

pytestmark = pytest.mark.django_db(transaction=True)

BUOYS = "\n\n".join(
    [
        "# Uplink backoff",
        "The buoy waits between zero and ten seconds before it dials again. " * 6,
        "After forty attempts in one day it stays silent until midnight and stores its readings. " * 6,
        "Above 3.6 volts the radio may stay on between attempts; below that it is switched off. " * 6,
    ]
)


def found(memory: Any, person: Any, text: str) -> list[str]:
    return [
        hit.exchange.user_message
        for hit in memory.search(text, spaces=access.readable_space_ids(person.id), count=50).results
    ]


def stage(version: DocumentVersion) -> str:
    return str(DocumentVersion.objects.get(pk=version.pk).stage)


def test_a_file_becomes_pieces_that_are_found_with_file_heading_and_place(memory, person):
    made = document(person, "ADR-017 Uplink backoff.md", BUOYS, metadata={"team": "Hardware"})

    assert stage(made.live_version) == "ready"
    (hit, *_) = memory.search("silent until midnight", spaces=access.readable_space_ids(person.id)).results
    assert "After forty attempts" in hit.exchange.user_message
    assert hit.exchange.source_file == "ADR-017 Uplink backoff.md"
    assert hit.exchange.place.label == "Uplink backoff"
    assert hit.exchange.place.document_id == made.pk
    row = Exchange.objects.get(pk=hit.exchange.id)
    assert row.metadata == {"team": "Hardware", "document": str(made.pk), "place": "Uplink backoff"}
    assert row.total_chunks == made.live_version.chunks.count() == made.live_version.total_chunks


def test_the_pieces_are_the_whole_text_in_its_order(memory, person):
    made = document(person, "notes.txt", BUOYS)

    text = "".join(piece.separator + piece.text for piece in list_chunks(made, since=0, count=100))
    assert "".join(text.split()) == "".join(BUOYS.split())


def test_nothing_of_a_file_is_found_before_all_of_it_can_be(memory, person, monkeypatch):
    version = upload(person, "notes.txt", BUOYS).version
    assert stage(version) == "received"
    memory.read_documents()
    assert stage(version) == "embedding"
    assert found(memory, person, "buoy") == []

    monkeypatch.setattr(indexing, "_PIECES_HERE", 1)
    memory.index_pending(limit=1)
    memory.publish_ready_versions()
    assert found(memory, person, "buoy") == []

    memory.index_pending()
    memory.publish_ready_versions()
    assert stage(version) == "ready"
    assert found(memory, person, "buoy")


def test_the_same_bytes_again_cost_nothing(memory, person):
    first = upload(person, "notes.txt", BUOYS)
    again = upload(person, "notes.txt", BUOYS)
    process_documents()
    later = upload(person, "notes.txt", BUOYS)

    assert not first.is_known
    assert again.is_known
    assert later.is_known
    assert {first.version.pk, again.version.pk, later.version.pk} == {first.version.pk}
    assert len(default_storage.listdir("documents")[1]) == 1


def test_a_changed_file_embeds_only_what_changed_and_keeps_the_ids_of_the_rest(memory, person, monkeypatch):
    old = document(person, "notes.txt", BUOYS)
    before = dict(old.live_version.chunks.values_list("exchange__content_hash", "exchange_id"))
    embedded = []
    embed = local.LocalEmbedder.embed_documents
    monkeypatch.setattr(
        local.LocalEmbedder, "embed_documents", lambda self, texts: embedded.extend(texts) or embed(self, texts)
    )

    new = document(person, "notes.txt", BUOYS.replace("forty attempts", "fifty attempts"))

    assert new.pk == old.pk
    assert new.live_version.number == 2
    after = dict(new.live_version.chunks.values_list("exchange__content_hash", "exchange_id"))
    same = before.keys() & after.keys()
    assert same
    assert all(before[digest] == after[digest] for digest in same)
    assert embedded
    assert all("fifty" in text for text in embedded)
    assert not [text for text in found(memory, person, "attempts in one day") if "forty" in text]


def test_a_search_sees_the_whole_old_or_the_whole_new_version(memory, person):
    document(person, "list.txt", "\n\n".join(f"The old ferry number {n} leaves at dawn. " * 12 for n in range(8)))
    seen: list[set[str]] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            texts = found(memory, person, "which ferry leaves")
            seen.append({word for text in texts for word in ("old", "new") if f"The {word} ferry" in text})
        connection.close()

    searching = threading.Thread(target=search)
    searching.start()
    try:
        for number in range(3):
            word = ("new", "old", "new")[number]
            document(
                person, "list.txt", "\n\n".join(f"The {word} ferry number {n} leaves at dawn. " * 12 for n in range(8))
            )
    finally:
        done.set()
        searching.join()

    assert len(seen) > 3
    assert [words for words in seen if len(words) != 1] == []


@pytest.mark.skipif(connection.vendor != "sqlite", reason="all writers of SQLite wait for a switch")
def test_the_switch_takes_twice_the_work_for_twice_the_pieces_and_not_four_times(memory, person):
    short, long = (_work_of_serving(person, pieces) for pieces in (200, 400))

    assert long < 2.5 * short


def _work_of_serving(person: Any, pieces: int) -> int:
    """How many hundreds of steps SQLite's machine takes to let so many pieces serve."""
    space = access.personal_space(person.id)
    made = Document.objects.create(space=space, owner=person, name=f"{pieces}.txt", source="upload")
    version = made.versions.create(
        number=1, size=1, uploaded_by=person, due_at=made.created_at, stage="embedding", total_chunks=pieces
    )
    rows = Exchange.objects.bulk_create(
        Exchange(space=space, owner=person, timestamp=made.created_at, chunk_index=n, size=0, is_inactive=True)
        for n in range(pieces)
    )
    Chunk.objects.bulk_create(
        Chunk(version=version, exchange=row, index=n, start=n, end=n + 1) for n, row in enumerate(rows)
    )
    steps = []
    connection.connection.set_progress_handler(lambda: steps.append(1), 100)
    try:
        publishing.publish_ready_versions()
    finally:
        connection.connection.set_progress_handler(None, 0)
    assert stage(version) == "ready"
    return len(steps)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="writers of PostgreSQL do not wait for each other")
def test_others_get_to_write_between_two_slices_of_a_file(memory, person, monkeypatch):
    free = []
    monkeypatch.setattr(pieces, "_TOGETHER", 2)
    monkeypatch.setattr(
        pieces,
        "time",
        SimpleNamespace(sleep=lambda seconds: free.append(seconds > 0 and not connection.in_atomic_block)),
    )

    made = document(person, "notes.txt", BUOYS)

    assert free == [True] * -(-made.live_version.total_chunks // 2)


def test_what_the_old_version_alone_said_is_gone_with_its_vectors_and_its_file(memory, person):
    old = document(person, "notes.txt", BUOYS)
    before = set(old.live_version.chunks.values_list("exchange_id", flat=True))
    kept_at = Path(settings.MEDIA_ROOT) / old.live_version.original.name
    assert kept_at.exists()

    new = document(person, "notes.txt", "Something else altogether. " * 40)

    gone = Exchange.objects.filter(pk__in=before)
    assert set(gone.values_list("user_message", flat=True)) == {""}
    assert not kept_at.exists()
    assert not Chunk.objects.filter(version=old.live_version).exists()
    collection = Collection.objects.get().name
    from memory.index import store

    assert not store.existing_ids(collection, [id for key in before for id in all_vector_ids(key, 1)])
    assert [state.number for state in list_versions(new)] == [2]


def test_a_deleted_document_is_out_of_every_read_at_once_and_then_gone(memory, person):
    made = document(person, "secret.txt", BUOYS)
    kept_at = Path(settings.MEDIA_ROOT) / made.live_version.original.name

    assert memory.forget_documents([made.pk], by=person.id) == 1

    assert found(memory, person, "buoy") == []
    assert memory.memory_counts(access.readable_space_ids(person.id)).exchanges == 0
    process_documents()
    receipt = document_receipt(made)
    assert receipt.exchanges == receipt.vectors == made.live_version.total_chunks
    assert receipt.under_way == 0
    assert not kept_at.exists()
    row = Document.objects.get(pk=made.pk)
    assert (row.name, row.metadata, row.live_version) == ("", {}, None)
    assert not Chunk.objects.exclude(place="").exists()
    assert not Exchange.objects.exclude(user_message="").exists()


def test_a_deleted_name_can_be_used_again(memory, person):
    first = document(person, "notes.txt", BUOYS)
    memory.forget_documents([first.pk], by=person.id)
    second = document(person, "notes.txt", BUOYS)

    assert second.pk != first.pk
    assert found(memory, person, "buoy")


def test_a_crash_while_a_document_is_deleted_ends_in_gone(memory, person, monkeypatch):
    made = document(person, "secret.txt", BUOYS)
    original = made.versions.get().original.name
    assert default_storage.exists(original)
    memory.forget_documents([made.pk], by=person.id)
    monkeypatch.setattr(default_storage, "delete", lambda name: (_ for _ in ()).throw(OSError("killed here")))
    with pytest.raises(OSError, match="killed"):
        memory.cleanup_documents()
    monkeypatch.undo()

    process_documents()
    assert not Exchange.objects.exclude(user_message="").exists()
    assert not default_storage.exists(original)


def test_an_unreadable_file_says_why_and_can_be_tried_again(memory, person, monkeypatch):
    version = upload(person, "broken.pdf", b"%PDF-1.7 and then nothing").version
    memory.read_documents()
    (state,) = document_statuses([readable_document(access.readable_space_ids(person.id), version.document_id)])
    assert state.newest.stage == "failed"
    assert "damaged" in state.newest.error

    publishing.retry_document(version)
    assert stage(version) == "received"


def test_a_failed_newer_version_leaves_the_old_one_serving(memory, person):
    made = document(person, "notes.txt", BUOYS)
    upload(person, "notes.txt", b"%PDF-1.7 and then nothing")
    process_documents()

    assert found(memory, person, "buoy")
    (state,) = document_statuses([Document.objects.get(pk=made.pk)])
    assert (state.live_version.number, state.newest.number, state.newest.stage) == (1, 2, "failed")


def test_pieces_that_cannot_be_embedded_fail_the_version_and_a_retry_goes_on_with_them(memory, person, monkeypatch):
    version = upload(person, "notes.txt", BUOYS).version
    memory.read_documents()
    away = EmbeddingError("The provider answered HTTP 401.", permanent=True)
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", lambda *a: (_ for _ in ()).throw(away))
    memory.index_pending()
    memory.publish_ready_versions()
    assert stage(version) == "failed"

    monkeypatch.undo()
    publishing.retry_document(version)
    process_documents()
    assert stage(version) == "ready"


def test_cancelling_a_first_version_leaves_nothing_and_a_later_one_leaves_the_one_before(memory, person):
    version = upload(person, "a.txt", BUOYS).version
    memory.read_documents()
    deletion.cancel_document(DocumentVersion.objects.get(pk=version.pk), by=person.id)
    process_documents()
    assert not Document.objects.exclude(name="").exists()
    assert not Exchange.objects.exclude(user_message="").exists()

    made = document(person, "b.txt", BUOYS)
    second = upload(person, "b.txt", "Other words. " * 80).version
    memory.read_documents()
    deletion.cancel_document(DocumentVersion.objects.get(pk=second.pk), by=person.id)
    process_documents()
    assert stage(made.live_version) == "ready"
    assert found(memory, person, "buoy")
    assert not found(memory, person, "other words") or "Other" not in "".join(found(memory, person, "other words"))


def test_a_worker_that_died_while_reading_is_followed_by_another(memory, person):
    version = upload(person, "notes.txt", BUOYS).version
    jobs.claim(DocumentVersion.objects.filter(pk=version.pk), 1)
    assert memory.read_documents() == 0
    DocumentVersion.objects.update(locked_until="2020-01-01T00:00:00Z")

    process_documents()
    assert stage(version) == "ready"


def test_pieces_that_a_dead_worker_wrote_are_gone_on_with(memory, person, monkeypatch):
    text = "\n\n".join(f"Paragraph {n} speaks of the {n}th lighthouse on the coast. " * 10 for n in range(12))
    version = upload(person, "coast.txt", text).version
    monkeypatch.setattr(pieces, "_TOGETHER", 4)
    write, written = pieces._write, []

    def dies_after_two(*args: Any, **kwargs: Any) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(write(*args, **kwargs))

    monkeypatch.setattr(pieces, "_write", dies_after_two)
    with pytest.raises(KeyboardInterrupt):
        memory.read_documents()
    memory.index_pending()
    early = set(EmbeddingJob.objects.filter(state=Job.State.DONE).values_list("exchange_id", flat=True))
    assert len(early) == 8

    monkeypatch.undo()
    DocumentVersion.objects.update(locked_until=None)
    process_documents()
    made = Document.objects.get(pk=version.document_id)
    ids = list(made.live_version.chunks.order_by("index").values_list("exchange_id", flat=True))
    assert set(ids[:8]) == early
    assert len(ids) == len(set(ids)) == made.live_version.total_chunks


def test_a_conversation_goes_before_a_file(memory, person, monkeypatch):
    upload(person, "long.txt", "\n\n".join(f"Page {n} of the long report. " * 20 for n in range(100)))
    memory.read_documents()
    said = exchange(person, "What is the deposit on the crates?")

    memory.index_pending(limit=1)

    assert memory.memory_states([said.id]) == {said.id: "remembered"}
    assert EmbeddingJob.objects.filter(state=Job.State.PENDING).count() > 30


def test_deleting_the_serving_version_brings_the_one_before_back_where_it_is_kept(memory, person, settings):
    settings.CATO = settings.CATO.model_copy(
        update={"documents": settings.CATO.documents.model_copy(update={"keep_versions": 2})}
    )
    document(person, "notes.txt", "The first words. " * 60)
    document(person, "notes.txt", "The second words. " * 60)
    made = document(person, "notes.txt", "The third words. " * 60)
    assert [state.number for state in list_versions(made)] == [3, 2]

    memory.forget_version(made.live_version, by=person.id)
    assert found(memory, person, "words") == []
    process_documents()

    (text, *_) = found(memory, person, "words")
    assert "second" in text
    assert [state.number for state in list_versions(Document.objects.get())] == [2]


def test_all_but_the_last_versions_can_be_deleted(memory, person, settings):
    settings.CATO = settings.CATO.model_copy(
        update={"documents": settings.CATO.documents.model_copy(update={"keep_versions": 5})}
    )
    for number in range(4):
        made = document(person, "notes.txt", f"Words number {number}. " * 60)
    assert memory.delete_old_versions(made, 2, by=person.id) == 2
    process_documents()

    assert [state.number for state in list_versions(made)] == [4, 3]
    assert len(default_storage.listdir("documents")[1]) == 2


def test_versions_are_listed_and_deleted_by_command(memory, person, settings):
    settings.CATO = settings.CATO.model_copy(
        update={"documents": settings.CATO.documents.model_copy(update={"keep_versions": 5})}
    )

    def run(*arguments: str) -> list[str]:
        out = StringIO()
        call_command("versions", "notes.txt", "--user", person.email, *arguments, stdout=out)
        return [line.split(",")[0] for line in out.getvalue().splitlines()]

    for number in range(4):
        document(person, "notes.txt", f"Words number {number}. " * 60)
    assert run() == ["4: ready", "3: replaced", "2: replaced", "1: replaced"]
    assert run("--delete", "2") == ["4: ready", "3: replaced", "1: replaced"]
    assert run("--keep", "1") == ["4: ready"]
    with pytest.raises(CommandError, match="no version 2"):
        run("--delete", "2")
    assert run("--delete", "4") == ["That was the last version: the document is deleted."]
    assert found(memory, person, "words") == []


def test_metadata_reaches_every_piece_and_filters_find_it(memory, person):
    made = document(person, "notes.txt", BUOYS)
    memory.set_document_metadata(made, {"zone": "north"})
    process_documents()

    from memory.filters import parse_filter

    readable = access.readable_space_ids(person.id)
    hits = memory.search("buoy", spaces=readable, filters=parse_filter({"zone": "north"})).results
    assert len(hits) == made.live_version.total_chunks
    assert memory.search("buoy", spaces=readable, filters=parse_filter({"document": str(made.pk)})).results
    assert not memory.search("buoy", spaces=readable, filters=parse_filter({"zone": "south"})).results
    with pytest.raises(InvalidInputError, match="written by Cato itself"):
        memory.set_document_metadata(made, {"document": "x"})


def test_metadata_given_with_an_upload_reaches_the_pieces_that_are_there_already(memory, person):
    from memory.filters import parse_filter

    document(person, "notes.txt", BUOYS, metadata={"zone": "north"})
    made = document(person, "notes.txt", BUOYS, metadata={"zone": "south"})
    readable = access.readable_space_ids(person.id)
    assert not memory.search("buoy", spaces=readable, filters=parse_filter({"zone": "north"})).results
    assert (
        len(memory.search("buoy", spaces=readable, filters=parse_filter({"zone": "south"})).results)
        == made.live_version.total_chunks
    )


def test_a_single_piece_can_be_forgotten_and_the_page_says_so(memory, person):
    made = document(person, "notes.txt", BUOYS)
    piece = list_chunks(made, since=1, count=1)[0]
    memory.forget([piece.exchange_id], by=person.id)

    assert piece.text not in found(memory, person, piece.text)
    assert list_chunks(made, since=1, count=1)[0].text is None


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.txt", b"", "empty.txt is empty"),
        ("program.exe", b"MZ\x90\x00\x03\x00\x00\x00" * 40, "Unsupported file type"),
        ("large.txt", b"x" * 1_000_001, "large.txt is too large"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_reason_and_leaves_nothing(
    memory, person, settings, name, content, says
):
    conf = settings.CATO.documents.model_copy(update={"max_file_mb": 1})
    settings.CATO = settings.CATO.model_copy(update={"documents": conf})
    with pytest.raises(InvalidInputError, match=says):
        upload(person, name, content)
    assert not Document.objects.exists()
    assert not default_storage.exists("documents") or default_storage.listdir("documents")[1] == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..\\..\\boot.ini", "a\x00b.txt", " ", "x" * 400])
def test_a_name_is_never_a_path(memory, person, name):
    made = document(person, name, BUOYS)

    assert ".." not in made.name
    assert not made.name.startswith("/")
    assert 0 < len(made.name) <= 255
    (kept,) = default_storage.listdir("documents")[1]
    assert kept not in made.name


@pytest.mark.parametrize("name", ["\u200b.txt", "\u2800", "a/\u3164\u2060.md"])
def test_a_name_of_invisible_characters_is_refused(memory, person, name):
    with pytest.raises(InvalidInputError, match="only invisible characters"):
        upload(person, name, BUOYS)


def test_a_name_cannot_turn_its_ending_around(memory, person):
    assert document(person, "report\u202efdp.txt", BUOYS).name == "reportfdp.txt"


def test_an_original_comes_as_a_download_that_a_browser_runs_and_embeds_nowhere(memory, person):
    made = document(person, "page.html", "<p>The buoys are green.</p><script>alert(1)</script>")
    browser = Client()
    browser.force_login(person)

    answer = browser.get(reverse("original", args=[made.pk, 1]))

    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_document_is_seen_by_those_who_read_its_space_and_nobody_else(memory, person):
    stranger = PersonFactory()
    made = document(person, "notes.txt", BUOYS)

    assert readable_document(access.readable_space_ids(person.id), made.pk)
    assert found(memory, stranger, "buoy") == []
    from memory.errors import NotFoundError

    with pytest.raises(NotFoundError):
        readable_document(access.readable_space_ids(stranger.id), made.pk)


def test_reconcile_removes_files_that_no_document_names_but_not_young_ones(memory, person):
    made = document(person, "notes.txt", BUOYS)
    lost, young = (default_storage.save(f"documents/{name}", ContentFile(b"left by a crash")) for name in ("a", "b"))
    os.utime(default_storage.path(lost), (1, 1))

    assert deletion.delete_orphaned_originals(dry_run=True) == 1
    assert deletion.delete_orphaned_originals() == 1

    assert set(default_storage.listdir("documents")[1]) == {
        made.live_version.original.name.removeprefix("documents/"),
        young.removeprefix("documents/"),
    }


@pytest.fixture(autouse=True)
def _no_files_left():
    _remove_files()  # of other tests
    yield
    _remove_files()


def _remove_files():
    if default_storage.exists("documents"):
        for name in default_storage.listdir("documents")[1]:
            default_storage.delete(f"documents/{name}")


@pytest.mark.parametrize(
    ("provider", "says"),
    [("local", "Files are processed on this server"), ("openai", "sent to embeddings.example.org")],
)
def test_the_page_says_where_the_text_of_documents_is_sent(person, settings, provider, says):
    changed = {"embedding_provider": provider, "embedding_base_url": "https://embeddings.example.org/v1"}
    conf = settings.CATO.vector_store.model_copy(update=changed)
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
    page = Client()
    page.force_login(person)
    text = page.get(reverse("documents")).content.decode()
    assert says in text
    assert ("Files are processed on this server" in text) == (provider == "local")


@pytest.mark.parametrize(("source", "label"), [("upload", "Uploaded document"), ("cli", "Command line")])
def test_search_names_the_source_in_words(memory, person, source, label):
    exchange(person, "The boat is painted in June.", source=source)
    memory.index_pending()
    page = Client()
    page.force_login(person)
    hits = page.get(reverse("search"), {"q": "boat painted"}, headers={"HX-Request": "true"}).content.decode()
    assert label in hits
