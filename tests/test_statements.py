"""The SQL statements of one message in the web process, from the request to the list of threads, and of a page."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from asgiref.testing import ApplicationCommunicator
from django.test import Client

from cato_web.accounts.models import User
from cato_web.asgi import application
from chat.answers import runner
from chat.instructions import editing as instructions
from chat.llm import endpoint as model_endpoint
from chat.models import Thread, Turn
from chat.realtime.hub import hub
from memory.models import Exchange
from memory.spaces import access
from tests.factories import PersonFactory, exchange, group, signed_in, thread, turn
from tests.fake_endpoint import FakeEndpoint
from tests.statements import Statements, counted_statements

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = "http://127.0.0.1"


class OpenPage:
    """An open page of a thread, connected to the application in this process."""

    def __init__(self, cookies: str, thread_id: uuid.UUID) -> None:
        headers = [(b"cookie", cookies.encode()), (b"origin", ADDRESS.encode()), (b"host", b"127.0.0.1")]
        scope = {"type": "websocket", "path": f"/ws/t/{thread_id}", "headers": headers, "query_string": b""}
        self.socket = ApplicationCommunicator(application, scope)
        self.html = ""

    async def open(self, have: dict[str, int]) -> None:
        await self.socket.send_input({"type": "websocket.connect"})
        assert (await self.socket.receive_output(30))["type"] == "websocket.accept"
        await self.send({"have": have})

    async def send(self, message: dict[str, Any]) -> None:
        await self.socket.send_input({"type": "websocket.receive", "text": json.dumps(message)})

    async def until(self, pattern: str) -> None:
        """Receive until the page has got `pattern`, and forget everything up to there."""
        while not (found := re.search(pattern, self.html)):
            self.html += (await self.socket.receive_output(60))["text"]
        self.html = self.html[found.end() :]

    async def close(self) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.socket.wait(5)


@pytest.fixture
def web(memory: Any, endpoint: FakeEndpoint) -> None:
    """Let this process serve, with the fake model endpoint."""
    model_endpoint.save(base_url=endpoint.openai_url, api_key="statements", model="fake")
    endpoint.script("statements", answer="Behind the clock. " * 5)


def cookies_of(person: User) -> str:
    client: Client = signed_in(person)
    return "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())


@asynccontextmanager
async def serving() -> AsyncIterator[None]:
    await hub.open(on_stop=runner.stop_local)
    try:
        yield
    finally:
        await runner.shutdown()
        await hub.close()


async def post(path: str, cookies: str, message: str) -> httpx.Response:
    form = {"message": message, "client_key": str(uuid.uuid4()), "remembered": "yes"}
    transport = httpx.ASGITransport(application)
    token = "a" * 32
    headers = {"Cookie": f"{cookies}; cato_csrf={token}", "X-CSRFToken": token, "HX-Request": "true", "Origin": ADDRESS}
    async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers) as client:
        response = await client.post(path, data=form)
    assert response.status_code == 200, response.text
    return response


async def settle() -> None:
    """Wait until no answer is running and the thread lists of the last second are sent."""
    while running := [*runner._tasks]:
        await asyncio.wait(running)
    await asyncio.sleep(1.2)


def remember_the_key(memory: Any, owner: User) -> None:
    """Store and index what the messages of these tests recall, for everybody."""
    earlier = thread(owner, title="Keys", space=access.team_space())
    fields = {"thread_id": earlier.id, "space": earlier.space}
    stored = exchange(owner, "Where is the spare key?", "It hangs behind the clock.", **fields)
    turn(earlier, stored.user_message, stored.assistant_message, exchange_id=stored.id)
    memory.index_pending()


def long_thread(owner: User, **fields: Any) -> Thread:
    talk = thread(owner, **fields)
    for number in range(3):
        message = f"Question {number}"
        stored = exchange(owner, message, space=talk.space)
        last = turn(talk, message, exchange_id=stored.id)
    Thread.objects.filter(id=talk.id).update(head=last)
    return talk


async def first_message(cookies: str) -> Statements:
    """Post the first message of a thread, open its page, and return the statements without those of the request for it."""
    async with serving():
        with counted_statements() as counted:
            response = await post("/", cookies, "Where does the spare key hang?")
            page = OpenPage(cookies, uuid.UUID(response.headers["HX-Redirect"].rsplit("/", 1)[1]))
            await page.open({})
            await page.until("1 recalled")
            await page.until("Remembering")
            await settle()
        await page.close()
    return counted


async def later_message(in_thread: Thread, cookies: str, *others: tuple[str, Thread]) -> Statements:
    """Post a message to a thread whose page is open, with other pages, and return the statements."""
    revisions = {str(one.id): one.revision async for one in in_thread.turns.all()}
    async with serving():
        own = OpenPage(cookies, in_thread.id)
        pages = [own, *(OpenPage(each, open_thread.id) for each, open_thread in others)]
        for page in pages:
            await page.open(revisions)
        await asyncio.sleep(0.5)
        with counted_statements() as counted:
            await post(f"/t/{in_thread.id}/messages", cookies, "The spare key does not hang behind the clock.")
            await own.until("1 recalled")
            await own.until("Remembering")
            await settle()
        for page in pages:
            await page.close()
    return counted


@pytest.fixture
def warm(web: None, memory: Any, person: User) -> None:
    """Store what is recalled, and answer once, because the first time waits for models and connections."""
    remember_the_key(memory, person)
    asyncio.run(first_message(cookies_of(person)))
    Exchange.objects.filter(user_message__startswith="Where does").delete()


def message_steps(counted: Statements) -> int:
    """Return the number of statements without those that come with time.

    These are the watchdog's and saves of the answer, and, since a slow machine sends the list of threads and synchronises
    once more, what is above one list and one synchronisation of a running and one of a complete answer.
    """
    repeated = sum(max(0, counted.steps[step] - once) for step, once in (("list", 1), ("sync", 6)))
    return len(counted) - counted.steps["watch"] - counted.steps["save"] - repeated


# docs/architecture.md lists the statements.
def test_the_first_message_of_a_thread_takes_at_most_45_statements(warm, memory, person, settings):
    settings.CATO = settings.CATO.model_copy(update={"chat": settings.CATO.chat.model_copy(update={"titles": True})})
    counted = asyncio.run(first_message(cookies_of(person)))

    assert message_steps(counted) <= 45, counted.report()
    assert {"post", "job", "recall", "prepare", "complete", "finish", "title", "sync"} <= counted.steps.keys()


def test_a_later_message_takes_at_most_34_statements(warm, memory, person):
    counted = asyncio.run(later_message(long_thread(person), cookies_of(person)))

    assert message_steps(counted) <= 34, counted.report()
    assert {"post", "job", "recall", "prepare", "complete", "finish"} <= counted.steps.keys()


def test_with_instructions_a_message_takes_no_more_statements(warm, memory, person):
    for space in (access.personal_space(person.id), access.team_space()):
        instructions.add(space, "Always answer briefly.", by=person.id)
    later = asyncio.run(later_message(long_thread(person), cookies_of(person)))
    Exchange.objects.filter(user_message__startswith="The spare").delete()
    first = asyncio.run(first_message(cookies_of(person)))

    assert [len(one.applied_instructions) for one in Turn.objects.order_by("-created_at")[:1]] == [2]
    assert message_steps(later) <= 34, later.report()
    assert message_steps(first) <= 45, first.report()


def test_a_further_page_takes_at_most_4_statements(warm, memory, person):
    reader = PersonFactory()
    crew = group("Crew", person, reader)
    talk, elsewhere = long_thread(person, space=crew), long_thread(reader)
    alone = asyncio.run(later_message(talk, cookies_of(person)))
    same_thread = asyncio.run(later_message(talk, cookies_of(person), (cookies_of(reader), talk)))
    other_thread = asyncio.run(later_message(talk, cookies_of(person), (cookies_of(reader), elsewhere)))

    assert message_steps(alone) <= 36, alone.report()
    assert message_steps(same_thread) <= message_steps(alone) + 4, same_thread.report()
    assert message_steps(other_thread) <= message_steps(alone) + 4, other_thread.report()
    assert 0 < other_thread.steps["list"] <= 4, "the page shows that there is something new"


@pytest.mark.parametrize(("is_shared", "most"), [(False, 15), (True, 17)])
def test_a_page_of_a_thread_takes_at_most_15_statements(warm, memory, person, is_shared, most):
    """The page of a shared thread also counts the readers, and shows who has it open."""
    talk = long_thread(person, space=group("Crew", person)) if is_shared else long_thread(person)
    asyncio.run(later_message(talk, cookies_of(person)))
    client = signed_in(person)
    client.get(f"/t/{talk.id}")

    with counted_statements() as counted:
        page = client.get(f"/t/{talk.id}").content.decode()

    assert "1 recalled" in page

    assert len(counted) <= most, counted.report()
