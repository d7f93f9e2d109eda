"""Links to turns lead to the turn at any age, and forgetting returns to the page where it was requested."""

from __future__ import annotations

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from chat.models import Turn
from memory.api import add_note
from memory.models import Exchange
from memory.spaces import access
from tests.factories import PersonFactory, document, exchange, signed_in, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(person) -> Client:
    return signed_in(person)


@pytest.fixture
def long_thread(person):
    of_person = thread(person)
    first = turn(of_person, "Where is the key?", "Behind the clock.")
    stored = exchange(person, first.message, first.answer, thread_id=of_person.id, turn_id=first.id)
    Turn.objects.filter(id=first.id).update(exchange_id=stored.id)
    for number in range(60):
        turn(of_person, f"Question {number}")
    return of_person


def test_the_link_of_an_old_turn_opens_the_page_that_contains_it(client, long_thread):
    first = long_thread.turns.get(position=0)
    assert f'id="turn-{first.id}"' not in client.get(reverse("thread", args=[long_thread.id])).content.decode()

    target = client.get(reverse("turn", args=[first.id])).headers["location"]
    page = client.get(target.split("#")[0]).content.decode()
    assert f'id="turn-{first.id}"' in page
    assert target.endswith(f"#turn-{first.id}")
    assert f'href="{reverse("turn", args=[first.id])}"' in page
    stranger = signed_in(PersonFactory())
    assert stranger.get(reverse("turn", args=[first.id])).status_code == 404


def test_forgetting_an_old_turn_returns_to_that_turn(chroma, client, long_thread):
    first = long_thread.turns.get(position=0)
    target = client.post(reverse("forget_exchange", args=[first.exchange_id])).headers["location"]
    assert f'id="turn-{first.id}"' in client.get(target.split("#")[0]).content.decode()


def test_the_confirmation_explains_that_the_turn_keeps_its_text(memory, client, person, long_thread):
    (note,) = add_note(
        "The winch is greased.", space=access.personal_space(person.id), owner_id=person.id, source="vadd_command"
    )
    document(person, "plan.txt", "The boat is painted in June.")
    passage = Exchange.objects.get(source="upload")
    stored = Exchange.objects.get(source="chat")
    questions = {
        source: client.get(reverse("forget_exchange", args=[row.id])).content.decode()
        for source, row in (("chat", stored), ("note", note), ("passage", passage))
    }
    assert "The text stays in the thread. Attached files are deleted." in questions["chat"]
    assert "stays in the original file" in questions["passage"]
    assert "Its text is deleted" in questions["note"]
    assert "thread." not in questions["note"].split('class="button-row"')[0].split("<h1>")[-1]


def test_forgetting_by_command_returns_to_the_thread(memory, client, person, long_thread):
    (note,) = add_note(
        "The winch is greased.", space=access.personal_space(person.id), owner_id=person.id, source="vadd_command"
    )
    card = client.post(
        reverse("post_message", args=[long_thread.id]),
        {"message": f"/vdelete {note.id}", "client_key": str(uuid.uuid4())},
        headers={"HX-Request": "true"},
    ).content.decode()
    question = client.get(re.search(r'href="(/m/[^"]+/forget[^"]*)"', card)[1].replace("&amp;", "&")).content.decode()
    action = re.search(r'action="(/m/[^"]+)"', question)[1].replace("&amp;", "&")
    assert client.post(action).headers["location"] == reverse("thread", args=[long_thread.id])


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_no_redirect_leaves_the_site(memory, client, person, elsewhere):
    (note,) = add_note(
        "The winch is greased.", space=access.personal_space(person.id), owner_id=person.id, source="vadd_command"
    )
    target = client.post(f"{reverse('forget_exchange', args=[note.id])}?next={elsewhere}").headers["location"]
    assert target == reverse("search")


def test_a_message_of_more_than_twelve_lines_is_folded(client, person):
    of_person = thread(person)
    turn(of_person, "\n".join(f"line {number}" for number in range(1, 13)))
    address = reverse("thread", args=[of_person.id])
    assert "turn__unfold" not in client.get(address).content.decode()

    turn(of_person, "\n".join(f"line {number}" for number in range(1, 14)))
    page = client.get(address).content.decode()
    assert page.count('<details class="turn__unfold">') == 1
    assert "Show all 13 lines" in page
    assert "line 13" in page
