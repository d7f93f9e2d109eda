"""Access to every operation of the REST API.

An operation that is not in the table fails the suite, and so does one that answers differently for an object of another
person and for a missing one.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from django.http.response import HttpResponseBase
from django.test import Client
from django.utils import timezone

from cato_web.api.auth import TokenAuth
from cato_web.api.urls import operations
from cato_web.webhooks.models import Webhook
from chat.models import ImportJob
from memory.models import Space, Statement
from memory.spaces import access
from tests.factories import PersonFactory, api_client, document, exchange, signed_in, statement, thread, turn

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class OperationAccess:
    """An operation: its scope, a body, and whether it requires the owner."""

    scope: str | None
    body: dict[str, Any] | None = None
    is_owners: bool = False
    is_form: bool = False
    query: str = ""


READ = OperationAccess("read")
WRITE = OperationAccess("write", is_owners=True)
OPERATIONS: dict[str, OperationAccess] = {
    "GET /me": OperationAccess(None),
    "GET /spaces": READ,
    "GET /instructions": READ,
    "GET /search": READ,
    "POST /recall": OperationAccess("read", {"messages": ["secret"]}),
    "GET /context": OperationAccess("read", query="?text=secret"),
    "GET /threads/{thread_id}/search": OperationAccess("read", query="?q=secret"),
    "GET /threads/{thread_id}/related": READ,
    "GET /exchanges": READ,
    "POST /exchanges": OperationAccess("write", {"text": "a note"}),
    "POST /exchanges/batch": OperationAccess("write", {"exchanges": [{"text": "a note"}]}),
    "GET /exchanges/{exchange_id}": READ,
    "PATCH /exchanges/{exchange_id}": OperationAccess("write", {"metadata": {}}, is_owners=True),
    "DELETE /exchanges/{exchange_id}": WRITE,
    "GET /documents": READ,
    "POST /documents": OperationAccess("write", {"name": "a"}, is_form=True),
    "GET /documents/{document_id}": READ,
    "PATCH /documents/{document_id}": OperationAccess("write", {"metadata": {}}, is_owners=True),
    "DELETE /documents/{document_id}": WRITE,
    "DELETE /documents/{document_id}/versions/{number}": WRITE,
    "GET /documents/{document_id}/versions/{number}/original": READ,
    "GET /threads": READ,
    "POST /threads": OperationAccess("write", {}),
    "GET /threads/{thread_id}": READ,
    "PATCH /threads/{thread_id}": OperationAccess("write", {"title": "Mine"}, is_owners=True),
    "DELETE /threads/{thread_id}": WRITE,
    "GET /threads/{thread_id}/turns/{turn_id}": READ,
    "POST /threads/{thread_id}/ask": OperationAccess("ask", {"message": "What is the secret?"}),
    "POST /ask": OperationAccess("ask", {"message": "What is the secret?"}),
    "POST /threads/{thread_id}/stop": OperationAccess("ask"),
    "POST /records": OperationAccess("write", {"records": [{"id": "a", "text": "a"}]}),
    "POST /records/query": OperationAccess("read", {"text": "secret"}),
    "DELETE /records": OperationAccess("write"),
    "GET /imports": READ,
    "POST /imports": OperationAccess("write", {"name": "a"}, is_form=True),
    "GET /imports/{import_id}": OperationAccess("read", is_owners=True),
    "POST /imports/{import_id}/cancel": WRITE,
    "GET /knowledge": READ,
    "GET /knowledge/{statement_id}": READ,
    "POST /knowledge/{statement_id}/confirm": OperationAccess("write", {"revision": 1}),
    "POST /knowledge/{statement_id}/correct": OperationAccess("write", {"revision": 1, "text": "Another fish."}),
    "POST /knowledge/{statement_id}/keep": OperationAccess("write", {"revision": 1}),
    "POST /knowledge/{statement_id}/reject": OperationAccess("write", {"revision": 1}),
    "GET /events": READ,
    "GET /webhooks": READ,
    "POST /webhooks": OperationAccess("read", {"address": "https://hooks.example.org"}),
    "GET /webhooks/{webhook_id}": OperationAccess("read", is_owners=True),
    "DELETE /webhooks/{webhook_id}": OperationAccess("read", is_owners=True),
    "POST /webhooks/{webhook_id}/enable": OperationAccess("read", is_owners=True),
    "POST /export": READ,
    "GET /export": READ,
    "GET /export/archive": READ,
    "GET /admin/stats": READ,
    "GET /admin/people": READ,
    "GET /usage": READ,
    "GET /admin/usage": READ,
    "GET /admin/limits": READ,
    "PUT /admin/limits": OperationAccess("write", {"target": "everyone", "hard": 0}),
    "GET /admin/prices": READ,
    "PUT /admin/prices": OperationAccess("write", {"model": "fake", "input": 1, "output": 1}),
    "DELETE /admin/prices": OperationAccess("write", query="?model=fake"),
}
# An answer is in progress in the thread; the statement contradicts no other; the configuration allows no webhook.
REFUSED = {
    "DELETE /threads/{thread_id}",
    "POST /knowledge/{statement_id}/keep",
    "POST /webhooks/{webhook_id}/enable",
}
OBJECT_OPERATIONS = {name: operation for name, operation in OPERATIONS.items() if "_id}" in name}


@pytest.fixture
def objects(chroma):
    """Return ids for the parameters: Alice's thread with a remembered turn, a document and more."""
    alice = PersonFactory(name="Alice Owner")
    of_alice = thread(alice, title="The secret of Alice")
    one = turn(of_alice, "My secret is swordfish", "I keep it.")
    stored = exchange(alice, "My secret is swordfish", "I keep it.", thread_id=of_alice.id, turn_id=one.id)
    stored_document = document(alice, "secret.txt", "The secret of Alice is swordfish, and it is written here. " * 20)
    return {
        "thread_id": of_alice.id,
        "turn_id": one.id,
        "exchange_id": stored.id,
        "document_id": stored_document.pk,
        "statement_id": statement(stored, text="The secret of Alice is swordfish.").pk,
        "import_id": ImportJob.objects.create(owner=alice, name="secret.json", due_at=timezone.now()).pk,
        "webhook_id": Webhook.objects.create(
            api_token=alice.api_tokens.create(), address="https://secret.example", position=0, due_at=timezone.now()
        ).pk,
        "number": 1,
    }


@pytest.fixture
def bob():
    return PersonFactory(name="Bob Team")


def missing_ids() -> dict[str, Any]:
    return {
        f"{name}_id": uuid.uuid4()
        for name in ("thread", "turn", "exchange", "document", "statement", "import", "webhook")
    } | {"number": 1}


def send_request(client: Client, name: str, ids: dict[str, Any]) -> tuple[int, str]:
    method, path = name.split()
    address = "/api" + re.sub(r"{(\w+)}", lambda found: str(ids[found[1]]), path)
    operation = OPERATIONS[name]
    address += operation.query
    call = getattr(client, method.lower())
    answer: HttpResponseBase
    if operation.is_form:
        answer = call(address, operation.body)
    else:
        data = None if operation.body is None else json.dumps(operation.body)
        answer = call(address, data=data, content_type="application/json")
    if answer.streaming:
        return answer.status_code, ""  # asking needs a model, and a file is only opened when it is read
    return answer.status_code, re.sub(r"[0-9a-f-]{36}", "ID", answer.content.decode())


def test_every_operation_is_in_the_table():
    found = {
        f"{method} {re.sub('{[a-z]+:', '{', op.path)}": op.auth_callbacks
        for op in operations()
        for method in op.methods
    }

    assert set(found) == set(OPERATIONS)
    for name, (token,) in found.items():
        assert isinstance(token, TokenAuth)
        assert token.scope == OPERATIONS[name].scope, name


def test_a_request_without_a_token_is_refused(bob):
    browser = signed_in(bob)
    for name in OPERATIONS:
        assert send_request(Client(), name, missing_ids())[0] == 401, name
        assert send_request(browser, name, missing_ids())[0] == 401, name


def test_a_token_without_the_scope_is_refused(bob):
    tokens = {scope: api_client(bob, *({"read", "write", "ask"} - {scope})) for scope in ("read", "write", "ask")}
    for name, operation in OPERATIONS.items():
        if operation.scope is not None:
            status, body_text = send_request(tokens[operation.scope], name, missing_ids())
            assert status == 403, name
            assert f'"{operation.scope}"' in json.loads(body_text)["error"]["message"]


def test_an_object_of_another_person_looks_like_a_missing_one(bob, objects):
    client = api_client(bob)
    for name in OBJECT_OPERATIONS:
        foreign = send_request(client, name, objects)
        assert foreign == send_request(client, name, missing_ids()), name
        assert foreign[0] == 404, name


def test_an_operation_opens_if_the_access_check_allows_everything(bob, objects, monkeypatch):
    client = api_client(bob)
    monkeypatch.setattr(access, "_readable_spaces", lambda person_id: Space.objects.all())
    for name, operation in OBJECT_OPERATIONS.items():
        assert (send_request(client, name, objects)[0] == 404) == operation.is_owners, name


def test_the_owner_may_call_every_operation(objects):
    alice = api_client(PersonFactory._meta.model.objects.get(name="Alice Owner"))
    for name in sorted(OBJECT_OPERATIONS, key=lambda name: name.startswith("DELETE")):
        if "versions" not in name or name.startswith("GET"):
            Statement.objects.update(revision=1)  # each decision names the revision that was read
            assert send_request(alice, name, objects)[0] in (200, 204) or name in REFUSED, name


def test_no_list_contains_data_of_other_people(bob, objects):
    client = api_client(bob)
    for address in (
        "/search?q=secret+swordfish",
        "/exchanges",
        "/documents",
        "/threads",
        "/imports",
        "/webhooks",
        "/knowledge",
        "/spaces",
        "/me",
    ):
        answer = client.get(f"/api{address}")
        assert answer.status_code == 200
        assert "swordfish" not in answer.content.decode()
        assert "secret.json" not in answer.content.decode()
        assert "Alice" not in answer.content.decode()
    for name in ("POST /recall", "POST /records/query"):
        assert "swordfish" not in send_request(client, name, {})[1]


def test_lists_depend_on_the_access_check(bob, objects, monkeypatch):
    client = api_client(bob)
    monkeypatch.setattr(access, "_readable_spaces", lambda person_id: Space.objects.all())

    assert "swordfish" in client.get("/api/search?q=secret+swordfish").content.decode()
    assert "swordfish" in client.get("/api/exchanges").content.decode()
    assert "secret.txt" in client.get("/api/documents").content.decode()
    assert "The secret of Alice" in client.get("/api/threads").content.decode()
