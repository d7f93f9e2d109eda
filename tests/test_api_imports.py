"""Imports over the API: upload, progress, the report, cancelling, and a request that is sent twice."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from chat.imports.worker import run_imports
from chat.models import ImportJob, Thread
from tests.factories import PersonFactory, api_client

pytestmark = pytest.mark.django_db(transaction=True)

AT = "2025-03-01T10:00:00Z"


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def api(alice) -> Client:
    return api_client(alice)


def conversation(id: str, *texts: tuple[str, str]) -> dict[str, object]:
    """Return a conversation as Claude exports it."""
    messages = [
        {"uuid": f"{id}-{n}", "sender": sender, "text": text, "created_at": AT}
        for n, (sender, text) in enumerate(texts)
    ]
    return {"uuid": id, "name": f"About {id}", "created_at": AT, "chat_messages": messages}


def upload(client: Client, *conversations: dict[str, object], **headers: str):
    file = SimpleUploadedFile("conversations.json", json.dumps(conversations).encode())
    return client.post("/api/imports", {"file": file}, headers=headers)


def test_an_import_runs_in_the_worker_and_reports_everything_it_found(api, alice):
    answered = conversation("pumps", ("human", "What of pumps?"), ("assistant", "All of pumps."))
    started = upload(api, answered, conversation("nothing"))

    assert started.status_code == 202
    body = started.json()
    assert (body["state"], body["name"], body["total"], body["read"]) == ("running", "conversations.json", None, 0)
    assert not Thread.objects.exists()

    run_imports()

    found = api.get(f"/api/imports/{body['id']}").json()
    assert (found["state"], found["error"], found["total"], found["read"]) == ("done", "", 2, 2)
    assert (found["found"], found["imported"], found["turns"]) == (2, 1, 1)
    assert found["imported"] + found["already_there"] + sum(found["not_imported"].values()) == found["found"]
    assert found["finished_at"] > found["created_at"]
    assert Thread.objects.get().owner == alice
    assert [row["id"] for row in api.get("/api/imports").json()["imports"]] == [body["id"]]


def test_a_file_that_cannot_be_read_has_failed_with_its_reason(api):
    id = api.post("/api/imports", {"file": SimpleUploadedFile("holiday.json", b"no export")}).json()["id"]
    run_imports()

    found = api.get(f"/api/imports/{id}").json()
    assert (found["state"], found["imported"]) == ("failed", 0)
    assert found["error"].startswith("There are no conversations in it.")


def test_an_empty_file_and_a_request_without_a_file_are_refused(api):
    empty = api.post("/api/imports", {"file": SimpleUploadedFile("empty.json", b"")})
    assert (empty.status_code, empty.json()["error"]["message"]) == (422, "empty.json is empty.")
    assert api.post("/api/imports", {"name": "a"}).status_code == 422
    assert not ImportJob.objects.exists()


def test_a_cancelled_import_imports_nothing_and_is_cancelled_once(api):
    id = upload(api, conversation("pumps", ("human", "What of pumps?"), ("assistant", "All."))).json()["id"]

    assert api.post(f"/api/imports/{id}/cancel").json()["state"] == "cancelled"
    run_imports()

    assert api.post(f"/api/imports/{id}/cancel").status_code == 409
    assert api.get(f"/api/imports/{id}").json()["state"] == "cancelled"
    assert not Thread.objects.exists()


def test_a_request_that_is_sent_twice_starts_one_import(api):
    pumps = conversation("pumps", ("human", "What of pumps?"), ("assistant", "All."))
    first, second = (upload(api, pumps, idempotency_key="once") for _request in range(2))

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] == second.json()["id"]
    assert ImportJob.objects.count() == 1
    other = upload(api, pumps, conversation("valves"), idempotency_key="once")
    assert other.status_code == 409
