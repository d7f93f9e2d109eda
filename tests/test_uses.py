"""In how many answers a passage is cited, as far as the reader can read them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from memory.models import RecallLogEntry
from tests.factories import PersonFactory, exchange, group, signed_in, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def note(person):
    colleague = PersonFactory()
    return exchange(person, "The key hangs behind the clock.", space=group("House", person, colleague)), colleague


def cite(stored, in_thread, answer: str, *, number: int = 1):
    one = turn(in_thread, "Where is the key?", answer)
    RecallLogEntry.objects.create(turn_id=one.id, exchange=stored, rank=number, score=1, strategy="x", reason="")
    return one


def uses(person, stored) -> str:
    return " ".join(signed_in(person).get(reverse("exchange_uses", args=[stored.id])).content.decode().split())


def test_citations_are_counted_and_mere_recalls_are_not(person, note):
    stored, _colleague = note
    assert uses(person, stored) == ""
    own = thread(person)
    cite(stored, own, "Behind the clock [1], as [1] says.")
    assert uses(person, stored) == "Used in 1 answer"
    cite(stored, own, "I do not know.")
    cite(stored, own, "Another source says so [1].", number=2)
    cite(stored, own, "Behind the clock [2].", number=2)
    assert uses(person, stored) == "Used in 2 answers"


def test_answers_in_threads_that_the_reader_cannot_read_are_not_counted(person, note):
    stored, colleague = note
    cite(stored, thread(colleague), "Behind the clock [1].")
    assert uses(person, stored) == ""
    assert uses(colleague, stored) == "Used in 1 answer"
    assert signed_in(PersonFactory()).get(reverse("exchange_uses", args=[stored.id])).status_code == 404


def test_answers_on_inactive_branches_are_not_counted(person, note):
    stored, _colleague = note
    one = cite(stored, thread(person), "Behind the clock [1].")
    one.is_on_active_branch = False
    one.save()
    assert uses(person, stored) == ""
