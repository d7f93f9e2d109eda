"""Import jobs: the page shows progress, and a crashed or cancelled import is resumed or stopped without duplicates."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from celery import current_app
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cato_web.accounts.deletion import delete_account, run_account_deletions
from cato_web.celery import app, sweep
from chat.imports import importer
from chat.imports import jobs as imports
from chat.imports.worker import run_imports
from chat.models import ImportJob, Thread, Turn
from chat.views import import_rows
from memory import jobs
from tests.factories import PersonFactory, ago, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

EXPORTED = Path(__file__).with_name("exported")
DAY = 86400


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    """Return the empty folder of uploaded imports."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path / "imports"


@pytest.fixture
def page(person) -> Client:
    return signed_in(person)


def export(*ids: str) -> bytes:
    """Return a Claude export with a conversation of one question and answer for each id."""
    at = "2025-03-01T10:00:00Z"
    messages = {id: [("human", f"What of {id}?"), ("assistant", f"All of {id}.")] for id in ids}
    rows = [
        {
            "uuid": id,
            "name": f"About {id}",
            "created_at": at,
            "chat_messages": [
                {"uuid": f"{id}-{sender}", "sender": sender, "text": text, "created_at": at}
                for sender, text in messages[id]
            ],
        }
        for id in ids
    ]
    return json.dumps(rows).encode()


def submit(page: Client, content: bytes, name: str = "export.json") -> ImportJob:
    """Upload a file on the page; return the job that waits for the worker."""
    answer = page.post(reverse("import"), {"file": SimpleUploadedFile(name, content)})
    assert answer.status_code == 302, answer.content.decode()
    return ImportJob.objects.latest("created_at")


def status_of(page: Client, row: ImportJob) -> str:
    return page.get(reverse("import_row", args=[row.pk])).content.decode()


def pressed(page: Client, action: str, row: ImportJob) -> None:
    assert page.post(reverse(action, args=[row.pk])).status_code == 302


def figures(row: ImportJob) -> tuple[int, int, int, int]:
    row.refresh_from_db()
    return row.found, row.imported, row.already_there, row.turns


def before_each_conversation(monkeypatch, act) -> None:
    """Call `act` with each conversation's number, from 0, before it is imported."""
    import_one, numbers = importer._import_one, iter(range(1000))

    def record(*arguments, **options):
        act(next(numbers))
        import_one(*arguments, **options)

    monkeypatch.setattr(importer, "_import_one", record)


def die(number: int) -> None:
    if number == 2:
        raise KeyboardInterrupt


def expire_lease() -> None:
    ImportJob.objects.update(locked_until=ago(seconds=1))


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.exists() else []


# From upload to report


def test_the_page_answers_once_the_file_is_stored_and_the_worker_imports_it(person, page, folder):
    row = submit(page, (EXPORTED / "chatgpt.json").read_bytes(), "chatgpt.json")
    assert files(folder) == [str(row.pk)]
    assert not Thread.objects.exists()
    waiting = page.get(reverse("import")).content.decode()
    assert "Waiting to be read" in waiting
    assert f'hx-get="{reverse("import_row", args=[row.pk])}"' in waiting

    assert run_imports() == 1

    assert Thread.objects.filter(owner=person).count() == 2
    report = page.get(reverse("import")).content.decode()
    assert 'hx-trigger="every 1s"' not in report.split('class="import-list"')[1].split("</main>")[0]
    assert "Empty conversation." in report
    assert "Left out: images and files" in report
    assert figures(row) == (4, 2, 0, 5)
    assert row.not_imported == {"without messages": 1, "of an unknown format": 1}
    assert row.finished_at
    assert files(folder) == []


def test_known_conversations_are_counted(page):
    submit(page, export("bread"))
    run_imports()
    second = submit(page, export("bread", "tides"))
    run_imports()
    assert figures(second) == (2, 1, 1, 1)


def test_the_page_shows_progress_and_announces_the_end(page, monkeypatch):
    row, progress = submit(page, export("bread", "tides", "bees")), []
    before_each_conversation(monkeypatch, lambda number: progress.append(status_of(page, row)))

    run_imports()

    assert [f"{done} of 3 conversations" in text for done, text in enumerate(progress)] == [True] * 3
    assert all('class="progress-bar"' in text and "import-announcement" not in text for text in progress)
    announced = r'id="import-announcement"\s+role="status"\s+hx-swap-oob="innerHTML">\s*export.json: Imported\s*<'
    assert re.search(announced, status_of(page, row))


@pytest.mark.skipif(connection.vendor != "sqlite", reason="writers of PostgreSQL do not wait for each other")
def test_other_writers_get_in_between_two_conversations(page, pauses):
    submit(page, export("a", "b", "c"))

    run_imports()

    assert pauses == [(0.03, False)] * 3


def test_a_completed_import_shows_how_much_still_has_to_be_embedded_and_for_how_long(memory, page, monkeypatch):
    row = submit(page, export("bread", "tides", "bees"))
    run_imports()
    monkeypatch.setattr(import_rows, "estimate_remaining", lambda queue, waiting: waiting * 60.0)

    shown = status_of(page, row)
    assert "3 messages are found by keywords only until they are embedded, about 3 minutes left" in shown
    assert 'hx-trigger="every 5s"' in shown
    again = re.search('hx-get="([^"]*)"', shown)
    assert again is not None
    assert "import-announcement" not in page.get(again[1]).content.decode(), "its end was announced before"

    memory.index_pending()

    shown = status_of(page, row)
    assert "keywords" not in shown
    assert "hx-trigger" not in shown


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "Choose the file"),
        (b"", "empty"),
        (b" " * 1_600_000, "2 MB; a file to import may have 1 (chat.max_import"),
    ],
)
def test_an_invalid_upload_is_refused_at_once_and_not_stored(page, folder, settings, content, sentence):
    small = settings.CATO.chat.model_copy(update={"max_import_mb": 1})
    settings.CATO = settings.CATO.model_copy(update={"chat": small})

    data = {} if content is None else {"file": SimpleUploadedFile("export.zip", content)}
    answer = page.post(reverse("import"), {**data, "space": "channels"})

    assert answer.status_code == 422
    assert sentence in answer.content.decode().split('id="file-error" role="alert"')[1].split("</p>")[0]
    assert '<option value="channels" selected>' in answer.content.decode()
    assert not ImportJob.objects.exists()
    assert files(folder) == []


def test_a_file_that_is_no_export_fails_with_a_reason_and_is_deleted(page, folder):
    row = submit(page, b"nothing of the kind")
    run_imports()
    text = status_of(page, row)
    assert "Supported: exports of ChatGPT" in text
    assert "Retry" not in text
    assert files(folder) == []


# Cancelling


def test_a_cancelled_import_stops_and_keeps_what_it_imported(page, folder, monkeypatch):
    row = submit(page, export("bread", "tides", "bees", "kiln"))
    before_each_conversation(monkeypatch, lambda number: pressed(page, "cancel_import", row) if number == 1 else None)

    assert run_imports() == 0

    assert sorted(Thread.objects.values_list("title", flat=True)) == ["About bread", "About tides"]
    assert figures(row) == (2, 2, 0, 2)
    assert "Cancelled. What was imported until then stays." in status_of(page, row)
    assert files(folder) == []
    assert run_imports() == 0


def test_a_queued_import_is_cancelled_before_it_starts_and_a_finished_one_stays(page):
    waiting = submit(page, export("bread"))
    pressed(page, "cancel_import", waiting)
    run_imports()
    assert not Thread.objects.exists()

    over = submit(page, export("bread"))
    run_imports()
    pressed(page, "cancel_import", over)
    assert "Imported" in status_of(page, over)
    assert "Cancelled" not in status_of(page, over)


# Recovery


def test_another_worker_takes_over_an_expired_lease_and_counts_everything_once(page, folder, monkeypatch):
    row = submit(page, export("bread", "tides", "bees", "kiln"))
    before_each_conversation(monkeypatch, die)
    with pytest.raises(KeyboardInterrupt):
        run_imports()
    assert figures(row) == (2, 2, 0, 2)
    assert run_imports() == 0, "the lease is still held"

    expire_lease()
    assert run_imports() == 1

    assert figures(row) == (4, 4, 0, 4)
    assert Turn.objects.count() == 4
    assert files(folder) == []


def test_a_worker_that_lost_its_lease_stops(page, monkeypatch):
    row, calls = submit(page, export("bread", "tides", "bees")), []

    def lose_lease(number: int) -> None:
        calls.append(number)
        ImportJob.objects.filter(pk=row.pk).update(attempt=row.attempt + 7)

    before_each_conversation(monkeypatch, lose_lease)
    assert run_imports() == 0
    assert calls == [0]
    row.refresh_from_db()
    assert (row.is_under_way, row.imported) == (True, 0)


def test_after_five_errors_an_import_fails_and_can_be_retried_by_its_owner(page, folder, monkeypatch):
    row = submit(page, export("bread"))
    with monkeypatch.context() as patched:

        def fail(number: int) -> None:
            raise ConnectionError

        before_each_conversation(patched, fail)
        for tries in range(1, jobs.MAX_FAILURES + 1):
            row.refresh_from_db()
            assert row.is_under_way, tries
            ImportJob.objects.update(due_at=timezone.now())
            run_imports()
    assert "Something went wrong in Cato itself (ConnectionError)" in status_of(page, row)
    assert reverse("retry_import", args=[row.pk]) in status_of(page, row)
    assert files(folder) == [str(row.pk)]

    pressed(page, "retry_import", row)
    run_imports()
    assert figures(row) == (1, 1, 0, 1)


def test_a_file_that_kills_every_worker_is_given_up(page, monkeypatch):
    row, calls = submit(page, export("bread", "tides", "bees")), []

    def kill_worker(number: int) -> None:
        calls.append(number)
        raise KeyboardInterrupt

    before_each_conversation(monkeypatch, kill_worker)
    for _ in range(jobs.MAX_FAILURES):
        with pytest.raises(KeyboardInterrupt):
            run_imports()
        expire_lease()
    run_imports()

    assert len(calls) == jobs.MAX_FAILURES
    assert "Import failed repeatedly. See the worker log." in status_of(page, row)
    assert "Retry" in status_of(page, row)


def test_a_file_missing_from_storage_is_reported(page):
    row = submit(page, export("bread"))
    default_storage.delete(row.file.name)
    run_imports()
    assert "not in the storage any more" in status_of(page, row)


def test_a_worker_imports_one_file_at_a_time(page, monkeypatch):
    first, calls = submit(page, export("bread")), []
    before_each_conversation(monkeypatch, lambda number: calls.append(run_imports()))
    second = submit(page, export("tides"))
    assert run_imports() == 2
    assert calls == [0, 0]
    assert (figures(first)[1], figures(second)[1]) == (1, 1)


# Wake-ups and cleanup


def test_a_new_file_wakes_the_worker_and_the_sweep_finds_a_forgotten_one(page, settings, monkeypatch, memory):
    settings.REDIS_URL, wake_ups = "redis://nobody.invalid", []
    monkeypatch.setattr(current_app, "send_task", wake_ups.append)
    submit(page, export("bread"))
    assert wake_ups == ["chat.tasks.import_conversations"]
    app.loader.import_default_modules()
    assert wake_ups[0] in app.tasks

    sweep()
    assert wake_ups.count("chat.tasks.import_conversations") == 2
    run_imports()
    sweep()
    assert wake_ups.count("chat.tasks.import_conversations") == 2


def test_the_file_of_a_failed_import_is_deleted_after_a_day_and_cannot_be_retried(page, folder):
    old, young = submit(page, export("bread")), submit(page, export("tides"))
    ImportJob.objects.update(state="failed", finished_at=timezone.now())
    ImportJob.objects.filter(pk=old.pk).update(finished_at=ago(days=2))

    imports.resume_imports()

    assert files(folder) == [str(young.pk)]
    assert "Retry" not in status_of(page, old)
    assert "Retry" in status_of(page, young)
    pressed(page, "retry_import", old)
    assert "not kept any more" in page.get(reverse("import")).content.decode()


def test_an_orphaned_file_is_deleted_after_a_day(page, folder):
    named_job = submit(page, export("bread"))
    orphan, new_file = (default_storage.save(f"imports/{name}", ContentFile(b"[]")) for name in ("left", "fresh"))
    for name in (named_job.file.name, orphan):
        os.utime(default_storage.path(name), (time.time() - 2 * DAY,) * 2)

    assert imports.delete_orphaned_imports() == 1

    assert files(folder) == sorted([str(named_job.pk), Path(new_file).name])


def test_account_deletion_removes_imports_and_stops_a_running_one(page, person, folder, memory):
    PersonFactory()
    submit(page, export("bread"))
    over = submit(page, b"nothing of the kind")
    ImportJob.objects.filter(pk=over.pk).update(state="failed", error="The title of a secret")
    delete_account(person)
    late = imports.create_import(ContentFile(export("tides"), name="late.json"), owner_id=person.pk)

    run_account_deletions()

    assert not ImportJob.objects.exists()
    assert files(folder) == []
    assert run_imports() == 0
    assert not Thread.objects.filter(owner=person).exists()
    assert not default_storage.exists(late.file.name)
