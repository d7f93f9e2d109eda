"""Importing in the worker: the page answers at once, says how far it is, and whatever dies between, all comes once."""

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
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cato_web.accounts.deletion import delete_account, run_account_deletions
from cato_web.celery import app, sweep
from chat.imports import importer
from chat.imports import jobs as imports
from chat.imports.worker import run_imports
from chat.models import ImportJob, Thread, Turn
from memory import jobs
from tests.factories import PersonFactory, ago

pytestmark = pytest.mark.django_db(transaction=True)

EXPORTED = Path(__file__).with_name("exported")
DAY = 86400


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    """Where files are kept, empty."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path / "imports"


@pytest.fixture
def page(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def export(*ids: str) -> bytes:
    """A Claude export with a conversation of one question and its answer for each id."""
    at = "2025-03-01T10:00:00Z"
    said = {id: [("human", f"What of {id}?"), ("assistant", f"All of {id}.")] for id in ids}
    rows = [
        {
            "uuid": id,
            "name": f"About {id}",
            "created_at": at,
            "chat_messages": [
                {"uuid": f"{id}-{sender}", "sender": sender, "text": text, "created_at": at}
                for sender, text in said[id]
            ],
        }
        for id in ids
    ]
    return json.dumps(rows).encode()


def sent(page: Client, content: bytes, name: str = "export.json") -> ImportJob:
    """A file that was just chosen on the page, still to be taken in."""
    answer = page.post(reverse("import"), {"file": SimpleUploadedFile(name, content)})
    assert answer.status_code == 302, answer.content.decode()
    return ImportJob.objects.latest("created_at")


def shown(page: Client, row: ImportJob) -> str:
    return page.get(reverse("import_row", args=[row.pk])).content.decode()


def pressed(page: Client, what: str, row: ImportJob) -> None:
    assert page.post(reverse(what, args=[row.pk])).status_code == 302


def figures(row: ImportJob) -> tuple[int, int, int, int]:
    row.refresh_from_db()
    return row.found, row.imported, row.already_there, row.turns


def before_each_conversation(monkeypatch, act) -> None:
    """Have `act` called with the number of the conversation, from 0, before it is taken in."""
    take_in, numbers = importer._take_in, iter(range(1000))

    def watched(*arguments):
        act(next(numbers))
        take_in(*arguments)

    monkeypatch.setattr(importer, "_take_in", watched)


def dies(number: int) -> None:
    if number == 2:
        raise KeyboardInterrupt


def let_the_lease_end() -> None:
    ImportJob.objects.update(locked_until=ago(seconds=1))


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.exists() else []


# From the file to the report.


def test_the_page_answers_as_soon_as_the_file_is_safe_and_the_worker_does_the_rest(person, page, folder):
    row = sent(page, (EXPORTED / "chatgpt.json").read_bytes(), "chatgpt.json")
    assert files(folder) == [str(row.pk)]
    assert not Thread.objects.exists()
    waiting = page.get(reverse("import")).content.decode()
    assert "Waiting to be read" in waiting
    assert f'hx-get="{reverse("import_row", args=[row.pk])}"' in waiting

    assert run_imports() == 1

    assert Thread.objects.filter(owner=person).count() == 2
    report = page.get(reverse("import")).content.decode()
    assert "hx-get" not in report.split('class="import-list"')[1].split("</main>")[0]
    assert "Empty conversation." in report
    assert "Left out: images and files" in report
    assert figures(row) == (2, 2, 0, 4)
    assert row.finished_at
    assert files(folder) == []


def test_what_is_already_there_is_counted_as_such(page):
    sent(page, export("bread"))
    run_imports()
    again = sent(page, export("bread", "tides"))
    run_imports()
    assert figures(again) == (2, 1, 1, 1)


def test_how_far_it_is_stands_on_the_page_meanwhile_and_is_said_once_it_is_over(page, monkeypatch):
    row, seen = sent(page, export("bread", "tides", "bees")), []
    before_each_conversation(monkeypatch, lambda number: seen.append(shown(page, row)))

    run_imports()

    assert [f"{done} of 3 conversations" in text for done, text in enumerate(seen)] == [True] * 3
    assert all('class="progress-bar"' in text and "import-announcement" not in text for text in seen)
    announced = r'id="import-announcement"\s+role="status"\s+hx-swap-oob="innerHTML">\s*export.json: Imported\s*<'
    assert re.search(announced, shown(page, row))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "Choose the file"),
        (b"", "empty"),
        (b" " * 1_600_000, "2 MB; a file to import may have 1 (chat.max_import"),
    ],
)
def test_what_cannot_be_taken_is_said_at_once_and_nothing_is_kept(page, folder, settings, content, sentence):
    small = settings.CATO.chat.model_copy(update={"max_import_mb": 1})
    settings.CATO = settings.CATO.model_copy(update={"chat": small})

    data = {} if content is None else {"file": SimpleUploadedFile("export.zip", content)}
    answer = page.post(reverse("import"), data)

    assert answer.status_code == 422
    assert sentence in answer.content.decode().split('role="alert"')[1].split("</p>")[0]
    assert not ImportJob.objects.exists()
    assert files(folder) == []


def test_a_file_that_is_no_export_fails_with_the_reason_and_is_not_kept(page, folder):
    row = sent(page, b"nothing of the kind")
    run_imports()
    text = shown(page, row)
    assert "What can be read: exports of ChatGPT" in text
    assert "Retry" not in text
    assert files(folder) == []


# Cancelled.


def test_a_cancelled_import_stops_and_what_was_imported_stays_and_is_counted(page, folder, monkeypatch):
    row = sent(page, export("bread", "tides", "bees", "kiln"))
    before_each_conversation(monkeypatch, lambda number: pressed(page, "cancel_import", row) if number == 1 else None)

    assert run_imports() == 0

    assert sorted(Thread.objects.values_list("title", flat=True)) == ["About bread", "About tides"]
    assert figures(row) == (2, 2, 0, 2)
    assert "Cancelled. What was imported until then stays." in shown(page, row)
    assert files(folder) == []
    assert run_imports() == 0


def test_one_that_waits_is_cancelled_before_it_begins_and_one_that_is_over_stays_as_it_is(page):
    waiting = sent(page, export("bread"))
    pressed(page, "cancel_import", waiting)
    run_imports()
    assert not Thread.objects.exists()

    over = sent(page, export("bread"))
    run_imports()
    pressed(page, "cancel_import", over)
    assert "Imported" in shown(page, over)
    assert "Cancelled" not in shown(page, over)


# Broken off.


def test_another_worker_takes_over_when_the_lease_ends_and_all_is_counted_once(page, folder, monkeypatch):
    row = sent(page, export("bread", "tides", "bees", "kiln"))
    before_each_conversation(monkeypatch, dies)
    with pytest.raises(KeyboardInterrupt):
        run_imports()
    assert figures(row) == (2, 2, 0, 2)
    assert run_imports() == 0, "the lease is still held"

    let_the_lease_end()
    assert run_imports() == 1

    assert figures(row) == (4, 4, 0, 4)
    assert Turn.objects.count() == 4
    assert files(folder) == []


def test_a_worker_that_comes_back_late_does_not_go_on(page, monkeypatch):
    row, calls = sent(page, export("bread", "tides", "bees")), []

    def lose_it(number: int) -> None:
        calls.append(number)
        ImportJob.objects.filter(pk=row.pk).update(attempt=row.attempt + 7)

    before_each_conversation(monkeypatch, lose_it)
    assert run_imports() == 0
    assert calls == [0]
    row.refresh_from_db()
    assert (row.is_under_way, row.imported) == (True, 0)


def test_after_five_errors_it_fails_with_a_reason_and_is_tried_again_by_its_owner(page, folder, monkeypatch):
    row = sent(page, export("bread"))
    with monkeypatch.context() as patched:

        def fails(number: int) -> None:
            raise ConnectionError

        before_each_conversation(patched, fails)
        for tries in range(1, jobs.MAX_FAILURES + 1):
            row.refresh_from_db()
            assert row.is_under_way, tries
            ImportJob.objects.update(due_at=timezone.now())
            run_imports()
    assert "Something went wrong in Cato itself (ConnectionError)" in shown(page, row)
    assert reverse("retry_import", args=[row.pk]) in shown(page, row)
    assert files(folder) == [str(row.pk)]

    pressed(page, "retry_import", row)
    run_imports()
    assert figures(row) == (1, 1, 0, 1)


def test_a_file_that_ends_each_worker_is_given_up(page, monkeypatch):
    row, calls = sent(page, export("bread", "tides", "bees")), []

    def ends_it(number: int) -> None:
        calls.append(number)
        raise KeyboardInterrupt

    before_each_conversation(monkeypatch, ends_it)
    for _ in range(jobs.MAX_FAILURES):
        with pytest.raises(KeyboardInterrupt):
            run_imports()
        let_the_lease_end()
    run_imports()

    assert len(calls) == jobs.MAX_FAILURES
    assert "Import failed repeatedly. See the worker log." in shown(page, row)
    assert "Retry" in shown(page, row)


def test_a_file_that_is_gone_from_the_storage_says_so(page):
    row = sent(page, export("bread"))
    default_storage.delete(row.file.name)
    run_imports()
    assert "not in the storage any more" in shown(page, row)


def test_a_worker_takes_in_one_file_at_a_time(page, monkeypatch):
    first, beside = sent(page, export("bread")), []
    before_each_conversation(monkeypatch, lambda number: beside.append(run_imports()))
    second = sent(page, export("tides"))
    assert run_imports() == 2
    assert beside == [0, 0]
    assert (figures(first)[1], figures(second)[1]) == (1, 1)


# The worker is told, and what nobody asks for any more goes.


def test_the_worker_is_told_of_a_new_file_and_by_the_sweep_of_one_that_was_left(page, settings, monkeypatch, memory):
    settings.REDIS_URL, told = "redis://nobody.invalid", []
    monkeypatch.setattr(current_app, "send_task", told.append)
    sent(page, export("bread"))
    assert told == ["chat.tasks.import_conversations"]
    app.loader.import_default_modules()
    assert told[0] in app.tasks

    sweep()
    assert told.count("chat.tasks.import_conversations") == 2
    run_imports()
    sweep()
    assert told.count("chat.tasks.import_conversations") == 2


def test_the_file_of_a_failed_import_goes_after_a_day_and_with_it_the_second_try(page, folder):
    old, young = sent(page, export("bread")), sent(page, export("tides"))
    ImportJob.objects.update(state="failed", finished_at=timezone.now())
    ImportJob.objects.filter(pk=old.pk).update(finished_at=ago(days=2))

    imports.resume_imports()

    assert files(folder) == [str(young.pk)]
    assert "Retry" not in shown(page, old)
    assert "Retry" in shown(page, young)
    pressed(page, "retry_import", old)
    assert "not kept any more" in page.get(reverse("import")).content.decode()


def test_a_file_that_no_row_names_goes_when_it_is_older_than_a_day(page, folder):
    named = sent(page, export("bread"))
    left, fresh = (default_storage.save(f"imports/{name}", ContentFile(b"[]")) for name in ("left", "fresh"))
    for name in (named.file.name, left):
        os.utime(default_storage.path(name), (time.time() - 2 * DAY,) * 2)

    assert imports.delete_orphaned_imports() == 1

    assert files(folder) == sorted([str(named.pk), Path(fresh).name])


def test_who_leaves_takes_their_imports_along_and_nothing_of_them_comes_afterwards(page, person, folder, memory):
    PersonFactory()
    sent(page, export("bread"))
    over = sent(page, b"nothing of the kind")
    ImportJob.objects.filter(pk=over.pk).update(state="failed", error="The title of a secret")
    delete_account(person)
    late = imports.receive(ContentFile(export("tides"), name="late.json"), owner_id=person.pk)

    run_account_deletions()

    assert not ImportJob.objects.exists()
    assert files(folder) == []
    assert run_imports() == 0
    assert not Thread.objects.filter(owner=person).exists()
    assert not default_storage.exists(late.file.name)
