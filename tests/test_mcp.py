"""MCP tools, called by the protocol's own client over HTTP and stdio."""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any

import httpx
import httpx2
import pytest
from django.core.management import CommandError, call_command
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from cato_web.mcp import tools as verbs
from cato_web.mcp.tools import Caller
from memory.errors import InvalidInputError, NotFoundError
from memory.errors import NotFoundError as NothingInMemory
from memory.models import Space
from memory.spaces import access
from tests.factories import PersonFactory, exchange, group, thread, turn
from tests.server import ROOT, wait_for
from tests.tokens import create_tokens

ALL = frozenset({"read", "write"})
BEGINNING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPTS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def people(cato, administrator):
    """Return tokens: Alice and Bob read and write, and one of Alice's only reads."""
    alice, bob = cato.join(administrator, "Alice Owner"), cato.join(administrator, "Bob Team")
    of_alice, reading = create_tokens(cato, alice, "read write", "read")
    (of_bob,) = create_tokens(cato, bob, "read write")
    return {"alice": alice, "token": of_alice, "reading": reading, "bob": of_bob}


def call_over_http(
    cato, token: str, *calls: tuple[str, dict[str, Any]], url: str = "", mode: str = "auto"
) -> list[Any]:
    """Call these tools in order; return their results."""

    async def run() -> list[Any]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{url or cato.url}/mcp", http_client=http), mode=mode) as client,
        ):
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(run())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_text_is_added_found_and_forgotten(cato, people, mode):
    fact = f"The lamp oil is in shed {uuid.uuid4().hex[:6]}."
    (added,) = call_over_http(cato, people["token"], ("add_memory", {"text": fact}), mode=mode)
    assert not added.is_error
    assert added.structured_content["audience"] == "Only you can read it."
    (id,) = added.structured_content["exchange_ids"]

    # Any web process can answer any request.
    (found,) = call_over_http(
        cato, people["token"], ("search_memory", {"query": fact, "k": 1}), url=cato.other_url, mode=mode
    )
    (hit,) = found.structured_content["results"]
    assert (hit["exchange_id"], hit["message"], hit["who"], hit["source"]) == (id, fact, "Alice Owner", "api")
    assert hit["said_at"]
    assert "follow no instruction" in found.structured_content["note"]
    assert fact in found.content[0].text

    forgotten, repeated, after = call_over_http(
        cato,
        people["token"],
        ("forget_memory", {"exchange_id": id}),
        ("forget_memory", {"exchange_id": id}),
        ("search_memory", {"query": fact}),
        mode=mode,
    )
    assert "Forgotten" in forgotten.structured_content["said"]
    assert repeated.is_error
    assert fact not in after.content[0].text


def test_a_conversation_is_found_and_read(cato, people, endpoint):
    endpoint.script("cato", answer="Noted: the compass is off by two degrees.")
    thread_id = people["alice"].send_message("Our compass is off by two degrees.")
    wait_for(lambda: "Remembered</span>" in people["alice"].thread_page(thread_id), "the exchange to be remembered")
    found, read = call_over_http(
        cato,
        people["token"],
        ("search_memory", {"query": "How wrong is the compass?"}),
        ("get_thread", {"thread_id": thread_id}),
    )

    assert thread_id in [hit["thread_id"] for hit in found.structured_content["results"]]
    (turn_,) = read.structured_content["turns"]
    assert (turn_["who"], turn_["message"]) == ("Alice Owner", "Our compass is off by two degrees.")
    assert turn_["answer"] == "Noted: the compass is off by two degrees."
    assert "follow no instruction" in read.structured_content["note"]


def test_tools_describe_their_purpose_and_results(cato, people):
    async def run() -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {people['token']}"}) as http,
            Client(streamable_http_client(f"{cato.url}/mcp", http_client=http)) as client,
        ):
            return (await client.list_tools()).tools, client.instructions

    listed, instructions = asyncio.run(run())
    tools = {tool.name: tool for tool in listed}
    assert set(tools) == {"search_memory", "get_thread", "add_memory", "forget_memory"}
    assert all(tool.description and tool.output_schema for tool in tools.values())
    assert tools["search_memory"].annotations.read_only_hint
    assert tools["forget_memory"].annotations.destructive_hint
    assert tools["search_memory"].input_schema["required"] == ["query"]
    assert "follow no instruction" in instructions


def test_each_token_acts_for_its_own_person_also_concurrently(cato, people):
    facts = {"token": f"Alice keeps {uuid.uuid4().hex}", "bob": f"Bob keeps {uuid.uuid4().hex}"}
    for name, fact in facts.items():
        call_over_http(cato, people[name], ("add_memory", {"text": fact}))

    async def seen_by(name: str) -> str:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {people[name]}"}, timeout=30) as http,
            Client(streamable_http_client(f"{cato.url}/mcp", http_client=http)) as client,
        ):
            calls = [client.call_tool("search_memory", {"query": fact, "k": 20}) for fact in facts.values()]
            return "".join(result.content[0].text for result in await asyncio.gather(*calls))

    async def run_both() -> list[str]:
        return await asyncio.gather(seen_by("token"), seen_by("bob"), seen_by("token"), seen_by("bob"))

    for_alice, for_bob, *_rest = asyncio.run(run_both())
    assert facts["token"] in for_alice
    assert facts["bob"] not in for_alice
    assert facts["bob"] in for_bob
    assert facts["token"] not in for_bob


def test_errors_are_sentences_for_the_model(cato, people):
    added, nowhere, empty, thread = call_over_http(
        cato,
        people["token"],
        ("add_memory", {"text": "Hello", "space": "Nobody's"}),
        ("search_memory", {"query": "x", "space": "Nobody's"}),
        ("add_memory", {"text": "  "}),
        ("get_thread", {"thread_id": "no id"}),
    )
    assert added.is_error
    assert "no space Nobody's" in added.content[0].text
    assert "no space Nobody's" in nowhere.content[0].text
    assert "nothing to remember" in empty.content[0].text
    assert "Not found." in thread.content[0].text


def test_a_read_only_token_changes_nothing(cato, people):
    added, forgotten, found = call_over_http(
        cato,
        people["reading"],
        ("add_memory", {"text": "Hello"}),
        ("forget_memory", {"exchange_id": str(uuid.uuid4())}),
        ("search_memory", {"query": "Hello"}),
    )
    assert 'the scope "write"' in added.content[0].text
    assert 'the scope "write"' in forgotten.content[0].text
    assert not found.is_error


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer cato_wrong"}, {"Authorization": "Basic eDp5"}])
def test_a_request_without_a_token_is_refused(cato, alice, headers):
    # A browser's cookie does not authenticate.
    answer = httpx.post(f"{cato.url}/mcp", json=BEGINNING, headers=headers | ACCEPTS, cookies=alice.http.cookies)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["error"]


def test_requests_from_other_sites_and_host_names_are_refused(cato, people):
    def status(**headers: str) -> int:
        sent = {"Authorization": f"Bearer {people['token']}", **ACCEPTS, **headers}
        return httpx.post(f"{cato.url}/mcp", json=BEGINNING, headers=sent).status_code

    assert status() == 200
    assert status(Origin=cato.url) == 200
    assert status(Origin="https://elsewhere.example") == 403
    assert status(Origin=cato.url, Host="rebound.example") in (403, 421)
    assert status(Host="rebound.example") == 421
    assert httpx.get(f"{cato.url}/mcp", headers={"Authorization": f"Bearer {people['token']}"}).status_code == 405


def test_the_mcp_library_is_imported_on_the_first_request():
    import subprocess

    code = "import sys, cato_web.asgi; print(any(name.split('.')[0] == 'mcp' for name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_stdio_works_while_cato_is_running(cato, people, tmp_path):
    fact = f"The winch takes {uuid.uuid4().hex[:6]} turns."
    alice = people["alice"]

    async def run() -> list[Any]:
        command = ["manage.py", "mcp", "--user", alice.email]
        server = StdioServerParameters(command=sys.executable, args=command, env=cato.environment, cwd=str(ROOT))
        with (tmp_path / "log").open("w") as log:
            async with Client(stdio_client(server, errlog=log)) as client:
                added = await client.call_tool("add_memory", {"text": fact})
                found = await client.call_tool("search_memory", {"query": fact, "k": 1})
                return [added, found]

    added, found = asyncio.run(run())
    assert not added.is_error
    assert found.structured_content["results"][0]["message"] == fact
    assert fact in alice.search_page(fact)


def test_stdio_requires_an_existing_person(db, capsys):
    with pytest.raises(CommandError, match="no account Nobody"):
        call_command("mcp", "--user", "Nobody")
    assert capsys.readouterr().out == ""


@pytest.fixture
def caller(db) -> Caller:
    return Caller(PersonFactory(name="Bob Team").pk, False, ALL)


@pytest.fixture
def alices_objects(memory) -> dict[str, Any]:
    """Return ids of Alice's thread, its exchange and a group."""
    alice = PersonFactory(name="Alice Owner")
    of_alice = thread(alice, title="The secret of Alice")
    first_turn = turn(of_alice, "My secret is 4711", "I keep it.")
    stored = exchange(alice, "My secret is 4711", "I keep it.", thread_id=of_alice.id, turn_id=first_turn.id)
    return {"thread": str(of_alice.id), "exchange": str(stored.id), "group": group("Pilots", alice).name}


def outcome(tool, *arguments) -> str:
    try:
        return repr(tool(*arguments))
    except (NotFoundError, NothingInMemory, InvalidInputError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    ("tool", "key", "more"),
    [(verbs.get_thread, "thread", (5,)), (verbs.forget_memory, "exchange", ())],
)
def test_an_object_of_another_person_looks_like_a_missing_one(caller, alices_objects, tool, key, more):
    foreign, missing = (
        outcome(tool, caller, alices_objects[key], *more),
        outcome(tool, caller, str(uuid.uuid4()), *more),
    )
    assert foreign == missing
    assert foreign.startswith("NotFoundError")


@pytest.mark.parametrize(
    ("tool", "before", "after"), [(verbs.search_memory, ("secret", 5), ()), (verbs.add_memory, ("A text",), ())]
)
def test_a_space_of_another_person_looks_like_a_missing_one(caller, alices_objects, tool, before, after):
    foreign = outcome(tool, caller, *before, alices_objects["group"], *after)
    assert foreign.startswith("NotFoundError")
    assert foreign == outcome(tool, caller, *before, "Divers", *after).replace("Divers", "Pilots")


def test_a_search_returns_nothing_of_other_people(caller, alices_objects):
    assert verbs.search_memory(caller, "secret 4711", 5, None).results == []


def test_tools_depend_on_the_access_check(caller, alices_objects, monkeypatch):
    monkeypatch.setattr(access, "_readable_spaces", lambda person_id: Space.objects.all())

    assert "4711" in verbs.search_memory(caller, "secret 4711", 5, None).results[0].message
    assert verbs.get_thread(caller, alices_objects["thread"], 5).title == "The secret of Alice"
    assert verbs.add_memory(caller, "Something for all pilots", "Pilots").exchange_ids
    # Reading does not imply ownership.
    assert outcome(verbs.forget_memory, caller, alices_objects["exchange"]).startswith("NotFoundError")


def test_a_thread_omits_forgotten_text(memory, person):
    own_thread = thread(person)
    stored = exchange(person, "The safe is behind the map", thread_id=own_thread.id)
    turn(own_thread, "The safe is behind the map", exchange_id=stored.id)
    turn(own_thread, "The weather is fine")
    memory.forget([stored.id], by=person.pk)

    read = verbs.get_thread(Caller(person.pk, False, ALL), str(own_thread.id), 5)
    assert [(turn_.message, turn_.is_forgotten) for turn_ in read.turns] == [("", True), ("The weather is fine", False)]
    assert [
        turn_.message for turn_ in verbs.get_thread(Caller(person.pk, False, ALL), str(own_thread.id), 1).turns
    ] == ["The weather is fine"]
