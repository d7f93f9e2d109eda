"""A message that corrects an answer: what it is offered to supersede, and how later answers follow that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.answers.recall import recall_for_turn
from chat.llm import endpoint as model_endpoint
from chat.models import Turn
from memory import api
from memory.api import RecallFilter, build_prompt_context
from memory.models import Exchange, Supersession
from memory.spaces import access
from tests.factories import PersonFactory, answer_job, document, exchange, group, signed_in, thread, turn

pytestmark = pytest.mark.django_db

SOURCE, QUESTION = "The office in Kiel has 23 desks.", "How many desks are there in the office in Kiel?"
CORRECTION = "No, that is outdated: it is 28 now."


@pytest.fixture(autouse=True)
def connected(db):
    model_endpoint.save(base_url="http://127.0.0.1:9/v1", api_key="", model="fake")


@pytest.fixture
def alice(db):
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def bob(db):
    return PersonFactory(name="Bob Team")


@pytest.fixture
def source(memory, alice, bob):
    """Return what Alice said in a group with Bob, among messages on other subjects."""
    kiel = group("Kiel", alice, bob)
    said = exchange(alice, SOURCE, space=kiel, timestamp=datetime(2026, 3, 1, tzinfo=UTC), metadata={"city": "Kiel"})
    for text in ("The boiler was serviced.", "Our neighbour keeps bees.", "Leo plays the trumpet."):
        exchange(bob, text, space=kiel, timestamp=datetime(2026, 4, 1, tzinfo=UTC))
    memory.index_pending()
    return said


def recalled(person, question=QUESTION, **options):
    return api.recall([question], spaces=access.readable_space_ids(person.id), person_id=person.id, **options).results


def ask(person, source, *, answer="It has 23 desks [1].", message=CORRECTION, **fields):
    """Ask the question in a thread of the source's space; return the turn of the message after its answer."""
    talk = thread(person, space=source.space)
    asked = turn(talk, QUESTION, answer, is_typed=True)
    api.log_recall(asked.id, recalled(person))
    return turn(talk, message, "", **{"is_typed": True, "parent": asked, "attempt": 1, "state": "recalling"} | fields)


def correct(memory, person, source, **fields):
    """Correct the answer, which is remembered with a reply that names no subject; return the turn."""
    corrects = ask(person, source, is_correction=True, state=Turn.State.COMPLETE, **fields)
    said = exchange(
        person, CORRECTION, "Thank you.", space=source.space, thread_id=corrects.thread_id, turn_id=corrects.id
    )
    Turn.objects.filter(id=corrects.id).update(exchange_id=said.id)
    memory.index_pending()
    return corrects


def offer(person, corrects) -> str:
    response = signed_in(person).get(reverse("correction", args=[corrects.id]), headers={"HX-Request": "true"})
    return response.content.decode() if response.status_code == 200 else str(response.status_code)


def press(person, corrects, **button):
    return signed_in(person).post(reverse("correction", args=[corrects.id]), button, headers={"HX-Request": "true"})


@pytest.mark.parametrize(
    ("message", "answer", "expected"),
    [
        (CORRECTION, "It has 23 desks [1].", True),
        ("Nein, das gilt nicht mehr, es sind jetzt 28.", "It has 23 desks [1].", True),
        ("And in the other office?", "It has 23 desks [1].", False),
        ("No, shorter please.", "It has 23 desks [1].", False),
        # Without a source, there is nothing to supersede.
        (CORRECTION, "I do not know.", False),
    ],
)
def test_a_typed_message_is_recognised_that_corrects_an_answer_with_a_source(source, alice, message, answer, expected):
    corrects = ask(alice, source, message=message, answer=answer)

    assert recall_for_turn(answer_job(corrects)).search_results.is_correction is expected


def test_what_a_program_sends_is_not_read_as_a_correction(source, alice):
    corrects = ask(alice, source, is_typed=False)

    assert not recall_for_turn(answer_job(corrects)).search_results.is_correction


def test_a_thread_offers_it_to_the_author_once_the_message_is_stored(memory, source, alice, bob):
    corrects = correct(memory, alice, source)
    page = signed_in(alice).get(reverse("thread", args=[corrects.thread_id])).content.decode()

    assert reverse("correction", args=[corrects.id]) in page
    assert "Supersede source 1 of the answer before?" in offer(alice, corrects)
    assert SOURCE in offer(alice, corrects)
    assert "bees" not in offer(alice, corrects)
    assert offer(bob, corrects).strip() == ""
    assert offer(PersonFactory(), corrects) == "404"
    assert press(bob, corrects, supersede="1").status_code == 404

    Turn.objects.filter(id=corrects.id).update(exchange_id=None)
    assert "Supersede" not in offer(alice, corrects)


def test_the_correction_is_recalled_with_what_it_supersedes_though_nothing_else_finds_it(memory, source, alice, bob):
    corrects = correct(memory, alice, source)
    before = [hit.exchange.user_message for hit in recalled(alice)]
    assert SOURCE in before
    assert CORRECTION not in before

    assert "Answers to you use the message instead." in press(alice, corrects, supersede="1").content.decode()

    first, second = recalled(alice)[:2]
    assert (first.exchange.user_message, second.exchange.user_message) == (CORRECTION, SOURCE)
    assert second.is_superseded
    assert 'same_subject="superseded by 1"' in build_prompt_context([first, second], max_tokens=2000)
    assert CORRECTION not in [hit.exchange.user_message for hit in recalled(bob)], "it is Alice's decision"

    press(alice, corrects, undo="1")
    assert [hit.exchange.user_message for hit in recalled(alice)] == before


def test_a_passage_of_a_document_can_be_superseded(memory, source, alice):
    document(alice, "offices.txt", "The office in Oslo has 12 desks.")
    memory.index_pending()
    question = "How many desks does the office in Oslo have?"
    talk = thread(alice)
    asked = turn(talk, question, "It has 12 desks [1].", is_typed=True)
    api.log_recall(asked.id, recalled(alice, question)[:1])
    corrects = turn(talk, CORRECTION, "Thank you.", parent=asked, is_correction=True)
    said = exchange(alice, CORRECTION, "Thank you.", thread_id=talk.id, turn_id=corrects.id)
    Turn.objects.filter(id=corrects.id).update(exchange_id=said.id)
    memory.index_pending()

    press(alice, corrects, supersede="1")

    assert recalled(alice, question)[0].exchange.user_message == CORRECTION


def test_nothing_is_added_from_outside_the_spaces_or_against_a_filter(memory, source, alice):
    corrects = correct(memory, alice, source)
    press(alice, corrects, supersede="1")
    said = Turn.objects.get(id=corrects.id).exchange_id
    only_kiel = RecallFilter(metadata={"city": "Kiel"}).filter()

    assert said in [hit.exchange.id for hit in recalled(alice)]
    assert said not in [hit.exchange.id for hit in recalled(alice, exclude=frozenset({said}))]
    assert [hit.exchange.user_message for hit in recalled(alice, filters=only_kiel)] == [SOURCE]
    api.move_thread(corrects.thread_id, to=access.personal_space(alice.id), by=alice.id)
    of_kiel = api.recall([QUESTION], spaces=frozenset({source.space_id}), person_id=alice.id).results
    assert said not in [hit.exchange.id for hit in of_kiel]


def test_a_dismissed_offer_does_not_return(memory, source, alice):
    corrects = correct(memory, alice, source)

    assert press(alice, corrects, dismiss="yes").content.strip() == b""
    assert "Supersede" not in offer(alice, corrects)
    page = signed_in(alice).get(reverse("thread", args=[corrects.thread_id])).content.decode()
    assert reverse("correction", args=[corrects.id]) not in page


def test_what_the_answer_did_not_cite_cannot_be_superseded(memory, source, alice):
    corrects = correct(memory, alice, source)

    assert press(alice, corrects, supersede="2").status_code == 404
    assert press(alice, corrects).status_code == 400
    assert press(alice, corrects, supersede="9" * 5_000).status_code == 400
    Turn.objects.filter(id=corrects.parent_id).update(answer="It has many desks [2].")
    assert press(alice, corrects, supersede="1").status_code == 404, "it was recalled, but not cited"
    assert not Supersession.objects.exists()


@pytest.mark.parametrize("what", ["source", "correction", "date"])
def test_what_the_author_cannot_read_and_what_is_later_cannot_be_superseded(memory, source, alice, what):
    corrects = correct(memory, alice, source)
    of_others = group("Oslo", PersonFactory())
    if what == "date":
        Exchange.objects.filter(id=source.id).update(timestamp=timezone.now() + timedelta(days=1))
    else:
        said = Turn.objects.get(id=corrects.id).exchange_id
        Exchange.objects.filter(id=source.id if what == "source" else said).update(space=of_others)

    assert "Supersede" not in offer(alice, corrects)
    assert press(alice, corrects, supersede="1").status_code == 404
    assert not Supersession.objects.exists()


def test_forgetting_the_correction_ends_it(memory, source, alice):
    corrects = correct(memory, alice, source)
    press(alice, corrects, supersede="1")

    memory.forget([Turn.objects.get(id=corrects.id).exchange_id], by=alice.id)

    assert "Supersede" not in offer(alice, corrects)
    assert recalled(alice)[0].exchange.user_message == SOURCE
