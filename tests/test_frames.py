"""Frames that arrive out of order: a page misses nothing and never shows older content."""

from __future__ import annotations

import uuid

from chat.realtime.consumers import PageConsumer
from chat.realtime.hub import Frame

THREAD, TURN = uuid.uuid4(), uuid.uuid4()


def page_at(revision: int) -> PageConsumer:
    """Return the socket of a page that has the turn at this revision."""
    consumer = PageConsumer()
    consumer.revisions, consumer.footer_revisions = {TURN: revision}, {TURN: revision}
    return consumer


def words(revision: int) -> Frame:
    return Frame(THREAD, "the last words", TURN, revision)


def foot(revision: int) -> Frame:
    return Frame(THREAD, "Remembered", TURN, revision, is_footer=True)


def test_a_memory_frame_does_not_suppress_the_last_block():
    for revision in (4, 5):
        page = page_at(3)
        assert page._is_newer(foot(5))
        assert page._is_newer(words(revision))


def test_an_older_footer_is_dropped_after_a_newer_one():
    page = page_at(3)

    assert page._is_newer(foot(5))
    assert not page._is_newer(foot(4))


def test_frames_that_the_page_already_contains_are_not_sent():
    page = page_at(4)

    assert not page._is_newer(words(4))
    assert page._is_newer(words(5))
    assert not page._is_newer(words(5))
    assert not page._is_newer(foot(4))


def test_frames_that_belong_to_no_turn_are_always_sent():
    assert page_at(9)._is_newer(Frame(THREAD, "who is here"))
