"""Feedback on recalled exchanges (pinned, not relevant, forgotten) applies only to the person who gave it."""

from __future__ import annotations

import re
import uuid

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.realtime import frames
from memory.exchanges.feedback import set_feedback
from memory.index import generations
from memory.models import Feedback, RecallLogEntry
from memory.retrieval import candidates
from memory.retrieval.recall_log import recall_counts, recall_rate
from memory.retrieval.types import Query
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, exchange, group, signed_in, thread, turn
from tests.server import wait_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(db):
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def bob(db):
    return PersonFactory(name="Bob Team")


@pytest.fixture
def recalled_turn(memory, alice, bob):
    """Return Bob's turn in the group's thread, and Alice's exchange that was recalled for it."""
    garden = group("Garden", alice, bob)
    stored = exchange(alice, "The greenhouse key hangs behind the clock in the hall.", space=garden)
    memory.index_pending()
    one = turn(thread(bob, space=garden), "Where is what opens the glass house?", "Behind the clock.")
    found = memory.recall([one.message], spaces=access.space_ids_shared_by_all_readers(garden.id))
    memory.log_recall(one.id, found.results)
    exchange(bob, one.message, one.answer, space=garden, thread_id=one.thread_id, turn_id=one.id)
    assert [result.exchange.id for result in found.results] == [stored.id]
    return one, stored


def panel(person, one, **headers: str) -> str:
    """Return the recall panel of a turn, as this person sees it."""
    answer = signed_in(person).get(
        reverse("recalled_exchanges", args=[one.id]), headers=headers or {"HX-Request": "true"}
    )
    assert answer.status_code == 200
    return answer.content.decode()


def buttons(html: str) -> dict[str, tuple[str, str]]:
    """Return address and value of each button by its label."""
    found = re.findall(r'formaction="([^"]+)"\s+name="kind"[^>]*?\svalue="(\w*)"[^>]*>\s*([^<]+?)\s*</button>', html)
    return {label: (url.replace("&amp;", "&"), kind) for url, kind, label in found}


def press(person, one, label: str, *, htmx: bool = True):
    url, kind = buttons(panel(person, one))[label]
    return signed_in(person).post(url, {"kind": kind}, headers={"HX-Request": "true"} if htmx else {})


NOTICE = "1 memory is not indexed yet; it is found by keyword only."


def test_the_panel_says_how_much_of_what_its_readers_share_is_not_indexed_yet(memory, recalled_turn, alice, bob):
    one, stored = recalled_turn
    memory.index_pending()
    assert "Search index is behind" not in panel(bob, one)
    exchange(alice, "Only Alice reads this.")
    assert "Search index is behind" not in panel(bob, one)
    exchange(alice, "The spade is in the shed.", space=stored.space)
    assert NOTICE in " ".join(panel(bob, one).split())
    assert NOTICE in " ".join(panel(bob, one, accept="text/html").split())


def recalls(memory, person, question: str) -> set[uuid.UUID]:
    """Return what is recalled for this person's message in a thread of their own."""
    found = memory.recall([question], spaces=access.readable_space_ids(person.id), person_id=person.id)
    return {result.exchange.id for result in found.results}


def test_an_irrelevant_exchange_is_not_recalled_for_her_but_still_for_others(memory, alice, bob, recalled_turn):
    one, stored = recalled_turn
    second = press(alice, one, "Not relevant").content.decode()

    assert "Not relevant: not recalled for you" in second
    assert stored.id not in recalls(memory, alice, one.message)
    assert stored.id in recalls(memory, bob, one.message)
    assert set(buttons(panel(alice, one))) == {"Pin", "Undo"}
    assert set(buttons(panel(bob, one))) == {"Pin", "Not relevant"}

    press(alice, one, "Undo")
    assert stored.id in recalls(memory, alice, one.message)


def test_pin_toggles_and_replaces_other_feedback(alice, recalled_turn):
    one, _ = recalled_turn
    press(alice, one, "Pin")
    assert set(buttons(panel(alice, one))) == {"Unpin", "Not relevant"}

    press(alice, one, "Not relevant")
    assert set(buttons(panel(alice, one))) == {"Pin", "Undo"}

    press(alice, one, "Pin")
    press(alice, one, "Unpin")
    assert set(buttons(panel(alice, one))) == {"Pin", "Not relevant"}
    assert not Feedback.objects.exists()


def test_a_pinned_exchange_is_recalled_from_beyond_the_first_candidates(memory, alice, monkeypatch):
    monkeypatch.setattr(candidates, "VECTOR_CANDIDATES", 5)
    monkeypatch.setattr(candidates, "LEXICAL_CANDIDATES", 5)
    other_exchange = exchange(alice, "For a parcel of seeds we paid four euros.", "")
    for room in range(120):
        exchange(alice, f"The parcel for room {room} was collected.", "")
    while memory.index_pending():
        pass
    question = "What about the parcel?"
    active = generations.active_generation()
    vector = generations.embedder_for(active).embed_query(question)
    readable = access.readable_space_ids(alice.id)
    query = Query(question, lambda: vector, active, readable, limit=15, now=timezone.now())
    assert other_exchange.id.hex not in {candidate.id for candidate in candidates.gather_candidates(query).candidates}
    assert other_exchange.id not in recalls(memory, alice, question)

    set_feedback(alice.id, other_exchange, "pinned")

    assert other_exchange.id in recalls(memory, alice, question)


def test_frames_are_the_same_whatever_feedback_readers_gave(alice, bob, recalled_turn):
    one, _ = recalled_turn
    before = frames.turn(one.id).html
    press(alice, one, "Pin")
    press(bob, one, "Not relevant")

    assert frames.turn(one.id).html == before
    assert not buttons(before)
    assert "Forget" not in before[: before.index('class="turn__footer"')]
    assert reverse("recalled_exchanges", args=[one.id]) in before


def test_each_item_of_the_panel_has_a_target_on_the_page(alice, recalled_turn):
    one, _ = recalled_turn
    targets = re.findall(r'hx-swap-oob="innerHTML:#([\w-]+)"', panel(alice, one))
    page = signed_in(alice).get(reverse("thread", args=[one.thread_id])).content.decode()

    assert [target.rpartition("-")[2] for target in targets] == ["notices", "text", "actions"], (
        "the turn itself is not indexed yet"
    )
    assert all(f'id="{target}"' in page for target in targets)


def test_without_scripts_the_panel_is_a_page_and_buttons_return_to_it(alice, recalled_turn):
    one, stored = recalled_turn
    page = signed_in(alice).get(reverse("thread", args=[one.thread_id])).content.decode()
    assert f'href="{reverse("recalled_exchanges", args=[one.id])}"' in page

    answer = press(alice, one, "Pin", htmx=False)

    assert answer.status_code == 302
    assert answer.headers["location"] == f"{reverse('recalled_exchanges', args=[one.id])}#turn-{one.id}-r{stored.id}"
    page_text = panel(alice, one, Accept="text/html")
    assert set(buttons(page_text)) == {"Unpin", "Not relevant"}
    assert stored.user_message in page_text
    assert "<h1>Recalled</h1>" in page_text


def test_a_button_never_leads_to_a_page_of_another_person(alice, recalled_turn):
    _, stored = recalled_turn
    url = reverse("feedback", args=[stored.id])
    for elsewhere in ("https://evil.example/", "//evil.example", "javascript:alert(1)"):
        answer = signed_in(alice).post(f"{url}?next={elsewhere}", {"kind": "pinned"})
        assert answer.headers["location"] == reverse("exchange", args=[stored.id])


def test_an_unknown_kind_of_feedback_is_refused_with_a_message(alice, recalled_turn):
    _, stored = recalled_turn
    answer = signed_in(alice).post(reverse("feedback", args=[stored.id]), {"kind": "wonderful"})

    assert answer.status_code == 400
    assert "pinned or irrelevant" in answer.content.decode()
    assert not Feedback.objects.exists()


def test_forget_is_offered_only_if_permitted_and_asks_for_confirmation(memory, alice, bob, recalled_turn):
    one, stored = recalled_turn
    link = reverse("forget_exchange", args=[stored.id])
    assert link in panel(alice, one)
    assert link not in panel(bob, one)

    question = signed_in(alice).get(link).content.decode()
    assert "Forget this exchange?" in question
    signed_in(alice).post(link)

    assert buttons(panel(alice, one)) == {}
    assert "Forgotten" in panel(alice, one, Accept="text/html")
    assert signed_in(alice).post(reverse("feedback", args=[stored.id]), {"kind": "pinned"}).status_code == 404


def test_an_administrator_may_forget_exchanges_of_the_team_in_the_panel(memory, alice):
    stored = exchange(alice, "The greenhouse key hangs behind the clock.", space=access.team_space())
    one = turn(thread(alice, space=access.team_space()))
    RecallLogEntry.objects.create(turn_id=one.id, exchange=stored, rank=1, score=1, strategy="hybrid", reason="")

    assert reverse("forget_exchange", args=[stored.id]) in panel(AdministratorFactory(), one)


def test_recall_counts_include_only_readable_threads(memory, alice, bob, recalled_turn):
    one, stored = recalled_turn
    assert "Recalled once." in panel(alice, one)

    private = turn(thread(bob), "A question of Bob's own", "An answer")
    exchange(bob, private.message, private.answer, thread_id=private.thread_id, turn_id=private.id)
    RecallLogEntry.objects.create(turn_id=private.id, exchange=stored, rank=1, score=1, strategy="hybrid", reason="")

    assert "Recalled once." in panel(alice, one)
    assert "Recalled 2 times." in panel(bob, one)
    assert recall_counts([stored.id], spaces=frozenset()) == {}


def test_answers_with_and_without_context_are_counted_in_readable_threads(memory, alice, bob, recalled_turn):
    plain = turn(thread(alice), "Hello", "Good morning")
    exchange(alice, plain.message, plain.answer, thread_id=plain.thread_id, turn_id=plain.id)
    shared, all_of_alice = access.readable_space_ids(bob.id), access.readable_space_ids(alice.id)

    assert (recall_rate(shared).answers, recall_rate(shared).with_context) == (1, 1)
    assert (recall_rate(all_of_alice).answers, recall_rate(all_of_alice).with_context) == (2, 1)
    assert recall_rate(all_of_alice, newest=1).with_context == 0


def test_in_a_running_cato_an_irrelevant_exchange_is_not_recalled_until_this_is_undone(cato, endpoint, administrator):
    endpoint.script("cato", answer="All right.")
    person = cato.join(administrator, "Dora Owner")
    first = person.send_message("The greenhouse key hangs behind the clock.")
    wait_for(lambda: "Remembered</span>" in person.thread_page(first), "it to be remembered")
    question = "Where does the key of the greenhouse hang?"

    def signed_in(number: int) -> str:
        thread = person.send_message(f"{question} I ask for the {number}. time.")
        return wait_for(lambda: (p := person.thread_page(thread)) and "Remembered</span>" in p and p, "the answer")

    def own_panel(page: str) -> str:
        return person.get(re.search(r'hx-get="(/turns/[^"]+/recalled)"', page)[1], headers={"HX-Request": "true"}).text

    page = signed_in(1)
    own = own_panel(page)
    first_of_all = re.search(r'formaction="(/m/[^"]+)"\s+name="kind"[^>]*?\svalue="irrelevant"', own)[1].replace(
        "&amp;", "&"
    )
    assert "Not relevant: not recalled for you" in person.post(first_of_all, {"kind": "irrelevant"}, htmx=True).text

    exchange_id = re.search(r"/m/([0-9a-f-]{36})/", first_of_all)[1]
    assert f"/m/{exchange_id}" not in signed_in(2)
    person.post(first_of_all, {"kind": ""}, htmx=True)
    assert f"/m/{exchange_id}" in signed_in(3)
