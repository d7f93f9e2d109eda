"""Entries of the audit log refer to the API token through which a program acted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.urls import reverse

from cato_web.accounts.models import ApiToken, AuditEntry
from cato_web.accounts.tokens import revoke_token
from cato_web.mcp import server
from cato_web.mcp.caller import Caller
from cato_web.mcp.tools import TOOLS
from tests.factories import AdministratorFactory, PersonFactory, api_client, signed_in
from tests.factories import thread as make_thread

# Moves are recorded on commit, while the request is still handled.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(db):
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def thread(ada):
    return make_thread(ada)


def move(client, thread) -> None:
    """Move the thread to the team's space by the API, which is recorded."""
    response = client.patch(f"/api/threads/{thread.id}", {"space": "team"}, content_type="application/json")
    assert response.status_code == 200, response.content


def last_entry(action: str) -> AuditEntry:
    return AuditEntry.objects.filter(action=action).latest("pk")


def test_an_entry_of_a_program_refers_to_its_token_and_a_later_one_of_the_person_does_not(ada, thread):
    move(api_client(ada), thread)
    assert last_entry("thread.moved").token_id == ApiToken.objects.get().pk

    signed_in(ada).get(reverse("export_thread", args=[thread.id, "md"]))
    assert last_entry("thread.exported").token_id is None


def test_the_page_names_the_token_for_its_owner_its_beginning_for_others_and_a_revoked_one(ada, thread):
    move(api_client(ada), thread)
    token = ApiToken.objects.get()

    def page(person) -> str:
        return signed_in(person).get(reverse("admin_audit"), {"action": "thread.moved"}).content.decode()

    assert "by a program" in page(ada)
    other = page(AdministratorFactory(name="Olga Admin"))
    assert f"by API token {token.prefix}…" in other
    assert "a program" not in other
    revoke_token(ada, token.pk)
    assert "by a revoked API token" in page(ada)
    assert last_entry("thread.moved").token_id == token.pk


def test_tools_act_through_the_token_of_their_caller():
    token = ApiToken.objects.create(person=PersonFactory(), name="agent", token_hash="x", prefix="cato_x")
    caller = Caller(token.person_id, False, frozenset({"write"}), token.pk)

    def record(by: Caller, arguments: object) -> Any:
        return AuditEntry.objects.create(actor_id=by.person_id, action="exchange.forgotten", target="x")

    tool: Any = replace(TOOLS["forget_memory"], run=record)
    assert server._run_for(caller, tool.run, tool.arguments.model_construct()).token_id == token.pk  # type: ignore[attr-defined]
    assert record(caller, None).token_id is None
