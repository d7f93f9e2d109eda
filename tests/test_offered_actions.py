"""A page offers its reader nothing that would be refused, without scripts too; frames name the roles of each control."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from cato_web.accounts.models import User
from chat import commands
from chat.models import Thread, Turn
from chat.realtime import frames
from memory.models import Membership, Space
from tests.factories import AdministratorFactory, PersonFactory, ago, exchange, group, signed_in, thread, turn

pytestmark = pytest.mark.django_db
CHANGES = ("Regenerate", "Edit message…")


@pytest.fixture
def people(db) -> dict[str, User]:
    names = ("author", "owner", "reader", "manager")
    return {name: PersonFactory(name=name.title()) for name in names} | {
        "administrator": AdministratorFactory(name="Administrator")
    }


@pytest.fixture
def crew(people) -> Space:
    space = group("Crew", *people.values())
    Membership.objects.filter(person=people["manager"]).update(role=Membership.Role.MANAGER)
    return space


@pytest.fixture
def question(people, crew) -> Turn:
    """Return a turn of the author in a thread of the owner, with its exchange."""
    one = turn(thread(people["owner"], space=crew), "Where is the kayak?", "Behind the barn.", author=people["author"])
    stored = exchange(people["author"], one.message, one.answer, space=crew, thread_id=one.thread_id, turn_id=one.id)
    Turn.objects.filter(id=one.id).update(exchange_id=stored.id)
    Thread.objects.filter(id=one.thread_id).update(head=one)
    one.refresh_from_db()
    return one


def page(person: User, of: Turn) -> str:
    return signed_in(person).get(f"/t/{of.thread_id}").content.decode()


def offered_in(html: str, of: Turn) -> set[str]:
    """Return the actions in the footer of the turn that concern permissions."""
    footer = html.partition(f'id="turn-{of.id}-footer"')[2].partition("</article>")[0]
    texts = (*CHANGES, "Forget…", "Resume answer", "Retry", "Fork into a new thread")
    return {text for text in texts if re.search(rf">\s*{text}\s*<", footer)}


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        ("author", {*CHANGES, "Forget…"}),
        ("owner", {*CHANGES, "Forget…"}),
        ("reader", set()),
        ("manager", set()),
        ("administrator", {"Forget…"}),
    ],
)
def test_the_footer_of_a_turn(people, question, role, offered):
    assert offered_in(page(people[role], question), question) == offered | {"Fork into a new thread"}


def test_an_author_cannot_hide_what_others_wrote_later(people, question):
    later = turn(question.thread, "And the oar?", "In the cellar.", author=people["author"], parent=question)
    assert {*CHANGES} <= offered_in(page(people["author"], question), question)

    turn(question.thread, "And the paddle?", "Lost.", author=people["reader"], parent=later)
    html = page(people["author"], question)
    assert not offered_in(html, question) & {*CHANGES}
    assert not offered_in(html, later) & {*CHANGES}
    assert {*CHANGES} <= offered_in(page(people["owner"], question), question)


@pytest.mark.parametrize(
    ("state", "action", "roles"),
    [
        ("stopped", "Resume answer", {"author", "owner"}),
        ("failed", "Retry", {"author", "owner"}),
    ],
)
def test_unfinished_turns(people, question, state, action, roles):
    one = turn(question.thread, "And the oar?", "Half an ans", state=state, author=people["author"], error="Timeout")
    allowed = {role for role, person in people.items() if action in offered_in(page(person, one), one)}
    assert allowed == roles


@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_an_answer_that_its_author_cannot_receive_any_more_is_not_restarted(people, crew, question, state):
    one = turn(question.thread, "And the oar?", "Half an ans", state=state, author=people["author"], error="Timeout")
    assert {"Resume answer", "Retry"} <= offered_in(page(people["owner"], one), one)

    Membership.objects.filter(space=crew, person=people["author"]).delete()

    assert not offered_in(page(people["owner"], one), one) & {"Resume answer", "Retry"}
    assert not offered_in(frames.turn(one.id).html, one) & {"Resume answer", "Retry"}
    assert signed_in(people["owner"]).post(f"/t/{one.thread_id}/turns/{one.id}/retry").status_code == 409


@pytest.mark.parametrize("state", ["complete", "stopped", "failed"])
def test_nothing_is_answered_in_an_archived_project(people, crew, question, state):
    one = turn(question.thread, "And the oar?", "Half an ans", state=state, author=people["author"], error="Timeout")
    answering = {*CHANGES, "Resume answer", "Retry"}
    assert offered_in(page(people["author"], one), one) & answering

    Space.objects.filter(id=crew.id).update(archived_at=ago(minutes=1))

    for html in (page(people["author"], one), frames.turn(one.id).html, frames.turn_footer(one.id).html):
        assert offered_in(html, one) - answering == {"Fork into a new thread"}
        assert not offered_in(html, one) & answering


def test_only_the_author_edits_and_withdraws_a_queued_message(people, question):
    one = turn(question.thread, "And the oar?", "", state="queued", author=people["author"])
    pages = {role: page(person, one) for role, person in people.items()}

    assert {role for role, html in pages.items() if f"/turns/{one.id}/withdraw" in html} == {"author"}
    assert {role for role, html in pages.items() if f"/turns/{one.id}/edit-queued" in html} == {"author"}


def test_a_copied_turn_can_be_forgotten_by_its_author_alone(people, question):
    copy = turn(thread(people["reader"]), "Where is the kayak?", "Behind the barn.", author=people["author"])
    Turn.objects.filter(id=copy.id).update(copied_exchange_id=question.exchange_id)

    html = page(people["reader"], copy)
    assert "Edit message…" in offered_in(html, copy)
    assert "Forget…" not in offered_in(html, copy)
    assert signed_in(people["reader"]).post(f"/m/{question.exchange_id}/forget").status_code == 404


def test_frames_go_to_all_readers_and_name_the_roles(question):
    html = frames.turn(question.id).html

    assert offered_in(html, question) == {*CHANGES, "Forget…", "Fork into a new thread"}
    for text, roles in (("Regenerate", "last-author owner"), ("Forget…", "author owner administrator")):
        control = html[: html.index(f">{text}<")].rpartition("data-for=")[2]
        assert control.startswith(f'"{roles}"')


def test_the_menu_of_commands_has_only_those_that_would_be_run(people, question):
    def listed(person: User) -> set[str]:
        return set(re.findall(r'data-command="(\w+)"', page(person, question)))

    special = {"delete", "config"}
    assert len(listed(people["reader"])) == len(commands.COMMANDS) - len(special)
    assert listed(people["owner"]) & special == {"delete"}
    assert listed(people["administrator"]) & special == {"config"}
    assert listed(people["reader"]) & special == set()


def test_quick_search_offers_a_command_of_administrators_to_them_alone(people):
    def found(client: Client) -> bool:
        return "say=/config" in client.get("/find?q=/config", headers={"HX-Request": "true"}).content.decode()

    assert found(signed_in(people["administrator"]))
    assert not found(signed_in(people["reader"]))
