"""Where the news of a thread begin for a reader who comes back."""

from __future__ import annotations

import pytest

from chat import access
from chat.models import ReaderMarks, Thread
from chat.rows.news import find_news
from memory.spaces import access as spaces
from tests.factories import PersonFactory, ago, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def shared(person):
    """Return a thread of the team with three complete turns, written by another person 3, 2 and 1 hours ago."""
    author = PersonFactory()
    one = thread(author, space=spaces.team_space(), changed_at=ago(hours=1))
    turns = [turn(one, f"Message {hours}", completed_at=ago(hours=hours)) for hours in (3, 2, 1)]
    for hours, each in zip((3, 2, 1), turns, strict=True):
        type(each).objects.filter(id=each.id).update(created_at=ago(hours=hours))
    return one, turns, author


def news(person, shared: tuple, **marks):
    in_thread, turns, _author = shared
    if marks:
        ReaderMarks.objects.create(person=person, thread=in_thread, **marks)
    return find_news(access.get_marked_thread(person.id, in_thread.id), turns, person.id)


def test_the_first_visit_has_no_news(person, shared):
    assert news(person, shared) is None


def test_news_begin_at_the_first_turn_that_was_completed_after_the_last_visit(person, shared):
    found = news(person, shared, last_read_at=ago(hours=2.5))
    assert found.turn_id == shared[1][1].id


def test_a_visit_lasts_as_long_as_the_page_was_open(person, shared):
    since = ago(hours=1.5)
    found = news(person, shared, last_read_at=ago(hours=2.5), last_present_at=since)
    assert (found.turn_id, found.visited_at) == (shared[1][2].id, since)


def test_nothing_is_new_after_everything_was_read(person, shared):
    assert news(person, shared, last_read_at=ago(minutes=1)) is None


def test_own_messages_are_no_news(shared):
    assert news(shared[2], shared, last_read_at=ago(hours=2.5)) is None


def test_an_answer_that_was_completed_after_the_visit_is_news(person, shared):
    in_thread, turns, _author = shared
    Thread.objects.filter(id=in_thread.id).update(changed_at=ago(minutes=1))
    turns[2].completed_at = ago(minutes=1)
    assert news(person, shared, last_read_at=ago(minutes=30)).turn_id == turns[2].id
