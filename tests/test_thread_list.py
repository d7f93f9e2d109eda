"""The list of threads: titles that come by themselves, what is new, and pages that hear of it at once."""

from __future__ import annotations

import json
import re

import pytest

from chat import services
from chat.models import Thread, Turn
from chat.rows import sidebar
from chat.threads.read_markers import ensure_marker, mark_read
from chat.threads.titles import apply_model_title, title_prompt
from memory.spaces import access
from tests.factories import PersonFactory, ago, thread, turn
from tests.server import running, wait_for
from tests.socket import open_socket


def links(person) -> dict[str, sidebar.ThreadLink]:
    groups = sidebar.thread_groups(person.id, None)
    return {link.title: link for group in groups for link in group.threads}


@pytest.fixture
def titled(settings):
    settings.CATO = settings.CATO.model_copy(update={"chat": settings.CATO.chat.model_copy(update={"titles": True})})


@pytest.mark.django_db
def test_an_answer_that_came_while_one_was_elsewhere_is_new_until_one_looks(person):
    asked = thread(person, title="Asked")
    ensure_marker(asked, person.id)
    Thread.objects.filter(id=asked.id).update(changed_at=ago())
    assert links(person)["Asked"].is_unread

    asked.refresh_from_db()
    mark_read(asked, person.id)
    assert not links(person)["Asked"].is_unread


@pytest.mark.django_db
def test_what_was_imported_or_said_before_one_joined_is_not_new(person):
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
def test_the_model_is_asked_for_a_title_after_the_first_answer_only(person, titled):
    begun = thread(person, title="Where does the key of the shed ha…")
    first = turn(begun, "Where does the key of the shed hang?", "Behind the clock.")
    assert "Behind the clock." in title_prompt(first.id)[1]["content"]
    assert title_prompt(turn(begun, "And now?", parent=first).id) is None

    assert apply_model_title(begun.id, '\n"The key of the shed."\nI hope that helps!')
    begun.refresh_from_db()
    assert begun.title == "The key of the shed"
    assert title_prompt(first.id) is None


@pytest.mark.django_db
def test_a_title_of_ones_own_is_never_replaced(person, titled):
    begun = thread(person)
    first = turn(begun)
    services.rename_thread(begun, "Keys")

    assert title_prompt(first.id) is None
    assert not apply_model_title(begun.id, "Something else")
    begun.refresh_from_db()
    assert begun.title == "Keys"


@pytest.mark.django_db
def test_no_title_is_asked_for_where_there_is_no_model_or_nobody_wants_one(person, titled, settings):
    dummy = turn(thread(person), is_dummy=True)
    failed = turn(thread(person), state=Turn.State.FAILED)
    assert title_prompt(dummy.id) is None
    assert title_prompt(failed.id) is None

    settings.CATO = settings.CATO.model_copy(update={"chat": settings.CATO.chat.model_copy(update={"titles": False})})
    assert title_prompt(turn(thread(person)).id) is None


@pytest.mark.django_db
@pytest.mark.parametrize("said", ["", "  \n ", '"."', "***"])
def test_an_empty_title_leaves_the_first_line(person, said):
    begun = thread(person, title="The first line")

    assert not apply_model_title(begun.id, said)
    begun.refresh_from_db()
    assert begun.title == "The first line"


def test_every_open_page_hears_of_a_new_thread_of_its_end_and_of_its_title(tmp_path, endpoint):
    endpoint.script("titles", answer=["Behind the clock.", "The key of the shed"], token_delay=0.3)
    with running(
        tmp_path, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="titles", CATO_CHAT_TITLES="true"
    ) as cato:
        alice = cato.set_up()
        with open_socket(alice, None) as elsewhere:
            begun = alice.send_message("Where does the key of the shed hang?")
            running_mark = elsewhere.until('aria-label="answering"')
            assert "Where does the key of the shed hang?" in running_mark
            elsewhere.until_all(
                f"thread-{begun}", 'aria-label="new"', 'class="sidebar__thread-title">The key of the shed</span>'
            )
        with open_socket(alice, begun) as page:
            page.hello()
            page.connection.send(json.dumps({"back": True}))
            assert 'id="thread-title" title="The key of the shed"' in page.until("thread-title")


def test_who_looks_at_the_end_of_an_answer_is_not_told_that_it_is_new(alice, endpoint):
    endpoint.script("cato", answer="Behind the clock.", token_delay=0.05)
    begun = alice.send_message("Where does it hang?")
    with open_socket(alice, begun) as page, open_socket(alice, None) as elsewhere:
        page.hello()
        page.until(r'class="turn__actions"')
        page.connection.send(json.dumps({"seen": True}))
        heard = wait_for(
            lambda: (h := elsewhere.until(f"thread-{begun}")) and 'aria-label="answering"' not in h and h, "the end"
        )
        if 'aria-label="new"' in heard:
            wait_for(lambda: 'aria-label="new"' not in elsewhere.until(f"thread-{begun}"), "the mark to go")
    assert not re.search(rf'id="thread-{begun}"[^>]*sidebar__link--unread', alice.get("/settings").text)


def test_a_stranger_hears_nothing_of_it(alice, bob):
    with open_socket(bob, None) as page:
        alice.send_message("A secret of Alice's")
        page.connection.send(json.dumps({"back": True}))
        page.until('hx-swap-oob="innerHTML:#threads"')
        assert "secret" not in "".join(page.received)
