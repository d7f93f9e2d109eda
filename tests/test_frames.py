"""Frames that overtake each other: a page misses none of what was said, and shows nothing older than it has."""

from __future__ import annotations

import uuid

from chat.realtime.consumers import PageConsumer
from chat.realtime.hub import Frame

THREAD, TURN = uuid.uuid4(), uuid.uuid4()


def page_at(revision: int) -> PageConsumer:
    """The socket of a page that has the turn at this revision."""
    consumer = PageConsumer()
    consumer.revisions, consumer.footer_revisions = {TURN: revision}, {TURN: revision}
    return consumer


def words(revision: int) -> Frame:
    return Frame(THREAD, "the last words", TURN, revision)


def foot(revision: int) -> Frame:
    return Frame(THREAD, "Remembered", TURN, revision, is_footer=True)


def test_what_memory_says_of_a_turn_first_does_not_push_out_its_last_words():
    for said_at in (4, 5):
        page = page_at(3)
        assert page._is_newer(foot(5))
        assert page._is_newer(words(said_at))


def test_an_older_foot_does_not_come_after_a_newer_one():
    page = page_at(3)

    assert page._is_newer(foot(5))
    assert not page._is_newer(foot(4))


def test_nothing_is_sent_twice_and_nothing_that_the_row_held_when_the_page_came():
    page = page_at(4)

    assert not page._is_newer(words(4))
    assert page._is_newer(words(5))
    assert not page._is_newer(words(5))
    assert not page._is_newer(foot(4))


def test_what_belongs_to_no_turn_always_is():
    assert page_at(9)._is_newer(Frame(THREAD, "who is here"))
