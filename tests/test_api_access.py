"""Every operation of the API, listed like the doors of the pages: who it lets in, and whose things it tells of.

An operation that is not in the table fails the suite, and so does one that answers otherwise for another person's thing
than for one that is not there.
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

from cato_web.api.auth import TokenAuth
from cato_web.api.urls import operations
from memory.models import Space
from memory.spaces import access
from tests.factories import PersonFactory, api_client, document, exchange, thread, turn

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Way:
    """An operation: the scope it asks for, a body it takes, and whether only the owner of a thing comes through."""

    scope: str | None
    body: dict[str, Any] | None = None
    is_owners: bool = False
    is_form: bool = False
    query: str = ""


READ = Way("read")
WRITE = Way("write", is_owners=True)
WAYS: dict[str, Way] = {
    "GET /me": Way(None),
    "GET /spaces": READ,
    "GET /search": READ,
    "POST /recall": Way("read", {"messages": ["secret"]}),
    "GET /context": Way("read", query="?text=secret"),
    "GET /threads/{thread_id}/search": Way("read", query="?q=secret"),
    "GET /threads/{thread_id}/related": READ,
    "GET /exchanges": READ,
    "POST /exchanges": Way("write", {"text": "a note"}),
    "GET /exchanges/{exchange_id}": READ,
    "PATCH /exchanges/{exchange_id}": Way("write", {"metadata": {}}, is_owners=True),
    "DELETE /exchanges/{exchange_id}": WRITE,
    "GET /documents": READ,
    "POST /documents": Way("write", {"name": "a"}, is_form=True),
    "GET /documents/{document_id}": READ,
    "PATCH /documents/{document_id}": Way("write", {"metadata": {}}, is_owners=True),
    "DELETE /documents/{document_id}": WRITE,
    "DELETE /documents/{document_id}/versions/{number}": WRITE,
    "GET /documents/{document_id}/versions/{number}/original": READ,
    "GET /threads": READ,
    "POST /threads": Way("write", {}),
    "GET /threads/{thread_id}": READ,
    "PATCH /threads/{thread_id}": Way("write", {"title": "Mine"}, is_owners=True),
    "DELETE /threads/{thread_id}": WRITE,
    "GET /threads/{thread_id}/turns/{turn_id}": READ,
    "POST /threads/{thread_id}/ask": Way("ask", {"message": "What is the secret?"}),
    "POST /ask": Way("ask", {"message": "What is the secret?"}),
    "POST /records": Way("write", {"records": [{"id": "a", "text": "a"}]}),
    "POST /records/query": Way("read", {"text": "secret"}),
    "DELETE /records": Way("write"),
}
THINGS = {name: way for name, way in WAYS.items() if "_id}" in name}


@pytest.fixture
def things(chroma):
    """Alice's thread with a turn that is remembered, and a document, by the names that addresses give their ids."""
    alice = PersonFactory(name="Alice Owner")
    of_alice = thread(alice, title="The secret of Alice")
    one = turn(of_alice, "My secret is 4711", "I keep it.")
    said = exchange(alice, "My secret is 4711", "I keep it.", thread_id=of_alice.id, turn_id=one.id)
    kept = document(alice, "secret.txt", "The secret of Alice is 4711, and it is written here. " * 20)
    return {"thread_id": of_alice.id, "turn_id": one.id, "exchange_id": said.id, "document_id": kept.pk, "number": 1}


@pytest.fixture
def bob():
    return PersonFactory(name="Bob Team")


def nothing() -> dict[str, Any]:
    return {f"{name}_id": uuid.uuid4() for name in ("thread", "turn", "exchange", "document")} | {"number": 1}


def come(client: Client, name: str, ids: dict[str, Any]) -> tuple[int, str]:
    method, path = name.split()
    address = "/api" + re.sub(r"{(\w+)}", lambda found: str(ids[found[1]]), path)
    way = WAYS[name]
    address += way.query
    call = getattr(client, method.lower())
    answer: HttpResponseBase
    if way.is_form:
        answer = call(address, way.body)
    else:
        data = None if way.body is None else json.dumps(way.body)
        answer = call(address, data=data, content_type="application/json")
    if answer.streaming:
        return answer.status_code, ""  # nobody writes an answer here, and a file is opened when it is read
    return answer.status_code, re.sub(r"[0-9a-f-]{36}", "ID", answer.content.decode())


def test_every_operation_is_in_the_table():
    found = {
        f"{method} {re.sub('{[a-z]+:', '{', op.path)}": op.auth_callbacks
        for op in operations()
        for method in op.methods
    }

    assert set(found) == set(WAYS)
    for name, (token,) in found.items():
        assert isinstance(token, TokenAuth)
        assert token.scope == WAYS[name].scope, name


def test_a_stranger_comes_through_none(bob):
    signed_in = Client()
    signed_in.force_login(bob)
    for name in WAYS:
        assert come(Client(), name, nothing())[0] == 401, name
        assert come(signed_in, name, nothing())[0] == 401, name


def test_a_token_for_something_else_comes_through_none(bob):
    tokens = {scope: api_client(bob, *({"read", "write", "ask"} - {scope})) for scope in ("read", "write", "ask")}
    for name, way in WAYS.items():
        if way.scope is not None:
            status, said = come(tokens[way.scope], name, nothing())
            assert status == 403, name
            assert f'"{way.scope}"' in json.loads(said)["error"]["message"]


def test_anothers_thing_and_no_thing_look_the_same(bob, things):
    client = api_client(bob)
    for name in THINGS:
        others = come(client, name, things)
        assert others == come(client, name, nothing()), name
        assert others[0] == 404, name


def test_the_door_opens_when_the_one_question_does(bob, things, monkeypatch):
    client = api_client(bob)
    monkeypatch.setattr(access, "_readable", lambda person_id: Space.objects.all())
    for name, way in THINGS.items():
        assert (come(client, name, things)[0] == 404) == way.is_owners, name


def test_the_owner_comes_through_all_of_them(things):
    alice = api_client(PersonFactory._meta.model.objects.get(name="Alice Owner"))
    for name in sorted(THINGS, key=lambda name: name.startswith("DELETE")):
        if "versions" not in name or name.startswith("GET"):
            assert come(alice, name, things)[0] == 200 or name == "DELETE /threads/{thread_id}", name


def test_no_list_tells_of_what_another_said(bob, things):
    client = api_client(bob)
    for address in ("/search?q=secret+4711", "/exchanges", "/documents", "/threads", "/spaces", "/me"):
        answer = client.get(f"/api{address}")
        assert answer.status_code == 200
        assert "4711" not in answer.content.decode()
        assert "Alice" not in answer.content.decode()
    for name in ("POST /recall", "POST /records/query"):
        assert "4711" not in come(client, name, {})[1]


def test_the_lists_give_way_when_the_one_question_does(bob, things, monkeypatch):
    client = api_client(bob)
    monkeypatch.setattr(access, "_readable", lambda person_id: Space.objects.all())

    assert "4711" in client.get("/api/search?q=secret+4711").content.decode()
    assert "4711" in client.get("/api/exchanges").content.decode()
    assert "secret.txt" in client.get("/api/documents").content.decode()
    assert "The secret of Alice" in client.get("/api/threads").content.decode()
