"""A thread that several people have open: they see each other, and lose it when it moves away."""

from __future__ import annotations

import re

from tests.groups import make_group, start_thread
from tests.server import wait_for
from tests.socket import open_socket

VIEWING_BOTH = r"Viewing now:\s+Alice Owner, Bob Team\s"


def test_open_pages_of_who_lost_a_thread_end_and_their_list_forgets_it(alice, bob, administrator, cato, endpoint):
    endpoint.script("cato", answer="All right.")
    begun = start_thread(alice, make_group(cato, administrator, alice, bob), "For the crew alone")
    wait_for(lambda: "All right." in bob.thread_page(begun), "the answer")
    own = alice.get("/").text.split('name="space"')[1].split('value="')[1].split('"')[0]
    with open_socket(bob, begun) as his, open_socket(bob, None) as elsewhere:
        his.hello()
        his.until("For the crew alone")
        alice.post(f"/t/{begun}/move", {"space": own})
        assert his.close_code(15) in (1013, 4404)
        # A list that was drawn just before may still arrive.
        wait_for(lambda: begun not in elsewhere.until('hx-swap-oob="innerHTML:#threads"'), "a list without it")
    assert bob.get(f"/t/{begun}").status_code == 404
    assert begun not in bob.get("/threads").text


def test_who_has_a_shared_thread_open_is_shown_to_the_others_and_no_longer_when_they_left(alice, bob, cato, endpoint):
    endpoint.script("cato", answer="All right.")
    team = alice.get("/").text.split(">Everyone (")[0].rsplit('value="', 1)[1].split('"')[0]
    begun = start_thread(alice, team, "For everyone")
    with open_socket(alice, begun) as hers:
        hers.hello()
        with open_socket(cato.sign_in(bob, cato.other_url), begun, url=cato.other_url) as his:
            his.hello()
            hers.until(VIEWING_BOTH, seconds=15)
            his.until(VIEWING_BOTH, seconds=15)
            assert re.search(VIEWING_BOTH, bob.thread_page(begun))
        hers.until(r'id="presence" role="status" hx-swap-oob="true">\s*</p>', seconds=25)
    own = alice.send_message("Mine alone")
    with open_socket(alice, own) as hers:
        hers.hello()
        assert "Viewing now" not in alice.thread_page(own)
