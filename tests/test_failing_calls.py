"""Whichever call fails, an action that is repeated and the work of the sweep end as if none had failed."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from django.db import DatabaseError
from django.utils import timezone

from chat.imports.worker import run_imports
from chat.models import ImportJob, Thread, Turn
from chat.turns.posting import post_message
from memory import api
from memory.documents.queries import list_chunks
from memory.errors import CatoError
from memory.models import (
    CachedEmbedding,
    Document,
    DocumentVersion,
    EmbeddingJob,
    ErasureJob,
    Exchange,
    Statement,
)
from memory.spaces import access
from tests.factories import exchange, group, signed_in, statement, sweep_memory, thread, upload
from tests.failing_calls import failing_call
from tests.test_import_jobs import export, submit
from tests.topology import IS_LONG

pytestmark = pytest.mark.django_db(transaction=True)

STRIDE = 1 if IS_LONG else 12


def fail_each_call(act: Callable[[], object], prepare: Callable[[int], object], check: Callable[[int], object]) -> int:
    """Repeat the action with one failing call after another, until all were reached; return the number of calls."""
    number, has_failed = 1, True
    while has_failed:
        for is_done in (False, True):
            case = 2 * number + is_done
            prepare(case)
            has_succeeded = False
            with failing_call(number, is_done=is_done) as calls:
                try:
                    act()
                    has_succeeded = True
                except (CatoError, DatabaseError, OSError):
                    assert calls.has_failed, "an error without a cause"
            if not has_succeeded:
                act()
            has_failed = calls.has_failed
            recover()
            check(case)
        number += STRIDE
    return number


def recover() -> None:
    """Do what the workers do once the delays after failures and the leases of dead processes have ended."""
    for _ in range(3):
        for model in (EmbeddingJob, ErasureJob, DocumentVersion, ImportJob):
            model.objects.update(locked_until=None, due_at=timezone.now())
        api.read_documents()
        run_imports()
        sweep_memory()
    assert EmbeddingJob.objects.exclude(state="done").count() == 0
    drift = api.measure_drift()
    assert (drift.rows_without_vector, drift.vectors_without_row) == (0, 0)


def texts() -> list[str]:
    return sorted(Exchange.objects.filter(forgotten_at=None).values_list("user_message", flat=True))


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def test_a_message_is_posted_once(memory, person):
    where, keys = thread(person), dict[int, uuid.UUID]()

    def prepare(case: int) -> None:
        keys[case] = uuid.uuid4()

    def post() -> None:
        post_message(where.id, author_id=person.id, message="Where is the key?", client_key=list(keys.values())[-1])

    def check(case: int) -> None:
        assert Turn.objects.filter(thread=where).count() == 1
        Turn.objects.all().delete()
        Thread.objects.update(head=None)

    assert fail_each_call(post, prepare, check) > 5


def test_an_exchange_is_indexed_once(memory, person):
    def prepare(case: int) -> None:
        exchange(person, f"The greenhouse key number {case} hangs behind the clock.")

    def check(case: int) -> None:
        (found, *_) = memory.search(f"key number {case}", spaces=access.readable_space_ids(person.id)).results
        assert f"number {case} " in found.exchange.user_message

    assert fail_each_call(memory.index_pending, prepare, check) > 5


def test_an_upload_is_stored_read_and_indexed_once(memory, person, folder):
    name = ""

    def prepare(case: int) -> None:
        nonlocal name
        name = f"{case}.txt"

    def store_document() -> None:
        upload(person, name, f"The greenhouse key {name} hangs behind the clock.")
        memory.read_documents()
        memory.index_pending()
        memory.publish_ready_versions()

    def check(case: int) -> None:
        one = Document.objects.get(name=name)
        assert one.versions.count() == 1
        (chunk,) = list_chunks(one, since=0, count=10)
        assert chunk.text == f"The greenhouse key {name} hangs behind the clock."

    assert fail_each_call(store_document, prepare, check) > 5
    files = {path.name for path in folder.rglob("*") if path.is_file()}
    assert len(files) == Document.objects.count(), "no file is left over"


def test_what_is_forgotten_is_erased_with_its_statement(memory, person):
    gone: Exchange

    def prepare(case: int) -> None:
        nonlocal gone
        gone = exchange(person, f"A buoy makes {case} retries a day.")
        statement(gone, text=f"A buoy makes {case} retries a day at most.")
        memory.index_pending()

    def forget() -> None:
        memory.forget([gone.pk], by=person.id)
        memory.erase_forgotten()

    def check(case: int) -> None:
        gone.refresh_from_db()
        assert (gone.user_message, gone.erased_at is None) == ("", False)
        assert texts() == []
        assert not Statement.objects.exists()
        assert not CachedEmbedding.objects.exists()

    assert fail_each_call(forget, prepare, check) > 5


def test_a_thread_that_is_moved_is_found_in_its_new_space_only(memory, person):
    team = group("Hardware", person)
    where: Thread

    def prepare(case: int) -> None:
        nonlocal where
        where = thread(person)
        exchange(person, f"A buoy makes {case} retries a day.", thread_id=where.pk)
        memory.index_pending()

    def move() -> None:
        memory.move_thread(where.pk, to=team, by=person.id)
        memory.index_pending()

    def check(case: int) -> None:
        asked = f"How many retries does buoy {case} make?"
        found = memory.search(asked, spaces=frozenset({team.pk})).results
        assert f"makes {case} retries" in " ".join(hit.exchange.user_message for hit in found)
        assert not memory.search(asked, spaces=frozenset({access.personal_space(person.id).pk})).results

    assert fail_each_call(move, prepare, check) > 5


def test_an_import_adds_each_conversation_once(memory, person):
    client = signed_in(person)

    def prepare(case: int) -> None:
        submit(client, export(f"{case} a", f"{case} b"))

    def check(case: int) -> None:
        assert ImportJob.objects.latest("created_at").state == "done"
        for id in (f"{case} a", f"{case} b"):
            assert Thread.objects.get(title=f"About {id}").turns.count() == 1
            assert Exchange.objects.filter(user_message=f"What of {id}?").count() == 1

    assert fail_each_call(run_imports, prepare, check) > 5
