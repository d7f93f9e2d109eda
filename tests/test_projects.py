"""Projects: who reads and changes them, from where their threads recall, what an archived one refuses, and their pages."""

from __future__ import annotations

import re
import uuid

import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from cato_web.accounts import groups, projects, roles
from cato_web.accounts.models import AuditEntry
from chat import access, prompt_library, services
from chat.answers.persistence import store_exchange
from chat.answers.recall import recall_for_turn
from chat.imports import importer, jobs
from chat.imports.archive import ArchiveImport
from chat.imports.formats.archive import ArchivedInstruction
from chat.imports.worker import run_imports
from chat.instructions import editing
from chat.models import ImportJob, Instruction, Thread, Turn
from chat.realtime import notifications
from chat.realtime.messages import ListChange
from chat.rows import sidebar
from memory.documents.uploads import upload_document
from memory.errors import InvalidInputError, NotFoundError
from memory.exchanges.moving import move_document, move_thread
from memory.exchanges.notes import add_note
from memory.exchanges.records import NewRecord, upsert_records
from memory.models import Exchange, Membership, Space
from memory.retrieval.recall import _preferred_first
from memory.spaces import access as spaces
from tests.factories import (
    AdministratorFactory,
    PersonFactory,
    ago,
    answer_job,
    api_client,
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
Mode = Space.RecallMode


def text_file(name: str, text: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode())


def invalid_fields(html: str) -> list[str]:
    """Return the names of the fields that a page marks as invalid."""
    return re.findall(r'name="(\w+)"[^>]*aria-invalid="true"', html)


@pytest.fixture
def ada(db):
    return PersonFactory(name="Ada")


@pytest.fixture
def bob(db):
    return PersonFactory(name="Bob")


@pytest.fixture
def carla(db):
    """Return an administrator who is in no project."""
    return AdministratorFactory(name="Carla")


def project(name: str, manager, *members, **fields) -> Space:
    """Create a project with its manager and these members."""
    space = projects.create(name, "", by=manager)
    Membership.objects.bulk_create([Membership(space=space, person=person) for person in members])
    if fields:
        Space.objects.filter(pk=space.pk).update(**fields)
        space.refresh_from_db()
    return space


def archived(name: str, manager, *members) -> Space:
    space = project(name, manager, *members)
    projects.archive(space, by=manager)
    space.refresh_from_db()
    return space


def page(person, name: str, *args, **query):
    return signed_in(person).get(reverse(name, args=args), query)


def test_any_member_creates_a_project_and_manages_it(ada, bob):
    answer = signed_in(ada).post(reverse("projects"), {"name": "Buoys", "description": "The spring  deployment"})
    space = Space.objects.get(kind="project")
    assert answer.url == reverse("space", args=[space.id])
    assert (space.name, space.description) == ("Buoys", "The spring deployment")
    assert spaces.manages_space(ada.id, space)
    assert space.id not in spaces.readable_space_ids(bob.id)
    assert AuditEntry.objects.filter(actor=ada, action="project.created", target=f"Buoys {space.id}").exists()


@pytest.mark.parametrize("name", ["", "Crew", "BUOYS", "team"])
def test_a_project_has_a_name_that_no_other_space_has(ada, name):
    group("Crew")
    project("Buoys", ada)
    answer = signed_in(ada).post(reverse("projects"), {"name": name, "description": "kept"})
    assert answer.status_code == 422
    assert "kept" in answer.content.decode()
    assert Space.objects.filter(kind="project").count() == 1


def test_what_a_project_contains_is_for_its_members(ada, bob, carla, memory):
    space = project("Buoys", ada)
    inside = thread(ada, space=space, title="Mooring lines")
    kept = exchange(ada, "The mooring line is 12 mm thick", space=space)

    def reaches(person) -> list[bool]:
        found = memory.search("mooring line thick", spaces=spaces.readable_space_ids(person.id)).results
        return [
            page(person, "thread", inside.id).status_code == 200,
            page(person, "exchange", kept.id).status_code == 200,
            bool(found),
            "Mooring lines" in page(person, "space", space.id).content.decode(),
        ]

    assert reaches(ada) == [True] * 4
    assert reaches(bob) == reaches(carla) == [False] * 4
    groups.add_member(space, bob, by=ada)
    assert reaches(bob) == [True] * 4
    groups.remove_member(space, bob.id, by=ada)
    assert reaches(bob) == [False] * 4


def test_an_administrator_sees_the_members_of_a_project_and_can_name_a_manager(ada, carla):
    space = project("Buoys", ada)
    assert "Ada" in page(carla, "space", space.id).content.decode()
    assert "Buoys" in page(carla, "admin_groups").content.decode()
    groups.add_member(space, carla, by=carla)
    assert groups.can_edit_members(carla, space)


@pytest.mark.parametrize("change", ["save", "archive", "delete"])
def test_only_managers_change_a_project(ada, bob, carla, change):
    space = project("Buoys", ada, bob)
    data = {"change": change, "name": "Other", "recall_mode": Mode.SHARED}
    url = reverse("change_project", args=[space.id])
    assert signed_in(bob).post(url, data).status_code == 403
    assert signed_in(carla).post(url, data).status_code == 404
    space.refresh_from_db()
    assert (space.name, space.recall_mode, space.archived_at) == ("Buoys", Mode.PROJECT_FIRST, None)


def test_a_group_is_not_changed_as_a_project(ada):
    crew = group("Crew")
    Membership.objects.create(space=crew, person=ada, role=Membership.Role.MANAGER)
    with pytest.raises(NotFoundError):
        projects.project_to_change(ada, crew.id)


def test_a_manager_changes_name_description_and_recall(ada):
    space = project("Buoys", ada)
    data = {"name": "Moorings", "description": "Lines", "recall_mode": Mode.PROJECT_ONLY}
    signed_in(ada).post(reverse("change_project", args=[space.id]), data)
    space.refresh_from_db()
    assert (space.name, space.description, space.recall_mode) == ("Moorings", "Lines", Mode.PROJECT_ONLY)
    for wrong in ({"recall_mode": "all"}, {"description": "x" * 501}, {"name": ""}):
        signed_in(ada).post(reverse("change_project", args=[space.id]), data | wrong)
    space.refresh_from_db()
    assert (space.name, space.description, space.recall_mode) == ("Moorings", "Lines", Mode.PROJECT_ONLY)


def test_wrong_settings_of_a_project_stay_in_their_form_beside_the_error(ada):
    space, taken = project("Buoys", ada), project("Moorings", ada)
    data = {"name": taken.name, "description": "Lines", "recall_mode": Mode.PROJECT_ONLY}
    answer = signed_in(ada).post(reverse("change_project", args=[space.id]), data)
    shown = answer.content.decode()
    assert answer.status_code == 422
    assert "Moorings is taken. Choose another name." in shown
    assert 'name="name" value="Moorings"' in shown
    assert 'name="description" value="Lines"' in shown
    assert f'value="{Mode.PROJECT_ONLY}" selected' in shown


@pytest.mark.parametrize(
    ("wrong", "field"), [({"description": "x" * 501}, "description"), ({"recall_mode": "all"}, "recall_mode")]
)
def test_an_error_about_the_settings_of_a_project_is_at_its_field(ada, wrong, field):
    space = project("Buoys", ada)
    data = {"name": "Moorings", "description": "Lines", "recall_mode": Mode.PROJECT_ONLY} | wrong
    shown = signed_in(ada).post(reverse("change_project", args=[space.id]), data).content.decode()
    assert invalid_fields(shown) == [field]


def test_an_error_about_the_description_of_a_new_project_is_at_its_field(ada):
    data = {"name": "Buoys", "description": "x" * 501}
    shown = signed_in(ada).post(reverse("projects"), data).content.decode()
    assert invalid_fields(shown) == ["description"]
    assert "The description has at most 500 characters." in shown


def test_only_an_empty_project_is_deleted(ada):
    space = project("Buoys", ada)
    inside = thread(ada, space=space)
    signed_in(ada).post(reverse("change_project", args=[space.id]), {"change": "delete"})
    assert Space.objects.filter(pk=space.pk).exists()
    inside.delete()
    signed_in(ada).post(reverse("change_project", args=[space.id]), {"change": "delete"})
    assert not Space.objects.filter(pk=space.pk).exists()


# From where its threads recall.


def test_a_project_recalls_what_all_its_members_share(ada, bob):
    crew, alone = group("Crew", ada, bob), group("Only Ada", ada)
    other = project("Other", ada, bob)
    space = project("Buoys", ada, bob)
    team = spaces.team_space()
    assert spaces.audience_space_ids(space) == {space.id, team.id, crew.id, other.id}

    carla = PersonFactory()
    groups.add_member(space, carla, by=ada)
    assert spaces.audience_space_ids(space) == {space.id, team.id}
    assert alone.id not in spaces.audience_space_ids(space)


def test_the_personal_space_of_the_only_member_is_not_recalled(ada):
    space = project("Buoys", ada)
    assert spaces.personal_space(ada.id).id not in spaces.audience_space_ids(space)


def test_a_project_without_members_recalls_the_team_space_besides(ada):
    space = project("Buoys", ada)
    group("Empty")
    groups.remove_member(space, ada.id, by=ada)
    assert spaces.audience_space_ids(space) == {space.id, spaces.team_space().id}


def test_a_project_can_recall_from_itself_alone(ada, bob):
    group("Crew", ada, bob)
    space = project("Buoys", ada, bob, recall_mode=Mode.PROJECT_ONLY)
    assert spaces.audience_space_ids(space) == {space.id}


def recalled(space: Space, person, question: str) -> list[str]:
    """Return the messages recalled for a question in a thread of this space, best first."""
    asked = turn(thread(person, space=space), question, answer="", state=Turn.State.RECALLING)
    return [hit.exchange.user_message for hit in recall_for_turn(answer_job(asked)).search_results.results]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.PROJECT_ONLY, ["project"]),
        (Mode.PROJECT_FIRST, ["project", "team"]),
        (Mode.SHARED, ["team", "project"]),
    ],
)
def test_the_recall_mode_decides_what_is_recalled_and_in_which_order(ada, bob, memory, mode, expected):
    space = project("Buoys", ada, bob, recall_mode=mode)
    notes = {
        "project": "We paid 4,200 crowns for two lead batteries in May.",
        "team": "Which batteries does the north buoy have? The north buoy has lithium batteries of 48 V.",
    }
    exchange(ada, notes["project"], space=space)
    exchange(bob, notes["team"], space=spaces.team_space())
    memory.index_pending()
    found = recalled(space, ada, "Which batteries does the north buoy have?")
    assert found == [notes[name] for name in expected]


def test_the_best_hit_stays_second_at_least():
    class Exchange:
        def __init__(self, space_id):
            self.space_id = space_id

    class Hit:
        def __init__(self, name, space_id):
            self.name, self.exchange = name, Exchange(space_id)

    here, there = uuid.uuid4(), uuid.uuid4()
    hits = [Hit("best", there), Hit("a", here), Hit("other", there), Hit("b", here)]
    assert [hit.name for hit in _preferred_first(hits, here)] == ["a", "best", "b", "other"]
    assert [hit.name for hit in _preferred_first(hits[1:], here)] == ["a", "b", "other"]
    assert _preferred_first(hits, None) == hits


# What an archived project refuses.


def additions(space: Space, person):
    """Yield what adds something to the space, by name."""
    own = thread(person)
    inside = Thread.objects.filter(space=space).first()
    yield "thread", lambda: services.create_thread(person.id, space=space)
    yield (
        "message in a new thread",
        lambda: services.create_thread_with_message(person.id, message="Hi", client_key=uuid.uuid4(), space=space),
    )
    yield (
        "message",
        lambda: services.post_message(inside.id, author_id=person.id, message="Hi", client_key=uuid.uuid4()),
    )
    yield "moved thread", lambda: services.move_thread(own, to=space, by=person.id)
    yield "moved exchanges", lambda: move_thread(own.id, to=space, by=person.id)
    yield "moved document", lambda: move_document(document(person, "a.txt", "Hello"), to=space, by=person.id)
    yield "note", lambda: add_note("Hello", space=space, owner_id=person.id, source="vadd_command")
    yield (
        "document",
        lambda: upload_document(
            text_file("a.txt", "Hello"), name="a.txt", space=space, owner_id=person.id, source="upload"
        ),
    )
    yield "record", lambda: upsert_records([NewRecord(id="r1", text="Hello")], space=space, owner_id=person.id)
    yield "instruction", lambda: editing.add(space, "Use metric units", by=person.id)
    detected = Instruction.objects.create(space=own.space, author_id=person.id, text="Be brief", state="suggested")
    yield "kept instruction", lambda: editing.keep(detected, space=space)
    yield "saved prompt", lambda: prompt_library.add(space, name="report", text="Report.", by=person.id)
    yield "import", lambda: jobs.create_import(text_file("a.json", "[]"), owner_id=person.id, space=space)


def test_an_archived_project_takes_nothing_new_and_keeps_what_it_has(ada, memory):
    space = project("Buoys", ada)
    inside = thread(ada, space=space, title="Mooring lines")
    exchange(ada, "The mooring line is 12 mm thick", space=space)
    memory.index_pending()
    projects.archive(space, by=ada)
    space.refresh_from_db()
    for name, add in additions(space, ada):
        print("refused:", name)
        with pytest.raises(InvalidInputError, match="Buoys is archived"):
            add()
    api = api_client(ada)
    for sent in ({"text": "A note"}, {"user_message": "A question", "assistant_message": "An answer"}):
        answer = api.post("/api/exchanges", sent | {"space": "Buoys"}, content_type="application/json")
        assert answer.status_code == 422
    assert memory.search("mooring line", spaces=spaces.readable_space_ids(ada.id)).results
    assert "The project is archived" in page(ada, "thread", inside.id).content.decode()

    projects.reopen(space, by=ada)
    assert services.create_thread(ada.id, space=Space.objects.get(pk=space.pk)).space_id == space.pk


def test_an_answer_that_runs_while_its_project_is_archived_is_remembered(ada, memory):
    space = project("Buoys", ada)
    one = turn(thread(ada, space=space), "How thick is the line?", "12 mm")
    projects.archive(space, by=ada)
    store_exchange(Turn.objects.select_related("thread__space", "session").get(id=one.id))
    assert Turn.objects.get(id=one.id).exchange_id is not None


def test_an_archived_project_is_not_offered_and_its_threads_leave_the_list(ada):
    space = project("Buoys", ada)
    thread(ada, space=space, title="Mooring lines")

    def listed() -> set[str]:
        return {link.title for part in sidebar.thread_list(ada.id, None).groups for link in part.threads}

    assert listed() == {"Mooring lines"}
    assert f'value="{space.id}"' in page(ada, "notes").content.decode()
    projects.archive(space, by=ada)
    assert listed() == set()
    for name in ("new_thread", "notes", "documents", "import", "instructions", "saved_prompts"):
        assert f'<option value="{space.id}"' not in page(ada, name).content.decode()
    assert "Mooring lines" in page(ada, "threads").content.decode()
    assert "Archived projects" in page(ada, "projects").content.decode()


# Pages and imports.


def test_lists_are_limited_to_a_project_for_its_members(ada, bob):
    space = project("Buoys", ada)
    thread(ada, space=space, title="Mooring lines")
    thread(ada, title="Holidays")
    for name in ("threads", "documents", "notes"):
        answer = page(ada, name, space=space.id)
        assert "Buoys" in answer.content.decode()
        assert page(bob, name, space=space.id).status_code == 404
        assert page(bob, name, space="nonsense").status_code == 404
    titles = page(ada, "threads", space=space.id).content.decode().split("<main")[1]
    assert "Mooring lines" in titles
    assert "Holidays" not in titles


def test_a_new_thread_of_a_project_begins_with_it_chosen(ada):
    space = project("Buoys", ada)
    assert f'<option value="{space.id}" selected>' in page(ada, "new_thread", space=space.id).content.decode()
    answer = signed_in(ada).post(
        reverse("new_thread"), {"message": "Hello", "space": space.id, "client_key": uuid.uuid4()}
    )
    assert answer.status_code == 302
    assert Thread.objects.get().space_id == space.id


EXPORT = (
    '[{"uuid": "c1", "name": "Anchors", "created_at": "2024-05-01T10:00:00Z", "chat_messages": ['
    '{"uuid": "m1", "sender": "human", "text": "How heavy is the anchor?", "created_at": "2024-05-01T10:00:00Z"},'
    '{"uuid": "m2", "sender": "assistant", "text": "80 kg", "created_at": "2024-05-01T10:00:05Z"}]}]'
)


def test_an_import_can_go_into_a_project(ada, bob, memory):
    space = project("Buoys", ada, bob)
    row = jobs.create_import(text_file("export.json", EXPORT), owner_id=ada.id, space=space)
    run_imports()
    row.refresh_from_db()
    assert row.imported == 1
    assert Thread.objects.get().space_id == space.id
    assert access.readable_threads(bob.id).exists()


@pytest.mark.parametrize("loses_access", [True, False])
def test_an_import_checks_the_space_when_it_runs(ada, bob, memory, loses_access):
    space = project("Buoys", bob, ada)
    row = jobs.create_import(text_file("export.json", EXPORT), owner_id=ada.id, space=space)
    if loses_access:
        groups.remove_member(space, ada.id, by=bob)
    else:
        projects.archive(space, by=bob)
    run_imports()
    row.refresh_from_db()
    assert row.state == ImportJob.State.FAILED
    assert ("not a member" if loses_access else "is archived") in row.error
    assert not Thread.objects.exists()


@pytest.mark.parametrize("loses_access", [True, False])
def test_an_import_ends_when_its_owner_may_not_add_to_the_space_any_more(ada, bob, memory, monkeypatch, loses_access):
    space = project("Buoys", bob, ada)
    two = EXPORT[:-1] + "," + EXPORT[1:].replace('"c1"', '"c2"').replace('"m', '"n')
    row = jobs.create_import(text_file("export.json", two), owner_id=ada.id, space=space)
    import_one = importer._import_one

    def change_after_the_first(*args, **options):
        import_one(*args, **options)
        if loses_access:
            groups.remove_member(space, ada.id, by=bob)
        else:
            projects.archive(space, by=bob)

    monkeypatch.setattr(importer, "_import_one", change_after_the_first)
    run_imports()

    row.refresh_from_db()
    assert row.state == ImportJob.State.FAILED
    assert ("not a member" if loses_access else "is archived") in row.error
    assert Thread.objects.count() == row.imported == 1


def test_a_conversation_ends_at_the_batch_after_which_its_owner_lost_the_space(ada, bob, memory, monkeypatch):
    space = project("Buoys", bob, ada)
    messages = EXPORT[EXPORT.index('"chat_messages": [') + len('"chat_messages": [') : EXPORT.rindex("]}]")]
    two = EXPORT.replace(messages, messages + "," + messages.replace('"m', '"n'))
    row = jobs.create_import(text_file("export.json", two), owner_id=ada.id, space=space)
    save_batch = importer.save_batch

    def remove_after_the_first(*args):
        saved = save_batch(*args)
        Membership.objects.filter(space=space, person=ada).delete()
        return saved

    monkeypatch.setattr(importer, "_BATCH_SIZE", 1)
    monkeypatch.setattr(importer, "save_batch", remove_after_the_first)
    run_imports()

    row.refresh_from_db()
    assert Turn.objects.count() == row.turns == 1
    assert (row.state, row.imported) == (ImportJob.State.FAILED, 1)


@pytest.mark.parametrize(
    "space_of", [lambda ada: spaces.team_space(), lambda ada: project("Buoys", ada), lambda ada: None]
)
def test_an_import_ends_when_its_owner_is_deactivated(ada, carla, memory, space_of):
    row = jobs.create_import(text_file("export.json", EXPORT), owner_id=ada.id, space=space_of(ada))
    roles.set_active(ada.id, False, by=carla)
    run_imports()
    row.refresh_from_db()
    assert row.state == ImportJob.State.FAILED
    assert "deactivated" in row.error
    assert not Thread.objects.exists()


def test_a_project_with_an_unfinished_import_is_not_deleted(ada, bob):
    space = project("Buoys", bob, ada)
    row = jobs.create_import(text_file("export.json", EXPORT), owner_id=ada.id, space=space)
    with pytest.raises(InvalidInputError, match="An import into Buoys is not finished"):
        groups.delete_group(space, by=bob)

    jobs.cancel(row)
    groups.delete_group(space, by=bob)
    assert not Space.objects.filter(pk=space.pk).exists()


def test_a_project_is_deleted_once_its_deleted_contents_are_erased(memory, ada, bob):
    space = project("Buoys", ada, bob)
    store_exchange(talk := turn(thread(bob, space=space), "How heavy is the anchor?", "80 kg"))
    Thread.objects.filter(pk=talk.thread_id).update(head=talk)
    plan = document(ada, "plan.txt", "The key hangs behind the stove.", space=space)
    scan = upload(ada, "scan.pdf", b"%PDF-1.7 and then nothing", space=space).version.document
    process_documents()
    memory.index_pending()
    services.delete_thread(talk.thread)
    memory.forget_documents([plan.pk, scan.pk], by=ada.id)
    page = signed_in(ada)

    def delete() -> str:
        address = reverse("change_project", args=[space.id])
        return page.post(address, {"change": "delete"}, follow=True).content.decode()

    assert "What was deleted in Buoys is still being erased. Try again in a minute." in delete()
    Thread.objects.update(deleted_at=ago(minutes=1))
    services.purge_deleted()
    process_documents()
    delete()

    assert not Space.objects.filter(pk=space.pk).exists()
    assert set(Exchange.objects.values_list("space__owner", "owner")) == {(ada.pk, ada.pk), (bob.pk, bob.pk)}
    assert not Exchange.objects.exclude(user_message="").exists()


def test_open_pages_learn_that_a_project_is_renamed_archived_or_reopened(
    ada, bob, monkeypatch, django_capture_on_commit_callbacks
):
    space, told = project("Buoys", ada, bob), []
    monkeypatch.setattr(notifications, "notify_users", lambda people, change=None: told.append(set(people)))
    mode = Mode.PROJECT_FIRST
    for change in (
        lambda: projects.change(space, name="Beacons", description="", recall_mode=mode, by=ada),
        lambda: projects.archive(space, by=ada),
        lambda: projects.reopen(space, by=ada),
    ):
        with django_capture_on_commit_callbacks(execute=True):
            change()
    assert told == [{ada.id, bob.id}] * 3


def test_an_answer_that_ends_in_an_archived_project_is_not_listed_again(ada):
    space = project("Buoys", ada)
    one = thread(ada, space=space)
    changes = {one.id: ListChange(one.id)}
    assert sidebar.thread_links(ada.id, None, changes)
    projects.archive(space, by=ada)
    assert not sidebar.thread_links(ada.id, None, changes)


def test_only_members_read_the_instructions_of_a_project(ada, carla):
    space = project("Buoys", ada)
    Instruction.objects.create(space=space, author=ada, text="Answer in knots.", state=Instruction.State.KEPT)
    assert "Answer in knots." in page(ada, "space", space.id).content.decode()
    seen = page(carla, "space", space.id)
    assert seen.status_code == 200
    assert "Answer in knots." not in seen.content.decode()


def test_a_manager_who_removes_themselves_is_led_to_the_list_of_projects(ada, bob):
    space = project("Buoys", ada, bob)
    answer = signed_in(ada).post(
        reverse("change_members", args=[space.id]), {"person": ada.pk, "change": "remove"}, follow=True
    )
    assert answer.redirect_chain[-1][0] == reverse("projects")
    assert "Ada removed from Buoys." in answer.content.decode()


def test_who_leaves_a_project_is_asked_and_told_what_becomes_of_it(ada, bob):
    space = project("Buoys", ada, bob)

    def question(person) -> str:
        return page(person, "leave_group", space.id).content.decode()

    assert "until somebody adds you again" in question(bob)
    assert "It will have no manager" not in question(bob)
    assert "It will have no manager" in question(ada)
    groups.remove_member(space, bob.id, by=ada)
    assert "You are its last member" in question(ada)
    assert Membership.objects.filter(space=space, person=ada).exists()


def test_who_does_not_manage_a_project_imports_no_instructions_into_it(ada, bob):
    space = project("Buoys", ada, bob)
    part = ArchivedInstruction("Metric units only", "Metric units only")
    assert ArchiveImport(None, space, bob.id).add(part).refused
    assert ArchiveImport(None, space, ada.id).add(part).new == 1


def test_members_leave_a_project(ada, bob):
    space = project("Buoys", ada, bob)
    signed_in(bob).post(reverse("leave_group", args=[space.id]))
    assert space.id not in spaces.readable_space_ids(bob.id)
    with pytest.raises((NotFoundError, PermissionDenied)):
        projects.project_to_change(bob, space.id)
