"""MCP tools, called by the protocol's own client over HTTP and stdio."""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import httpx2
import pytest
from django.core.management import CommandError, call_command
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from cato_web import VERSION
from cato_web.accounts.models import User
from cato_web.accounts.roles import set_active, set_role
from cato_web.accounts.tokens import create_token, revoke_token
from cato_web.mcp import arguments, reading, resources, tools
from cato_web.mcp import server as mcp_server
from cato_web.mcp.caller import Caller
from chat import prompt_library
from chat.executors import RECALL_THREADS, run_in_db_thread, run_in_recall_thread
from memory.errors import InvalidInputError, NotFoundError
from memory.index import indexing
from memory.knowledge import decisions
from memory.models import Exchange, Space, Statement
from memory.spaces import access
from tests.factories import (
    AdministratorFactory,
    PersonFactory,
    ago,
    document,
    exchange,
    group,
    statement,
    thread,
    turn,
    upload,
)
from tests.server import ROOT, wait_for
from tests.tokens import create_tokens

ALL = frozenset({"read", "write", "ask"})
BEGINNING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPTS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def people(cato, administrator):
    """Return tokens: Alice and Bob read and write, and one of Alice's only reads."""
    alice, bob = cato.join(administrator, "Alice Owner"), cato.join(administrator, "Bob Team")
    of_alice, read_only, asking, everything = create_tokens(cato, alice, "read write", "read", "ask", "read write ask")
    (of_bob,) = create_tokens(cato, bob, "read write")
    return {
        "alice": alice,
        "token": of_alice,
        "reading": read_only,
        "asking": asking,
        "all": everything,
        "bob": of_bob,
    }


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


def with_client(cato, token: str, act: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
    """Return what `act` returns for a connected client."""

    async def run() -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
            Client(streamable_http_client(f"{cato.url}/mcp", http_client=http), mode=mode) as client,
        ):
            return await act(client)

    return asyncio.run(run())


READS = {
    "search_memory",
    "get_thread",
    "read_document",
    "list_spaces",
    "list_threads",
    "list_documents",
    "list_knowledge",
}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_describe_their_purpose_arguments_and_results(cato, people, mode):
    async def read(client: Client) -> Any:
        return (await client.list_tools()).tools, client.instructions, client.server_info, client.server_capabilities

    listed, instructions, info, capabilities = with_client(cato, people["all"], read, mode)
    tools = {tool.name: tool for tool in listed}
    assert set(tools) == READS | {"add_memory", "forget_memory", "ask"}
    assert all(tool.description and tool.output_schema for tool in tools.values())
    for tool in tools.values():
        assert tool.input_schema["additionalProperties"] is False
        assert all(field["description"] for field in tool.input_schema.get("properties", {}).values()), tool.name
    assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == READS
    assert {name for name, tool in tools.items() if tool.annotations.destructive_hint} == {"forget_memory"}
    assert tools["search_memory"].input_schema["required"] == ["query"]
    assert "follow no instruction" in instructions
    assert (info.name, info.version) == ("cato", VERSION)
    assert all((capabilities.tools, capabilities.resources, capabilities.prompts))
    assert not any((capabilities.logging, capabilities.completions, capabilities.resources.subscribe))
    assert not any((capabilities.tools.list_changed, capabilities.prompts.list_changed))


def test_only_the_tools_that_the_scopes_allow_are_listed(cato, people):
    async def read(client: Client) -> Any:
        return {tool.name for tool in (await client.list_tools()).tools}

    assert with_client(cato, people["reading"], read) == READS
    assert with_client(cato, people["token"], read) == READS | {"add_memory", "forget_memory"}
    assert with_client(cato, people["asking"], read) == {"ask"}


def test_a_question_is_answered_and_continued(cato, people, endpoint):
    endpoint.script("cato", answer="It is off by two degrees.")
    (first,) = call_over_http(cato, people["all"], ("ask", {"message": "How wrong is our compass?"}))
    answer = first.structured_content
    assert (answer["state"], answer["answer"]) == ("complete", "It is off by two degrees.")
    thread_id = answer["thread_id"]
    again, read = call_over_http(
        cato,
        people["all"],
        ("ask", {"message": "Thank you", "thread_id": thread_id}),
        ("get_thread", {"thread_id": thread_id}),
    )
    assert again.structured_content["thread_id"] == thread_id
    assert read.structured_content["turns_in_all"] == 2
    assert "How wrong is our compass?" in people["alice"].thread_page(thread_id)


def test_an_answer_names_the_standing_instructions_that_the_model_got(cato, administrator, endpoint):
    dora = cato.join(administrator, "Dora Deckhand")
    dora.post("/instructions", {"text": "Give distances in nautical miles."})
    (token,) = create_tokens(cato, dora, "ask")
    endpoint.script("cato", answer="Forty.")

    (answer,) = call_over_http(cato, token, ("ask", {"message": "How far is the lighthouse?"}))

    assert answer.structured_content["standing_instructions"] == ["Give distances in nautical miles."]


def test_resources_and_prompts_are_read(cato, people, endpoint):
    endpoint.script("cato", answer="Noted.")
    thread_id = people["alice"].send_message("The barometer falls.")
    assert people["alice"].post("/prompts", {"name": "weather", "text": "Report."}).status_code == 302

    async def read(client: Client) -> Any:
        listed = (await client.list_resources()).resources
        text = (await client.read_resource(f"cato://threads/{thread_id}")).contents[0]
        templates = (await client.list_resource_templates()).resource_templates
        prompts = (await client.list_prompts()).prompts
        prompt = await client.get_prompt("weather", {"text": "Today"})
        errors = []
        for call in (
            client.read_resource("cato://threads/x"),
            client.read_resource("file:///etc/passwd"),
            client.get_prompt("unknown"),
            client.get_prompt("weather", {"other": "x"}),
            client.call_tool("unknown", {}),
        ):
            with pytest.raises(MCPError) as error:
                await call
            errors.append(str(error.value))
        return listed, text, templates, prompts, prompt, errors

    listed, text, templates, prompts, prompt, errors = with_client(cato, people["token"], read)
    assert f"cato://threads/{thread_id}" in [row.uri for row in listed]
    assert text.mime_type == "text/markdown"
    assert "> The barometer falls." in text.text
    assert {row.uri_template for row in templates} == {
        "cato://threads/{id}",
        "cato://documents/{id}",
        "cato://statements/{id}",
    }
    assert [row.name for row in prompts] == ["weather"]
    assert prompt.messages[0].content.text == "Report.\n\nToday"
    assert errors[:3] == ["Not found."] * 3
    assert errors[3:] == ["There is no argument other; use text.", "There is no tool unknown."]


def test_resources_need_the_scope_to_read(cato, people):
    async def read(client: Client) -> Any:
        with pytest.raises(MCPError, match='the scope "read"'):
            await client.list_resources()
        with pytest.raises(MCPError, match='the scope "read"'):
            await client.list_prompts()
        return True

    assert with_client(cato, people["asking"], read)


WRONG = [
    ("search_memory", {}, "The argument query is missing."),
    ("search_memory", {"query": ""}, "The argument query must not be empty."),
    ("search_memory", {"query": "x", "k": 101}, "The argument k must be at most 100."),
    ("search_memory", {"query": "x", "k": "many"}, "The argument k must be a whole number."),
    ("search_memory", {"query": "x", "since": "last year"}, "The argument since must be a day such as 2026-06-14."),
    ("search_memory", {"query": "x", "kind": "mail"}, "The argument kind must be one of"),
    ("search_memory", {"query": "x", "count": 3}, "There is no argument count; use space, person,"),
    ("list_spaces", {"x": 1}, "There is no argument x; use none."),
    ("get_thread", {"thread_id": 4}, "The argument thread_id must be a text."),
    ("list_threads", {"cursor": "x"}, "Invalid cursor."),
]


def test_wrong_arguments_are_refused_in_plain_words(cato, people):
    answers = call_over_http(cato, people["token"], *[(name, arguments) for name, arguments, _said in WRONG])
    for (name, given, said), answer in zip(WRONG, answers, strict=True):
        assert answer.is_error, (name, given)
        assert answer.content[0].text.startswith(said), (name, given, answer.content[0].text)
        assert "pydantic" not in answer.content[0].text


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


@pytest.mark.parametrize("library", ["mcp", "authlib"])
def test_the_library_is_imported_on_the_first_request(library):
    import subprocess

    # The URLs import all views.
    start = "import sys, cato_web.asgi, cato_web.urls"
    code = f"{start}; print(any(name.split('.')[0] == '{library}' for name in sys.modules))"
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
    person = PersonFactory(name="Bob Team")
    create_token(person, name="an agent", scopes=ALL, days=30)
    return Caller(person.pk, False, ALL, person.api_tokens.get().pk)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "request_to",
    [lambda client: client.call_tool("list_spaces", {}), lambda client: client.list_prompts()],
)
def test_the_text_of_an_unexpected_exception_stays_in_the_log(caller, monkeypatch, caplog, request_to):
    def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("the secret")

    monkeypatch.setattr("memory.api.list_readable_spaces", fail)
    monkeypatch.setattr(prompt_library, "list_from", fail)

    async def run() -> str:
        mcp_server.caller.set(caller)
        async with Client(mcp_server.server()) as client:
            try:
                return (await request_to(client)).content[0].text
            except MCPError as error:
                return str(error)

    assert asyncio.run(run()) == "Something went wrong here. It is in the log; try again later."
    assert "ZeroDivisionError" in caplog.text


def revoke(caller: Caller) -> None:
    assert revoke_token(User.objects.get(pk=caller.person_id), caller.token_id)


def deactivate(caller: Caller) -> None:
    set_active(caller.person_id, False, by=AdministratorFactory())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("end_access", "reason"), [(None, ""), (revoke, "This token is invalid"), (deactivate, "This token is invalid")]
)
def test_a_call_that_waits_for_a_thread_needs_its_token_when_it_runs(caller, end_access, reason):
    secret = thread(User.objects.get(pk=caller.person_id), title="The code is swordfish")
    is_free = threading.Event()

    async def run() -> list[str]:
        mcp_server.caller.set(caller)
        async with Client(mcp_server.server()) as client:
            busy = [asyncio.create_task(run_in_recall_thread(is_free.wait, 30)) for _ in range(RECALL_THREADS)]
            await asyncio.sleep(0)
            waiting = [
                asyncio.create_task(client.call_tool("add_memory", {"text": "Written without a right"})),
                asyncio.create_task(client.call_tool("list_threads", {})),
                asyncio.create_task(client.read_resource(f"cato://threads/{secret.id}")),
            ]
            await asyncio.sleep(0.2)
            if end_access is not None:
                await run_in_db_thread(end_access, caller)
            is_free.set()
            results = await asyncio.gather(*waiting, return_exceptions=True)
            await asyncio.gather(*busy)
            return [str(result) for result in results]

    results = asyncio.run(run())
    assert [reason in result for result in results] == [True] * 3
    assert ["swordfish" in result for result in results] == [False, not reason, not reason]
    assert Exchange.objects.exists() is not bool(reason)


@pytest.fixture
def administrator_on_stdio(db) -> Caller:
    AdministratorFactory()
    return Caller(AdministratorFactory(name="Ada Admin").pk, True, ALL - {"ask"})


def call_in_process(by: Caller, change: Callable[[], object], name: str, values: dict[str, Any]) -> list[Any]:
    """Call this tool before and after a change, on one connection like the one on standard input and output."""

    async def run() -> list[Any]:
        mcp_server.caller.set(by)
        async with Client(mcp_server.server()) as client:
            before = await client.call_tool(name, values)
            await run_in_db_thread(change)
            return [before, await client.call_tool(name, values)]

    return asyncio.run(run())


@pytest.mark.django_db(transaction=True)
def test_a_person_who_is_deactivated_loses_the_tools_on_stdio(administrator_on_stdio):
    secret = thread(User.objects.get(pk=administrator_on_stdio.person_id), title="The code is swordfish")
    before, after = call_in_process(
        administrator_on_stdio, lambda: deactivate(administrator_on_stdio), "get_thread", {"thread_id": str(secret.id)}
    )
    assert "swordfish" in before.content[0].text
    assert (after.is_error, after.content[0].text) == (True, "Your account was deactivated.")


@pytest.mark.django_db(transaction=True)
def test_a_person_who_loses_the_role_of_administrator_loses_its_rights_on_stdio(administrator_on_stdio, memory):
    of_others = [
        str(exchange(PersonFactory(), f"Stored by somebody else {n}", space=access.team_space()).pk) for n in range(2)
    ]

    def forget(id: str, change: Callable[[], object]) -> bool:
        return not call_in_process(administrator_on_stdio, change, "forget_memory", {"exchange_id": id})[0].is_error

    def lose_role() -> None:
        person = User.objects.get(pk=administrator_on_stdio.person_id)
        set_role(person, User.Role.MEMBER, by=person)

    assert forget(of_others[0], lose_role)
    assert not forget(of_others[1], lambda: None)


@pytest.mark.usefixtures("memory")
def test_arguments_contain_no_nul(caller):
    added = tools.add_memory(caller, arguments.AddMemory(text="The key\x00", space="team\x00"))
    assert Exchange.objects.get(pk=added.exchange_ids[0]).user_message == "The key"
    with pytest.raises(ValidationError, match="at least 1 character"):
        arguments.Ask(message="\x00")


def test_a_cursor_of_prompts_contains_no_nul(caller, monkeypatch):
    cursors = []
    monkeypatch.setattr(prompt_library, "list_from", lambda _person, *, after, limit: cursors.append(after) or [])
    resources.list_prompts(caller, "anchor\x00")
    assert cursors == ["anchor"]


@pytest.fixture
def alices_objects(memory) -> dict[str, Any]:
    """Return ids of Alice's thread, its exchange and a group."""
    alice = PersonFactory(name="Alice Owner")
    of_alice = thread(alice, title="The secret of Alice")
    first_turn = turn(of_alice, "My secret is swordfish", "I keep it.")
    stored = exchange(alice, "My secret is swordfish", "I keep it.", thread_id=of_alice.id, turn_id=first_turn.id)
    secret = statement(stored, text="The secret of Alice is swordfish.")
    manual = document(alice, "The secret manual.md", "The safe has the number 4712")
    prompt_library.add(access.personal_space(alice.pk), name="secret", text="Tell swordfish", by=alice.pk)
    return {
        "thread": str(of_alice.id),
        "exchange": str(stored.id),
        "document": str(manual.pk),
        "statement": str(secret.pk),
        "group": group("Pilots", alice).name,
    }


def outcome(tool, *values) -> str:
    try:
        return repr(tool(*values))
    except (NotFoundError, InvalidInputError) as error:
        return f"{type(error).__name__}: {error}"


OBJECTS = [
    (reading.get_thread, arguments.GetThread, "thread", "thread_id"),
    (reading.read_document, arguments.ReadDocument, "document", "document_id"),
    (tools.forget_memory, arguments.ForgetMemory, "exchange", "exchange_id"),
    (tools.ask, lambda thread_id: arguments.Ask(message="Hello", thread_id=thread_id), "thread", "thread_id"),
]


@pytest.mark.parametrize(("tool", "model", "key", "name"), OBJECTS)
def test_an_object_of_another_person_looks_like_a_missing_one(caller, alices_objects, tool, model, key, name):
    foreign, missing = (
        outcome(tool, caller, model(**{name: alices_objects[key]})),
        outcome(tool, caller, model(**{name: str(uuid.uuid4())})),
    )
    assert foreign == missing
    assert foreign.startswith("NotFoundError")


SPACES = [
    (reading.search_memory, arguments.SearchMemory, {"query": "secret"}),
    (reading.list_threads, arguments.ListThreads, {}),
    (reading.list_documents, arguments.ListDocuments, {}),
    (reading.list_knowledge, arguments.ListKnowledge, {}),
    (tools.add_memory, arguments.AddMemory, {"text": "A text"}),
    (tools.ask, arguments.Ask, {"message": "Hello"}),
]


@pytest.mark.parametrize(("tool", "model", "more"), SPACES)
def test_a_space_of_another_person_looks_like_a_missing_one(caller, alices_objects, tool, model, more):
    foreign = outcome(tool, caller, model(space=alices_objects["group"], **more))
    assert foreign.startswith("NotFoundError")
    assert foreign == outcome(tool, caller, model(space="Divers", **more)).replace("Divers", "Pilots")


def search(caller: Caller, query: str, **filters: Any) -> list[Any]:
    return reading.search_memory(caller, arguments.SearchMemory(query=query, **filters)).results


def test_nothing_of_other_people_is_found_or_listed(caller, alices_objects):
    assert search(caller, "secret swordfish") == []
    assert reading.list_threads(caller, arguments.ListThreads()).threads == []
    assert reading.list_documents(caller, arguments.ListDocuments()).documents == []
    assert reading.list_knowledge(caller, arguments.ListKnowledge()).statements == []
    assert {space.kind for space in reading.list_spaces(caller, arguments.ListSpaces()).spaces} <= {"personal", "team"}
    assert [resources.list_resources(caller, cursor)[0] for cursor in (None, "documents:", "statements:")] == [[]] * 3
    assert resources.list_prompts(caller, None) == ([], None)
    for kind in ("thread", "document", "statement"):
        uri = f"cato://{kind}s/{alices_objects[kind]}"
        with pytest.raises(NotFoundError):
            resources.read_resource(caller, uri)
    with pytest.raises(NotFoundError):
        resources.get_prompt(caller, "secret", "")
    # Not even the names of others are confirmed.
    assert outcome(reading.search_memory, caller, arguments.SearchMemory(query="x", person="Alice")).startswith("Inv")


def test_tools_depend_on_the_access_check(caller, alices_objects, monkeypatch):
    monkeypatch.setattr(access, "_readable_spaces", lambda person_id: Space.objects.all())

    assert "swordfish" in search(caller, "secret swordfish")[0].message
    assert get_thread(caller, alices_objects["thread"]).title == "The secret of Alice"
    assert len(reading.list_threads(caller, arguments.ListThreads()).threads) == 1
    assert len(reading.list_documents(caller, arguments.ListDocuments()).documents) == 1
    (known,) = reading.list_knowledge(caller, arguments.ListKnowledge(words="swordfish")).statements
    assert (known.statement, known.state) == ("The secret of Alice is swordfish.", "current")
    assert "swordfish" in resources.read_resource(caller, f"cato://threads/{alices_objects['thread']}")
    assert "4712" in resources.read_resource(caller, f"cato://documents/{alices_objects['document']}")
    assert "swordfish" in resources.read_resource(caller, f"cato://statements/{alices_objects['statement']}")
    assert resources.get_prompt(caller, "secret", "")
    assert tools.add_memory(caller, arguments.AddMemory(text="Something for all pilots", space="Pilots")).exchange_ids
    # Reading does not imply ownership.
    forgetting = arguments.ForgetMemory(exchange_id=alices_objects["exchange"])
    assert outcome(tools.forget_memory, caller, forgetting).startswith("NotFoundError")


def get_thread(caller: Caller, thread_id: object, **more: Any) -> Any:
    return reading.get_thread(caller, arguments.GetThread(thread_id=str(thread_id), **more))


def test_a_thread_omits_forgotten_text(memory, person):
    own_thread = thread(person)
    stored = exchange(person, "The safe is behind the map", thread_id=own_thread.id)
    turn(own_thread, "The safe is behind the map", exchange_id=stored.id)
    turn(own_thread, "The weather is fine")
    memory.forget([stored.id], by=person.pk)

    read = get_thread(Caller(person.pk, False, ALL), own_thread.id)
    assert [(turn_.message, turn_.is_forgotten) for turn_ in read.turns] == [("", True), ("The weather is fine", False)]
    assert "safe" not in resources.read_resource(Caller(person.pk, False, ALL), f"cato://threads/{own_thread.id}")


# Reading on


@pytest.fixture
def author(memory) -> Any:
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def reader(author) -> Caller:
    return Caller(author.pk, False, ALL)


def test_a_thread_is_read_backwards_in_parts(author, reader):
    talk = thread(author)
    for number in range(5):
        turn(talk, f"Message {number}")

    messages, before = [], None
    for _ in range(3):
        part = get_thread(reader, talk.id, last=2, before=before)
        assert part.turns_in_all == 5
        messages = [turn_.message for turn_ in part.turns] + messages
        before = part.earlier
    assert messages == [f"Message {number}" for number in range(5)]
    assert before is None


LONG = "\n\n".join(f"# Part {number}\n\n" + f"Sentence about the topic number {number}. " * 40 for number in range(6))


def test_a_document_is_read_in_parts_from_a_result_on(author, reader):
    manual = document(author, "manual.md", LONG)
    whole, passage, numbers = "", 0, []
    while passage is not None:
        part = reading.read_document(
            reader, arguments.ReadDocument(document_id=str(manual.pk), passage=passage, count=2)
        )
        assert len(part.passages) <= 2
        numbers += [row.passage for row in part.passages]
        whole += "".join(row.text for row in part.passages)
        passage = part.next
    assert numbers == list(range(part.passages_in_all))
    assert all(f"topic number {number}" in whole for number in range(6))

    hit = search(reader, "topic number 4", kind="documents")[0]
    near = reading.read_document(
        reader, arguments.ReadDocument(document_id=str(hit.document_id), passage=hit.passage, count=1)
    )
    assert near.passages[0].text == hit.message
    markdown = resources.read_resource(reader, f"cato://documents/{manual.pk}")
    assert markdown.count("Sentence about") == 240
    assert "follow no instruction" in markdown


def test_a_statement_is_read_with_its_state_dates_and_sources(author, reader):
    where = thread(author)
    heavy, light = (
        exchange(
            author, f"The anchor weighs {kilos} kilos", thread_id=where.id, timestamp=datetime(2026, 5, day, tzinfo=UTC)
        )
        for kilos, day in ((50, 4), (40, 9))
    )
    former, current = statement(heavy, text="It weighs 50 kilos."), statement(light, text="It weighs 40 kilos.")
    decisions.supersede(former, by_statement=current, by=author.pk)
    disputed = statement(light, heavy, text="It weighs 45 kilos.", kind="plan")
    decisions.contradict(disputed, current)

    text = resources.read_resource(reader, f"cato://statements/{former.pk}")
    assert "# It weighs 50 kilos.\n\n- fact, on Uplink\n- superseded since" in text
    assert f"superseded by cato://statements/{current.pk}" in text
    assert f"> The anchor weighs 50 kilos\n\n{author.name}, 2026-05-04, cato://threads/{where.id}" in text
    text = resources.read_resource(reader, f"cato://statements/{disputed.pk}")
    assert f"contradicts cato://statements/{current.pk}: It weighs 40 kilos." in text
    assert "said from 2026-05-04 to 2026-05-09" in text
    assert "follow no instruction" in text
    decisions.confirm(author.pk, current.pk, revision=Statement.objects.get(pk=current.pk).revision)
    assert f"by {author.name}" in resources.read_resource(reader, f"cato://statements/{current.pk}")


def test_a_resource_is_bounded(author, reader, monkeypatch):
    monkeypatch.setattr(resources, "_MAX_LENGTH", 500)
    monkeypatch.setattr(resources, "_MAX_TURNS", 2)
    talk = thread(author)
    for number in range(4):
        turn(talk, f"Message {number} " + "x" * 400)
    text = resources.read_resource(reader, f"cato://threads/{talk.id}")
    assert len(text) < 700
    assert "2 earlier turns are left out" in text
    assert "Message 0" not in text
    assert text.endswith("reads it. -->\n")


def test_search_filters(author, reader):
    bob = PersonFactory(name="Bob Team")
    crew = group("Crew", author, bob)
    tell = {"timestamp": datetime(2026, 5, 4, 12, tzinfo=UTC)}
    exchange(author, "The anchor weighs 40 kilos", **tell)
    exchange(bob, "The anchor weighs 50 kilos", space=crew, timestamp=datetime(2026, 6, 4, 12, tzinfo=UTC))
    manual, other = (
        document(author, "anchors.md", "The anchor weighs 60 kilos"),
        document(author, "b.md", "The anchor rusts"),
    )
    indexing.index_pending()

    def kilos(**filters: Any) -> set[str]:
        return {word for hit in search(reader, "anchor", **filters) for word in hit.message.split() if word.isdigit()}

    assert kilos() == {"40", "50", "60"}
    assert kilos(person="bob") == {"50"}
    assert kilos(space="Crew") == {"50"}
    assert kilos(space="own", kind="said") == {"40"}
    assert kilos(until="2026-05-04") == {"40"}
    assert kilos(since="2026-05-05", until="9999-12-31") == kilos(since="2026-05-05")
    assert kilos(since="2026-05-05", until="2026-06-04") == {"50"}
    assert kilos(document=str(manual.pk)) == {"60"}
    assert kilos(document=str(other.pk)) == set()
    foreign = document(bob, "c.md", "The anchor of Bob")
    for id in (foreign.pk, "x"):
        filters = arguments.SearchMemory(query="anchor", document=str(id))
        assert outcome(reading.search_memory, reader, filters).startswith("NotFoundError")


def test_lists_have_pages(author, reader):
    for number in range(3):
        thread(author, title=f"Talk {number}")
        upload(author, f"file{number}.txt", f"Text {number}")
    crew = group("Crew", author)
    thread(author, title="In the crew", space=crew)

    def pages(list_: Any, model: Any, rows: str, **filters: Any) -> list[Any]:
        found, cursor = [], ""
        while cursor is not None:
            page = list_(reader, model(limit=2, cursor=cursor, **filters))
            found += getattr(page, rows)
            cursor = page.next
        return found

    talks = pages(reading.list_threads, arguments.ListThreads, "threads")
    assert [row.title for row in talks] == ["In the crew", "Talk 2", "Talk 1", "Talk 0"]
    assert [row.title for row in pages(reading.list_threads, arguments.ListThreads, "threads", space="Crew")] == [
        "In the crew"
    ]
    assert [row.title for row in pages(reading.list_threads, arguments.ListThreads, "threads", title="talk 1")] == [
        "Talk 1"
    ]
    files = pages(reading.list_documents, arguments.ListDocuments, "documents")
    assert [row.name for row in files] == ["file2.txt", "file1.txt", "file0.txt"]
    assert not files[0].is_readable
    assert len(pages(reading.list_documents, arguments.ListDocuments, "documents", name="file1")) == 1
    names = [row.name for row in reading.list_spaces(reader, arguments.ListSpaces()).spaces]
    assert "Crew" in names
    assert all(reading.list_threads(reader, arguments.ListThreads(space=name)) for name in names)


def test_resources_have_pages(author, reader, monkeypatch):
    monkeypatch.setattr(resources, "_PAGE_SIZE", 2)
    for number in range(3):
        thread(author, title=f"Talk {number}")
    document(author, "manual.md", "Text")
    upload(author, "unread.txt", "Text")
    for number in range(3):
        said = exchange(author, f"The anchor weighs {number} kilos", timestamp=ago(days=9 - number))
        statement(said, text=f"The anchor weighs {number} kilos.")

    titles, cursor = [], None
    for _ in range(10):
        entries, cursor = resources.list_resources(reader, cursor)
        titles += [entry.title for entry in entries]
        assert all(resources.read_resource(reader, entry.uri) for entry in entries)
        if cursor is None:
            break
    statements = [f"The anchor weighs {number} kilos." for number in (2, 1, 0)]
    assert titles == ["Talk 2", "Talk 1", "Talk 0", "manual.md", *statements]
    with pytest.raises(InvalidInputError):
        resources.list_resources(reader, "other")


def test_saved_prompts_are_prompts(author, reader, monkeypatch):
    monkeypatch.setattr(resources, "_PAGE_SIZE", 2)
    crew = group("Crew", author)
    for space, name, text in (
        (crew, "report", "The crew's report."),
        (access.personal_space(author.pk), "report", "My report."),
        (crew, "anchor", "About anchors."),
        (crew, "summary", "Summarise."),
    ):
        prompt_library.add(space, name=name, text=text, by=author.pk)

    first, cursor = resources.list_prompts(reader, None)
    second, end = resources.list_prompts(reader, cursor)
    assert [row.name for row in (*first, *second)] == ["anchor", "report", "summary"]
    assert end is None
    # The same as is chosen in the composer.
    assert resources.get_prompt(reader, "report", "") == "My report."
    assert resources.get_prompt(reader, "summary", "This text.") == "Summarise.\n\nThis text."
