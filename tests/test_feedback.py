"""What a person thinks of what came back: pinned, not relevant, forgotten; theirs alone, and seen the next time."""

from __future__ import annotations

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from chat.realtime import frames
from memory.exchanges.feedback import set_feedback
from memory.models import Feedback, RecallLogEntry
from memory.retrieval.recall_log import recall_counts, recall_rate
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, exchange, group, thread, turn
from tests.server import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def bob(db):
    return PersonFactory(name="Bob Team")


@pytest.fixture
def asked(memory, alice, bob):
    """In the thread of their group Bob asked, and what Alice had said came back."""
    garden = group("Garden", alice, bob)
    said = exchange(alice, "The greenhouse key hangs behind the clock in the hall.", space=garden)
    memory.index_pending()
    one = turn(thread(bob, space=garden), "Where is what opens the glass house?", "Behind the clock.")
    found = memory.recall([one.message], spaces=access.space_ids_shared_by_all_readers(garden.id))
    memory.log_recall(one.id, found.results)
    exchange(bob, one.message, one.answer, space=garden, thread_id=one.thread_id, turn_id=one.id)
    assert [result.exchange.id for result in found.results] == [said.id]
    return one, said


def browser(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def panel(person, one, **headers: str) -> str:
    """What this person gets when they open the panel of a turn."""
    answer = browser(person).get(reverse("recalled", args=[one.id]), headers=headers or {"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.content.decode()


def buttons(html: str) -> dict[str, tuple[str, str]]:
    """The buttons on offer: where each leads and what it sends, by its words."""
    found = re.findall(r'formaction="([^"]+)"\s+name="kind"\s+value="(\w*)"[^>]*>\s*([^<]+?)\s*</button>', html)
    return {words: (url.replace("&amp;", "&"), kind) for url, kind, words in found}


def press(person, one, words: str, *, htmx: bool = True):
    url, kind = buttons(panel(person, one))[words]
    return browser(person).post(url, {"kind": kind}, headers={"HX-Request": "true"} if htmx else {})


def recalls(memory, person, question: str) -> set[uuid.UUID]:
    """What comes back when this person asks in their own thread."""
    found = memory.recall([question], spaces=access.readable_space_ids(person.id), person_id=person.id)
    return {result.exchange.id for result in found.results}


def test_what_alice_calls_not_relevant_stays_away_from_her_and_still_comes_for_bob(memory, alice, bob, asked):
    one, said = asked
    again = press(alice, one, "Not relevant").content.decode()

    assert "Not relevant: not recalled for you" in again
    assert said.id not in recalls(memory, alice, one.message)
    assert said.id in recalls(memory, bob, one.message)
    assert set(buttons(panel(alice, one))) == {"Pin", "Undo"}
    assert set(buttons(panel(bob, one))) == {"Pin", "Not relevant"}

    press(alice, one, "Undo")
    assert said.id in recalls(memory, alice, one.message)


def test_pin_is_a_switch_and_there_is_one_opinion_of_an_exchange(alice, asked):
    one, _ = asked
    press(alice, one, "Pin")
    assert set(buttons(panel(alice, one))) == {"Unpin", "Not relevant"}

    press(alice, one, "Not relevant")
    assert set(buttons(panel(alice, one))) == {"Pin", "Undo"}

    press(alice, one, "Pin")
    press(alice, one, "Unpin")
    assert set(buttons(panel(alice, one))) == {"Pin", "Not relevant"}
    assert not Feedback.objects.exists()


def test_a_pinned_exchange_comes_back_from_behind_the_first_candidates(memory, alice):
    kept = exchange(alice, "The parcel weighs nine kilos.", "")
    for room in range(200):
        exchange(alice, f"The parcel for room {room} was collected.", "")
    while memory.index_pending():
        pass
    question = "What about the parcel?"
    found = memory.search(question, spaces=access.readable_space_ids(alice.id), count=100).results
    assert kept.id not in {result.exchange.id for result in found}
    assert kept.id not in recalls(memory, alice, question)

    set_feedback(alice.id, kept, "pinned")

    assert kept.id in recalls(memory, alice, question)


def test_what_goes_over_the_socket_is_the_same_whatever_anybody_thinks(alice, bob, asked):
    one, _ = asked
    before = frames.turn(one.id).html
    press(alice, one, "Pin")
    press(bob, one, "Not relevant")

    assert frames.turn(one.id).html == before
    assert not buttons(before)
    assert "Forget" not in before[: before.index('class="turn__footer"')]
    assert reverse("recalled", args=[one.id]) in before


def test_each_piece_of_the_panel_has_its_place_on_the_page(alice, asked):
    one, _ = asked
    places = re.findall(r'hx-swap-oob="innerHTML:#([\w-]+)"', panel(alice, one))
    page = browser(alice).get(reverse("thread", args=[one.thread_id])).content.decode()

    assert len(places) == 1
    assert all(f'id="{place}"' in page for place in places)


def test_without_scripts_the_panel_is_a_page_and_a_button_comes_back_to_it(alice, asked):
    one, said = asked
    page = browser(alice).get(reverse("thread", args=[one.thread_id])).content.decode()
    assert f'href="{reverse("recalled", args=[one.id])}"' in page

    answer = press(alice, one, "Pin", htmx=False)

    assert answer.status_code == 302
    assert answer.headers["location"] == f"{reverse('recalled', args=[one.id])}#turn-{one.id}-r{said.id}"
    whole = panel(alice, one, Accept="text/html")
    assert set(buttons(whole)) == {"Unpin", "Not relevant"}
    assert said.user_message in whole
    assert "<h1>Recalled</h1>" in whole


def test_a_button_leads_to_no_page_of_somebody_else(alice, asked):
    _, said = asked
    url = reverse("opinion", args=[said.id])
    for elsewhere in ("https://evil.example/", "//evil.example", "javascript:alert(1)"):
        answer = browser(alice).post(f"{url}?next={elsewhere}", {"kind": "pinned"})
        assert answer.headers["location"] == reverse("exchange", args=[said.id])


def test_another_opinion_than_those_there_are_is_refused_with_a_sentence(alice, asked):
    _, said = asked
    answer = browser(alice).post(reverse("opinion", args=[said.id]), {"kind": "wonderful"})

    assert answer.status_code == 400
    assert "pinned or irrelevant" in answer.content.decode()
    assert not Feedback.objects.exists()


def test_forget_is_offered_to_who_may_and_asks_once(memory, alice, bob, asked):
    one, said = asked
    link = reverse("forget", args=[said.id])
    assert link in panel(alice, one)
    assert link not in panel(bob, one)

    question = browser(alice).get(link).content.decode()
    assert "Forget this exchange?" in question
    browser(alice).post(link)

    assert buttons(panel(alice, one)) == {}
    assert "Forgotten" in panel(alice, one, Accept="text/html")
    assert browser(alice).post(reverse("opinion", args=[said.id]), {"kind": "pinned"}).status_code == 404


def test_an_administrator_may_forget_what_the_panel_of_a_team_shows(memory, alice):
    said = exchange(alice, "The greenhouse key hangs behind the clock.", space=access.team_space())
    one = turn(thread(alice, space=access.team_space()))
    RecallLogEntry.objects.create(turn_id=one.id, exchange=said, rank=1, score=1, strategy="hybrid", reason="")

    assert reverse("forget", args=[said.id]) in panel(AdministratorFactory(), one)


def test_how_often_it_came_back_counts_what_one_may_read(memory, alice, bob, asked):
    one, said = asked
    assert "Recalled once." in panel(alice, one)

    private = turn(thread(bob), "A question of Bob's own", "An answer")
    exchange(bob, private.message, private.answer, thread_id=private.thread_id, turn_id=private.id)
    RecallLogEntry.objects.create(turn_id=private.id, exchange=said, rank=1, score=1, strategy="hybrid", reason="")

    assert "Recalled once." in panel(alice, one)
    assert "Recalled 2 times." in panel(bob, one)
    assert recall_counts([said.id], spaces=frozenset()) == {}


def test_answers_with_and_without_context_are_counted_where_one_may_read(memory, alice, bob, asked):
    plain = turn(thread(alice), "Hello", "Good morning")
    exchange(alice, plain.message, plain.answer, thread_id=plain.thread_id, turn_id=plain.id)
    shared, all_of_alice = access.readable_space_ids(bob.id), access.readable_space_ids(alice.id)

    assert (recall_rate(shared).answers, recall_rate(shared).with_context) == (1, 1)
    assert (recall_rate(all_of_alice).answers, recall_rate(all_of_alice).with_context) == (2, 1)
    assert recall_rate(all_of_alice, newest=1).with_context == 0


def test_in_a_running_cato_what_is_not_relevant_does_not_come_back_until_it_is_again(cato, endpoint, administrator):
    endpoint.script("cato", answer="All right.")
    person = cato.join(administrator, "Dora Owner")
    first = person.send_message("The greenhouse key hangs behind the clock.")
    wait_for(lambda: "Remembered</span>" in person.thread_page(first), "it to be remembered")
    question = "Where does the key of the greenhouse hang?"

    def page_of(number: int) -> str:
        thread = person.send_message(f"{question} I ask for the {number}. time.")
        return wait_for(lambda: (p := person.thread_page(thread)) and "Remembered</span>" in p and p, "the answer")

    def own_panel(page: str) -> str:
        return person.get(re.search(r'hx-get="(/turns/[^"]+/recalled)"', page)[1], headers={"HX-Request": "true"}).text

    page = page_of(1)
    own = own_panel(page)
    first_of_all = re.search(r'formaction="(/m/[^"]+)"\s+name="kind"\s+value="irrelevant"', own)[1].replace(
        "&amp;", "&"
    )
    assert "Not relevant: not recalled for you" in person.post(first_of_all, {"kind": "irrelevant"}, htmx=True).text

    exchange_id = re.search(r"/m/([0-9a-f-]{36})/", first_of_all)[1]
    assert f"/m/{exchange_id}" not in page_of(2)
    person.post(first_of_all, {"kind": ""}, htmx=True)
    assert f"/m/{exchange_id}" in page_of(3)
