"""Fair scheduling of documents: a small file does not wait for many files of another person."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memory import jobs
from memory.documents import extraction_runs
from memory.models import DocumentVersion, EmbeddingJob
from memory.spaces import access
from memory.utils.fairness import Turns
from tests.factories import PersonFactory, exchange, sweep_memory, upload

pytestmark = pytest.mark.django_db(transaction=True)

Stage = DocumentVersion.Stage
LARGE = "".join(
    f"Paragraph {n} is about buoys, cables and the weather at sea. {'It goes on. ' * 50}\n\n" for n in range(60)
)


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def bob():
    return PersonFactory(name="Bob Team")


def stages() -> dict[str, str]:
    return dict(DocumentVersion.objects.values_list("document__name", "stage"))


def test_files_are_read_round_robin_by_person_small_ones_first(memory, alice, bob):
    for name, content in (("large-1.txt", LARGE), ("large-2.txt", LARGE), ("small.txt", "A word.")):
        upload(alice, name, content)
    upload(bob, "late.txt", "The key lies below the mat.")

    order = []
    for _ in range(4):
        before = stages()
        assert memory.read_documents(limit=1) == 1
        order += [name for name, stage in stages().items() if stage != before[name]]

    assert set(order[:2]) == {"small.txt", "late.txt"}
    assert set(order[2:]) == {"large-1.txt", "large-2.txt"}


def test_one_person_cannot_occupy_all_extraction_workers(memory, alice, bob):
    for name in ("large-1.txt", "large-2.txt"):
        upload(alice, name, LARGE * 10)
    leased = DocumentVersion.objects.get(document__name="large-1.txt")
    assert leased.size > extraction_runs._SMALL
    DocumentVersion.objects.filter(pk=leased.pk).update(
        stage=Stage.READING, locked_until=timezone.now() + timedelta(minutes=1)
    )
    upload(bob, "late.txt", "The key lies below the mat.")

    assert memory.read_documents() == 1

    assert stages() == {"large-1.txt": "reading", "large-2.txt": "received", "late.txt": "embedding"}


def test_chunks_are_embedded_round_robin_and_a_complete_document_is_published_at_once(memory, alice, bob):
    upload(alice, "large.txt", LARGE)
    memory.read_documents()
    upload(alice, "small.txt", "Only a word of mine.")
    upload(bob, "late.txt", "The key lies below the mat.")
    memory.read_documents()
    pending = EmbeddingJob.objects.exclude(state="done").count()
    assert pending > 50

    embedded = memory.index_pending(limit=34)

    assert embedded < pending
    assert stages() == {"large.txt": "embedding", "small.txt": "ready", "late.txt": "ready"}


def test_notes_are_embedded_before_chunks(memory, alice, bob):
    upload(alice, "large.txt", LARGE)
    memory.read_documents()
    notes = memory.add_note(
        "The key lies below the mat. " * 60, space=access.personal_space(bob.id), owner_id=bob.pk, source="api"
    )
    stored = exchange(bob, "Where is the key?")
    assert len(notes) > 1

    memory.index_pending(limit=1)

    embedded = EmbeddingJob.objects.filter(state="done").values_list("exchange_id", flat=True)
    assert set(embedded) == {stored.pk, *(note.pk for note in notes)}


def test_the_person_served_longest_ago_comes_first():
    turns: Turns[str] = Turns()

    turns.note("a")
    turns.note("b")
    assert turns.in_order(["a", "b", "c", "a"]) == ["c", "a", "b"]
    turns.note("c")
    turns.note("a")
    assert turns.in_order(["a", "b", "c"]) == ["b", "c", "a"]


def test_a_sweep_embeds_a_limited_batch_so_that_other_work_gets_done(memory, alice):
    for number in range(70):
        exchange(alice, f"Note {number}")

    sweep_memory()

    pending = EmbeddingJob.objects.exclude(state="done").count()
    assert 0 < pending < 70
    assert jobs.has_due(EmbeddingJob.objects.all())
