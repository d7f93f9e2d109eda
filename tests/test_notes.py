"""Notes on their page, visible to the audience of their space."""

from __future__ import annotations

import pytest
from django.urls import reverse

from memory.models import Exchange, Space
from memory.spaces import access
from tests.factories import PersonFactory, exchange, group, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob():
    return PersonFactory(name="Bob Team")


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


def visible_to(person) -> str:
    return signed_in(person).get(reverse("notes")).content.decode()


def test_a_note_is_private_by_default_and_found_by_meaning(memory, alice, bob):
    answer = signed_in(alice).post(reverse("notes"), {"text": "The key hangs behind the clock"}, follow=True)
    assert "Remembered. Only you can read it." in answer.content.decode()
    assert "behind the clock" in visible_to(alice)
    assert "behind the clock" not in visible_to(bob)

    memory.index_pending()
    (found,) = memory.search("Where is the key?", spaces=access.readable_space_ids(alice.pk)).results
    assert found.exchange.source == "vadd_command"
    assert Exchange.objects.get().manual_entry


def test_a_note_in_a_group_is_visible_to_its_members_only(memory, alice, bob):
    crew = group("Crew", alice, bob)
    signed_in(alice).post(reverse("notes"), {"text": "The boat is red", "space": str(crew.pk)})
    assert "The boat is red" in visible_to(bob)
    assert "The boat is red" not in visible_to(PersonFactory())


def test_a_note_cannot_be_stored_in_an_unreadable_space(memory, alice, bob):
    crew = group("Crew", bob)
    answer = signed_in(alice).post(reverse("notes"), {"text": "For them", "space": str(crew.pk)})
    assert answer.status_code == 422
    assert "This space is not there any more, or not yours" in answer.content.decode()
    assert "For them" in answer.content.decode()
    assert not Exchange.objects.exists()


def test_an_empty_note_is_refused(memory, alice):
    answer = signed_in(alice).post(reverse("notes"), {"text": "  "})
    assert answer.status_code == 422
    assert "the text is empty" in answer.content.decode()


def test_the_list_shows_long_notes_once_and_no_other_exchanges(memory, alice):
    signed_in(alice).post(reverse("notes"), {"text": "The boat is red and it is mine. " * 100})
    exchange(alice, "Said in a thread")
    assert Exchange.objects.count() > 2
    text = visible_to(alice)
    assert text.count('class="note-link"') == 1
    assert "Said in a thread" not in text


def test_a_forgotten_note_is_not_listed(memory, alice):
    signed_in(alice).post(reverse("notes"), {"text": "The key hangs behind the clock"})
    memory.forget([Exchange.objects.get().pk], by=alice.pk)
    assert "behind the clock" not in visible_to(alice)
    assert Space.objects.filter(owner=alice).exists()


def test_the_field_for_a_note_is_called_note(alice):
    assert '<label for="text">Note</label>' in visible_to(alice)
