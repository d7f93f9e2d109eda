"""Every door of the product, listed; behind each, another person's thing and a thing that is not there look the same.

A route that is not in the table fails the suite. For every door that leads to somebody's thing there is also a test
that opens the one question in `memory.spaces.access` for everybody and sees that door give way: so it does ask.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from chat.imports.jobs import receive as receive_import
from chat.realtime.routing import routes
from memory import api
from memory.models import Space
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, document, exchange, group, image_of, thread, turn

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Door:
    """A route: who may come in, by which methods, and whose things its arguments name."""

    entry: str = "member"  # anyone | member | administrator | program: by token
    methods: tuple[str, ...] = ("get",)
    names: tuple[str, ...] = ()  # the arguments that name a thing of somebody's
    data: dict[str, str] = field(default_factory=dict)


POST = ("post",)
DOORS: dict[str, Door] = {
    "alive": Door("anyone"),
    "ready": Door("anyone"),
    "metrics": Door("anyone"),  # on this machine, or with the token: tests/test_health.py
    "login_session": Door("anyone", ("get", "post")),
    "set_up": Door("anyone", ("get", "post")),
    "join": Door("anyone", ("get", "post")),
    "openid": Door("anyone", POST),
    "openid_back": Door("anyone"),
    "sign_out": Door(methods=POST),
    "new_thread": Door(methods=("get", "post")),
    "thread": Door(names=("thread_id",)),
    "say": Door(methods=POST, names=("thread_id",), data={"message": "hello", "client_key": str(uuid.uuid4())}),
    "remember": Door(methods=("get", "post"), names=("thread_id",)),
    "threads": Door(),
    "find": Door(),
    "images": Door(methods=POST),
    "image": Door(names=("image_id",)),
    "import": Door(methods=("get", "post")),
    "import_row": Door(names=("import_id",)),
    "cancel_import": Door(methods=POST, names=("import_id",)),
    "retry_import": Door(methods=POST, names=("import_id",)),
    "rename": Door(methods=("get", "post"), names=("thread_id",), data={"title": "Another title"}),
    "mark": Door(methods=POST, names=("thread_id",), data={"mark": "pin"}),
    "continue": Door(methods=POST, names=("thread_id",)),
    "export": Door(names=("thread_id",)),
    "delete_thread": Door(methods=("get", "post"), names=("thread_id",)),
    "take_back": Door(methods=POST, names=("thread_id",)),
    "take_out": Door(methods=("get", "post"), names=("thread_id",)),
    "recall_filter": Door(methods=("get", "post"), names=("thread_id",)),
    "related": Door(names=("thread_id",)),
    "move": Door(methods=("get", "post"), names=("thread_id",)),
    "edit": Door(methods=("get", "post"), names=("thread_id", "turn_id"), data={"client_key": str(uuid.uuid4())}),
    "regenerate": Door(methods=POST, names=("thread_id", "turn_id")),
    "choose": Door(methods=POST, names=("thread_id", "turn_id")),
    "withdraw_turn": Door(methods=POST, names=("thread_id", "turn_id")),
    "fork": Door(methods=POST, names=("thread_id", "turn_id")),
    "stop": Door(methods=POST, names=("thread_id", "turn_id")),
    "retry": Door(methods=POST, names=("thread_id", "turn_id")),
    "resume": Door(methods=POST, names=("thread_id", "turn_id")),
    "remember_again": Door(methods=POST, names=("thread_id", "turn_id")),
    "turn": Door(names=("turn_id",)),
    "recalled": Door(names=("turn_id",)),
    "cited": Door(names=("turn_id",)),
    "exchange": Door(names=("exchange_id",)),
    "opinion": Door(methods=POST, names=("exchange_id",), data={"kind": "pinned"}),
    "forget": Door(methods=("get", "post"), names=("exchange_id",)),
    "documents": Door(methods=("get", "post")),
    "notes": Door(methods=("get", "post")),
    "document": Door(names=("document_id",)),
    "document_row": Door(names=("document_id",)),
    "cancel_document": Door(methods=POST, names=("document_id",)),
    "retry_document": Door(methods=POST, names=("document_id",)),
    "describe_document": Door(methods=POST, names=("document_id",), data={"metadata": "zone: north"}),
    "move_document": Door(methods=("get", "post"), names=("document_id",)),
    "forget_document": Door(methods=("get", "post"), names=("document_id",)),
    "original": Door(names=("document_id",)),
    "search": Door(),
    "stats": Door(),
    "settings": Door(methods=("get", "post")),
    "password": Door(methods=("get", "post")),
    "notify": Door(methods=POST),
    "end_sign_in": Door(methods=POST),
    "make_token": Door(methods=POST),
    "withdraw_token": Door(methods=POST),
    "api_description": Door("anyone"),
    "api_nothing": Door("anyone"),
    "export_own": Door(methods=POST),
    "leave": Door(methods=("get", "post")),
    "farewell": Door("anyone"),
    "model_settings": Door("administrator", ("get", "post")),
    "try_model": Door("administrator", POST),
    "admin_exchanges": Door("administrator"),
    "admin_forget": Door("administrator", POST),
    "admin_export": Door("administrator", POST),
    "admin_documents": Door("administrator"),
    "admin_forget_documents": Door("administrator", POST),
    "admin_operations": Door("administrator", ("get", "post")),
    "admin_operation": Door("administrator"),
    "cancel_operation": Door("administrator", POST),
    "retry_operation": Door("administrator", POST),
    "admin_retention": Door("administrator", ("get", "post")),
    "reveal": Door("administrator", ("get", "post")),
    "end_reveal": Door("administrator", POST),
    "admin_audit": Door("administrator"),
    "admin_jobs": Door("administrator"),
    "admin_retry": Door("administrator", POST),
    "admin_people": Door("administrator", ("get", "post")),
    "set_active": Door("administrator", POST),
    "revoke_link": Door("administrator", POST),
    "reset": Door("anyone", ("get", "post")),
    "reset_link": Door("administrator", POST),
    "export_person": Door("administrator", POST),
    "set_role": Door("administrator", POST),
    "admin_groups": Door("administrator", ("get", "post")),
    "change_group": Door("administrator", POST),
    "space": Door(names=("space_id",)),
    "change_members": Door(methods=POST, names=("space_id",)),
    "leave_group": Door(methods=POST, names=("space_id",)),
    # The thread of a conversation is named by a header: tests/test_openai_api.py asks for others' there. The tools at
    # /mcp are no routes: tests/test_mcp.py asks each of them the same.
    "v1_chat": Door("program", POST),
    "v1_embeddings": Door("program", POST),
    "v1_models": Door("program"),
    "v1_model": Door("program"),
    "v1_nothing": Door("anyone", ("get", "post")),
}
THINGS = {name: door for name, door in DOORS.items() if door.names}
# These ask for more than to read a thing: to own it. Opening the question of spaces alone does not open them.
OWNERS_ONLY = {
    "rename",
    "mark",
    "delete_thread",
    "take_back",
    "take_out",
    "move",
    "remember",
    "import_row",
    "cancel_import",
    "retry_import",
    "cancel_document",
    "retry_document",
    "describe_document",
    "forget_document",
    "move_document",
    "leave_group",
}
SOCKETS = {"ws", "ws/t/<uuid:thread_id>", ""}  # the last one closes whatever comes to an unknown address


def routes_of(resolver: URLResolver) -> list[URLPattern]:
    found: list[URLPattern] = []
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver) and entry.namespace == "api":
            continue  # its operations have a table of their own, in test_api_access.py
        found += routes_of(entry) if isinstance(entry, URLResolver) else [entry]
    return found


@pytest.fixture
def things(chroma):
    """Alice's thread with a turn that is remembered, by the names that routes give their ids."""
    alice = PersonFactory(name="Alice Owner")
    of_alice = thread(alice, title="The secret of Alice")
    one = turn(of_alice, "My secret is 4711", "I keep it.", state="failed")
    said = exchange(alice, "My secret is 4711", "I keep it.", thread_id=of_alice.id, turn_id=one.id)
    kept = document(alice, "secret.txt", "The secret of Alice is 4711, and it is written here. " * 20)
    picture = image_of(alice)
    one.images.add(picture)
    imported = receive_import(ContentFile(b"[]", name="The secret of Alice.json"), owner_id=alice.pk)
    api.log_recall(one.id, api.search("secret", spaces=access.readable_space_ids(alice.pk)).results)
    return {
        "space_id": group("The secret crew", alice).id,
        "image_id": picture.id,
        "import_id": imported.id,
        "document_id": kept.pk,
        "thread_id": of_alice.id,
        "turn_id": one.id,
        "exchange_id": said.id,
    }


@pytest.fixture
def bob():
    return PersonFactory(name="Bob Team")


def signed_in(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def arguments(name: str, ids: dict[str, uuid.UUID]) -> dict[str, object]:
    """Arguments for the route, those that name no thing of somebody's filled in."""
    fill = {
        "token": "x" * 20,
        "person_id": uuid.uuid4(),
        "group_id": uuid.uuid4(),
        "operation_id": uuid.uuid4(),
        "space_id": uuid.uuid4(),
        "reveal_id": 0,
        "link_id": 0,
        "number": 1,
        "kind": "md",
        "name": "cato",
        "rest": "responses",
    }
    pattern = next(route for route in routes_of(get_resolver()) if route.name == name)
    return {key: ids.get(key) or fill[key] for key in pattern.pattern.converters}


def open_door(client: Client, name: str, method: str, ids: dict[str, uuid.UUID]) -> tuple[int, str]:
    answer = getattr(client, method)(reverse(name, kwargs=arguments(name, ids)), DOORS[name].data)
    content = b"".join(answer)
    body = re.sub(r"[0-9a-f-]{36}", "ID", content.decode(errors="replace"))
    body = re.sub(r'(csrfmiddlewaretoken" value="|X-CSRFToken": ")\w+', "TOKEN", body)
    return answer.status_code, body


def test_every_route_is_in_the_table():
    assert {route.name for route in routes_of(get_resolver())} == set(DOORS)
    assert {str(route.pattern) for route in routes} == SOCKETS


@pytest.mark.parametrize("name", [name for name, door in DOORS.items() if door.entry in ("member", "administrator")])
def test_a_stranger_is_sent_to_sign_in(name):
    for method in DOORS[name].methods:
        status, _ = open_door(
            Client(),
            name,
            method,
            {k: uuid.uuid4() for k in ("thread_id", "turn_id", "exchange_id", "document_id", "image_id", "import_id")},
        )
        assert status == 302, (name, method)


@pytest.mark.parametrize("name", [name for name, door in DOORS.items() if door.entry == "program"])
def test_a_program_needs_a_token_whoever_is_signed_in(name, bob):
    for client in (Client(), signed_in(bob)):
        for method in DOORS[name].methods:
            assert open_door(client, name, method, {})[0] == 401, (name, method)


@pytest.mark.parametrize("name", [name for name, door in DOORS.items() if door.entry == "administrator"])
def test_a_member_gets_no_page_of_the_administrator(name, bob, chroma):
    for method in DOORS[name].methods:
        assert open_door(signed_in(bob), name, method, {})[0] == 403, (name, method)
        assert open_door(signed_in(AdministratorFactory()), name, method, {})[0] != 403, (name, method)


@pytest.mark.parametrize("name", THINGS)
def test_anothers_thing_and_no_thing_look_the_same(name, bob, things):
    for method in THINGS[name].methods:
        others = open_door(signed_in(bob), name, method, things)
        nothing = open_door(signed_in(bob), name, method, {key: uuid.uuid4() for key in things})
        assert others == nothing
        assert others[0] == 404
        assert "secret" not in others[1]
        assert "Alice" not in others[1]


@pytest.mark.parametrize("name", sorted(set(THINGS) - OWNERS_ONLY))
def test_the_door_opens_when_the_one_question_does(name, bob, things, monkeypatch):
    monkeypatch.setattr(access, "_readable", lambda person_id: Space.objects.all())
    for method in THINGS[name].methods:
        status, _ = open_door(signed_in(bob), name, method, things)
        # Forgetting asks further whether the exchange is theirs.
        assert status != 404 or name == "forget", (name, method)


@pytest.mark.parametrize("name", ["search", "stats", "new_thread", "settings", "leave", "import"])
def test_no_page_tells_of_what_another_said(name, bob, things):
    query = {"q": "secret 4711"} if name == "search" else {}
    page = signed_in(bob).get(reverse(name), query).content.decode()

    assert "My secret" not in page
    assert "Alice" not in page
    assert "Results: 0" in page or name != "search"


def test_search_and_stats_give_way_when_the_one_question_does(bob, things, monkeypatch):
    monkeypatch.setattr(access, "_readable", lambda person_id: Space.objects.all())

    assert "My secret" in signed_in(bob).get(reverse("search"), {"q": "secret 4711"}).content.decode()
    assert "The secret of Alice" in signed_in(bob).get(reverse("new_thread")).content.decode()


def test_a_turn_is_reached_through_its_own_thread_only(things):
    charlie = PersonFactory()
    own = thread(charlie)
    status, _ = open_door(signed_in(charlie), "retry", "post", things | {"thread_id": own.id})
    assert status == 404


def test_an_administrator_sees_that_there_is_something_but_not_what(things):
    page = signed_in(AdministratorFactory()).get(reverse("admin_exchanges")).content.decode()

    assert "Alice Owner" in page
    assert "characters, not shown" in page
    assert "4711" not in page


def test_an_administrator_sees_nothing_of_what_another_imports(things):
    administrator = signed_in(AdministratorFactory())

    assert open_door(administrator, "import_row", "get", things)[0] == 404
    assert "secret" not in administrator.get(reverse("import")).content.decode()
