"""The table "Who may do what" in docs/security.md: every cell is tried, and every check has a row."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from cato_web.accounts.models import OneTimeLink, User
from chat import prompt_library
from chat.errors import PermissionDeniedError
from chat.instructions.editing import add as add_instruction
from chat.knowledge.switching import set_knowledge
from chat.models import Instruction, SavedPrompt, Thread, Turn
from memory.administration import operations, reveals
from memory.errors import NotFoundError
from memory.models import Exchange, Membership, Reveal, Space, SpaceKnowledge
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, exchange, group, signed_in, thread, turn

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),
]
PAGE = Path(__file__).resolve().parent.parent / "docs" / "security.md"
ROLES = ["author", "owner", "reader", "manager", "administrator", "stranger"]


@dataclass
class Case:
    """A thread in a group with one complete turn, and the person who tries the action."""

    actor: User
    client: Client
    crew: Space
    thread: Thread
    turn: Turn
    exchange: Exchange
    bystander: User

    def post(self, route: str, *arguments: object, **data: str) -> None:
        self.client.post(reverse(route, args=arguments), data)

    def on_turn(self, route: str, **data: str) -> None:
        self.post(route, self.thread.id, self.turn.id, **data)

    def on_thread(self, route: str, **data: str) -> None:
        self.post(route, self.thread.id, **data)
        self.thread.refresh_from_db()

    def set_turn(self, **fields: object) -> None:
        Turn.objects.filter(id=self.turn.id).update(**fields)

    def turns(self) -> int:
        return Turn.objects.filter(thread=self.thread).count()

    def reread(self) -> Turn:
        self.turn.refresh_from_db()
        return self.turn


Check = Callable[[Case], bool]
CHECKS: dict[str, Check] = {}


def check(action: str) -> Callable[[Check], Check]:
    """Register the function that tries this action and returns whether it took effect."""

    def add(function: Check) -> Check:
        CHECKS[action] = function
        return function

    return add


def table() -> dict[str, dict[str, bool]]:
    """Return the table as action -> role -> whether it is allowed."""
    lines = [line for line in PAGE.read_text().partition("## Who may do what")[2].splitlines() if line.startswith("|")]
    head, _rule, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert head == ["action", *ROLES]
    assert all(cell in ("yes", "no") for row in rows for cell in row[1:])
    return {action: dict(zip(ROLES, (cell == "yes" for cell in cells), strict=True)) for action, *cells in rows}


@pytest.fixture
def make_case(db) -> Callable[[str], Case]:
    def make(role: str) -> Case:
        people = {name: PersonFactory(name=name.title()) for name in ROLES if name != "administrator"}
        people["administrator"] = AdministratorFactory(name="Administrator")
        # The last administrator could not lose role or account for another reason.
        AdministratorFactory(name="Second")
        crew = group("Crew", *(people[name] for name in ("author", "owner", "reader", "manager")))
        Membership.objects.filter(person=people["manager"]).update(role=Membership.Role.MANAGER)
        talk = thread(people["owner"], space=crew, title="A talk")
        complete_turn = turn(talk, "Where is the kayak?", "Behind the barn.", author=people["author"])
        stored = exchange(
            people["author"],
            complete_turn.message,
            complete_turn.answer,
            space=crew,
            thread_id=talk.id,
            turn_id=complete_turn.id,
        )
        Turn.objects.filter(id=complete_turn.id).update(exchange_id=stored.id)
        Thread.objects.filter(id=talk.id).update(head=complete_turn)
        complete_turn.refresh_from_db()
        client = signed_in(people[role])
        return Case(people[role], client, crew, talk, complete_turn, stored, PersonFactory(name="Bystander"))

    return make


@check("Read the thread")
def read(case: Case) -> bool:
    answer = case.client.get(reverse("thread", args=[case.thread.id]))
    return answer.status_code == 200 and "Where is the kayak?" in answer.content.decode()


@check("Post a message")
def post(case: Case) -> bool:
    case.on_thread("post_message", message="And the oar?", client_key=str(uuid.uuid4()))
    return case.turns() == 2


@check("Stop the answer")
def stop(case: Case) -> bool:
    case.set_turn(state=Turn.State.ANSWERING)
    case.on_turn("stop_turn")
    return case.reread().stop_requested


@check("Edit the message")
def edit(case: Case) -> bool:
    case.on_turn("edit_turn", message="Where is the oar?", client_key=str(uuid.uuid4()))
    return case.turns() == 2


@check("Regenerate the answer")
def regenerate(case: Case) -> bool:
    case.on_turn("regenerate")
    return case.turns() == 2


@check("Retry the answer")
def retry(case: Case) -> bool:
    case.set_turn(state=Turn.State.FAILED, answer="")
    case.on_turn("retry_turn")
    return case.reread().state != Turn.State.FAILED


@check("Resume the answer")
def resume(case: Case) -> bool:
    case.set_turn(state=Turn.State.STOPPED)
    case.on_turn("resume_turn")
    return case.reread().state != Turn.State.STOPPED


@check("Switch versions")
def switch(case: Case) -> bool:
    case.set_turn(is_on_active_branch=False)
    newer = turn(case.thread, "Where is the oar?", "In the cellar.", author=case.turn.author)
    Thread.objects.filter(id=case.thread.id).update(head=newer)
    case.on_turn("switch_branch")
    return case.reread().is_on_active_branch


@check("Take back the message while it is queued")
def restore(case: Case) -> bool:
    case.set_turn(state=Turn.State.QUEUED, answer="", exchange_id=None)
    case.on_turn("withdraw_turn")
    return case.turns() == 0


@check("Fork the thread")
def fork(case: Case) -> bool:
    case.on_turn("fork_thread")
    return Thread.objects.filter(owner=case.actor).exclude(id=case.thread.id).exists()


@check("Export the thread")
def export_thread(case: Case) -> bool:
    answers = [
        case.client.get(reverse("export_thread", args=[case.thread.id, kind])) for kind in ("md", "json", "html")
    ]
    found = ["kayak" in answer.content.decode() for answer in answers]
    assert len(set(found)) == 1
    return found[0]


@check("Forget the exchange")
def forget(case: Case) -> bool:
    case.post("forget_exchange", case.exchange.id)
    case.post("admin_forget", exchange=str(case.exchange.id), filters="", confirmed="1")
    operations.run_operations()
    case.exchange.refresh_from_db()
    return case.exchange.forgotten_at is not None


@check("Forget everywhere")
def forget_everywhere(case: Case) -> bool:
    case.post("forget_everywhere", case.exchange.id)
    case.exchange.refresh_from_db()
    assert (case.exchange.forgotten_at is None) == bool(case.reread().message)
    return case.exchange.forgotten_at is not None


@check("Delete turns")
def delete_turns(case: Case) -> bool:
    case.on_thread("delete_turns", n="1")
    return case.turns() == 0


@check("Delete the thread")
def delete_thread(case: Case) -> bool:
    case.on_thread("delete_thread")
    return case.thread.deleted_at is not None


@check("Rename the thread")
def rename(case: Case) -> bool:
    case.on_thread("rename_thread", title="Another title")
    return case.thread.title == "Another title"


@check("Move the thread")
def move(case: Case) -> bool:
    case.on_thread("move_thread", space=str(access.team_space().id))
    return case.thread.space_id == access.team_space().id


@check("Switch saving to memory")
def switch_saving(case: Case) -> bool:
    case.on_thread("set_thread_memory", remembered="no")
    return not case.thread.is_remembered


@check("Change the model")
def change_model(case: Case) -> bool:
    case.on_thread("post_message", message="/model another", client_key=str(uuid.uuid4()))
    return case.thread.model == "another"


@check("Change the recall filter")
def change_filter(case: Case) -> bool:
    case.on_thread("recall_filter", only_metadata="zone: north")
    return bool(case.thread.recall_filter)


@check("Turn an instruction off in the thread")
def turn_off_in_thread(case: Case) -> bool:
    row = add_instruction(case.crew, "Name the torque.", by=case.thread.owner_id)
    case.post("set_thread_instruction", case.thread.id, row.id, on="no")
    case.thread.refresh_from_db()
    return bool(case.thread.disabled_instructions)


@check("Change the instructions of the group")
def change_instructions(case: Case) -> bool:
    row = add_instruction(case.crew, "Name the torque.", by=case.thread.owner_id)
    case.post("instructions", text="Rhyme.", space=str(case.crew.id))
    case.post("edit_instruction", row.id, text="Name no torque.")
    case.post("change_instruction", row.id, action="off")
    texts = set(Instruction.objects.values_list("text", flat=True))
    assert texts in ({"Rhyme.", "Name no torque."}, {"Name the torque."})
    case.post("delete_instruction", row.id)
    return not Instruction.objects.filter(id=row.id, off_at=None).exists()


@check("Use the prompts of the group")
def use_prompts(case: Case) -> bool:
    prompt = prompt_library.add(case.crew, name="torque", text="Name the torque.", by=case.thread.owner_id)
    answer = case.client.get(reverse("saved_prompt_text", args=[prompt.id]), headers={"HX-Request": "true"})
    return answer.status_code == 200 and "Name the torque." in answer.content.decode()


@check("Add a prompt to the group")
def add_prompt(case: Case) -> bool:
    case.post("saved_prompts", name="torque", text="Name the torque.", space=str(case.crew.id))
    return SavedPrompt.objects.filter(space=case.crew).exists()


@check("Change prompts of others in the group")
def change_prompts(case: Case) -> bool:
    prompt = prompt_library.add(case.crew, name="torque", text="Name the torque.", by=case.bystander.pk)
    case.post("edit_saved_prompt", prompt.id, name="torque", text="Name no torque.")
    was_edited = SavedPrompt.objects.filter(text="Name no torque.").exists()
    case.post("delete_saved_prompt", prompt.id)
    assert was_edited == (not SavedPrompt.objects.exists())
    return was_edited


@check("See the members of the group")
def see_members(case: Case) -> bool:
    answer = case.client.get(reverse("space", args=[case.crew.id]))
    return answer.status_code == 200 and "Author" in answer.content.decode()


@check("Add and remove members")
def change_members(case: Case) -> bool:
    inside = Membership.objects.filter(space=case.crew, person=case.bystander)
    case.post("change_members", case.crew.id, person=str(case.bystander.pk), change="add")
    was_added = inside.exists()
    Membership.objects.get_or_create(space=case.crew, person=case.bystander)
    case.post("change_members", case.crew.id, person=str(case.bystander.pk), change="remove")
    assert was_added == (not inside.exists())
    return was_added


@check("Name managers")
def name_managers(case: Case) -> bool:
    Membership.objects.create(space=case.crew, person=case.bystander)
    case.post("change_members", case.crew.id, person=str(case.bystander.pk), change="manager")
    return access.manages_space(case.bystander.pk, case.crew)


@check("Rename the group")
def rename_group(case: Case) -> bool:
    case.post("change_group", case.crew.id, name="Another name")
    case.crew.refresh_from_db()
    return case.crew.name == "Another name"


@check("Have statements extracted in the group")
def switch_knowledge_on(case: Case) -> bool:
    with contextlib.suppress(NotFoundError, PermissionDeniedError):
        set_knowledge(case.actor.pk, case.crew, is_on=True)
    return SpaceKnowledge.objects.filter(space=case.crew, is_on=True).exists()


@check("Invite somebody")
def invite(case: Case) -> bool:
    case.post("admin_people", role="member")
    return OneTimeLink.objects.filter(kind=OneTimeLink.Kind.INVITATION).exists()


@check("Make a password link")
def make_password_link(case: Case) -> bool:
    case.post("create_reset_link", case.bystander.pk)
    return OneTimeLink.objects.filter(kind=OneTimeLink.Kind.RESET).exists()


@check("Change a role")
def change_role(case: Case) -> bool:
    case.post("set_role", case.bystander.pk, role="administrator")
    case.bystander.refresh_from_db()
    return case.bystander.is_administrator


@check("Deactivate an account")
def deactivate(case: Case) -> bool:
    case.post("set_user_active", case.bystander.pk, active="no")
    case.bystander.refresh_from_db()
    return not case.bystander.is_active


@check("Reveal a personal space")
def reveal(case: Case) -> bool:
    case.post("reveal", access.personal_space(case.bystander.pk).pk, reason="Looking for the kayak")
    return Reveal.objects.exists()


@check("Export a person")
def export_person(case: Case) -> bool:
    exported = reverse("export_person", args=[case.bystander.pk])
    assert case.client.post(exported).get("Content-Type") != "application/zip"
    # Without a reveal even an administrator is asked for a reason first.
    reveals.reveal(access.personal_space(case.bystander.pk), by=case.actor.pk, reason="Looking for the kayak")
    return case.client.post(exported).get("Content-Type") == "application/zip"


@check("Read the audit log")
def read_log(case: Case) -> bool:
    return case.client.get(reverse("admin_audit")).status_code == 200


def test_rows_and_checks_correspond():
    assert list(table()) == list(CHECKS)
    assert re.search(r"tests/test_permissions\.py", PAGE.read_text())


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("action", CHECKS)
def test_the_table_is_correct(make_case, action, role):
    assert CHECKS[action](make_case(role)) is table()[action][role]
