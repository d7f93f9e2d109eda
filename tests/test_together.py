"""A thread that several people have open: they see each other, and lose it when it moves away."""

from __future__ import annotations

import uuid

from tests.server import wait_for
from tests.socket import listening


def test_open_pages_of_who_lost_a_thread_end_and_their_list_forgets_it(alice, bob, administrator, cato, endpoint):
    endpoint.script("cato", answer="All right.")
    administrator.post("/admin/groups", {"name": f"Crew {uuid.uuid4().hex[:6]}"})
    crew = administrator.get("/admin/groups").text.split('id="group-')[-2].split('"')[0]
    for person in (alice, bob):
        (found,) = cato.sql("SELECT id FROM people_user WHERE email = ?", person.email)
        administrator.post(f"/admin/groups/{crew}/members", {"person": str(uuid.UUID(str(found[0])))})
    begun = (
        alice.post("/", {"message": "For the crew alone", "client_key": str(uuid.uuid4()), "space": crew})
        .headers["location"]
        .split("/")[-1]
    )
    wait_for(lambda: "All right." in bob.thread_page(begun), "the answer")
    own = alice.get("/").text.split('name="space"')[1].split('value="')[1].split('"')[0]
    with listening(bob, begun) as his, listening(bob, None) as elsewhere:
        his.hello()
        his.until("For the crew alone")
        alice.post(f"/t/{begun}/move", {"space": own})
        assert his.closed_with(6) in (1013, 4404)
        assert begun not in elsewhere.until('hx-swap-oob="innerHTML:#threads"')
    assert bob.get(f"/t/{begun}").status_code == 404
    assert begun not in bob.get("/threads").text


def test_who_has_a_shared_thread_open_is_shown_to_the_others_and_no_longer_when_they_left(alice, bob, cato, endpoint):
    endpoint.script("cato", answer="All right.")
    team = alice.get("/").text.split(">Everyone (")[0].rsplit('value="', 1)[1].split('"')[0]
    begun = (
        alice.post("/", {"message": "For everyone", "client_key": str(uuid.uuid4()), "space": team})
        .headers["location"]
        .split("/")[-1]
    )
    with listening(alice, begun) as hers:
        hers.hello()
        with listening(cato.sign_in(bob, cato.other_url), begun, url=cato.other_url) as his:
            his.hello()
            assert "Here now: Alice Owner, Bob Team" in hers.until("Here now", seconds=15)
            his.until("Here now: Alice Owner, Bob Team", seconds=15)
            assert "Here now: Alice Owner, Bob Team" in bob.thread_page(begun)
        hers.until('id="here" role="status" hx-swap-oob="true"></p>', seconds=25)
    own = alice.say("Mine alone")
    with listening(alice, own) as hers:
        hers.hello()
        assert "Here now" not in alice.thread_page(own)
