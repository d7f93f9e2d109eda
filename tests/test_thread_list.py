"""The thread list: generated titles, unread marks, and live updates."""

from __future__ import annotations

import json
import re

import pytest

from chat import services
from chat.access import get_marked_thread
from chat.models import Thread, Turn
from chat.realtime import frames
from chat.realtime.messages import LinkState, ListChange, ListChanges
from chat.rows import sidebar
from chat.threads.reader_marks import ensure_marker, mark_read
from chat.threads.titles import apply_model_title, title_prompt
from memory.spaces import access
from tests.factories import PersonFactory, ago, thread, turn
from tests.server import running, wait_for
from tests.socket import open_socket


def links(person) -> dict[str, sidebar.ThreadLink]:
    groups = sidebar.thread_list(person.id, None).groups
    return {link.title: link for group in groups for link in group.threads}


@pytest.fixture
def titled(settings):
    settings.CATO = settings.CATO.model_copy(update={"chat": settings.CATO.chat.model_copy(update={"titles": True})})


@pytest.mark.django_db
def test_an_answer_is_unread_until_its_thread_is_opened(person):
    answered = thread(person, title="Asked")
    ensure_marker(answered, person.id)
    Thread.objects.filter(id=answered.id).update(changed_at=ago())
    assert links(person)["Asked"].is_unread

    mark_read(get_marked_thread(person.id, answered.id), person.id)
    assert not links(person)["Asked"].is_unread


@pytest.mark.django_db
def test_imported_and_earlier_messages_are_not_unread(person):
    late = PersonFactory()
    thread(late, title="Imported", changed_at=ago(days=0))
    old = thread(person, space=access.team_space(), title="Old", changed_at=ago(days=1))
    Thread.objects.filter(id=old.id).update(created_at=ago(days=2))
    thread(person, space=access.team_space(), title="New", changed_at=ago(days=0))

    assert {title: link.is_unread for title, link in links(late).items()} == {
        "Imported": False,
        "Old": False,
        "New": True,
    }


@pytest.mark.django_db
def test_a_title_is_generated_after_the_first_answer_only(person, titled):
    started = thread(person, title="Where does the key of the shed ha…")
    first = turn(started, "Where does the key of the shed hang?", "Behind the clock.")
    assert "Behind the clock." in title_prompt(first)[1]["content"]
    assert title_prompt(turn(started, "And now?", parent=first)) is None

    assert apply_model_title(started, '\n"The key of the shed."\nI hope that helps!')
    started.refresh_from_db()
    assert started.title == "The key of the shed"
    assert title_prompt(first) is None


@pytest.mark.django_db
def test_a_manual_title_is_never_replaced(person, titled):
    started = thread(person)
    first = turn(started)
    services.rename_thread(started, "Keys")
    started.refresh_from_db()

    assert title_prompt(first) is None
    assert not apply_model_title(started, "Something else")
    started.refresh_from_db()
    assert started.title == "Keys"


@pytest.mark.django_db
def test_no_title_is_generated_without_a_model_or_if_disabled(person, titled, settings):
    dummy = turn(thread(person), is_dummy=True)
    failed = turn(thread(person), state=Turn.State.FAILED)
    assert title_prompt(dummy) is None
    assert title_prompt(failed) is None

    settings.CATO = settings.CATO.model_copy(update={"chat": settings.CATO.chat.model_copy(update={"titles": False})})
    assert title_prompt(turn(thread(person))) is None


@pytest.mark.django_db
@pytest.mark.parametrize("title", ["", "  \n ", '"."', "***"])
def test_an_empty_generated_title_leaves_the_first_line(person, title):
    started = thread(person, title="The first line")

    assert not apply_model_title(started, title)
    started.refresh_from_db()
    assert started.title == "The first line"


@pytest.mark.django_db
def test_a_new_message_moves_its_thread_to_the_top(person):
    asked, pinned = thread(person, title="Asked"), thread(person, title="Pinned")
    services.set_pinned(pinned, person.id, True)
    changes = ListChanges()
    for one in (asked, pinned):
        changes.add(ListChange(one.id, is_latest=True))
        changes.add(ListChange(one.id))

    html = frames.thread_list_update(person.id, None, changes)

    # The browser removes its former entry.
    assert re.search(rf'hx-swap-oob="afterbegin:#threads-today">\s*<li id="listed-{asked.id}"', html)
    assert html.count("afterbegin:#threads-today") == 1, "a pinned thread keeps its place"
    assert re.search(rf'id="thread-{pinned.id}"[^>]*hx-swap-oob="true"', html)


@pytest.mark.django_db
def test_a_link_that_changes_in_its_place_is_as_in_the_whole_list(person):
    one = thread(person, title="Asked", changed_at=ago(seconds=1))
    ensure_marker(one, person.id)
    Thread.objects.filter(id=one.id).update(changed_at=ago(days=-1))
    changes = ListChanges()
    changes.add(ListChange(one.id))

    link = frames.thread_list_update(person.id, None, changes).replace(' hx-swap-oob="true"', "")

    assert 'aria-label="new"' in link
    assert link.split() == re.search(r"<a id=.*?</a>", frames.thread_list(person.id, None), re.DOTALL)[0].split()


@pytest.mark.django_db
def test_the_page_of_a_thread_shows_the_same_link_without_a_query(person, django_assert_num_queries):
    one = thread(person, title="Asked", changed_at=ago(seconds=1))
    known, unknown = ListChanges(), ListChanges()
    space = one.space
    state = LinkState("Asked", False, True, space.kind, space.display_name)
    known.add(ListChange(one.id, state=state))
    unknown.add(ListChange(one.id))

    with django_assert_num_queries(0):
        html = frames.thread_list_update(person.id, one.id, known)

    assert html == frames.thread_list_update(person.id, one.id, unknown)


@pytest.mark.django_db
@pytest.mark.parametrize("change", [{"deleted_at": ago()}, {"space": None}])
def test_a_thread_that_is_no_longer_listed_renders_the_whole_list(person, change):
    one, other = thread(person, title="Asked"), thread(person, title="Other")
    fields = {key: value or access.personal_space(PersonFactory().id) for key, value in change.items()}
    Thread.objects.filter(id=one.id).update(**fields)
    changes = ListChanges()
    changes.add(ListChange(one.id, is_latest=True))

    html = frames.thread_list_update(person.id, None, changes)

    assert 'hx-swap-oob="innerHTML:#threads"' in html
    assert f"thread-{other.id}" in html
    assert f"thread-{one.id}" not in html


@pytest.mark.django_db
def test_a_thread_that_a_person_archived_leaves_only_their_list(person):
    another = PersonFactory()
    one = thread(person, space=access.team_space(), title="Asked")
    services.set_archived(one, another.id, True)
    changes = ListChanges()
    changes.add(ListChange(one.id, is_latest=True))

    assert f"thread-{one.id}" not in frames.thread_list_update(another.id, None, changes)
    assert f"thread-{one.id}" in frames.thread_list_update(person.id, None, changes)


def test_every_open_page_is_notified_of_a_new_thread_its_answer_and_its_title(tmp_path, endpoint):
    endpoint.script("titles", answer=["Behind the clock.", "The key of the shed"], token_delay=0.3)
    with running(
        tmp_path, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="titles", CATO_CHAT_TITLES="true"
    ) as cato:
        alice = cato.set_up()
        with open_socket(alice, None) as elsewhere:
            started = alice.send_message("Where does the key of the shed hang?")
            running_mark = elsewhere.until('aria-label="answering"')
            assert "Where does the key of the shed hang?" in running_mark
            elsewhere.until_all(
                f"thread-{started}",
                'aria-label="new"',
                'class="sidebar__thread-title" dir="auto">The key of the shed</span>',
            )
        with open_socket(alice, started) as page:
            page.hello()
            page.connection.send(json.dumps({"back": True}))
            assert 'id="thread-title" title="The key of the shed"' in page.until("thread-title")


def test_a_page_that_shows_the_end_of_an_answer_marks_it_read(alice, endpoint):
    endpoint.script("cato", answer="Behind the clock.", token_delay=0.05)
    started = alice.send_message("Where does it hang?")
    with open_socket(alice, started) as page, open_socket(alice, None) as elsewhere:
        page.hello()
        page.until(r'class="turn__actions"')
        page.connection.send(json.dumps({"seen": True}))
        frame = wait_for(
            lambda: (h := elsewhere.until(f"thread-{started}")) and 'aria-label="answering"' not in h and h, "the end"
        )
        if 'aria-label="new"' in frame:
            wait_for(lambda: 'aria-label="new"' not in elsewhere.until(f"thread-{started}"), "the mark to go")
    assert not re.search(rf'id="thread-{started}"[^>]*sidebar__link--unread', alice.get("/settings").text)


def test_other_people_receive_no_notification(alice, bob):
    with open_socket(bob, None) as page:
        alice.send_message("A secret of Alice's")
        page.connection.send(json.dumps({"back": True}))
        page.until('hx-swap-oob="innerHTML:#threads"')
        assert "secret" not in "".join(page.received)
