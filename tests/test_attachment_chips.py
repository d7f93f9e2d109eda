"""Chips of attached documents: the number of pages, and the progress until the document is in the search index."""

from __future__ import annotations

import re

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.template.loader import render_to_string
from django.urls import reverse

from chat.answers.persistence import store_exchange
from chat.attachments import add_attachments, store_attachment
from chat.models import Turn
from chat.realtime import frames
from chat.rows.attachments import composer_chips
from chat.rows.turns import TurnDetails, turn_rows
from memory.api import MemoryState
from memory.models import Document, DocumentVersion
from memory.views.document_rows import document_progress
from tests.factories import PersonFactory, process_documents, signed_in, thread, turn
from tests.files import pdf, pptx, slide_shape

# The last page is a picture.
REPORT = pdf(["The valve opens at 4.2 bar.", "It closes at 3.9 bar.", ""])


def attach(person, name="Report.pdf", content=REPORT) -> Turn:
    one = turn(thread(person), "At what pressure?", "At 4.2 bar.")
    add_attachments(one, [store_attachment(ContentFile(content, name=name), owner_id=person.id)])
    return one


def chip_of(one: Turn) -> str:
    """Return the chip of the turn's only attachment, as a page of its thread shows it."""
    (row,) = turn_rows(one.thread, [Turn.objects.get(id=one.id)])
    return render_to_string("chat/_attachments.html", {"attachments": row.attachments})


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "content", "detail"),
    [
        ("Report.pdf", REPORT, "3 pages"),
        ("Note.pdf", pdf(["One page."]), "1 page"),
        ("Talk.pptx", pptx([slide_shape("First"), slide_shape("Second")], hidden=[2]), "2 slides"),
        ("scan.pdf", pdf(["", ""]), "no text found"),
        ("Note.md", b"A note without pages.", ""),
    ],
)
def test_a_chip_in_the_composer_shows_how_many_pages_the_file_has(person, name, content, detail):
    attachment = store_attachment(ContentFile(content, name=name), owner_id=person.id)
    chip = render_to_string("chat/_attachment_chips.html", {"chips": composer_chips([attachment])})

    assert composer_chips([attachment])[0].attachment.detail == detail
    assert detail in text_of(chip)
    assert "hx-get" not in chip


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "content", "chip"),
    [
        ("empty.txt", b"", "empty.txt is empty."),
        ("broken.pdf", b"%PDF-1.4", "broken.pdf This PDF is damaged and cannot be read."),
    ],
)
def test_the_chip_of_a_refused_file_names_it_once(person, name, content, chip):
    response = signed_in(person).post("/attachments", {"attachments": SimpleUploadedFile(name, content)})

    assert text_of(response.content.decode()) == chip


@pytest.mark.django_db(transaction=True)
def test_a_page_shows_the_progress_until_the_document_is_in_the_index(person, chroma):
    one = attach(person)
    assert "hx-get" not in chip_of(one)

    store_exchange(one)
    assert "Waiting to be read" in chip_of(one)
    versions = DocumentVersion.objects.all()
    versions.update(stage=DocumentVersion.Stage.READING)
    assert "Reading" in chip_of(one)
    versions.update(stage=DocumentVersion.Stage.EMBEDDING, total_chunks=5)
    assert "0 of 5 passages" in chip_of(one)
    assert "progress-bar" in chip_of(one)
    address = reverse("attachment_progress", args=[one.attachments.get().id])
    assert f'hx-get="{address}" hx-trigger="every 1s"' in chip_of(one)
    assert address in signed_in(person).get(address).content.decode()

    versions.update(stage=DocumentVersion.Stage.RECEIVED, total_chunks=None)
    process_documents()
    assert versions.get().stage == DocumentVersion.Stage.READY
    for html in (chip_of(one), signed_in(person).get(address).content.decode()):
        assert text_of(html).endswith("3 pages")
        assert "hx-get" not in html


@pytest.mark.django_db
def test_a_document_that_could_not_be_added_says_so_and_is_not_polled(person):
    one = attach(person)
    store_exchange(one)
    DocumentVersion.objects.update(stage=DocumentVersion.Stage.FAILED)

    assert text_of(chip_of(one)).endswith("Not added")
    assert "hx-get" not in chip_of(one)


@pytest.mark.django_db
def test_the_frame_of_a_finished_answer_starts_the_progress_on_open_pages(person):
    one = attach(person)
    store_exchange(one)
    one.refresh_from_db()
    details = TurnDetails(memory_state=MemoryState("remembering"))

    def finished(documents) -> str:
        end, _footer = frames.answer_finished(one, details, None, has_blocks=True, documents=documents)
        return end.html

    attachment = one.attachments.get()
    assert f"#turn-{one.id} [data-attachment='{attachment.id}']" in finished([attachment])
    assert "Waiting to be read" in finished([attachment])
    assert "data-attachment" not in finished([])


@pytest.mark.django_db
def test_only_readers_of_the_thread_learn_the_progress(person):
    one = attach(person)
    store_exchange(one)
    address = reverse("attachment_progress", args=[one.attachments.get().id])

    assert signed_in(person).get(address).status_code == 200
    assert signed_in(PersonFactory()).get(address).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_progress_of_indexed_documents_takes_one_statement(person, chroma, django_assert_num_queries):
    for name in ("One.pdf", "Two.pdf"):
        store_exchange(attach(person, name=name))
    ids = list(Document.objects.values_list("id", flat=True))
    assert len(document_progress(ids)) == 2

    process_documents()
    with django_assert_num_queries(1):
        assert document_progress(ids) == {}
