"""Later and earlier messages on one subject: their order, their marks, and what people decide about them."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from chat.models import Turn
from chat.realtime import frames
from memory import api
from memory.errors import InvalidInputError
from memory.exchanges import supersessions
from memory.models import RecallLogEntry, Supersession
from memory.retrieval.prompt_context import build_prompt_context
from memory.spaces import access
from tests.factories import PersonFactory, document, exchange, group, signed_in, thread, turn
from tests.questions.store import store_exchanges
from tests.questions.updates import HELD_OUT, TUNING, UPDATES

pytestmark = pytest.mark.django_db

EARLIER, LATER = "The door code of the bike cellar is 4471.", "They changed the code of the bike cellar, it is 9025."
PRESENT, FORMER = "What is the code of the bike cellar?", "What was the old code of the bike cellar?"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.fixture
def alice(db):
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def bob(db):
    return PersonFactory(name="Bob Team")


@pytest.fixture
def pair(memory, alice, bob):
    """Return an earlier and a later message of Alice on one subject, in a group with Bob, among other messages."""
    house = group("House", alice, bob)
    earlier = exchange(alice, EARLIER, space=house, timestamp=at("2026-03-01T09:00"))
    later = exchange(alice, LATER, space=house, timestamp=at("2026-05-12T09:00"))
    for number, text in enumerate(("The boiler was serviced.", "Our neighbour keeps bees.", "Leo plays the trumpet.")):
        exchange(alice, text, space=house, timestamp=at(f"2026-04-0{number + 1}T09:00"))
    memory.index_pending()
    return earlier, later


def recalled(person, question, **options):
    return api.recall([question], spaces=access.readable_space_ids(person.id), **options).results


def messages(hits) -> list[str]:
    return [hit.exchange.user_message for hit in hits if hit.exchange.user_message in (EARLIER, LATER)]


def test_the_later_message_comes_first_for_the_present_and_the_earlier_one_for_a_former_state(memory, person):
    store_exchanges(person.id)
    for update in UPDATES:
        exchange(person, update.earlier, update.answer, timestamp=at(update.earlier_at))
        exchange(person, update.later, update.answer, timestamp=at(update.later_at))
    memory.index_pending()

    def share(updates, question, first, second):
        return sum(_precedes(person, question(u), first(u), second(u)) for u in updates) / len(updates)

    for half in (TUNING, HELD_OUT):
        assert share(half, lambda u: u.present, lambda u: u.later, lambda u: u.earlier) >= 0.92
        assert share(half, lambda u: u.former, lambda u: u.earlier, lambda u: u.later) >= 0.88


def _precedes(person, question, first, second) -> bool:
    texts = [hit.exchange.user_message for hit in recalled(person, question)]
    return first in texts and (second not in texts or texts.index(first) < texts.index(second))


def test_the_earlier_of_two_messages_is_marked_whichever_comes_first(pair, alice):
    earlier, later = pair

    present, former = recalled(alice, PRESENT), recalled(alice, FORMER)

    assert messages(present) == [LATER, EARLIER]
    assert messages(former) == [EARLIER, LATER]
    for hits in (present, former):
        assert {hit.exchange.id: hit.later for hit in hits if hit.later} == {earlier.id: later.id}
        assert not any(hit.is_superseded for hit in hits)


def test_how_similar_messages_on_one_subject_are_can_be_configured(pair, alice, settings):
    assert any(hit.later for hit in recalled(alice, PRESENT))
    store = settings.CATO.vector_store.model_copy(update={"subject_similarity": 0.999})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": store})
    assert messages(recalled(alice, PRESENT))
    assert not any(hit.later for hit in recalled(alice, PRESENT))


def test_a_question_about_a_date_keeps_the_order_of_scores(pair, alice):
    assert messages(recalled(alice, "What was the code of the bike cellar in March 2026?"))[0] == EARLIER


def test_the_prompt_dates_both_messages_and_says_which_is_later(pair, alice):
    prompt = build_prompt_context(recalled(alice, PRESENT), max_tokens=2000)

    assert re.search(r'number="1" said="2026-05-12[^>]* same_subject="later than 2"', prompt)
    assert re.search(r'number="2" said="2026-03-01[^>]* same_subject="earlier than 1"', prompt)
    assert "the later one describes the present" in prompt
    assert "same_subject" not in build_prompt_context(recalled(alice, "Who plays the trumpet?"), max_tokens=2000)


def test_chunks_of_documents_are_no_messages(memory, alice):
    document(alice, "codes.txt", EARLIER)
    exchange(alice, LATER)
    memory.index_pending()

    hits = recalled(alice, PRESENT)

    assert len(hits) == 2
    assert not any(hit.related or hit.later for hit in hits)


def test_a_rejected_relation_neither_orders_nor_marks_for_that_person_only(pair, alice, bob):
    earlier, later = pair
    supersessions.decide(alice.id, later=later, earlier=earlier, decision="rejected")

    assert any(hit.later for hit in recalled(bob, PRESENT, person_id=bob.id))
    assert not any(hit.later for hit in recalled(alice, PRESENT, person_id=alice.id))
    supersessions.decide(alice.id, later=later, earlier=earlier, decision="")
    assert any(hit.later for hit in recalled(alice, PRESENT, person_id=alice.id))


def test_a_confirmed_relation_is_said_in_the_prompt_even_if_the_messages_are_not_similar(pair, alice, bob, monkeypatch):
    earlier, later = pair
    monkeypatch.setattr("memory.retrieval.strategies.related_messages", lambda *arguments: {})
    assert not any(hit.later for hit in recalled(alice, PRESENT, person_id=alice.id))

    supersessions.decide(alice.id, later=later, earlier=earlier, decision="confirmed")
    of_alice, of_bob = (recalled(one, PRESENT, person_id=one.id) for one in (alice, bob))

    assert messages(of_alice) == [LATER, EARLIER]
    assert 'same_subject="superseded by 1"' in build_prompt_context(of_alice, max_tokens=2000)
    assert "superseded by" not in build_prompt_context(of_bob, max_tokens=2000)


def test_only_a_later_message_can_supersede_and_only_known_decisions_are_stored(pair, alice):
    earlier, later = pair

    with pytest.raises(InvalidInputError, match="later message"):
        supersessions.decide(alice.id, later=earlier, earlier=later, decision="confirmed")
    with pytest.raises(InvalidInputError, match="confirmed or rejected, not maybe"):
        supersessions.decide(alice.id, later=later, earlier=earlier, decision="maybe")
    assert not Supersession.objects.exists()


@pytest.mark.parametrize("forgotten", [0, 1])
def test_decisions_and_relations_do_not_outlive_either_message(memory, pair, alice, forgotten):
    earlier, later = pair
    supersessions.decide(alice.id, later=later, earlier=earlier, decision="confirmed")
    memory.log_recall(uuid.uuid4(), recalled(alice, PRESENT))
    assert RecallLogEntry.objects.exclude(later=None).exists()

    memory.forget([pair[forgotten].id], by=alice.id)

    assert not Supersession.objects.exists()
    assert not RecallLogEntry.objects.exclude(later=None).exists()


@pytest.fixture
def answered(memory, pair, alice, bob):
    """Return a turn of Bob in the group's thread for which both messages were recalled."""
    earlier, _later = pair
    one = turn(thread(bob, space=earlier.space), PRESENT, "It is 9025 [1] and was 4471 [2].")
    memory.log_recall(one.id, recalled(bob, PRESENT))
    exchange(bob, one.message, one.answer, space=earlier.space, thread_id=one.thread_id, turn_id=one.id)
    return one


def panel(person, one) -> str:
    return signed_in(person).get(reverse("recalled_exchanges", args=[one.id])).content.decode()


def decide(person, earlier, later, decision, **headers):
    url = reverse("supersession", args=[earlier.id, later.id])
    return signed_in(person).post(f"{url}?at=turn-1-r{earlier.id}", {"decision": decision}, headers=headers)


def test_the_panel_says_it_to_all_and_shows_decisions_only_to_who_made_them(pair, answered, alice, bob):
    earlier, later = pair
    shared = frames.turn(answered.id).html
    assert "1 is a later message on the same subject" in " ".join(shared.split())
    assert "A later message on the same subject as 2" in " ".join(shared.split())
    assert "data-decision" not in shared
    assert panel(bob, answered).count('data-decision=""') == 1

    answer = decide(bob, earlier, later, "confirmed", HX_Request="true").content.decode()

    assert 'data-decision="confirmed"' in answer
    assert f'id="turn-1-r{later.id}-latest" data-latest="confirmed"' in " ".join(answer.split())
    assert 'data-decision="confirmed"' in panel(bob, answered)
    assert 'data-latest="confirmed"' in panel(bob, answered)
    assert 'data-decision=""' in panel(alice, answered)
    assert "data-decision" not in frames.turn(answered.id).html


def test_citations_of_a_superseded_message_are_marked_for_who_decided_it_only(pair, answered, alice, bob):
    earlier, later = pair

    def citation(person) -> str:
        html = (
            signed_in(person)
            .get(reverse("recalled_exchanges", args=[answered.id]), headers={"HX-Request": "true"})
            .content.decode()
        )
        (link,) = re.findall(r"<a hx-swap-oob[^>]*>\d</a>", html)
        assert f"outerHTML:a.citation[href='#turn-{answered.id}-r{earlier.id}']" in link
        return link

    assert "superseded" not in citation(bob)
    assert decide(bob, earlier, later, "confirmed", HX_Request="true").headers["HX-Trigger"] == "superseded"
    marked = citation(bob)
    assert 'class="citation citation--superseded"' in marked
    assert 'aria-label="Source 2, superseded 12 May' in marked
    assert "superseded" not in citation(alice)
    decide(bob, earlier, later, "", HX_Request="true")
    assert "superseded" not in citation(bob)


def test_a_message_that_the_answer_does_not_cite_has_no_citation_to_mark(answered, bob):
    Turn.objects.filter(id=answered.id).update(answer="It is 9025 [1].")
    url = reverse("recalled_exchanges", args=[answered.id])

    assert "outerHTML:a.citation" not in signed_in(bob).get(url, headers={"HX-Request": "true"}).content.decode()


def test_a_decision_needs_access_to_both_messages(memory, pair, alice, bob):
    earlier, later = pair
    own = exchange(alice, LATER, timestamp=at("2026-06-01T09:00"))

    assert decide(PersonFactory(), earlier, later, "confirmed").status_code == 404
    assert decide(bob, earlier, own, "confirmed").status_code == 404
    assert decide(bob, own, later, "confirmed").status_code == 404
    assert not Supersession.objects.exists()
    assert decide(bob, earlier, later, "confirmed").status_code == 302
    memory.forget([later.id], by=alice.id)
    assert decide(bob, earlier, later, "confirmed").status_code == 404
