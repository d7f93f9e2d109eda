"""The export over the API: a worker prepares the archive, and only what is still there can be downloaded."""

from __future__ import annotations

import io
import zipfile

import pytest
from django.test import Client

from cato_web.accounts.export.worker import run_exports
from cato_web.accounts.models import AuditEntry, ExportJob
from chat.turns.forgetting import forget_everywhere
from tests.factories import PersonFactory, api_client, exchange, thread, turn

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),
]


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def alice(memory):
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def stored(alice):
    """Return an exchange of Alice."""
    one = turn(thread(alice, title="The archive"), "The key of the archive is swordfish", "I keep it.")
    kept = exchange(alice, one.message, one.answer, thread_id=one.thread_id, turn_id=one.id)
    type(one).objects.filter(id=one.id).update(exchange_id=kept.id)
    return kept


def prepared(client: Client) -> None:
    assert client.post("/api/export").status_code == 202
    run_exports()


def test_an_archive_is_prepared_by_the_worker_and_downloaded(alice, stored):
    client = api_client(alice)
    assert client.get("/api/export").status_code == 404

    started = client.post("/api/export")
    assert (started.status_code, started.json()["state"], started.json()["size"]) == (202, "running", 0)
    assert client.get("/api/export/archive").status_code == 404
    run_exports()

    found = client.get("/api/export").json()
    assert (found["state"], found["error"], found["read"]) == ("done", "", found["total"])
    assert found["expires_at"] > found["requested_at"]
    response = client.get("/api/export/archive")
    content = b"".join(response)
    assert (response["Content-Type"], len(content)) == ("application/zip", found["size"])
    texts = zipfile.ZipFile(io.BytesIO(content))
    assert any("swordfish" in texts.read(name).decode(errors="replace") for name in texts.namelist())
    assert AuditEntry.objects.filter(action=AuditEntry.Action.ACCOUNT_EXPORTED, actor=alice).count() == 1


def test_what_was_forgotten_since_cannot_be_downloaded(alice, stored):
    client = api_client(alice)
    prepared(client)

    forget_everywhere(alice.pk, stored.id, is_administrator=False, with_answers=False)

    assert client.get("/api/export/archive").status_code == 404
    found = client.get("/api/export").json()
    assert (found["state"], found["size"], found["expires_at"]) == ("outdated", 0, None)


def test_nobody_gets_the_archive_of_another_person(alice, stored):
    prepared(api_client(alice))
    bob = api_client(PersonFactory(name="Bob Team"))

    assert bob.get("/api/export").status_code == 404
    assert bob.get("/api/export/archive").status_code == 404


def test_a_token_that_may_not_read_exports_nothing(alice, stored):
    prepared(api_client(alice))
    for client in (api_client(alice, "write"), api_client(alice, "ask")):
        assert client.post("/api/export").status_code == 403
        assert client.get("/api/export/archive").status_code == 403


def test_a_request_that_is_sent_twice_prepares_one_archive(alice, stored):
    client = api_client(alice)
    headers = {"Idempotency-Key": "monday"}
    client.post("/api/export", headers=headers)
    run_exports()
    requested_at = ExportJob.objects.get().requested_at

    again = client.post("/api/export", headers=headers)

    assert (again.status_code, again.json()["state"]) == (202, "done")
    assert ExportJob.objects.get().requested_at == requested_at
