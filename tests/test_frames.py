"""Frames that arrive out of order: a page misses nothing and never shows older content."""

from __future__ import annotations

import json
import uuid

import pytest

from chat.answers import runner
from chat.models import Thread
from chat.realtime import frames
from chat.realtime.consumers import PageConsumer
from chat.realtime.hub import Hub
from chat.realtime.messages import Frame, encode_frame
from tests.factories import PersonFactory, thread, turn

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


@pytest.mark.django_db
def test_a_page_can_send_again_although_memory_is_finished_before_the_answer_ends(person):
    one = turn(thread(person), revision=4)
    page = PageConsumer()
    page.revisions, page.footer_revisions = {one.id: 3}, {one.id: 3}

    assert page._is_newer(Frame(one.thread_id, "Remembered", one.id, 5, is_footer=True))
    ended = [frame.html for frame in frames.answer_finished(one, None, None, has_blocks=True) if page._is_newer(frame)]
    assert len(ended) == 1
    assert 'id="send"' in ended[0]


@pytest.mark.parametrize(
    "message",
    [
        "{",
        "[]",
        '{"from": "another", "html": "a frame without a thread"}',
        json.dumps({"from": "another", "people": [], "link": {"thread": str(THREAD), "state": {"colour": "red"}}}),
    ],
)
def test_pages_reconnect_after_a_message_that_cannot_be_read_and_later_ones_arrive(message, caplog):
    hub = Hub()
    page = hub.subscribe(uuid.uuid4(), THREAD)

    hub.peers.receive(message)

    assert page.is_closed
    assert "could not be read" in caplog.text
    reconnected = hub.subscribe(page.person_id, THREAD)
    hub.peers.receive(encode_frame("another", words(1)))
    assert reconnected.queue.get_nowait() == words(1)


@pytest.mark.django_db
def test_a_new_turn_is_rendered_once_for_its_author_and_the_other_pages(client, monkeypatch):
    ada = PersonFactory()
    in_thread = thread(ada)
    Thread.objects.filter(id=in_thread.id).update(head=turn(in_thread))
    published: list[Frame] = []
    rendered: list[uuid.UUID] = []
    posted_turn = frames.posted_turn
    monkeypatch.setattr(
        frames, "posted_turn", lambda one, attachments: rendered.append(one.id) or posted_turn(one, attachments)
    )
    monkeypatch.setattr(runner, "publish", published.append)
    client.force_login(ada)
    form = {"message": "Where is the key?", "client_key": str(uuid.uuid4())}

    first = client.post(f"/t/{in_thread.id}/messages", form, headers={"HX-Request": "true"})

    posted = in_thread.turns.get(message="Where is the key?")
    assert rendered == [posted.id]
    assert [frame.html in first.content.decode() for frame in published] == [True]

    again = client.post(f"/t/{in_thread.id}/messages", form, headers={"HX-Request": "true"})
    assert f"turn-{posted.id}" in again.content.decode()
    assert len(published) == 1, "the others have it"
