"""Documents from upload to chunks: published, replaced and deleted as a whole."""

from __future__ import annotations

import os
import re
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from memory.documents import chunks as chunk_writing
from memory.documents import deletion, extraction_runs, publishing
from memory.documents.queries import document_statuses, list_chunks, list_versions, readable_document
from memory.embeddings import local
from memory.errors import EmbeddingError, InvalidInputError
from memory.index import claiming
from memory.index.vectors import all_vector_ids
from memory.models import Chunk, Collection, Document, DocumentVersion, EmbeddingJob, Event, Exchange, Job
from memory.spaces import access
from tests.factories import PersonFactory, document, exchange, process_documents, signed_in, upload

pytestmark = pytest.mark.django_db(transaction=True)

BUOYS = "\n\n".join(
    [
        "# Uplink backoff",
        "The buoy waits between zero and ten seconds before it dials again. " * 6,
        "After forty attempts in one day it stays silent until midnight and stores its readings. " * 6,
        "Above 3.6 volts the radio may stay on between attempts; below that it is switched off. " * 6,
    ]
)

# The first paragraph is one sentence, as Chinese is often written, which is longer than what the model reads.
HANDBOOK = "\n\n".join(
    [
        "港口的值班从早上六点开始，"
        + "".join(
            f"第{hour}小时巡查员沿着码头检查{place}，记录水位和风速，发现缆绳磨损就立即更换，并在日志里签字，"
            for hour, place in enumerate(
                [
                    "吊车",
                    "灯塔",
                    "油库",
                    "仓库",
                    "闸门",
                    "浮标",
                    "泵站",
                    "栈桥",
                    "船坞",
                    "磅秤",
                    "雷达",
                    "锚地",
                    "水塔",
                    "岗亭",
                    "拖轮",
                    "滑道",
                ],
                1,
            )
        )
        + "备用钥匙由隔壁面包店的老板娘保管。",
        "访客须在大门口登记，并佩戴临时胸牌。",
        "食堂在中午十二点供应热餐，星期五有鱼。",
        "仓库的钥匙丢失时，应当立即报告主管。",
    ]
)


def found(memory: Any, person: Any, text: str) -> list[str]:
    return [
        hit.exchange.user_message
        for hit in memory.search(text, spaces=access.readable_space_ids(person.id), count=50).results
    ]


def stage(version: DocumentVersion) -> str:
    return str(DocumentVersion.objects.get(pk=version.pk).stage)


def test_an_uploaded_file_is_found_by_its_chunks_with_name_heading_and_location(memory, person):
    uploaded = document(person, "ADR-017 Uplink backoff.md", BUOYS, metadata={"team": "Hardware"})

    assert stage(uploaded.live_version) == "ready"
    (hit, *_) = memory.search("silent until midnight", spaces=access.readable_space_ids(person.id)).results
    assert "After forty attempts" in hit.exchange.user_message
    assert hit.exchange.source_file == "ADR-017 Uplink backoff.md"
    assert hit.exchange.location.label == "Uplink backoff"
    assert hit.exchange.location.document_id == uploaded.pk
    row = Exchange.objects.get(pk=hit.exchange.id)
    assert row.metadata == {"team": "Hardware", "document": str(uploaded.pk), "place": "Uplink backoff"}
    assert row.total_chunks == uploaded.live_version.chunks.count() == uploaded.live_version.total_chunks


def test_the_chunks_contain_the_whole_text_in_order(memory, person):
    uploaded = document(person, "notes.txt", BUOYS)

    text = "".join(chunk.separator + chunk.text for chunk in list_chunks(uploaded, since=0, count=100))
    assert "".join(text.split()) == "".join(BUOYS.split())


def test_the_end_of_a_long_chinese_sentence_is_found(memory, person):
    document(person, "手册.txt", HANDBOOK)

    # English, so that no term of the question is in the text.
    (hit, *_) = memory.search("Who has the spare key?", spaces=access.readable_space_ids(person.id)).results
    assert "备用钥匙" in hit.exchange.user_message


def test_no_chunk_is_found_before_all_chunks_are_indexed(memory, person, monkeypatch):
    version = upload(person, "notes.txt", BUOYS).version
    assert stage(version) == "received"
    memory.read_documents()
    assert stage(version) == "embedding"
    assert found(memory, person, "buoy") == []

    monkeypatch.setattr(claiming, "_LOCAL_BATCH_CHARS", 1)
    memory.index_pending(limit=1)
    memory.publish_ready_versions()
    assert found(memory, person, "buoy") == []

    memory.index_pending()
    memory.publish_ready_versions()
    assert stage(version) == "ready"
    assert found(memory, person, "buoy")


def test_documents_and_imports_do_not_wait_until_conversations_pause(memory, person, monkeypatch):
    upload(person, "notes.txt", "The buoy is green.")
    memory.read_documents()
    exchange(person, "The harbour is closed.", "", source="import")
    for number in range(10):
        exchange(person, f"Message {number}", "")
    embedded = []
    embed = local.LocalEmbedder.embed_documents
    monkeypatch.setattr(
        local.LocalEmbedder, "embed_documents", lambda self, texts: embedded.append(texts) or embed(self, texts)
    )
    monkeypatch.setattr(claiming, "_LOCAL_BATCH_CHARS", 1)
    memory.index_pending()

    first_words = [batch[0].split()[1] for batch in embedded]
    kinds = [word if word in ("buoy", "harbour") else "Message" for word in first_words]
    assert kinds == ["Message"] * 3 + ["harbour"] + ["Message"] * 3 + ["buoy"] + ["Message"] * 4


def test_an_identical_upload_changes_nothing(memory, person):
    first = upload(person, "notes.txt", BUOYS)
    second = upload(person, "notes.txt", BUOYS)
    process_documents()
    later = upload(person, "notes.txt", BUOYS)

    assert not first.is_known
    assert second.is_known
    assert later.is_known
    assert {first.version.pk, second.version.pk, later.version.pk} == {first.version.pk}
    assert len(default_storage.listdir("documents")[1]) == 1


def test_a_changed_file_embeds_only_changed_chunks_and_keeps_the_ids_of_others(memory, person, monkeypatch):
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


def test_a_search_sees_either_the_old_or_the_new_version_completely(memory, person):
    document(person, "list.txt", "\n\n".join(f"The old ferry number {n} leaves at dawn. " * 12 for n in range(8)))
    results: list[set[str]] = []
    finished = threading.Event()

    def search() -> None:
        while not finished.is_set():
            texts = found(memory, person, "which ferry leaves")
            results.append({word for text in texts for word in ("old", "new") if f"The {word} ferry" in text})
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
        finished.set()
        searching.join()

    assert len(results) > 3
    assert [words for words in results if len(words) != 1] == []


@pytest.mark.skipif(connection.vendor != "sqlite", reason="all writers of SQLite wait for a switch")
def test_publishing_takes_linear_time(memory, person):
    short, long = (_publishing_work(person, count) for count in (200, 400))

    assert long < 2.5 * short


def _publishing_work(person: Any, count: int) -> int:
    """Return how many hundreds of SQLite VM steps it takes to publish so many chunks."""
    space = access.personal_space(person.id)
    uploaded = Document.objects.create(space=space, owner=person, name=f"{count}.txt", source="upload")
    version = uploaded.versions.create(
        number=1, size=1, uploaded_by=person, due_at=uploaded.created_at, stage="embedding", total_chunks=count
    )
    rows = Exchange.objects.bulk_create(
        Exchange(space=space, owner=person, timestamp=uploaded.created_at, chunk_index=n, size=0, is_inactive=True)
        for n in range(count)
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
def test_other_writers_get_in_between_two_batches_of_a_file(memory, person, monkeypatch, pauses):
    monkeypatch.setattr(chunk_writing, "_BATCH_SIZE", 2)

    uploaded = document(person, "notes.txt", BUOYS)

    assert pauses == [(0.03, False)] * -(-uploaded.live_version.total_chunks // 2)


def test_content_of_the_old_version_only_is_erased_with_vectors_and_file(memory, person):
    old = document(person, "notes.txt", BUOYS)
    before = set(old.live_version.chunks.values_list("exchange_id", flat=True))
    file_path = Path(settings.MEDIA_ROOT) / old.live_version.original.name
    assert file_path.exists()

    new = document(person, "notes.txt", "Something else altogether. " * 40)

    removed = Exchange.objects.filter(pk__in=before)
    assert set(removed.values_list("user_message", flat=True)) == {""}
    assert not file_path.exists()
    assert not Chunk.objects.filter(version=old.live_version).exists()
    collection = Collection.objects.get().name
    from memory.index import store

    assert not store.existing_ids(collection, [id for key in before for id in all_vector_ids(key, 1)])
    assert [state.number for state in list_versions(new)] == [2]


def test_a_deleted_document_disappears_from_every_read_at_once_and_is_then_erased(memory, person):
    uploaded = document(person, "secret.txt", BUOYS)
    file_path = Path(settings.MEDIA_ROOT) / uploaded.live_version.original.name

    assert memory.forget_documents([uploaded.pk], by=person.id) == 1

    assert found(memory, person, "buoy") == []
    assert memory.memory_counts(access.readable_space_ids(person.id)).exchanges == 0
    process_documents()
    receipt = memory.receipt_for(Chunk.objects.values_list("exchange_id", flat=True))
    assert receipt.exchanges == receipt.vectors == uploaded.live_version.total_chunks
    assert receipt.under_way == 0
    assert not file_path.exists()
    row = Document.objects.get(pk=uploaded.pk)
    assert (row.name, row.metadata, row.live_version) == ("", {}, None)
    assert not Chunk.objects.exclude(location="").exists()
    assert not Exchange.objects.exclude(user_message="").exists()


def test_the_name_of_a_deleted_document_can_be_reused(memory, person):
    first = document(person, "notes.txt", BUOYS)
    memory.forget_documents([first.pk], by=person.id)
    second = document(person, "notes.txt", BUOYS)

    assert second.pk != first.pk
    assert found(memory, person, "buoy")


def test_a_crash_during_deletion_still_ends_in_erasure(memory, person, monkeypatch):
    uploaded = document(person, "secret.txt", BUOYS)
    original = uploaded.versions.get().original.name
    assert default_storage.exists(original)
    memory.forget_documents([uploaded.pk], by=person.id)
    with monkeypatch.context() as crash:
        crash.setattr(default_storage, "delete", lambda name: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            memory.cleanup_documents()

    process_documents()
    assert not Exchange.objects.exclude(user_message="").exists()
    assert not default_storage.exists(original)


def test_a_file_that_cannot_be_deleted_is_left_for_the_next_time_and_holds_up_no_other(memory, person, monkeypatch):
    documents = [document(person, name, BUOYS) for name in ("first.txt", "second.txt", "third.txt")]
    versions = [uploaded.live_version for uploaded in documents]
    memory.forget_documents([uploaded.pk for uploaded in documents], by=person.id)
    refused, real = versions[1].original.name, default_storage.delete

    def delete(name: str) -> None:
        if name == refused:
            raise PermissionError(13, "Permission denied")
        real(name)

    with monkeypatch.context() as protected:
        protected.setattr(default_storage, "delete", delete)
        assert memory.cleanup_documents() == 2
    assert [default_storage.exists(version.original.name) for version in versions] == [False, True, False]
    assert DocumentVersion.objects.get(removed_at=None).pk == versions[1].pk

    assert memory.cleanup_documents() == 1
    assert not default_storage.exists(refused)


def test_an_unreadable_file_reports_the_reason_and_can_be_retried(memory, person, monkeypatch):
    version = upload(person, "broken.pdf", b"%PDF-1.7 and then nothing").version
    memory.read_documents()
    (state,) = document_statuses([readable_document(access.readable_space_ids(person.id), version.document_id)])
    assert state.newest.stage == "failed"
    assert "damaged" in state.newest.error

    publishing.retry_document(version)
    assert stage(version) == "received"


def test_a_failed_newer_version_leaves_the_old_one_live(memory, person):
    uploaded = document(person, "notes.txt", BUOYS)
    upload(person, "notes.txt", b"%PDF-1.7 and then nothing")
    process_documents()

    assert found(memory, person, "buoy")
    (state,) = document_statuses([Document.objects.get(pk=uploaded.pk)])
    assert (state.live_version.number, state.newest.number, state.newest.stage) == (1, 2, "failed")


def test_chunks_that_cannot_be_embedded_fail_the_version_and_a_retry_resumes_with_them(memory, person, monkeypatch):
    version = upload(person, "notes.txt", BUOYS).version
    memory.read_documents()
    away = EmbeddingError("The provider answered HTTP 401.", permanent=True)
    monkeypatch.setattr(local.LocalEmbedder, "embed_documents", lambda *a: (_ for _ in ()).throw(away))
    memory.index_pending()
    memory.publish_ready_versions()
    assert stage(version) == "failed"
    assert list(Event.objects.values_list("kind", flat=True)) == ["document.added", "document.failed"]

    monkeypatch.undo()
    publishing.retry_document(version)
    process_documents()
    assert stage(version) == "ready"


def test_cancelling_a_version_leaves_the_previous_one_if_any(memory, person):
    version = upload(person, "a.txt", BUOYS).version
    memory.read_documents()
    deletion.cancel_document(DocumentVersion.objects.get(pk=version.pk), by=person.id)
    process_documents()
    assert not Document.objects.exclude(name="").exists()
    assert not Exchange.objects.exclude(user_message="").exists()

    uploaded = document(person, "b.txt", BUOYS)
    second = upload(person, "b.txt", "Other words. " * 80).version
    memory.read_documents()
    deletion.cancel_document(DocumentVersion.objects.get(pk=second.pk), by=person.id)
    process_documents()
    assert stage(uploaded.live_version) == "ready"
    assert found(memory, person, "buoy")
    assert not found(memory, person, "other words") or "Other" not in "".join(found(memory, person, "other words"))


def test_messages_are_embedded_before_documents(memory, person, monkeypatch):
    upload(person, "long.txt", "\n\n".join(f"Page {n} of the long report. " * 20 for n in range(100)))
    memory.read_documents()
    stored = exchange(person, "What is the deposit on the crates?")

    memory.index_pending(limit=1)

    assert memory.memory_states([stored.id]) == {stored.id: "remembered"}
    assert EmbeddingJob.objects.filter(state=Job.State.PENDING).count() > 30


def test_deleting_the_live_version_republishes_the_previous_one_if_it_is_kept(memory, person, settings):
    settings.CATO = settings.CATO.model_copy(
        update={"documents": settings.CATO.documents.model_copy(update={"keep_versions": 2})}
    )
    document(person, "notes.txt", "The first words. " * 60)
    document(person, "notes.txt", "The second words. " * 60)
    uploaded = document(person, "notes.txt", "The third words. " * 60)
    assert [state.number for state in list_versions(uploaded)] == [3, 2]

    memory.forget_version(uploaded.live_version, by=person.id)
    assert found(memory, person, "words") == []
    process_documents()

    (text, *_) = found(memory, person, "words")
    assert "second" in text
    assert [state.number for state in list_versions(Document.objects.get())] == [2]


def test_all_versions_but_the_last_can_be_deleted(memory, person, settings):
    settings.CATO = settings.CATO.model_copy(
        update={"documents": settings.CATO.documents.model_copy(update={"keep_versions": 5})}
    )
    for number in range(4):
        uploaded = document(person, "notes.txt", f"Words number {number}. " * 60)
    assert memory.delete_old_versions(uploaded, 2, by=person.id) == 2
    process_documents()

    assert [state.number for state in list_versions(uploaded)] == [4, 3]
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


def test_metadata_is_copied_to_every_chunk_and_filters_find_it(memory, person):
    uploaded = document(person, "notes.txt", BUOYS)
    memory.set_document_metadata(uploaded, {"zone": "north"})
    process_documents()

    from memory.filters import parse_filter

    readable = access.readable_space_ids(person.id)
    hits = memory.search("buoy", spaces=readable, filters=parse_filter({"zone": "north"})).results
    assert len(hits) == uploaded.live_version.total_chunks
    assert memory.search("buoy", spaces=readable, filters=parse_filter({"document": str(uploaded.pk)})).results
    assert not memory.search("buoy", spaces=readable, filters=parse_filter({"zone": "south"})).results
    with pytest.raises(InvalidInputError, match="written by Cato itself"):
        memory.set_document_metadata(uploaded, {"document": "x"})


def test_wrong_metadata_are_shown_again_on_the_page_of_their_document(memory, person):
    uploaded = document(person, "notes.txt", BUOYS)
    answer = signed_in(person).post(reverse("set_document_metadata", args=[uploaded.pk]), {"metadata": "zone north"})

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "zone north</textarea>" in page
    assert re.search(r'id="metadata-error" role="alert">.*Line 1 has no colon', page, re.DOTALL)
    assert 'href="?' not in page, "the address of this page cannot be opened"


def test_metadata_of_a_repeated_upload_updates_existing_chunks(memory, person):
    from memory.filters import parse_filter

    document(person, "notes.txt", BUOYS, metadata={"zone": "north"})
    uploaded = document(person, "notes.txt", BUOYS, metadata={"zone": "south"})
    readable = access.readable_space_ids(person.id)
    assert not memory.search("buoy", spaces=readable, filters=parse_filter({"zone": "north"})).results
    assert (
        len(memory.search("buoy", spaces=readable, filters=parse_filter({"zone": "south"})).results)
        == uploaded.live_version.total_chunks
    )


def test_a_version_belongs_to_its_document_whatever_the_name_of_the_file(memory, person):
    mine, other = document(person, "report.txt", BUOYS), document(person, "report (2).txt", "The ferry leaves at dawn.")
    changed = document(person, "report.txt", "The ferry leaves at noon.", version_of=other)

    assert (changed.pk, changed.name) == (other.pk, "report (2).txt")
    assert mine.versions.count() == 1


def test_metadata_that_is_set_while_a_file_is_read_reaches_every_chunk(memory, person, monkeypatch):
    write_chunks = extraction_runs.write_chunks

    def set_before(lease, extracted):
        memory.set_document_metadata(Document.objects.get(pk=lease.job.document_id), {"zone": "south"})
        write_chunks(lease, extracted)

    monkeypatch.setattr(extraction_runs, "write_chunks", set_before)
    uploaded = document(person, "notes.txt", BUOYS, metadata={"zone": "north"})

    zones = [chunk.exchange.metadata["zone"] for chunk in uploaded.live_version.chunks.select_related("exchange")]
    assert set(zones) == {"south"}
    assert len(zones) > 1


def test_chunks_that_are_used_again_have_the_place_of_the_new_version(memory, person):
    from memory.filters import parse_filter

    text = "\n\n".join(f"Sentence {n} about the ferry to Skagen. " * 12 for n in range(4))
    before = document(person, "notes.md", f"# Alpha\n\n{text}").live_version
    kept = set(before.chunks.values_list("exchange_id", flat=True))
    after = document(person, "notes.md", f"# Gamma\n\n{text}").live_version
    process_documents()

    assert kept & set(after.chunks.values_list("exchange_id", flat=True))
    places = [chunk.exchange.metadata["place"] for chunk in after.chunks.select_related("exchange")]
    assert places == ["Gamma"] * after.total_chunks
    readable = access.readable_space_ids(person.id)
    hits = memory.search("ferry", spaces=readable, filters=parse_filter({"place": "Gamma"})).results
    assert len(hits) == after.total_chunks
    assert all(hit.similarity is not None for hit in hits)


def test_a_single_chunk_can_be_forgotten_and_the_page_shows_it(memory, person):
    uploaded = document(person, "notes.txt", BUOYS)
    chunk = list_chunks(uploaded, since=1, count=1)[0]
    memory.forget([chunk.exchange_id], by=person.id)

    assert chunk.text not in found(memory, person, chunk.text)
    assert list_chunks(uploaded, since=1, count=1)[0].text is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"", "empty.txt is empty"),
        ("program.exe", b"MZ\x90\x00\x03\x00\x00\x00" * 40, "Unsupported file type"),
        ("large.txt", b"x" * 1_000_001, "large.txt is too large"),
    ],
)
def test_an_invalid_upload_is_refused_with_a_reason_and_leaves_nothing(
    memory, person, settings, name, content, message
):
    conf = settings.CATO.documents.model_copy(update={"max_file_mb": 1})
    settings.CATO = settings.CATO.model_copy(update={"documents": conf})
    with pytest.raises(InvalidInputError, match=message):
        upload(person, name, content)
    assert not Document.objects.exists()
    assert not default_storage.exists("documents") or default_storage.listdir("documents")[1] == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..\\..\\boot.ini", "a\x00b.txt", " ", "x" * 400])
def test_a_name_is_never_a_path(memory, person, name):
    uploaded = document(person, name, BUOYS)

    assert ".." not in uploaded.name
    assert not uploaded.name.startswith("/")
    assert 0 < len(uploaded.name) <= 255
    (stored_file,) = default_storage.listdir("documents")[1]
    assert stored_file not in uploaded.name


@pytest.mark.parametrize("name", ["\u200b.txt", "\u2800", "a/\u3164\u2060.md"])
def test_a_name_of_invisible_characters_is_refused(memory, person, name):
    with pytest.raises(InvalidInputError, match="only invisible characters"):
        upload(person, name, BUOYS)


def test_a_name_cannot_disguise_its_extension(memory, person):
    assert document(person, "report\u202efdp.txt", BUOYS).name == "reportfdp.txt"


def test_an_original_is_a_download_that_browsers_neither_run_nor_embed(memory, person):
    uploaded = document(person, "page.html", "<p>The buoys are green.</p><script>alert(1)</script>")
    browser = signed_in(person)

    answer = browser.get(reverse("document_original", args=[uploaded.pk, 1]))

    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_document_is_visible_only_to_readers_of_its_space(memory, person):
    stranger = PersonFactory()
    uploaded = document(person, "notes.txt", BUOYS)

    assert readable_document(access.readable_space_ids(person.id), uploaded.pk)
    assert found(memory, stranger, "buoy") == []
    from memory.errors import NotFoundError

    with pytest.raises(NotFoundError):
        readable_document(access.readable_space_ids(stranger.id), uploaded.pk)


def test_reconcile_removes_old_orphaned_files(memory, person):
    uploaded = document(person, "notes.txt", BUOYS)
    lost, young = (default_storage.save(f"documents/{name}", ContentFile(b"left by a crash")) for name in ("a", "b"))
    os.utime(default_storage.path(lost), (1, 1))

    assert deletion.delete_orphaned_originals(dry_run=True) == 1
    assert deletion.delete_orphaned_originals() == 1

    assert set(default_storage.listdir("documents")[1]) == {
        uploaded.live_version.original.name.removeprefix("documents/"),
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
    ("provider", "message"),
    [("local", "Files are processed on this server"), ("openai", "sent to embeddings.example.org")],
)
def test_the_page_names_the_remote_embedding_provider(person, settings, provider, message):
    changed = {"embedding_provider": provider, "embedding_base_url": "https://embeddings.example.org/v1"}
    conf = settings.CATO.vector_store.model_copy(update=changed)
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
    page = signed_in(person)
    text = page.get(reverse("documents")).content.decode()
    assert message in text
    assert ("Files are processed on this server" in text) == (provider == "local")


@pytest.mark.parametrize(("source", "label"), [("upload", "Uploaded document"), ("cli", "Command line")])
def test_search_names_the_source_in_words(memory, person, source, label):
    exchange(person, "The boat is painted in June.", source=source)
    memory.index_pending()
    page = signed_in(person)
    hits = page.get(reverse("search"), {"q": "boat painted"}, headers={"HX-Request": "true"}).content.decode()
    assert label in hits
