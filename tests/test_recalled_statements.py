"""A statement among the sources of an answer: what a reader decides about it there."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from memory.knowledge import decisions
from memory.models import Exchange, RecallLogEntry, Statement
from memory.spaces import access
from tests.factories import PersonFactory, exchange, group, signed_in, statement, thread, turn

pytestmark = pytest.mark.django_db

PLACE = "turn-1-r1"


def said(person: Any, text: str) -> Exchange:
    return exchange(person, text, space=access.team_space())


def text_of(content: bytes) -> str:
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", content.decode()).split()))


def shown(client: Client, one: Statement, query: str = "") -> str:
    answer = client.get(f"/knowledge/{one.pk}/recalled?at={PLACE}{query}")
    assert answer.status_code == 200
    return text_of(answer.content)


def decide(client: Client, one: Statement, action: str, **fields: Any) -> str:
    sent = {"action": action, "revision": 1} | fields
    answer = client.post(f"/knowledge/{one.pk}/recalled?at={PLACE}", sent)
    assert answer.status_code == 200
    return text_of(answer.content)


@pytest.fixture
def retries(memory, person) -> Statement:
    """Return a statement that another person said, unconfirmed."""
    return statement(said(PersonFactory(name="Jana Kohl"), "From now on 28 retries."))


def test_the_panel_of_an_answer_shows_state_and_sources_and_offers_decisions(person, retries):
    answered = turn(thread(person), "How many retries?", "28 [1].")
    RecallLogEntry.objects.create(turn_id=answered.id, exchange_id=retries.pk, rank=1, score=1, strategy="x", reason="")

    panel = text_of(signed_in(person).get(f"/turns/{answered.id}/recalled", headers={"HX-Request": "true"}).content)

    assert re.search(r"Unconfirmed extracted .*1 source Based on Said by Jana Kohl Confirm Correct…", panel)
    assert "Forget…" not in panel


def test_a_reader_confirms_it_once(person, retries):
    client = signed_in(person)

    done = decide(client, retries, "confirm")

    assert done.startswith("Confirmed by you. Current")
    assert f"confirmed by {person.name}" in done
    assert "Confirm " not in done
    retries.refresh_from_db()
    assert retries.confirmed_by_id == person.pk


def test_a_correction_supersedes_it(person, retries):
    client = signed_in(person)
    assert f"{retries.exchange.user_message} It becomes a note of yours" in shown(client, retries, "&form=correct")

    done = decide(client, retries, "correct", text="A buoy makes at most 30 retries a day.")

    assert done.startswith("Superseded by your statement. Superseded")
    assert "by “A buoy makes at most 30 retries a day.”" in done
    assert "Correct…" not in done


def test_a_text_that_cannot_be_stored_stays_in_the_field(person, retries):
    text = retries.exchange.user_message

    refused = decide(signed_in(person), retries, "correct", text=text)

    assert refused.startswith("This statement already exists.")
    assert f"{text} It becomes a note of yours" in refused


def test_what_somebody_changed_meanwhile_is_reported_and_not_overwritten(person, retries):
    decisions.confirm(PersonFactory().id, retries.pk, revision=1)

    refused = decide(signed_in(person), retries, "correct", text="A buoy makes at most 30 retries a day.")

    assert refused.startswith("Somebody changed this statement meanwhile.")
    assert "A buoy makes at most 30 retries a day. It becomes a note of yours" in refused
    assert Statement.objects.count() == 1


def test_its_first_author_forgets_it_and_others_cannot(person, retries):
    own = statement(said(person, "The lid is 3 mm."), text="The lid is 3 mm thick.")
    client = signed_in(person)
    assert "Also forget its sources that are yours" in shown(client, own, "&form=forget")

    assert decide(client, own, "forget") == "Forgotten"

    assert set(Exchange.objects.exclude(forgotten_at=None).values_list("pk", flat=True)) == {own.pk}
    forbidden = client.post(f"/knowledge/{retries.pk}/recalled", {"action": "forget"})
    assert forbidden.status_code == 404


def test_a_conflict_is_resolved_on_the_page_of_statements(person, retries):
    other = statement(said(person, "The limit is 40."), text="A buoy makes at most 40 retries a day.")
    decisions.contradict(retries, other)

    offered = shown(signed_in(person), retries)

    assert "Conflicting with 1 other" in offered
    assert offered.endswith("Resolve…")


def test_who_cannot_read_it_decides_nothing(memory, person):
    colleague = PersonFactory()
    one = statement(exchange(colleague, "Ours.", space=group("Hardware", colleague)))
    client = signed_in(person)

    assert client.get(f"/knowledge/{one.pk}/recalled").status_code == 404
    for action in ("confirm", "correct", "forget"):
        sent = {"action": action, "revision": 1, "text": "x"}
        assert client.post(f"/knowledge/{one.pk}/recalled", sent).status_code == 404
