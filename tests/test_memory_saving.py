"""Threads that are not remembered, and switching memory off for an existing thread."""

from __future__ import annotations

import re
import uuid
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from chat.answers.persistence import store_exchange
from chat.models import Thread
from chat.services import delete_thread, set_memory_enabled
from memory.models import Exchange
from memory.spaces import access
from tests.factories import exchange, signed_in, thread, turn
from tests.server import running, wait_for
from tests.topology import TOPOLOGY

SECRET = "saffronvole"


def tables_with(cato, text: str) -> set[str]:
    """Return the tables of the database that contain `text`."""
    tables = [name for (name,) in cato.sql("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {table for table in tables if text in str(cato.sql(f'SELECT * FROM "{table}"'))}


@pytest.mark.skipif(TOPOLOGY != "embedded", reason="looks into SQLite's tables and the index's files")
def test_a_thread_that_is_not_remembered_is_stored_only_in_its_turns(tmp_path, endpoint):
    answers = [f"The {SECRET} keeps it.", f"Once more the {SECRET} keeps it.", "I do not know."]
    endpoint.script("off", answer=answers)
    with running(tmp_path, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="off") as cato:
        alice = cato.set_up()
        first = {"message": f"Give the {SECRET} my PIN", "client_key": str(uuid.uuid4()), "remembered": "no"}
        thread_ = re.search(r"/t/([0-9a-f-]{36})", alice.post("/", first).headers["location"])[1]
        wait_for(lambda: "keeps it" in alice.thread_page(thread_), "the answer")
        alice.send_message(f"And the second one, {SECRET}", thread_)
        wait_for(lambda: "Once more" in alice.thread_page(thread_), "the second answer")
        other = alice.send_message("What does the vole keep?")
        wait_for(lambda: "Remembered</span>" in alice.thread_page(other), "another thread to be remembered")

        assert tables_with(cato, SECRET) == {"chat_turn", "chat_thread"}
    holders = {path.name for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()}
    assert {name for name in holders if not name.startswith("cato.sqlite3")} == set()
    assert holders


@pytest.fixture
def remembered_thread(memory, person):
    """Return a thread with two remembered exchanges."""
    thread_ = thread(person)
    for text in ("The key hangs behind the clock", "The boat is under the red buoy"):
        exchange(person, text, thread_id=thread_.id)
    return thread_


@pytest.fixture
def browser(person):
    return signed_in(person)


@pytest.mark.django_db
def test_switching_memory_off_asks_what_to_do_with_stored_exchanges(remembered_thread, browser):
    page = browser.get(reverse("set_thread_memory", args=[remembered_thread.id])).content.decode()

    assert "2 exchanges are in memory" in page
    assert "Stop saving and forget 2" in page
    remembered_thread.refresh_from_db()
    assert remembered_thread.is_remembered


@pytest.mark.django_db
@pytest.mark.parametrize(("forget", "left"), [("", 2), ("yes", 0)])
def test_stored_exchanges_are_kept_or_forgotten_as_chosen(remembered_thread, person, browser, memory, forget, left):
    browser.post(reverse("set_thread_memory", args=[remembered_thread.id]), {"remembered": "no", "forget": forget})

    remembered_thread.refresh_from_db()
    assert not remembered_thread.is_remembered
    assert len(memory.search("key boat", spaces=access.readable_space_ids(person.id)).results) == left


@pytest.mark.django_db
def test_a_new_thread_can_be_excluded_from_memory_before_the_first_message(person, browser):
    for sent in (["no"], ["no", "yes"], []):
        data = {"message": "Hello", "client_key": str(uuid.uuid4()), "remembered": sent}
        browser.post(reverse("new_thread"), data)

    assert [t.is_remembered for t in Thread.objects.order_by("created_at")] == [False, True, True]


@pytest.fixture
def set_enabled(settings):
    """Return a function that enables or disables memory in the configuration."""

    def to(is_enabled: bool) -> None:
        conf = settings.CATO.vector_store.model_copy(update={"enabled": is_enabled})
        settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})

    return to


def add_answered_turn(of_thread: Thread, message: str, **fields) -> None:
    store_exchange(turn(of_thread, message, **fields))


@pytest.mark.django_db
def test_turns_answered_while_memory_was_disabled_are_only_stored_by_command(memory, person, set_enabled):
    set_enabled(False)
    remembered, off, deleted = thread(person), thread(person), thread(person)
    add_answered_turn(remembered, "The key hangs behind the clock.")
    add_answered_turn(remembered, "A version that is not shown", is_on_active_branch=False)
    add_answered_turn(off, "This is off the record")
    set_memory_enabled(off, False)
    set_memory_enabled(off, True)
    add_answered_turn(deleted, "This was deleted")
    delete_thread(deleted)
    with pytest.raises(CommandError, match="disabled"):
        call_command("backfill", "--from-history")

    set_enabled(True)
    add_answered_turn(thread(person, is_remembered=False), "Never meant for memory")
    call_command("backfill", stdout=StringIO())
    assert not Exchange.objects.exists()
    out = StringIO()
    call_command("backfill", "--from-history", stdout=out)
    call_command("backfill", "--from-history", stdout=out)
    assert [line for line in out.getvalue().splitlines() if "stored" in line] == [
        "1 turns stored in memory.",
        "0 turns stored in memory.",
    ]
    assert [row.user_message for row in Exchange.objects.all()] == ["The key hangs behind the clock."]
    (hit,) = memory.search("where is the key", spaces=access.readable_space_ids(person.id)).results
    assert hit.similarity is not None
