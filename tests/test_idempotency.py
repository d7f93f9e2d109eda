"""Idempotency keys of the REST API: a repeated request creates nothing twice."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from cato_web.accounts.models import IdempotencyKey
from cato_web.idempotency import IdempotencyError, delete_old_keys, message_key
from chat.models import Thread
from memory.models import Document, Exchange
from tests.factories import PersonFactory, api_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def api(alice):
    return api_client(alice)


def send(client: Client, path: str, body: dict[str, Any], key: str = "monday"):
    return client.post(
        f"/api{path}", data=json.dumps(body), content_type="application/json", headers={"Idempotency-Key": key}
    )


NOTE = {"text": "The key hangs behind the door."}
CREATING = [
    ("/exchanges", NOTE, {"text": "Another note."}),
    ("/exchanges/batch", {"exchanges": [NOTE, NOTE]}, {"exchanges": [NOTE]}),
    ("/threads", {"title": "Archive"}, {"title": "Cellar"}),
    ("/records", {"records": [{"id": "a", "text": "A"}]}, {"records": [{"id": "a", "text": "B"}]}),
]


def count() -> tuple[int, int, int]:
    return Exchange.objects.count(), Thread.objects.count(), Document.objects.count()


@pytest.mark.parametrize(("path", "body", "other"), CREATING)
def test_a_repeated_request_returns_the_same_and_creates_nothing(memory, api, path, body, other):
    first = send(api, path, body)
    created = count()
    again = send(api, path, body)

    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert count() == created
    refused = send(api, path, other)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "idempotency_conflict")
    assert send(api, path, other, key="tuesday").status_code == first.status_code


def test_without_a_key_every_request_creates(memory, api):
    for _ in range(2):
        assert api.post("/api/exchanges", data=json.dumps(NOTE), content_type="application/json").status_code == 201
    assert Exchange.objects.count() == 2


def test_an_upload_is_recognised_by_its_bytes(memory, api):
    def upload(text: str):
        file = SimpleUploadedFile("key.txt", text.encode())
        return api.post("/api/documents", {"file": file}, headers={"Idempotency-Key": "upload"})

    first, again = upload("The key hangs here."), upload("The key hangs here.")
    assert first.status_code == 202, first.json()
    assert (first.json()["is_known"], again.json()["is_known"]) == (False, True)
    assert again.json()["document"]["id"] == first.json()["document"]["id"]
    assert upload("The key hangs there.").status_code == 409


def test_the_key_of_another_path_or_token(memory, api, alice):
    assert send(api, "/exchanges", NOTE).status_code == 201
    assert send(api, "/threads", {"title": "a"}).status_code == 409
    assert send(api_client(alice), "/exchanges", NOTE).status_code == 201
    assert Exchange.objects.count() == 2


def test_a_refused_request_leaves_its_key_free(memory, api):
    assert send(api, "/exchanges", NOTE | {"space": "nowhere"}).status_code == 404
    assert send(api, "/exchanges", NOTE | {"assistant_message": "both"}).status_code == 422
    assert send(api, "/exchanges", NOTE).status_code == 201


def test_one_invalid_item_refuses_the_batch(memory, api):
    wrong = {"exchanges": [NOTE, {"user_message": "a", "text": "b"}]}
    assert send(api, "/exchanges/batch", wrong).status_code == 422
    assert send(api, "/exchanges/batch", {"exchanges": [NOTE] * 101}).status_code == 422
    assert Exchange.objects.count() == 0


def test_what_was_forgotten_since_is_not_returned(memory, api):
    id = send(api, "/exchanges", NOTE).json()["exchanges"][0]["id"]
    assert api.delete(f"/api/exchanges/{id}").status_code == 200
    assert send(api, "/exchanges", NOTE).json()["exchanges"] == []


def test_keys_are_deleted_after_a_day(memory, api):
    send(api, "/exchanges", NOTE)
    delete_old_keys()
    assert IdempotencyKey.objects.count() == 1
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(days=1, minutes=1))
    delete_old_keys()
    assert send(api, "/exchanges", NOTE).status_code == 201
    assert Exchange.objects.count() == 2


def token_of(person):
    api_client(person)
    return person.api_tokens.latest("created_at").pk


def test_the_key_of_a_message_belongs_to_one_token_and_one_request(alice):
    laptop, phone = token_of(alice), token_of(alice)

    def key_of(token_id, text="Who has the key?", key="monday"):
        with message_key(token_id, key, path="/api/ask", content={"message": text}) as client_key:
            return client_key

    assert key_of(laptop) == key_of(laptop)
    assert len({key_of(laptop), key_of(phone), key_of(laptop, key="tuesday"), key_of(laptop, key=None)}) == 4
    with pytest.raises(IdempotencyError):
        key_of(laptop, "Who has the ladder?")


def test_the_key_of_a_message_can_be_used_for_another_one_after_a_day(alice):
    token_id = token_of(alice)
    with message_key(token_id, "monday", path="/api/ask", content="Who has the key?") as monday:
        pass
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(days=1, minutes=1))
    delete_old_keys()

    with message_key(token_id, "monday", path="/api/ask", content="Who has the ladder?") as tuesday:
        assert tuesday != monday
