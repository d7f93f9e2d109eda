"""Shared threads: readers see each other, and lose the thread when it moves."""

from __future__ import annotations

import re

from tests.groups import make_group, start_thread
from tests.server import wait_for
from tests.socket import open_socket

VIEWING_BOTH = r"Viewing now:\s+Alice Owner, Bob Team\s"


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
        alices_socket.until(r'id="presence" role="status" hx-swap-oob="true">\s*</p>', seconds=25)
    private_thread = alice.send_message("Mine alone")
    with open_socket(alice, private_thread) as alices_socket:
        alices_socket.hello()
        assert "Viewing now" not in alice.thread_page(private_thread)
