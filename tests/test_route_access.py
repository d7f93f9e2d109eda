"""Access to every route of the site: other people's objects look like missing ones.

A route that is not in the table fails the suite. For every route that leads to an object of a person, another test
replaces the checks of `memory.spaces.access` by "everything is readable" and expects the route to answer: so it does
call them.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from chat import prompt_library
from chat.imports.jobs import create_import
from chat.instructions.editing import add as add_instruction
from chat.models import Receipt
from chat.realtime.routing import routes
from memory import api
from memory.models import Space
from memory.spaces import access
from tests.factories import (
    AdministratorFactory,
    PersonFactory,
    document,
    exchange,
    group,
    image_of,
    signed_in,
    statement,
    thread,
    turn,
)

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class RouteAccess:
    """A route: who may call it, with which methods, and which arguments name an object."""

    entry: str = "member"  # anyone | member | administrator | client: with a token
    methods: tuple[str, ...] = ("get",)
    names: tuple[str, ...] = ()  # the arguments that name an object
    data: dict[str, str] = field(default_factory=dict)


POST = ("post",)
ROUTES: dict[str, RouteAccess] = {
    "alive": RouteAccess("anyone"),
    "ready": RouteAccess("anyone"),
    "metrics": RouteAccess("anyone"),  # only from this machine or with the token: tests/test_health.py
    "cli": RouteAccess("anyone", POST),  # only signed requests from this machine: tests/test_cli_server.py
    "favicon": RouteAccess("anyone"),
    "manifest": RouteAccess("anyone"),
    "service_worker": RouteAccess("anyone"),
    "offline": RouteAccess("anyone"),
    "sign_in": RouteAccess("anyone", ("get", "post")),
    "set_up": RouteAccess("anyone", ("get", "post")),
    "join": RouteAccess("anyone", ("get", "post")),
    "openid": RouteAccess("anyone", POST),
    "openid_callback": RouteAccess("anyone"),
    "second_factor": RouteAccess("anyone", ("get", "post")),
    "passkey_sign_in": RouteAccess("anyone", POST),
    "passkey_options": RouteAccess("anyone", POST),
    "confirm": RouteAccess(methods=("get", "post")),
    "security": RouteAccess(),
    "authenticator_app": RouteAccess(methods=("get", "post")),
    "remove_authenticator_app": RouteAccess(methods=POST),
    "add_passkey": RouteAccess(methods=POST),
    "registration_options": RouteAccess(methods=POST),
    "rename_passkey": RouteAccess(methods=POST),
    "delete_passkey": RouteAccess(methods=POST),
    "recovery_codes": RouteAccess(methods=("get", "post")),
    "remove_second_factor": RouteAccess("administrator", POST),
    "sign_out": RouteAccess(methods=POST),
    "oauth_resource": RouteAccess("anyone"),
    "oauth_resource_of_mcp": RouteAccess("anyone"),
    "oauth_server": RouteAccess("anyone"),
    "oauth_register": RouteAccess("anyone", POST),
    "oauth_authorize": RouteAccess(methods=("get", "post")),
    "oauth_token": RouteAccess("anyone", POST),
    "oauth_revoke": RouteAccess("anyone", POST),
    "new_thread": RouteAccess(methods=("get", "post")),
    "thread": RouteAccess(names=("thread_id",)),
    "post_message": RouteAccess(
        methods=POST, names=("thread_id",), data={"message": "hello", "client_key": str(uuid.uuid4())}
    ),
    "set_thread_memory": RouteAccess(methods=("get", "post"), names=("thread_id",)),
    "threads": RouteAccess(),
    "quick_search": RouteAccess(),
    "attachments": RouteAccess(methods=POST),
    "attachment": RouteAccess(names=("attachment_id",)),
    "attachment_progress": RouteAccess(names=("attachment_id",)),
    "import": RouteAccess(methods=("get", "post")),
    "import_row": RouteAccess(names=("import_id",)),
    "cancel_import": RouteAccess(methods=POST, names=("import_id",)),
    "retry_import": RouteAccess(methods=POST, names=("import_id",)),
    "rename_thread": RouteAccess(methods=("get", "post"), names=("thread_id",), data={"title": "Another title"}),
    "set_thread_mark": RouteAccess(methods=POST, names=("thread_id",), data={"mark": "pin"}),
    "set_presence": RouteAccess(methods=POST),
    "thread_menu": RouteAccess(names=("thread_id",)),
    "mentions": RouteAccess(),
    "people_to_mention": RouteAccess(),
    "new_thread_recall_filter": RouteAccess(methods=POST),
    "continue_thread": RouteAccess(methods=POST, names=("thread_id",)),
    "export_thread": RouteAccess(names=("thread_id",)),
    "delete_thread": RouteAccess(methods=("get", "post"), names=("thread_id",)),
    "restore_thread": RouteAccess(methods=POST, names=("thread_id",)),
    "delete_turns": RouteAccess(methods=("get", "post"), names=("thread_id",)),
    "recall_filter": RouteAccess(methods=("get", "post"), names=("thread_id",)),
    "thread_model": RouteAccess(methods=("get", "post"), names=("thread_id",), data={"model": "fake"}),
    "new_thread_model": RouteAccess(methods=("get", "post")),
    "thread_tools": RouteAccess(methods=("get", "post"), names=("thread_id",)),
    "switch_web_search": RouteAccess(methods=("post",), names=("thread_id",)),
    "new_thread_tools": RouteAccess(methods=("get", "post")),
    "decide_tool_use": RouteAccess(methods=POST, names=("thread_id", "turn_id"), data={"decision": "allow"}),
    "model_endpoints": RouteAccess("administrator", ("get", "post")),
    "embedding_policy": RouteAccess("administrator", ("get", "post")),
    "first_model_endpoint": RouteAccess("administrator", ("get", "post")),
    "change_model_endpoint": RouteAccess("administrator", ("get", "post")),
    "tool_servers": RouteAccess("administrator", ("get", "post")),
    "change_tool_server": RouteAccess("administrator", POST),
    "related": RouteAccess(names=("thread_id",)),
    "move_thread": RouteAccess(methods=("get", "post"), names=("thread_id",)),
    "edit_turn": RouteAccess(
        methods=("get", "post"), names=("thread_id", "turn_id"), data={"client_key": str(uuid.uuid4())}
    ),
    "regenerate": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "switch_branch": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "withdraw_turn": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "edit_queued_turn": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "move_up_turn": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "fork_thread": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "stop_turn": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "retry_turn": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "resume_turn": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "retry_indexing": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "turn": RouteAccess(names=("turn_id",)),
    "recalled_exchanges": RouteAccess(names=("turn_id",)),
    "turn_additions": RouteAccess(names=("turn_id",)),
    "exchange": RouteAccess(names=("exchange_id",)),
    "exchange_uses": RouteAccess(names=("exchange_id",)),
    "feedback": RouteAccess(methods=POST, names=("exchange_id",), data={"kind": "pinned"}),
    "correction": RouteAccess(methods=("get", "post"), names=("turn_id",), data={"dismiss": "yes"}),
    "supersession": RouteAccess(methods=POST, names=("exchange_id", "later_id"), data={"decision": ""}),
    "forget_exchange": RouteAccess(methods=("get", "post"), names=("exchange_id",)),
    "forget_everywhere": RouteAccess(methods=("get", "post"), names=("exchange_id",)),
    "receipts": RouteAccess(),
    "receipt": RouteAccess(names=("receipt_id",)),
    "instructions": RouteAccess(methods=("get", "post")),
    "set_instruction_detection": RouteAccess(methods=POST),
    "change_instruction": RouteAccess(methods=POST, names=("instruction_id",), data={"action": "off"}),
    "edit_instruction": RouteAccess(methods=("get", "post"), names=("instruction_id",), data={"text": "Be loud."}),
    "delete_instruction": RouteAccess(methods=("get", "post"), names=("instruction_id",)),
    "instruction_offer": RouteAccess(names=("turn_id",)),
    "set_thread_instruction": RouteAccess(methods=POST, names=("thread_id", "instruction_id"), data={"on": "no"}),
    "saved_prompts": RouteAccess(methods=("get", "post")),
    "knowledge": RouteAccess(),
    "export_knowledge": RouteAccess(),
    "extraction": RouteAccess(),
    "extraction_progress": RouteAccess(),
    "set_extraction": RouteAccess(methods=POST, names=("space_id",), data={"action": "on"}),
    "recalled_statement": RouteAccess(methods=("get", "post"), names=("statement_id",), data={"action": "confirm"}),
    "statement_answers": RouteAccess(names=("statement_id",)),
    "confirm_statement": RouteAccess(methods=POST, names=("statement_id",)),
    "correct_statement": RouteAccess(methods=POST, names=("statement_id",), data={"text": "It is another fish."}),
    "reject_statement": RouteAccess(methods=POST, names=("statement_id",)),
    "keep_statement": RouteAccess(methods=POST, names=("statement_id",)),
    "forget_statement": RouteAccess(methods=POST, names=("statement_id",)),
    "offered_prompts": RouteAccess(),
    "saved_prompt_text": RouteAccess(names=("prompt_id",)),
    "edit_saved_prompt": RouteAccess(methods=("get", "post"), names=("prompt_id",), data={"name": "a", "text": "b"}),
    "delete_saved_prompt": RouteAccess(methods=("get", "post"), names=("prompt_id",)),
    "documents": RouteAccess(methods=("get", "post")),
    "notes": RouteAccess(methods=("get", "post")),
    "document": RouteAccess(names=("document_id",)),
    "document_row": RouteAccess(names=("document_id",)),
    "cancel_document": RouteAccess(methods=POST, names=("document_id",)),
    "retry_document": RouteAccess(methods=POST, names=("document_id",)),
    "set_document_metadata": RouteAccess(methods=POST, names=("document_id",), data={"metadata": "zone: north"}),
    "move_document": RouteAccess(methods=("get", "post"), names=("document_id",)),
    "forget_document": RouteAccess(methods=("get", "post"), names=("document_id",)),
    "document_original": RouteAccess(names=("document_id",)),
    "search": RouteAccess(),
    "stats": RouteAccess(),
    "settings": RouteAccess(methods=("get", "post")),
    "password": RouteAccess(methods=("get", "post")),
    "set_notifications": RouteAccess(methods=POST),
    "end_login_session": RouteAccess(methods=POST),
    "create_token": RouteAccess(methods=("get", "post")),
    "revoke_token": RouteAccess(methods=POST),
    "delete_webhook": RouteAccess(methods=POST),
    "enable_webhook": RouteAccess(methods=POST),
    "api_description": RouteAccess("anyone"),
    "api_index": RouteAccess("anyone"),
    "api_page": RouteAccess("anyone"),
    "api_nothing": RouteAccess("anyone"),
    "export_account": RouteAccess(methods=("get", "post")),
    "export_row": RouteAccess(),
    "download_export": RouteAccess(),
    "delete_account": RouteAccess(methods=("get", "post")),
    "account_deleted": RouteAccess("anyone"),
    "digest": RouteAccess(methods=("get", "post")),
    "dictation": RouteAccess(methods=POST),
    "speech": RouteAccess(methods=POST, names=("thread_id", "turn_id")),
    "model_settings": RouteAccess("administrator", ("get", "post")),
    "try_model": RouteAccess("administrator", POST),
    "admin_exchanges": RouteAccess("administrator"),
    "admin_forget": RouteAccess("administrator", POST),
    "admin_export": RouteAccess("administrator", POST),
    "admin_documents": RouteAccess("administrator"),
    "admin_forget_documents": RouteAccess("administrator", POST),
    "admin_operations": RouteAccess("administrator", ("get", "post")),
    "admin_operation": RouteAccess("administrator"),
    "cancel_operation": RouteAccess("administrator", POST),
    "retry_operation": RouteAccess("administrator", POST),
    "admin_retention": RouteAccess("administrator", ("get", "post")),
    "reveal": RouteAccess("administrator", ("get", "post")),
    "end_reveal": RouteAccess("administrator", POST),
    "admin_audit": RouteAccess("administrator"),
    "usage": RouteAccess(),
    "admin_usage": RouteAccess("administrator"),
    "admin_usage_csv": RouteAccess("administrator"),
    "admin_limits": RouteAccess("administrator", ("get", "post")),
    "remove_limit": RouteAccess("administrator", POST),
    "set_price": RouteAccess("administrator", POST),
    "set_currency": RouteAccess("administrator", POST),
    "admin_jobs": RouteAccess("administrator"),
    "admin_retry": RouteAccess("administrator", POST),
    "admin_people": RouteAccess("administrator", ("get", "post")),
    "set_user_active": RouteAccess("administrator", POST),
    "revoke_link": RouteAccess("administrator", POST),
    "password_reset": RouteAccess("anyone", ("get", "post")),
    "create_reset_link": RouteAccess("administrator", POST),
    "export_person": RouteAccess("administrator", POST),
    "set_role": RouteAccess("administrator", POST),
    "admin_groups": RouteAccess("administrator", ("get", "post")),
    "change_group": RouteAccess("administrator", ("get", "post")),
    "projects": RouteAccess(methods=("get", "post")),
    "change_project": RouteAccess(methods=POST, names=("space_id",)),
    "change_space_model": RouteAccess(methods=POST, names=("space_id",)),
    "space": RouteAccess(names=("space_id",)),
    "change_members": RouteAccess(methods=POST, names=("space_id",)),
    "leave_group": RouteAccess(methods=("get", "post"), names=("space_id",)),
    # A header names the thread (tests/test_openai_api.py); MCP tools are no routes (tests/test_mcp.py).
    "v1_chat": RouteAccess("client", POST),
    "v1_responses": RouteAccess("client", POST),
    "v1_response": RouteAccess("client"),
    "v1_embeddings": RouteAccess("client", POST),
    "v1_models": RouteAccess("client"),
    "v1_model": RouteAccess("client"),
    "v1_nothing": RouteAccess("anyone", ("get", "post")),
}
OBJECT_ROUTES = {name: route for name, route in ROUTES.items() if route.names}
# These require the owner, not only a reader.
OWNERS_ONLY = {
    "correction",
    "receipt",
    "rename_thread",
    "delete_thread",
    "restore_thread",
    "delete_turns",
    "move_thread",
    "set_thread_memory",
    "import_row",
    "cancel_import",
    "retry_import",
    "cancel_document",
    "retry_document",
    "set_document_metadata",
    "forget_document",
    "move_document",
    "leave_group",
    "change_project",
    "forget_statement",
}
OBJECT_IDS = (
    "thread_id",
    "turn_id",
    "exchange_id",
    "later_id",
    "document_id",
    "attachment_id",
    "import_id",
    "instruction_id",
    "prompt_id",
    "receipt_id",
    "statement_id",
)
SOCKETS = {"ws", "ws/t/<uuid:thread_id>", ""}  # the last one closes sockets at unknown addresses


def routes_of(resolver: URLResolver) -> list[URLPattern]:
    found: list[URLPattern] = []
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver) and entry.namespace == "api":
            continue  # operations of the API: tests/test_api_access.py
        found += routes_of(entry) if isinstance(entry, URLResolver) else [entry]
    return found


@pytest.fixture
def objects(memory):
    """Return ids for the routes' arguments: Alice's thread with a remembered turn, and more."""
    alice = PersonFactory(name="Alice Owner")
    of_alice = thread(alice, title="The secret of Alice")
    one = turn(of_alice, "My secret is swordfish", "I keep it.", state="failed")
    stored = exchange(alice, "My secret is swordfish", "I keep it.", thread_id=of_alice.id, turn_id=one.id)
    stored_document = document(alice, "secret.txt", "The secret of Alice is swordfish, and it is written here. " * 20)
    image = image_of(alice)
    one.attachments.add(image)
    imported = create_import(ContentFile(b"[]", name="The secret of Alice.json"), owner_id=alice.pk)
    api.log_recall(one.id, api.search("secret", spaces=access.readable_space_ids(alice.pk)).results)
    return {
        "space_id": group("The secret crew", alice).id,
        "attachment_id": image.id,
        "import_id": imported.id,
        "document_id": stored_document.pk,
        "thread_id": of_alice.id,
        "turn_id": one.id,
        "exchange_id": stored.id,
        "instruction_id": add_instruction(access.personal_space(alice.pk), "My secret is swordfish", by=alice.pk).id,
        "prompt_id": prompt_library.add(
            access.personal_space(alice.pk), name="secret", text="My secret is swordfish", by=alice.pk
        ).id,
        "later_id": stored.id,
        "statement_id": statement(stored, text="The secret of Alice is swordfish.").pk,
        "receipt_id": Receipt.objects.create(person=alice, turn_id=one.id, passages=1, citations=0).id,
    }


@pytest.fixture
def bob():
    return PersonFactory(name="Bob Team")


def route_arguments(name: str, ids: dict[str, uuid.UUID]) -> dict[str, object]:
    """Return arguments for the route; those that name no object get a default."""
    fill = {
        "token": "x" * 20,
        "person_id": uuid.uuid4(),
        "group_id": uuid.uuid4(),
        "operation_id": uuid.uuid4(),
        "server_id": uuid.uuid4(),
        "use_id": uuid.uuid4(),
        "space_id": uuid.uuid4(),
        "reveal_id": 0,
        "link_id": 0,
        "number": 1,
        "kind": "md",
        "name": "cato",
        "response_id": "resp_0",
        "rest": "responses",
    }
    pattern = next(route for route in routes_of(get_resolver()) if route.name == name)
    return {key: ids.get(key) or fill[key] for key in pattern.pattern.regex.groupindex}


def request(client: Client, name: str, method: str, ids: dict[str, uuid.UUID]) -> tuple[int, str]:
    answer = getattr(client, method)(reverse(name, kwargs=route_arguments(name, ids)), ROUTES[name].data)
    content = b"".join(answer)
    body = re.sub(r"[0-9a-f-]{36}", "ID", content.decode(errors="replace"))
    body = re.sub(r'(csrfmiddlewaretoken" value="|X-CSRFToken": ")\w+', "TOKEN", body)
    return answer.status_code, body


def test_every_route_is_in_the_table():
    assert {route.name for route in routes_of(get_resolver())} == set(ROUTES)
    assert {str(route.pattern) for route in routes} == SOCKETS


@pytest.mark.parametrize("name", [name for name, route in ROUTES.items() if route.entry in ("member", "administrator")])
def test_an_anonymous_request_is_redirected_to_sign_in(name):
    for method in ROUTES[name].methods:
        status, _ = request(
            Client(),
            name,
            method,
            {key: uuid.uuid4() for key in OBJECT_IDS},
        )
        assert status == 302, (name, method)


@pytest.mark.parametrize("name", [name for name, route in ROUTES.items() if route.entry == "client"])
def test_a_client_needs_a_token_even_if_signed_in(name, bob):
    for client in (Client(), signed_in(bob)):
        for method in ROUTES[name].methods:
            assert request(client, name, method, {})[0] == 401, (name, method)


@pytest.mark.parametrize("name", [name for name, route in ROUTES.items() if route.entry == "administrator"])
def test_a_member_cannot_open_administration_pages(name, bob, chroma):
    for method in ROUTES[name].methods:
        assert request(signed_in(bob), name, method, {})[0] == 403, (name, method)
        assert request(signed_in(AdministratorFactory()), name, method, {})[0] != 403, (name, method)


@pytest.mark.parametrize("name", OBJECT_ROUTES)
def test_an_object_of_another_person_looks_like_a_missing_one(name, bob, objects):
    for method in OBJECT_ROUTES[name].methods:
        foreign = request(signed_in(bob), name, method, objects)
        missing = request(signed_in(bob), name, method, {key: uuid.uuid4() for key in objects})
        assert foreign == missing
        assert foreign[0] == 404
        assert "secret" not in foreign[1]
        assert "Alice" not in foreign[1]


@pytest.mark.parametrize("name", sorted(set(OBJECT_ROUTES) - OWNERS_ONLY))
def test_a_route_opens_if_the_access_check_allows_everything(name, bob, objects, monkeypatch):
    monkeypatch.setattr(access, "_readable_spaces", lambda person_id: Space.objects.all())
    for method in OBJECT_ROUTES[name].methods:
        status, _ = request(signed_in(bob), name, method, objects)
        # Forgetting also requires ownership.
        assert status != 404 or name in ("forget_exchange", "forget_everywhere"), (name, method)


@pytest.mark.parametrize(
    "name",
    [
        "search",
        "stats",
        "new_thread",
        "settings",
        "instructions",
        "saved_prompts",
        "knowledge",
        "delete_account",
        "import",
    ],
)
def test_no_page_shows_data_of_other_people(name, bob, objects):
    query = {"q": "secret swordfish"} if name == "search" else {}
    page = signed_in(bob).get(reverse(name), query).content.decode()

    assert "My secret" not in page
    assert "Alice" not in page
    assert "No results" in page or name != "search"


def test_search_and_stats_depend_on_the_access_check(bob, objects, monkeypatch):
    monkeypatch.setattr(access, "_readable_spaces", lambda person_id: Space.objects.all())

    assert "My <mark>secret</mark>" in signed_in(bob).get(reverse("search"), {"q": "secret swordfish"}).content.decode()
    assert "The secret of Alice" in signed_in(bob).get(reverse("new_thread")).content.decode()


def test_a_turn_is_reachable_only_through_its_own_thread(objects):
    charlie = PersonFactory()
    own_thread = thread(charlie)
    status, _ = request(signed_in(charlie), "retry_turn", "post", objects | {"thread_id": own_thread.id})
    assert status == 404


def test_an_administrator_sees_that_data_exists_but_not_its_content(objects):
    page = signed_in(AdministratorFactory()).get(reverse("admin_exchanges")).content.decode()

    assert "Alice Owner" in page
    assert "characters, not shown" in page
    assert "swordfish" not in page


def test_an_administrator_cannot_see_imports_of_others(objects):
    administrator = signed_in(AdministratorFactory())

    assert request(administrator, "import_row", "get", objects)[0] == 404
    assert "secret" not in administrator.get(reverse("import")).content.decode()
