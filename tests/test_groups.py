"""Groups, and moving threads between spaces: changed permissions apply to the next request."""

from __future__ import annotations

import re
import uuid

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from cato_web.accounts import deletion, groups, projects
from cato_web.accounts.models import AuditEntry
from chat import access, services
from chat.answers.persistence import store_exchange
from chat.errors import ThreadBusyError
from chat.models import Thread, Turn
from chat.rows import sidebar
from memory.errors import InvalidInputError, NotFoundError
from memory.models import Membership, MembershipChange, Space
from memory.spaces import access as spaces
from memory.spaces.groups import get_group, rename_group
from tests.factories import (
    AdministratorFactory,
    PersonFactory,
    document,
    exchange,
    group,
    process_documents,
    signed_in,
    thread,
    turn,
    upload,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db):
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def bob(db):
    return PersonFactory(name="Bob Team")


def remembered_thread(person, message: str = "The key hangs behind the clock", **fields) -> Thread:
    """Return a thread with one remembered turn."""
    one = turn(thread(person, **fields), message, "Noted.")
    store_exchange(one)
    Thread.objects.filter(id=one.thread_id).update(head=one)
    return one.thread


def reachable(memory, person, query: str = "key behind the clock") -> set[str]:
    """Return the ways in which this person reaches the thread: search, list, address."""
    found = {
        hit.exchange.user_message for hit in memory.search(query, spaces=spaces.readable_space_ids(person.id)).results
    }
    listed = {link.title for part in sidebar.thread_list(person.id, None).groups for link in part.threads}
    return found | listed


def test_a_group_is_created_joined_and_left_and_the_log_names_the_actor(ada, bob, memory):
    crew = groups.create_group("  The  Crew ", by=ada)
    assert crew.name == "The Crew"
    groups.add_member(crew, bob, by=ada)
    groups.add_member(crew, bob, by=ada)
    assert crew.id in spaces.readable_space_ids(bob.id)

    groups.remove_member(crew, bob.id, by=ada)
    assert crew.id not in spaces.readable_space_ids(bob.id)
    message = list(AuditEntry.objects.filter(actor=ada).order_by("id").values_list("action", flat=True))
    assert message == ["group.created", "group.member_added", "group.member_removed"]


@pytest.mark.parametrize("name", ["Crew", "crew", "TEAM", "Everyone", "own"])
def test_a_group_needs_a_unique_name(ada, name):
    group("Crew")
    with pytest.raises(InvalidInputError, match=f"{name} is taken"):
        groups.create_group(name, by=ada)


def test_only_an_empty_group_can_be_dissolved(ada, bob, memory):
    crew = group("Crew", bob)
    exchange(bob, "The boat is red", space=crew)
    with pytest.raises(InvalidInputError, match="still has threads, documents or memories"):
        groups.delete_group(crew, by=ada)

    empty = group("Empty", bob)
    groups.delete_group(empty, by=ada)
    assert not Space.objects.filter(name="Empty").exists()


def test_the_groups_page_creates_renames_and_dissolves(ada):
    page = signed_in(ada)
    page.post(reverse("admin_groups"), {"name": "Crew"})
    crew = Space.objects.get(name="Crew")
    page.post(reverse("change_group", args=[crew.id]), {"name": "Garden"})
    crew.refresh_from_db()
    assert crew.name == "Garden"
    page.post(reverse("change_group", args=[crew.id]), {"dissolve": "yes"})
    assert not Space.objects.filter(kind="group").exists()


@pytest.fixture
def listed(ada):
    """Return a function that returns the groups and projects on a page of the list, in order."""

    def names(**query: object) -> list[str]:
        page = signed_in(ada).get(reverse("admin_groups"), query).content.decode()
        return re.findall(r"<bdi>(Crew [^<]*)</bdi>", page)

    return names


def test_the_groups_page_has_pages_and_a_filter(ada, listed):
    for number in range(25):
        group(f"Crew {number:02}")
    projects.create("Crew of buoys", "", by=ada)

    assert listed() == [f"Crew {number:02}" for number in range(20)]
    assert listed(page=2) == [*(f"Crew {number:02}" for number in range(20, 25)), "Crew of buoys"]
    assert listed(q="crew 2") == [f"Crew {number}" for number in range(20, 25)]
    assert listed(q="buoys") == ["Crew of buoys"]


def test_projects_are_in_pages_after_the_groups(ada, listed):
    group("Crew of boats")
    for number in range(30):
        projects.create(f"Crew {number:02}", "", by=ada)

    assert listed() == ["Crew of boats", *(f"Crew {number:02}" for number in range(19))]
    assert listed(page=2) == [f"Crew {number:02}" for number in range(19, 30)]
    second = signed_in(ada).get(reverse("admin_groups"), {"page": 2}).content.decode()
    assert "Page 2 of 2" in second
    assert "No groups yet" not in second


def test_the_groups_page_says_that_there_are_no_groups_above_the_projects(ada, listed):
    projects.create("Crew of buoys", "", by=ada)
    page = signed_in(ada).get(reverse("admin_groups")).content.decode()
    assert page.index("No groups yet") < page.index("Crew of buoys")


def test_a_wrong_name_of_a_group_stays_in_its_form_beside_the_error(ada):
    page, taken = signed_in(ada), group("Crew")
    created = page.post(reverse("admin_groups"), {"name": "crew"})
    renamed = page.post(reverse("change_group", args=[group("Garden").id]), {"name": "crew"})
    for response in (created, renamed):
        assert response.status_code == 422
        assert 'name="name" value="crew"' in response.content.decode()
        assert "crew is taken" in response.content.decode()
    assert reverse("change_group", args=[taken.id]) in created.content.decode()
    assert ">Delete<" in page.get(reverse("change_group", args=[taken.id])).content.decode()


@pytest.mark.parametrize("name", ["", "   ", "\u200b\u200b", "\u2066\u2069", "\u3164", "\u0301"])
def test_a_group_needs_a_visible_name(ada, name):
    with pytest.raises(InvalidInputError, match="Enter a name"):
        groups.create_group(name, by=ada)


def test_a_name_cannot_reorder_surrounding_text(ada):
    assert groups.create_group("Crew \u202eevil\u202c", by=ada).name == "Crew evil"


# Managers


def test_the_creator_of_a_group_manages_it_and_names_other_managers(ada, person, bob):
    crew = groups.create_group("Crew", by=ada)
    changing = reverse("change_members", args=[crew.id])
    signed_in(ada).post(changing, {"person": str(person.pk), "change": "add"})
    assert not spaces.manages_space(person.pk, crew)
    assert signed_in(person).post(changing, {"person": str(bob.pk), "change": "add"}).status_code == 403

    signed_in(ada).post(changing, {"person": str(person.pk), "change": "manager"})
    manager = signed_in(person)
    manager.post(changing, {"person": str(bob.pk), "change": "add"})
    assert crew.id in spaces.readable_space_ids(bob.pk)
    manager.post(changing, {"person": str(ada.pk), "change": "member"})
    assert not spaces.manages_space(ada.pk, crew)
    manager.post(changing, {"person": str(bob.pk), "change": "remove"})
    assert crew.id not in spaces.readable_space_ids(bob.pk)


def test_an_administrator_edits_members_of_a_group_without_managers(ada, person, bob):
    crew = group("Crew", person)
    assert "It has no manager" in signed_in(person).get(reverse("space", args=[crew.id])).content.decode()
    signed_in(ada).post(reverse("change_members", args=[crew.id]), {"person": str(person.pk), "change": "manager"})
    assert spaces.manages_space(person.pk, crew)


def test_members_see_who_is_in_the_group_and_who_joined_on_their_own(ada, person, bob):
    crew = group("Crew", person)
    changing = reverse("change_members", args=[crew.id])
    for change in ("add", "manager", "remove"):
        signed_in(ada).post(changing, {"person": str(ada.pk), "change": change})
    signed_in(ada).post(changing, {"person": str(bob.pk), "change": "add"})

    page = signed_in(person).get(reverse("space", args=[crew.id])).content.decode()
    assert person.name in page
    assert "Bob Team" in page
    assert "Ada Admin joined by their own decision." in page
    assert "Ada Admin became a manager by their own decision." in page
    assert "Ada Admin left." in page
    assert "Ada Admin added Bob Team." in page
    assert reverse("change_members", args=[crew.id]) not in page
    assert signed_in(PersonFactory()).get(reverse("space", args=[crew.id])).status_code == 404


def test_a_deleted_account_is_shown_as_having_left(person, bob):
    crew = group("Crew", person, bob)
    deletion.delete_account(bob)
    assert "Former member left." in signed_in(person).get(reverse("space", args=[crew.id])).content.decode()


def test_pages_of_the_team_and_personal_space_name_their_managers(ada, person):
    team = signed_in(person).get(reverse("space", args=[spaces.team_space().id])).content.decode()
    assert "Its managers are the administrators" in team
    assert "Ada Admin" in team
    own = spaces.personal_space(person.pk)
    assert (
        "Only you read your personal space" in signed_in(person).get(reverse("space", args=[own.id])).content.decode()
    )
    assert signed_in(ada).get(reverse("space", args=[own.id])).status_code == 404
    assert (spaces.manages_space(person.pk, own), spaces.manages_space(ada.pk, own)) == (True, False)
    assert (
        spaces.manages_space(person.pk, spaces.team_space()),
        spaces.manages_space(ada.pk, spaces.team_space()),
    ) == (
        False,
        True,
    )


def test_only_owner_and_managers_set_model_and_recall_filter_of_a_shared_thread(person, bob):
    manager = PersonFactory(name="Max Manager")
    crew = group("Crew", person, bob, manager)
    Membership.objects.filter(person=manager).update(role="manager")
    talk = thread(person, space=crew)
    turn(talk)

    def set_model(user, name: str) -> int:
        message = {"message": f"/model {name}", "client_key": str(uuid.uuid4())}
        return signed_in(user).post(reverse("post_message", args=[talk.id]), message).status_code

    def set_filter(user, zone: str) -> int:
        return (
            signed_in(user)
            .post(reverse("recall_filter", args=[talk.id]), {"only_metadata": f"zone: {zone}"})
            .status_code
        )

    assert (set_model(bob, "evil"), set_filter(bob, "evil")) == (422, 403)
    talk.refresh_from_db()
    assert (talk.model, talk.recall_filter) == ("", {})
    page = signed_in(bob).get(reverse("thread", args=[talk.id])).content.decode()
    assert reverse("recall_filter", args=[talk.id]) not in page
    for user, name in ((manager, "of-the-manager"), (person, "of-the-owner")):
        assert (set_model(user, name), set_filter(user, name)) == (200, 302)
        talk.refresh_from_db()
        assert talk.model == name
        assert name in str(talk.recall_filter)
        assert (
            reverse("recall_filter", args=[talk.id])
            in signed_in(user).get(reverse("thread", args=[talk.id])).content.decode()
        )


def test_a_member_leaves_a_group_from_the_settings(bob):
    crew, other = group("Crew", bob), group("Other")
    page = signed_in(bob)
    assert "Crew" in page.get(reverse("settings")).content.decode()
    assert page.post(reverse("leave_group", args=[other.id])).status_code == 404

    page.post(reverse("leave_group", args=[crew.id]))
    assert crew.id not in spaces.readable_space_ids(bob.id)


def test_a_moved_thread_is_reached_only_in_its_new_space(person, bob, memory):
    crew = group("Crew", person, bob)
    own = remembered_thread(person, title="Keys")
    memory.index_pending()
    assert reachable(memory, bob) == set()

    services.move_thread(own, to=crew, by=person.id)
    assert reachable(memory, bob) == {"Keys", "The key hangs behind the clock"}
    assert access.get_thread(bob.id, own.id)

    services.move_thread(own, to=spaces.personal_space(person.id), by=person.id)
    assert reachable(memory, bob) == set()
    assert reachable(memory, person) == {"Keys", "The key hangs behind the clock"}
    with pytest.raises(NotFoundError):
        access.get_thread(bob.id, own.id)


def test_leaving_a_group_removes_access_to_its_data_at_once(person, bob, memory):
    crew = group("Crew", person, bob)
    remembered_thread(person, title="Keys", space=crew)
    document(person, "plan.txt", "The key to the sauna hangs behind the stove. " * 20, space=crew)
    memory.index_pending()
    assert "Keys" in reachable(memory, bob)

    memory.remove_from_group(crew, bob.id, by=bob.id)
    assert reachable(memory, bob) == set()
    assert "plan.txt" not in signed_in(bob).get(reverse("documents")).content.decode()


def test_moving_a_thread_warns_that_messages_of_others_move_with_it(person, bob):
    talk = thread(person, space=group("Crew", person, bob))
    turn(talk)
    page = signed_in(person)
    assert "by somebody else" not in page.get(reverse("move_thread", args=[talk.id])).content.decode()
    turn(talk, author=bob)
    assert "1 message in it is by somebody else" in page.get(reverse("move_thread", args=[talk.id])).content.decode()


def test_an_author_can_forget_messages_that_were_moved_out_of_sight(person, bob, memory):
    talk = thread(person, space=group("Crew", person, bob))
    stored = exchange(bob, "The key hangs behind the clock", space=talk.space, thread_id=talk.id)
    of_owner = exchange(person, "The oar is in the cellar", space=talk.space, thread_id=talk.id)
    services.move_thread(talk, to=spaces.personal_space(person.id), by=person.id)
    page = signed_in(bob)
    assert page.get(reverse("exchange", args=[stored.id])).status_code == 404
    assert page.post(reverse("forget_exchange", args=[of_owner.id])).status_code == 404
    assert page.get(reverse("forget_exchange", args=[stored.id])).status_code == 200
    assert page.post(reverse("forget_exchange", args=[stored.id])).url == reverse("search")
    stored.refresh_from_db()
    assert stored.forgotten_at


def test_a_thread_with_a_running_answer_cannot_be_moved(person):
    talk = thread(person)
    turn(talk, "First", "", state=Turn.State.ANSWERING)

    with pytest.raises(ThreadBusyError, match="An answer is in progress"):
        services.move_thread(talk, to=spaces.team_space(), by=person.id)


def test_a_thread_moves_only_to_a_space_that_its_owner_may_read(person, bob):
    foreign, own = group("Foreign", bob), thread(person)
    page = signed_in(person).post(reverse("move_thread", args=[own.id]), {"space": str(foreign.id)}, follow=True)

    assert "This space is not there any more, or not yours" in page.content.decode()
    own.refresh_from_db()
    assert own.space_id == spaces.personal_space(person.id).id


def test_a_new_thread_is_created_in_the_chosen_space(person, bob):
    crew = group("Crew", person, bob)
    page = signed_in(person)
    assert "Crew (2)" in page.get("/").content.decode()
    page.post("/", {"message": "For the crew", "client_key": str(uuid.uuid4()), "space": str(crew.id)})

    assert Thread.objects.get().space == crew
    assert access.readable_threads(bob.id).count() == 1


def test_a_moved_document_is_reached_only_in_its_new_space(person, bob, memory):
    crew = group("Crew", person, bob)
    plan = document(person, "plan.txt", "The key to the sauna hangs behind the stove. " * 20)
    assert not memory.search("sauna key stove", spaces=spaces.readable_space_ids(bob.id)).results
    signed_in(person).post(reverse("move_document", args=[plan.pk]), {"space": str(crew.id)})

    assert memory.search("sauna key stove", spaces=spaces.readable_space_ids(bob.id)).results
    assert signed_in(bob).get(reverse("document", args=[plan.pk])).status_code == 200
    memory.index_pending()
    found = memory.search("what opens the steam bath", spaces=spaces.readable_space_ids(bob.id)).results
    assert found
    assert found[0].similarity is not None

    memory.move_document(plan, to=spaces.personal_space(person.id), by=person.id)
    assert not memory.search("sauna key stove", spaces=spaces.readable_space_ids(bob.id)).results
    assert signed_in(bob).get(reverse("document", args=[plan.pk])).status_code == 404


def test_a_document_cannot_be_moved_over_another_of_its_name_or_while_it_is_read(person, memory):
    crew = group("Crew", person)
    own, theirs = document(person, "plan.txt", "Ours. " * 50), document(person, "plan.txt", "Theirs. " * 50, space=crew)
    with pytest.raises(InvalidInputError, match=r"That space already has a document plan\.txt"):
        memory.move_document(own, to=crew, by=person.id)

    waiting = upload(person, "new.txt", "Still to be read. " * 20).version.document
    with pytest.raises(InvalidInputError, match="still being read"):
        memory.move_document(waiting, to=crew, by=person.id)
    assert theirs.space == crew


def test_a_document_is_added_to_the_chosen_space(person, bob):
    crew = group("Crew", person, bob)
    page = signed_in(person)
    assert "Crew (2)" in page.get(reverse("documents")).content.decode()
    file = SimpleUploadedFile("plan.txt", b"The key to the sauna hangs behind the stove.")
    page.post(reverse("documents"), {"files": file, "space": str(crew.id)})

    assert "plan.txt" in signed_in(bob).get(reverse("documents")).content.decode()


def test_a_group_is_found_by_its_id_only(db):
    person = PersonFactory()
    one, other = group("Rowers", person), group("Sailors", person)
    assert [get_group(space.id).name for space in (one, other)] == ["Rowers", "Sailors"]
    for unknown in (spaces.personal_space(person.pk).id, uuid.uuid4()):
        with pytest.raises(NotFoundError):
            get_group(unknown)


def test_a_group_can_be_renamed_in_case_but_not_to_another_groups_name(db):
    person = AdministratorFactory()
    rowers = group("Rowers", person)
    group("Sailors", person)
    rename_group(rowers, "ROWERS")
    with pytest.raises(InvalidInputError):
        rename_group(rowers, "sailors")


def recorded_changes(crew: Space) -> list[tuple[str, uuid.UUID, uuid.UUID]]:
    return list(crew.membership_changes.order_by("id").values_list("kind", "person", "by"))


def test_only_changes_of_members_and_roles_are_recorded(memory, ada, bob):
    crew, other = memory.create_group("Crew", by=ada.id), group("Other", bob)
    assert memory.add_to_group(crew, bob.id, by=ada.id)
    assert not memory.add_to_group(crew, bob.id, by=ada.id)
    assert memory.set_group_role(crew, bob.id, "manager", by=ada.id)
    assert not memory.set_group_role(crew, bob.id, "manager", by=ada.id)
    assert not memory.set_group_role(crew, bob.id, "owner", by=ada.id)
    assert Membership.objects.get(space=crew, person=bob).role == "manager"
    assert Membership.objects.get(space=other, person=bob).role == "member"
    assert memory.set_group_role(crew, bob.id, "member", by=ada.id)
    assert memory.remove_from_group(crew, bob.id, by=bob.id)
    assert not memory.remove_from_group(crew, bob.id, by=ada.id)
    assert not memory.set_group_role(crew, bob.id, "manager", by=ada.id)

    assert recorded_changes(crew) == [
        ("created", ada.id, ada.id),
        ("added", bob.id, ada.id),
        ("made_manager", bob.id, ada.id),
        ("made_member", bob.id, ada.id),
        ("removed", bob.id, bob.id),
    ]
    assert not MembershipChange.objects.filter(space=other).exists()
    assert set(Membership.objects.values_list("space", "person", "role")) == {
        (crew.id, ada.id, "manager"),
        (other.id, bob.id, "member"),
    }


def test_a_group_is_empty_without_exchanges_and_documents_of_its_own(memory, person):
    crew, other = group("Crew", person), group("Other", person)
    uploaded = document(person, "plan.txt", "The key hangs behind the stove.", space=crew)
    assert memory.is_group_empty(other)
    assert not memory.is_group_empty(crew)

    # A file without text has no exchange.
    unread = upload(person, "scan.pdf", b"%PDF-1.7 and then nothing", space=other).version.document
    assert not memory.is_group_empty(other)
    memory.forget_documents([unread.pk, uploaded.pk], by=person.id)
    assert memory.is_group_empty(other)
    assert memory.is_group_empty(crew)
    assert (memory.is_group_erased(other), memory.is_group_erased(crew)) == (False, False)
    process_documents()
    assert (memory.is_group_erased(other), memory.is_group_erased(crew)) == (True, True)


def test_only_the_removed_group_disappears(memory, person):
    crew, other = group("Crew"), group("Other")
    memory.remove_group(crew)
    memory.remove_group(spaces.personal_space(person.id))
    assert set(Space.objects.filter(kind="group")) == {other}
    assert Space.objects.filter(owner=person).exists()


def test_a_group_cannot_have_the_name_of_another_kind_of_space_but_keeps_its_own(memory, ada):
    crew = memory.create_group("x" * 100, by=ada.id)
    assert len(crew.name) == 80
    for name in ("Only you", "everyone", ""):
        with pytest.raises(InvalidInputError):
            rename_group(crew, name)
    rename_group(crew, crew.name)
    other = group("Other")
    rename_group(crew, " Rowers ")
    assert set(Space.objects.filter(kind="group").values_list("id", "name")) == {
        (crew.id, "Rowers"),
        (other.id, "Other"),
    }
