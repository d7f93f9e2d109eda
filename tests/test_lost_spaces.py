"""The right to read a space is checked when results are read: it can be lost while the query is embedded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.urls import reverse

from cato_web.accounts.models import User
from cato_web.mcp.arguments import SearchMemory
from cato_web.mcp.caller import Caller
from cato_web.mcp.reading import search_memory
from chat import commands
from chat.commands import CommandContext
from chat.models import Thread
from memory.exchanges.records import NewRecord, upsert_records
from memory.models import Document, Membership, Space
from memory.retrieval import query_embedding, search
from tests.factories import api_client, document, exchange, group, signed_in, thread

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "Where is the spare key of the lighthouse?"
SECRET = "swordfish"


@pytest.fixture
def crew(memory: Any, person: User) -> Space:
    """Return a group of this person whose memory answers the question."""
    space = group("Crew", person)
    talk = thread(person, space=space, title=f"Key of the lighthouse: {SECRET}")
    message = f"The spare key of the lighthouse is with the {SECRET}."
    exchange(person, message, f"With the {SECRET}.", space=space, thread_id=talk.pk)
    document(person, f"Key of the lighthouse {SECRET}.txt", message, space=space)
    upsert_records([NewRecord("key", message)], space=space, owner_id=person.pk)
    memory.index_pending()
    return space


def on_search_page(person: User) -> str:
    page = signed_in(person).get(reverse("search"), {"q": QUESTION}).content.decode()
    # The filters are those for which the person asked with the query.
    return re.sub("<option.*?</option>", "", page)


def in_quick_search(person: User) -> str:
    address = reverse("quick_search")
    return signed_in(person).get(address, {"q": "key lighthouse"}, headers={"HX-Request": "true"}).content.decode()


def on_page_of_document(person: User) -> str:
    address = reverse("document", args=[Document.objects.get().pk])
    return signed_in(person).get(address, {"q": QUESTION}).content.decode()


def by_command(person: User) -> str:
    context = CommandContext(person.pk, is_administrator=False, context_mode="full", set_context_mode=str)
    return str(commands.run(f"/vquery {QUESTION}", context))


def by_api(path: str, **query: str) -> Callable[[User], str]:
    return lambda person: api_client(person).get(path, query).content.decode()


def by_api_recall(person: User) -> str:
    body = json.dumps({"messages": [QUESTION]})
    return api_client(person).post("/api/recall", body, content_type="application/json").content.decode()


def in_records(person: User) -> str:
    body = json.dumps({"text": QUESTION})
    return api_client(person).post("/api/records/query", body, content_type="application/json").content.decode()


def in_thread_by_api(person: User) -> str:
    talk = Thread.objects.get()
    return api_client(person).get(f"/api/threads/{talk.pk}/search", {"q": QUESTION}).content.decode()


def by_mcp(person: User) -> str:
    caller = Caller(person.pk, is_administrator=False, scopes=frozenset({"read"}))
    return search_memory(caller, SearchMemory(query=QUESTION)).model_dump_json()


@pytest.mark.parametrize(
    "find",
    [
        on_search_page,
        in_quick_search,
        on_page_of_document,
        by_command,
        by_api("/api/search", q=QUESTION),
        by_api("/api/context", text=QUESTION),
        by_api_recall,
        in_records,
        in_thread_by_api,
        by_mcp,
    ],
)
def test_nothing_is_found_in_a_space_that_is_lost_meanwhile(crew, person, monkeypatch, find):
    assert SECRET in find(person)
    leave_while_embedding(person, monkeypatch)
    assert SECRET not in find(person)


def leave_while_embedding(person: User, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = query_embedding.embed_async

    def leave_and_embed(*args: Any, **options: Any) -> Any:
        Membership.objects.filter(person=person).delete()
        return embed(*args, **options)

    monkeypatch.setattr(search, "embed_async", leave_and_embed)
    monkeypatch.setattr(query_embedding, "embed_async", leave_and_embed)
