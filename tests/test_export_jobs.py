"""Exports of an account: a worker prepares them with progress, and nothing forgotten since can be downloaded."""

from __future__ import annotations

import io
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.utils import timezone

from cato_web.accounts.deletion import delete_account
from cato_web.accounts.export import archive, worker
from cato_web.accounts.export import jobs as exports
from cato_web.accounts.export.worker import run_exports
from cato_web.accounts.models import AuditEntry, ExportJob
from cato_web.celery import app, cleanup, sweep
from chat import prompt_library
from chat.attachments import add_attachments
from chat.instructions.editing import add as add_instruction
from chat.models import Thread, Turn
from chat.services import delete_thread, purge_deleted
from chat.turns.forgetting import forget_everywhere
from memory import jobs
from memory.api import NewRecord
from memory.exchanges.records import upsert_records
from memory.models import Membership, RecallLogEntry
from memory.spaces import access
from tests.factories import (
    PersonFactory,
    ago,
    document,
    exchange,
    exported_archive,
    group,
    image_of,
    process_documents,
    signed_in,
    thread,
    turn,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),
]

PAGE, ROW, FILE = "/settings/export", "/settings/export/row", "/settings/export/file"
OUTDATED = "Something in it was forgotten or changed"


@pytest.fixture(autouse=True)
def folder(settings, tmp_path) -> Path:
    """Return the folder of archives."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path / "exports"


@pytest.fixture
def page(person) -> Client:
    return signed_in(person)


@pytest.fixture
def bob(memory):
    return PersonFactory(name="Bob Team")


def requested(page: Client) -> ExportJob:
    assert page.post(PAGE).status_code == 302
    return ExportJob.objects.get()


def text_of(page: Client, address: str = PAGE) -> str:
    return page.get(address).content.decode()


def can_download(page: Client) -> bool:
    response = page.get(FILE)
    if response.status_code == 302:
        assert response.headers["Location"] == PAGE
        return False
    zipfile.ZipFile(io.BytesIO(b"".join(response)))
    return True


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.exists() else []


def while_writing(monkeypatch, act) -> None:
    """Call `act` once the archive has its first file, at each attempt."""
    write = archive.archive_files

    def interrupted(*arguments: Any, **options: Any):
        for number, file in enumerate(write(*arguments, **options)):
            yield file
            if number == 0:
                act()

    monkeypatch.setattr(worker, "archive_files", interrupted)


def remembered(person, message: str, **fields: Any) -> Turn:
    """Return a turn of this person in a thread of its own, with its exchange."""
    one = turn(thread(person, **fields), message)
    stored = exchange(person, message, space=one.thread.space, thread_id=one.thread_id, turn_id=one.id)
    Turn.objects.filter(pk=one.pk).update(exchange_id=stored.pk)
    one.refresh_from_db()
    return one


# From request to download


def test_a_worker_prepares_the_archive_and_the_page_shows_a_link(memory, person, page, folder):
    remembered(person, "The ferry leaves at nine.")
    requested(page)
    waiting = text_of(page)
    assert "Preparing your export" in waiting
    assert f'hx-get="{ROW}"' in waiting
    assert not can_download(page)
    assert files(folder) == []

    assert run_exports() == 1

    ready = text_of(page)
    assert "Ready: " in ready
    assert FILE in ready
    assert "every 1s" not in text_of(page, ROW)
    assert len(files(folder)) == 1
    response = page.get(FILE)
    content = b"".join(response)
    assert response.headers["Content-Length"] == str(len(content))
    assert 'filename="cato-' in response.headers["Content-Disposition"]
    assert "The ferry leaves at nine." in zipfile.ZipFile(io.BytesIO(content)).read("exchanges.jsonl").decode()
    assert AuditEntry.objects.filter(actor=person, action="account.exported").count() == 1


def test_the_page_shows_the_progress(memory, person, page, monkeypatch):
    for number in range(3):
        remembered(person, f"Message {number}")
    row, seen = requested(page), []
    monkeypatch.setattr(worker, "_PROGRESS_INTERVAL", 0.0)
    lines = archive._lines

    def show(*arguments: Any):
        seen.append(text_of(page, ROW))
        return lines(*arguments)

    monkeypatch.setattr(archive, "_lines", show)
    assert run_exports() == 1

    assert "Preparing your export: 3 of 6 messages, memories and files" in seen[0]
    assert "progress-bar" in seen[0]
    row.refresh_from_db()
    assert (row.read, row.total) == (6, 6)


def test_a_second_request_shows_the_running_export(memory, person, page, monkeypatch):
    row = requested(page)
    while_writing(monkeypatch, lambda: requested(page))
    assert run_exports() == 1
    again = ExportJob.objects.get()
    assert (again.pk, again.requested_at, again.attempt) == (row.pk, row.requested_at, 1)
    assert can_download(page)


def test_a_new_request_replaces_the_file(memory, person, page, folder):
    requested(page)
    run_exports()
    before = files(folder)
    remembered(person, "Written later")
    requested(page)
    assert files(folder) == []
    assert not can_download(page)
    run_exports()
    assert len(files(folder)) == 1
    assert files(folder) != before
    with zipfile.ZipFile(io.BytesIO(b"".join(page.get(FILE)))) as found:
        assert "Written later" in found.read("exchanges.jsonl").decode()


def test_only_its_owner_can_see_and_download_it(memory, person, page, bob):
    requested(page)
    run_exports()
    other = signed_in(bob)
    assert FILE not in text_of(other)
    assert "Your export" not in text_of(other, ROW)
    assert not can_download(other)
    assert Client().get(FILE).headers["Location"].startswith("/sign-in")
    assert can_download(page)


# What was forgotten


def forget_exchange(memory, person, one: Turn) -> None:
    memory.forget([one.exchange_id], by=person.pk)


def forget_text(memory, person, one: Turn) -> None:
    forget_everywhere(person.pk, one.exchange_id, is_administrator=False, with_answers=False)


def forget_file(memory, person, one: Turn) -> None:
    memory.forget_documents([one.document.pk], by=person.pk)


def remove_thread(memory, person, one: Turn) -> None:
    delete_thread(Thread.objects.get(pk=one.thread_id))


def edit_note(memory, person, one: Turn) -> None:
    upsert_records([NewRecord("gate", "It is white now.")], space=access.personal_space(person.pk), owner_id=person.pk)


def delete_prompt(memory, person, one: Turn) -> None:
    prompt_library.delete(one.prompt)


@pytest.mark.parametrize(
    "act",
    [forget_exchange, forget_text, forget_file, remove_thread, edit_note, delete_prompt],
    ids=lambda a: a.__name__,
)
def test_what_is_forgotten_later_cannot_be_downloaded(memory, person, page, folder, act):
    one = remembered(person, "The safe opens with 12-34-56.")
    one.document = document(person, "plan.txt", "The house has three floors. " * 20)
    one.prompt = prompt_library.add(access.personal_space(person.pk), name="report", text="Write.", by=person.pk)
    upsert_records([NewRecord("gate", "It is green.")], space=access.personal_space(person.pk), owner_id=person.pk)
    requested(page)
    run_exports()
    assert can_download(page)

    act(memory, person, one)

    assert not can_download(page)
    assert files(folder) == []
    assert OUTDATED in text_of(page)
    exported_archive(person)


def test_what_others_forgot_or_hid_cannot_be_downloaded(memory, person, page, bob, folder):
    crew = group("Crew", person, bob)
    remembered(person, "Bob asks for the key.", space=crew)
    requested(page)
    run_exports()
    assert can_download(page)

    Membership.objects.filter(space=crew, person=person).delete()

    assert not can_download(page)


def test_a_recalled_message_of_another_person_that_was_forgotten(memory, person, page, bob):
    theirs = exchange(bob, "The key hangs behind the clock.", space=access.team_space())
    one = remembered(person, "Where is the key?", space=access.team_space())
    RecallLogEntry.objects.create(turn_id=one.pk, exchange=theirs, rank=1, score=1.0, strategy="default", reason="")
    requested(page)
    run_exports()
    assert can_download(page)
    memory.forget([theirs.pk], by=bob.pk)
    assert not can_download(page)


def test_what_is_added_later_leaves_the_archive_as_it_is(memory, person, page):
    one = remembered(person, "The ferry leaves at nine.")
    one.attachments.add(image_of(person, "ferry.png"))
    requested(page)
    run_exports()

    remembered(person, "The train leaves at ten.")
    turn(one.thread, "And the bus?")
    document(person, "plan.txt", "The house has three floors. " * 20)
    add_instruction(access.personal_space(person.pk), "Be brief.", by=person.pk)
    add_attachments(turn(thread(person), "Look"), [image_of(person, "bus.png")])

    assert can_download(page)


def test_what_is_forgotten_while_it_is_written_begins_again(memory, person, page, monkeypatch):
    one, attempts = remembered(person, "The safe opens with 12-34-56."), []
    requested(page)

    def forget() -> None:
        attempts.append(1)
        memory.forget([one.exchange_id], by=person.pk)

    while_writing(monkeypatch, forget)
    assert run_exports() == 1
    assert len(attempts) == 2
    with zipfile.ZipFile(io.BytesIO(b"".join(page.get(FILE)))) as found:
        assert not any(b"12-34-56" in found.read(name) for name in found.namelist())


def test_what_was_deleted_before_the_export_does_not_outdate_it_when_a_worker_forgets_it(memory, person, page):
    gone, kept = remembered(person, "The ferry leaves at nine."), remembered(person, "The buoy is red.")
    plan = document(person, "plan.txt", "The key hangs behind the stove.")
    document(person, "watch.txt", "The watch ends at six.")
    document(person, "watch.txt", "The watch ends at seven.")
    delete_thread(gone.thread)
    memory.forget_documents([plan.pk], by=person.pk)
    requested(page)
    assert run_exports() == 1

    Thread.objects.exclude(deleted_at=None).update(deleted_at=ago(minutes=1))
    purge_deleted()
    process_documents()
    assert can_download(page)

    memory.forget([kept.exchange_id], by=person.pk)
    assert not can_download(page)


def test_the_cleanup_deletes_outdated_and_expired_files(memory, person, page, bob, folder):
    one = remembered(person, "The safe opens with 12-34-56.")
    for each in (page, signed_in(bob)):
        each.post(PAGE)
    run_exports()
    cleanup()
    assert len(files(folder)) == 2

    memory.forget([one.exchange_id], by=person.pk)
    cleanup()
    assert len(files(folder)) == 1
    ExportJob.objects.filter(person=bob).update(finished_at=timezone.now() - exports.EXPIRES_AFTER)
    cleanup()
    assert files(folder) == []
    assert "Your export" not in text_of(signed_in(bob))


@pytest.mark.parametrize("act", [forget_exchange, forget_text, forget_file], ids=lambda a: a.__name__)
def test_the_next_sweep_deletes_an_archive_with_something_that_was_forgotten(memory, person, page, bob, folder, act):
    one = remembered(person, "The safe opens with 12-34-56.")
    one.document = document(person, "safe.txt", "The safe opens with 12-34-56.")
    for each in (page, signed_in(bob)):
        each.post(PAGE)
    run_exports()
    sweep()
    assert len(files(folder)) == 2

    act(memory, person, one)
    sweep()

    (kept,) = files(folder)
    assert ExportJob.objects.exclude(file="").get().person == bob
    assert str(kept).endswith(Path(ExportJob.objects.get(person=bob).file.name).name)


# Recovery


def test_what_is_forgotten_between_the_last_comparison_and_the_end_is_found_by_the_next_sweep(
    memory, person, page, folder, monkeypatch
):
    one = exchange(person, "The safe combination is 12-34-56.")
    page.post(PAGE)
    compare = worker.is_unchanged

    def forget_after_comparison(*args: Any) -> bool:
        is_unchanged = compare(*args)
        memory.forget([one.id], by=person.id)
        return is_unchanged

    monkeypatch.setattr(worker, "is_unchanged", forget_after_comparison)
    assert run_exports() == 1

    exports.check_after_forgetting()

    assert ExportJob.objects.get().is_outdated
    assert not [*folder.iterdir()]


def test_a_killed_worker_leaves_nothing_and_another_begins_again(memory, person, page, folder, monkeypatch):
    requested(page)

    def die() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        while_writing(patched, die)
        with pytest.raises(KeyboardInterrupt):
            run_exports()
    assert files(folder) == []
    assert run_exports() == 0, "the lease is still held"
    ExportJob.objects.update(locked_until=ago(seconds=1))
    assert run_exports() == 1
    assert can_download(page)


def test_a_worker_that_lost_its_lease_leaves_no_file(memory, person, page, folder, monkeypatch):
    requested(page)
    while_writing(monkeypatch, lambda: ExportJob.objects.update(attempt=7))
    assert run_exports() == 0
    assert files(folder) == []
    assert not can_download(page)


def test_after_five_errors_it_fails_and_can_be_requested_again(memory, person, page, monkeypatch):
    requested(page)

    def fail() -> None:
        raise ConnectionError

    with monkeypatch.context() as patched:
        while_writing(patched, fail)
        for _ in range(jobs.MAX_FAILURES):
            assert "failed" not in text_of(page, ROW)
            ExportJob.objects.update(due_at=timezone.now())
            run_exports()
    assert "The export failed. Export again." in text_of(page)
    assert "(ConnectionError)" in text_of(page)
    assert not can_download(page)

    requested(page)
    run_exports()
    assert can_download(page)


def test_an_archive_that_kills_every_worker_is_given_up(memory, person, page, monkeypatch):
    requested(page)

    def die() -> None:
        raise KeyboardInterrupt

    while_writing(monkeypatch, die)
    for _ in range(jobs.MAX_FAILURES):
        with pytest.raises(KeyboardInterrupt):
            run_exports()
        ExportJob.objects.update(locked_until=ago(seconds=1))
    assert run_exports() == 0
    assert "The export failed" in text_of(page)


# Wake-ups and cleanup


def test_a_request_wakes_the_worker_and_the_sweep_finds_a_missed_one(memory, person, page, settings, monkeypatch):
    settings.REDIS_URL, wake_ups = "redis://nobody.invalid", []
    monkeypatch.setattr(current_app, "send_task", wake_ups.append)
    name = "cato_web.accounts.tasks.export_accounts"
    requested(page)
    assert wake_ups == [name]
    app.loader.import_default_modules()
    assert name in app.tasks
    sweep()
    assert wake_ups.count(name) == 2
    run_exports()
    sweep()
    assert wake_ups.count(name) == 2


def test_an_orphaned_file_is_deleted_but_not_one_that_is_being_written(memory, person, page, folder):
    requested(page)
    run_exports()
    (own,) = files(folder)
    orphan, _new = (default_storage.save(f"exports/{name}", ContentFile(b"zip")) for name in ("left", "fresh"))
    for name in (f"exports/{own}", orphan):
        os.utime(default_storage.path(name), (time.time() - 7200,) * 2)
    assert exports.delete_orphaned_exports() == 1
    assert files(folder) == sorted([own, "fresh"])


def test_account_deletion_removes_the_archive_also_while_it_is_written(memory, person, page, folder, monkeypatch):
    PersonFactory()
    requested(page)
    run_exports()
    requested(page)
    while_writing(monkeypatch, lambda: delete_account(person))
    assert run_exports() == 0
    assert not ExportJob.objects.exists()
    assert files(folder) == []


def test_account_deletion_removes_a_finished_archive(memory, person, page, folder):
    PersonFactory()
    requested(page)
    run_exports()
    assert len(files(folder)) == 1
    delete_account(person)
    assert files(folder) == []
