"""Searches of the API, of agents, of the command line and in a thread say that a hit is a statement, with what is known of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.template.loader import render_to_string

from cato_web.cli import actions
from cato_web.cli.messages import CommandRequest
from cato_web.mcp import arguments, reading
from cato_web.mcp.caller import Caller
from chat import commands
from memory.models import Statement
from tests.factories import api_client, exchange, statement

pytestmark = pytest.mark.django_db

RETRIES = "A buoy makes at most 28 retries a day."
QUERY = "How many retries does a buoy make?"


@pytest.fixture
def known(memory: Any, person: Any) -> Statement:
    """Store a decision of two exchanges, which the query finds as well."""
    said = {4: "28 retries for each buoy, decided on board.", 9: "No buoy dials more than 28 times before midnight."}
    sources = [exchange(person, text, timestamp=datetime(2025, 10, day, tzinfo=UTC)) for day, text in said.items()]
    added = statement(*sources, text=RETRIES, kind="decision")
    memory.index_pending()
    return added


def sources_of(known: Statement) -> list[str]:
    supports = known.supports.order_by("exchange__timestamp")
    return [str(id) for id in supports.values_list("exchange_id", flat=True)]


def test_the_api_serializes_the_statement_of_a_hit(person, known):
    api = api_client(person)
    hits = {hit["user_message"]: hit for hit in api.get("/api/search", {"q": QUERY}).json()["hits"]}

    found = hits.pop(RETRIES)
    assert found["source"] == "knowledge"
    assert found["statement"] == api.get(f"/api/knowledge/{known.pk}").json()
    assert [source["exchange_id"] for source in found["statement"]["sources"]] == sources_of(known)
    assert [hit["statement"] for hit in hits.values()] == [None, None]


def test_a_token_without_read_scope_gets_no_text_by_confirming(person, known):
    confirmed = api_client(person, "write").post(
        f"/api/knowledge/{known.pk}/confirm", {"revision": known.revision}, content_type="application/json"
    )
    blind = confirmed.json()
    assert (confirmed.status_code, blind["text"], blind["topic"], blind["sources"]) == (200, "", "", [])
    assert blind["confirmed_by"] == person.name
    assert api_client(person).get(f"/api/knowledge/{known.pk}").json()["text"] == RETRIES


def test_the_api_lists_the_statements_of_a_kind(person, known):
    api = api_client(person)
    assert api.get("/api/knowledge", {"kind": "decision"}).json()["total"] == 1
    assert api.get("/api/knowledge", {"kind": "fact"}).json()["total"] == 0
    assert api.get("/api/knowledge", {"kind": "rumour"}).status_code == 422


def test_a_nul_in_the_words_of_a_statement_is_ignored(person, known):
    assert api_client(person).get("/api/knowledge?text=ret%00ries").json()["total"] == 1


def test_an_agent_reads_kind_state_dates_and_sources(person, known):
    caller = Caller(person.pk, False, frozenset({"read"}))
    results = reading.search_memory(caller, arguments.SearchMemory(query=QUERY)).results

    facts = {hit.message: hit.statement for hit in results}
    found = facts.pop(RETRIES)
    assert (found.kind, found.topic, found.state) == ("decision", "Uplink", "current")
    assert (found.first_said_at.day, found.last_said_at.day) == (4, 9)
    assert [str(id) for id in found.sources] == sources_of(known)
    assert list(facts.values()) == [None, None]
    (entry,) = reading.list_knowledge(caller, arguments.ListKnowledge()).statements
    assert entry.model_dump().items() >= found.model_dump().items()


def test_the_command_line_names_kind_state_dates_and_sources(person, known):
    result = actions.query(CommandRequest(action="query", text=QUERY, count=5), person)

    rows = {row["user_message"]: row["statement"] for row in result.result}
    sources = sources_of(known)
    assert rows.pop(RETRIES) == {
        "kind": "decision",
        "topic": "Uplink",
        "state": "current",
        "first_said_at": "2025-10-04T00:00:00+00:00",
        "last_said_at": "2025-10-09T00:00:00+00:00",
        "sources": sources,
        "unconfirmed_since": "2025-10-09T00:00:00+00:00",
    }
    assert list(rows.values()) == [None, None]
    assert f"  2025-10-09  Knowledge (current decision): {RETRIES}" in result.text
    assert f"Said from 2025-10-04 to 2025-10-09. Sources: {', '.join(sources)}" in result.text


def test_a_search_in_a_thread_shows_kind_state_dates_and_sources(person, known):
    context = commands.CommandContext(person.pk, False, context_mode="summary", set_context_mode=[].append)
    card = commands.run(f"/vquery {QUERY}", context)

    page = " ".join(render_to_string("chat/_command_result.html", {"card": card}).split())
    assert "Decision, current, from 4 Oct 2025 to 9 Oct 2025, 2 sources" in page
    assert page.count("sources") == 1
