"""Shared threads: readers see each other, and lose the thread when it moves."""

from __future__ import annotations

import asyncio
import json
import re
import uuid

import pytest

from chat.access import SocketIdentity
from chat.realtime import frames, presence, watchdog
from chat.realtime.hub import Subscriber, hub
from chat.realtime.presence import present_people, record_arrivals_and_departures, visitors
from memory.spaces import access
from tests.factories import PersonFactory
from tests.factories import thread as create_thread
from tests.groups import make_group, start_thread
from tests.server import wait_for
from tests.socket import open_socket

TYPING = json.dumps({"typing": True})
VIEWING_BOTH = r'(?s)title="Alice Owner, viewing now".*title="Bob Team, viewing now"'


def test_moving_a_thread_closes_pages_of_former_readers_and_removes_it_from_their_list(
    alice, bob, administrator, cato, endpoint
):
    endpoint.script("cato", answer="All right.")
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "For the crew alone")
    wait_for(lambda: "All right." in bob.thread_page(thread), "the answer")
    personal_space = alice.get("/").text.split('name="space"')[1].split('value="')[1].split('"')[0]
    with open_socket(bob, thread) as bobs_socket, open_socket(bob, None) as elsewhere:
        bobs_socket.hello()
        bobs_socket.until("For the crew alone")
        alice.post(f"/t/{thread}/move", {"space": personal_space})
        assert bobs_socket.close_code(15) in (1013, 4404)
        # A list rendered just before the move may still arrive.
        wait_for(lambda: thread not in elsewhere.until('hx-swap-oob="innerHTML:#threads"'), "a list without it")
    assert bob.get(f"/t/{thread}").status_code == 404
    assert thread not in bob.get("/threads").text


def test_readers_see_who_has_the_thread_open(alice, bob, cato, endpoint):
    endpoint.script("cato", answer="All right.")
    team = re.search(r'value="([^"]+)">\s*Everyone \(', alice.get("/").text)
    assert team
    thread = start_thread(alice, team[1], "For everyone")
    with open_socket(alice, thread) as alices_socket:
        alices_socket.hello()
        with open_socket(cato.sign_in(bob, cato.other_url), thread, url=cato.other_url) as bobs_socket:
            bobs_socket.hello()
            alices_socket.until(VIEWING_BOTH, seconds=15)
            bobs_socket.until(VIEWING_BOTH, seconds=15)
            assert re.search(VIEWING_BOTH, bob.thread_page(thread))
        alices_socket.until(r"(?s)Alice Owner, viewing now.*Bob Team, last seen", seconds=30)
    private_thread = alice.send_message("Mine alone")
    with open_socket(alice, private_thread) as alices_socket:
        alices_socket.hello()
        assert "viewing now" not in alice.thread_page(private_thread)


def test_an_open_page_stops_saying_that_its_person_types_once_they_are_not_shown(alice, bob, administrator, cato):
    thread = start_thread(alice, make_group(cato, administrator, alice, bob), "Who has the key?")
    with open_socket(alice, thread) as alices_socket, open_socket(bob, thread) as bobs_socket:
        for page in (alices_socket, bobs_socket):
            page.hello()
            page.until("Who has the key")
        bobs_socket.connection.send(TYPING)
        alices_socket.until('data-name="Bob Team"')
        alices_socket.received.clear()

        bob.post("/settings/presence", {"show": "no"})
        bobs_socket.connection.send(TYPING)
        bobs_socket.connection.send("no JSON")
        bobs_socket.until("error")  # The frame before has been handled.
        alices_socket.connection.send(TYPING)
        alices_socket.until('data-name="Alice Owner"')
        assert 'data-name="Bob Team"' not in "".join(alices_socket.received)


@pytest.mark.django_db
def test_who_leaves_a_thread_is_absent_at_once_and_present_again_on_return(person):
    shared, bob = create_thread(person, space=access.team_space()), PersonFactory(name="Bob")
    pairs = {(shared.id, person.id), (shared.id, bob.id)}
    assert record_arrivals_and_departures(pairs, []) == {shared.id}
    assert [row.is_present for row in visitors(shared)] == [True, True]

    record_arrivals_and_departures([], [(shared.id, bob.id)])
    assert {row.name: row.is_present for row in visitors(shared)} == {person.name: True, "Bob": False}
    assert present_people([shared.id]) == {shared.id: {person.id}}
    record_arrivals_and_departures([(shared.id, bob.id)], [])
    assert [row.is_present for row in visitors(shared)] == [True, True]


@pytest.mark.django_db
def test_moves_in_a_personal_thread_concern_nobody_else(person, django_assert_num_queries):
    own = create_thread(person)
    with django_assert_num_queries(1):
        assert record_arrivals_and_departures([(own.id, person.id)], [(own.id, person.id)]) == set()


def test_moves_are_published_together_and_those_of_a_reloaded_page_as_none(monkeypatch):
    recorded: list[tuple[set[presence.Presence], set[presence.Presence]]] = []
    published: list[uuid.UUID] = []

    def record(arrived, left):
        recorded.append((arrived, left))
        return {thread_id for thread_id, _ in arrived | left}

    async def call(function, *args):
        return function(*args)

    monkeypatch.setattr(watchdog, "run_in_db_thread", call)
    for name, value in {
        "_ARRIVALS_DELAY": 0,
        "_arrived_or_left": set(),
        "_watched": {},
        "_task": None,
        "_arrivals_task": None,
    }.items():
        monkeypatch.setattr(watchdog, name, value)
    monkeypatch.setattr(presence, "record_arrivals_and_departures", record)
    monkeypatch.setattr(frames, "presence", list)
    monkeypatch.setattr(hub, "publish", published.append)
    thread_id, stays, leaves = (uuid.uuid4() for _ in range(3))
    pages = {Subscriber(person, thread_id): SocketIdentity(person, "key", 1, thread_id) for person in (stays, leaves)}
    first, second = pages

    async def scenario() -> None:
        for page, identity in pages.items():
            watchdog.watch(identity, page)
        await watchdog._arrivals_task
        watchdog.unwatch(first)
        watchdog.watch(pages[first], first)
        watchdog.unwatch(second)
        await watchdog._arrivals_task

    asyncio.run(scenario())
    both = {(thread_id, stays), (thread_id, leaves)}
    assert recorded == [(both, set()), ({(thread_id, stays)}, {(thread_id, leaves)})]
    assert published == [thread_id, thread_id]
