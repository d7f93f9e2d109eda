"""The export of an account: everything of this person, nothing of others, streamed."""

from __future__ import annotations

import base64
import io
import json
import random
import tracemalloc
import zipfile
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.utils import timezone

from cato_web.accounts.export import archive as own_data
from cato_web.accounts.export.selection import select_own
from cato_web.accounts.export.zip_stream import stream_zip
from cato_web.accounts.models import AuditEntry
from chat import prompt_library
from chat.attachments import add_attachments, store_attachment
from chat.imports.formats import conversations
from chat.imports.importer import import_conversations
from chat.instructions.editing import add as add_instruction
from chat.models import Attachment, ImportJob, Instruction, SavedPrompt, Thread, Turn
from chat.turns.forgetting import forget_everywhere
from memory import api
from memory.administration import reveals
from memory.api import NewRecord
from memory.documents.deletion import cancel_document
from memory.exchanges.feedback import set_feedback
from memory.exchanges.supersessions import decide
from memory.models import Document, Exchange, Feedback, Record, Supersession
from memory.spaces import access
from tests.factories import (
    PersonFactory,
    ago,
    document,
    exchange,
    exported_archive,
    group,
    image_of,
    process_documents,
    thread,
    turn,
    upload,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(memory):
    return PersonFactory(name="Alice Owner", email="alice@halden.example")


@pytest.fixture
def bob(memory):
    return PersonFactory(name="Bob Team")


def remembered_turn(person, in_thread, message: str, answer: str = "Noted.", **fields: Any) -> Turn:
    one = turn(in_thread, message, answer, author=person, **fields)
    stored = exchange(person, message, answer, space=in_thread.space, thread_id=in_thread.id, turn_id=one.id)
    one.exchange_id = stored.id
    one.save()
    return one


def names(archive: zipfile.ZipFile, ending: str = "") -> list[str]:
    return [name for name in archive.namelist() if name.endswith(ending)]


def lines(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in archive.read(name).decode().splitlines()]


def all_text(archive: zipfile.ZipFile) -> str:
    return "\n".join([*archive.namelist(), *(archive.read(n).decode(errors="replace") for n in archive.namelist())])


def test_it_contains_account_threads_notes_documents_feedback_and_activity(memory, alice, bob):
    greenhouse = thread(alice, title="The greenhouse: when?")
    remembered_turn(alice, greenhouse, "The greenhouse is painted in May.")
    memory.add_note("The key hangs behind the clock.", space=access.personal_space(alice.pk), owner_id=alice.pk, source="vadd_command", manual_entry=True)  # fmt: skip
    document(alice, "plans/house.txt", "The house has three floors. " * 20, metadata={"zone": "north"})
    of_bob = exchange(bob, "The team meets on Mondays.", space=access.team_space())
    later_of_bob = exchange(bob, "The team meets on Tuesdays now.", space=access.team_space())
    set_feedback(alice.pk, of_bob, "pinned")
    decide(alice.pk, later=later_of_bob, earlier=of_bob, decision="confirmed")
    AuditEntry.objects.create(actor=alice, action="person.joined", target="member")
    add_instruction(access.personal_space(alice.pk), "Be brief.", by=alice.pk)
    add_instruction(access.team_space(), "Write British English.", by=alice.pk)
    add_instruction(access.team_space(), "Rhyme.", by=bob.pk)

    prompt_library.add(access.personal_space(alice.pk), name="report", text="Write the report.", by=alice.pk)
    prompt_library.add(access.team_space(), name="minutes", text="Write the minutes.", by=alice.pk)
    prompt_library.add(access.team_space(), name="poem", text="Write a poem.", by=bob.pk)

    archive = exported_archive(alice)

    account = json.loads(archive.read("account.json"))
    assert (account["name"], account["email"], len(account["login_sessions"])) == (
        "Alice Owner",
        "alice@halden.example",
        1,
    )
    (as_json,) = [name for name in names(archive, ".json") if name.startswith("threads/")]
    (as_markdown,) = names(archive, ".md")
    assert json.loads(archive.read(as_json))["turns"][0]["message"] == "The greenhouse is painted in May."
    assert "> The greenhouse is painted in May." in archive.read(as_markdown).decode()
    (note,) = lines(archive, "notes.jsonl")
    assert (note["user_message"], note["source"]) == ("The key hangs behind the clock.", "vadd_command")
    by_source = {line["source"]: line for line in lines(archive, "exchanges.jsonl")}
    assert by_source["chat"]["assistant_message"] == "Noted."
    assert by_source["chat"]["thread_id"] == str(greenhouse.id)
    assert by_source["upload"]["metadata"]["zone"] == "north"
    (original,) = names(archive, "house.txt")
    assert archive.read(original).decode() == "The house has three floors. " * 20
    (about,) = names(archive, "about.json")
    assert json.loads(archive.read(about))["metadata"] == {"zone": "north"}
    (decision,) = lines(archive, "superseded.jsonl")
    assert (decision["later_id"], decision["is_confirmed"]) == (str(later_of_bob.id), True)
    (opinion,) = lines(archive, "opinions.jsonl")
    assert (opinion["exchange_id"], opinion["opinion"]) == (str(of_bob.id), "pinned")
    written = [row["text"] for row in lines(archive, "instructions.jsonl")]
    assert sorted(written) == ["Be brief.", "Write British English."]
    prompts = {row["name"]: (row["text"], row["space"]) for row in lines(archive, "prompts.jsonl")}
    assert prompts == {"report": ("Write the report.", "Only you"), "minutes": ("Write the minutes.", "Everyone")}
    assert [line["action"] for line in lines(archive, "audit.jsonl")] == ["person.joined"]


def test_it_contains_reveals_of_the_personal_space_and_imports(memory, alice, bob):
    reason = "A letter from the court asks for it."
    reveals.reveal(access.personal_space(alice.pk), by=bob.pk, reason=reason)
    reveals.reveal(access.personal_space(bob.pk), by=alice.pk, reason="Looking for a lost invoice.")
    ImportJob.objects.create(owner=alice, name="conversations.json", due_at=ago(), found=3, imported=2)
    ImportJob.objects.create(owner=bob, name="of-bob.json", due_at=ago())

    archive = exported_archive(alice)

    (reveal,) = lines(archive, "reveals.jsonl")
    assert (reveal["by"], reveal["reason"]) == (bob.name, reason)
    (imported,) = lines(archive, "imports.jsonl")
    assert (imported["name"], imported["found"], imported["imported"]) == ("conversations.json", 3, 2)


def test_it_contains_own_images_but_not_those_of_others(memory, alice, bob):
    team = access.team_space()
    for person in (alice, bob):
        one = turn(thread(person, space=team), "Look at this")
        one.attachments.add(
            Attachment.objects.create(
                owner=person, name=f"{person.name}.png", media_type="image/png", file=ContentFile(b"\x89PNG", "x.png")
            )
        )

    archive = exported_archive(alice)

    (image,) = names(archive, ".png")
    assert (image, archive.read(image)) == ("attachments/00001 Alice Owner.png", b"\x89PNG")
    (about,) = lines(archive, "attachments.jsonl")
    assert (about["file"], len(about["turn_ids"])) == (image, 1)


def test_messages_of_others_in_a_forked_thread_are_omitted(memory, alice, bob):
    fork = thread(alice, title="Plans")
    turn(fork, "Bob wants to move to Bergen.", author=bob)
    turn(fork, "Alice asks when that will be.", author=alice)

    found = all_text(exported_archive(alice))

    assert "Alice asks when that will be." in found
    assert "Bob" not in found


def test_its_threads_can_be_imported_again(memory, alice, tmp_path):
    remembered_turn(alice, thread(alice, title="The greenhouse"), "The greenhouse is painted in May.")
    archive = exported_archive(alice)
    (name,) = [name for name in names(archive, ".json") if name.startswith("threads/")]
    (tmp_path / "one.json").write_bytes(archive.read(name))

    (read,) = conversations(tmp_path / "one.json")

    assert read.title == "The greenhouse"


def test_data_of_others_in_shared_spaces_is_omitted(memory, alice, bob):
    team = access.team_space()
    of_bob = thread(bob, space=team, title="Bob's plan for Bergen")
    remembered_turn(bob, of_bob, "Bob wants to move to Bergen.")
    remembered_turn(alice, of_bob, "Alice asks when that will be.")
    of_alice = thread(alice, space=team, title="The party")
    remembered_turn(alice, of_alice, "Alice bakes a cake.")
    remembered_turn(bob, of_alice, "Bob brings the ballons.")
    remembered_turn(bob, thread(bob, title="Own"), "Bob has a secret.")
    document(bob, "secret.txt", "Bob wrote a poem. " * 20)
    document(bob, "shared.txt", "Bob wrote minutes. " * 20, space=team)
    recipe = document(alice, "recipe.txt", "Alice wrote a recipe. " * 20, space=team)
    # As an administrator, Bob may add a version.
    document(bob, "recipe.txt", "Bob wrote a longer recipe. " * 20, space=team, version_of=recipe)
    AuditEntry.objects.create(actor=bob, action="password.changed", target="Bob")

    found = all_text(exported_archive(alice))

    assert "Bob" not in found
    for by_source in ("Alice asks when that will be.", "Alice bakes a cake."):
        assert by_source in found


def test_forgotten_and_deleted_data_is_omitted(memory, alice):
    talk = thread(alice, title="The safe opens with 12-34-56.")
    for words in ("The safe opens with 12-34-56.", "The cellar is damp."):
        remembered_turn(alice, talk, words)
    memory.forget([Turn.objects.get(message__contains="safe").exchange_id], by=alice.pk)
    deleted = thread(alice, title="Deleted yesterday")
    remembered_turn(alice, deleted, "This was deleted.")
    stored = document(alice, "burnt.txt", "These pages were burnt. " * 20)
    memory.forget_documents([stored.pk], by=alice.pk)
    from chat.services import delete_thread

    delete_thread(deleted)

    found = all_text(exported_archive(alice))

    for words in ("12-34-56", "was deleted", "Deleted yesterday", "burnt"):
        assert words not in found
    assert "The cellar is damp." in found


@pytest.mark.parametrize(("source", "is_omitted"), [("model", True), ("own", False)])
def test_the_title_that_the_model_made_of_a_forgotten_message_is_omitted(memory, alice, source, is_omitted):
    one = remembered_turn(alice, thread(alice, title="Code of the safe", title_source=source), "It is 12-34-56.")
    memory.forget([one.exchange_id], by=alice.pk)

    assert ("Code of the safe" not in all_text(exported_archive(alice))) is is_omitted


def test_other_branches_are_in_the_file_of_the_thread(memory, alice):
    talk = thread(alice)
    turn(talk, "First try", is_on_active_branch=False)
    turn(talk, "Second try")

    archive = exported_archive(alice)

    (thread_file,) = [n for n in names(archive, ".json") if n.startswith("threads/")]
    turns = json.loads(archive.read(thread_file))["turns"]
    assert [(t["message"], t["is_on_active_branch"]) for t in turns] == [("First try", False), ("Second try", True)]
    (as_markdown,) = names(archive, ".md")
    assert "First try" not in archive.read(as_markdown).decode()


def test_an_export_gives_another_account_the_same(memory, alice, bob):
    talk = thread(alice, title="The greenhouse")
    first = turn(talk, "Which colour?", "Green.", is_on_active_branch=False)
    second = turn(talk, "Which colour?", "White.")
    third = turn(talk, "When?", "In May.", parent=second)
    turn(talk, "Why green?", "It hides.", parent=first, is_on_active_branch=False)
    Turn.objects.update(completed_at=ago(days=1))
    Turn.objects.filter(pk=second.pk).update(created_at=ago(days=400), completed_at=ago(days=399))
    Thread.objects.filter(pk=talk.pk).update(head=third)
    memory.add_note("The key hangs behind the clock.", space=access.personal_space(alice.pk), owner_id=alice.pk, source="vadd_command", manual_entry=True, timestamp=ago(days=9))  # fmt: skip
    prompt_library.add(access.personal_space(alice.pk), name="report", text="Write the report.", by=alice.pk)
    house = document(alice, "house.txt", "The house has three floors. " * 20, metadata={"zone": "north"})
    upload(alice, "house.txt", "The house has four floors. " * 20, version_of=house)
    picture = image_of(alice, "gate.png")
    plan = store_attachment(ContentFile(b"# Plan\n\nDig first.", name="plan.md"), owner_id=alice.pk)
    earlier = remembered_turn(alice, talk, "What was on it before?", "A fence.", parent=third)
    asked = remembered_turn(alice, talk, "What is on it?", "A gate.", parent=earlier)
    add_attachments(asked, [picture, plan])
    add_instruction(access.personal_space(alice.pk), "Always answer in verse.", by=alice.pk)
    set_feedback(alice.pk, Exchange.objects.get(pk=asked.exchange_id), "pinned")
    Exchange.objects.filter(pk=earlier.exchange_id).update(timestamp=ago(days=30))
    Turn.objects.filter(pk=earlier.pk).update(created_at=ago(days=30), completed_at=ago(days=30))
    decide(
        alice.pk,
        later=Exchange.objects.get(pk=asked.exchange_id),
        earlier=Exchange.objects.get(pk=earlier.exchange_id),
        decision="confirmed",
    )
    vector = [float(number % 7 - 3) for number in range(384)]
    for record in (
        NewRecord("gate-1", "The gate is green.", {"zone": "north"}, timestamp=ago(days=3)),
        NewRecord("gate-2", "The gate is white.", vector=vector),
    ):
        memory.upsert_records([record], space=access.personal_space(alice.pk), owner_id=alice.pk)
    Turn.objects.filter(pk=asked.pk).update(completed_at=ago(hours=1))
    Thread.objects.filter(pk=talk.pk).update(head=asked)
    file = io.BytesIO(b"".join(stream_zip(own_data.archive_files(select_own(alice, timezone.now())))))

    report = import_conversations(file, person_id=bob.pk)

    # A thread, a note, a prompt, a document, two files, an instruction, an opinion, a decision and two records.
    assert (report.found, report.imported, report.not_imported, report.skipped) == (11, 11, {}, [])
    assert report.left_out["images and files"] == 0
    fields = ("message", "answer", "created_at", "completed_at", "is_on_active_branch", "parent__answer")
    copy = Thread.objects.get(owner=bob)
    assert list(copy.turns.values(*fields)) == list(talk.turns.values(*fields))
    assert (copy.title, copy.head.message) == ("The greenhouse", "What is on it?")
    files = Attachment.objects.filter(turns=copy.head).order_by("name")
    assert [(row.name, row.media_type, row.text) for row in files] == [
        ("gate.png", "image/png", ""),
        ("plan.md", "", "# Plan\n\nDig first."),
    ]
    assert files[0].file.read() == picture.file.read()
    (feedback,) = Feedback.objects.filter(person_id=bob.pk)
    assert (feedback.kind, feedback.exchange_id) == ("pinned", copy.head.exchange_id)
    (decision,) = Supersession.objects.filter(person_id=bob.pk)
    messages = (decision.later.user_message, decision.earlier.user_message)
    assert messages == ("What is on it?", "What was on it before?")
    record_fields = ("name", "vector", "exchange__user_message", "exchange__metadata", "exchange__timestamp")
    mine, theirs = (Record.objects.filter(exchange__owner=p).order_by("name") for p in (alice, bob))
    assert list(theirs.values(*record_fields)) == list(mine.values(*record_fields))
    assert len(theirs) == 2
    (instruction,) = Instruction.objects.filter(author=bob)
    assert instruction.text == "Always answer in verse."
    assert instruction.off_at
    mine, theirs = (Document.objects.get(owner=p, name="house.txt") for p in (alice, bob))
    assert theirs.metadata == mine.metadata == {"zone": "north"}
    process_documents()
    versions = [
        list(one.versions.order_by("number").values_list("number", "sha256", "stage")) for one in (mine, theirs)
    ]
    assert versions[0] == versions[1]
    assert [stage for _number, _sha256, stage in versions[1]] == ["replaced", "ready"]
    note_fields = ("user_message", "timestamp", "manual_entry")
    notes = Exchange.objects.filter(thread_id=None, manual_entry=True, chunks=None)
    mine, theirs = (notes.filter(owner=person).values(*note_fields) for person in (alice, bob))
    assert list(theirs) == list(mine.filter(source="vadd_command"))
    assert SavedPrompt.objects.get(space=access.personal_space(bob.pk)).name == "report"
    for person in (bob, alice):
        file.seek(0)
        assert import_conversations(file, person_id=person.pk).already_there == 11


def test_an_archive_packed_with_its_folder_is_imported_whole(memory, alice, bob):
    remembered_turn(alice, thread(alice), "The greenhouse is painted in May.")
    memory.add_note("The key hangs behind the clock.", space=access.personal_space(alice.pk), owner_id=alice.pk, source="vadd_command", manual_entry=True)  # fmt: skip
    document(alice, "house.txt", "The house has three floors. " * 20)
    packed = io.BytesIO()
    with exported_archive(alice) as archive, zipfile.ZipFile(packed, "w") as package:
        for name in archive.namelist():
            package.writestr(f"cato-alice/{name}", archive.read(name))

    report = import_conversations(packed, person_id=bob.pk)

    assert (report.found, report.imported, report.skipped) == (3, 3, [])
    assert Turn.objects.get(author=bob).message == "The greenhouse is painted in May."


def test_an_interrupted_import_of_a_document_goes_on_with_the_versions_that_are_missing(memory, alice, bob):
    house = document(alice, "house.txt", "The house has three floors. " * 20)
    upload(alice, "house.txt", "The house has four floors. " * 20, version_of=house)
    file = io.BytesIO(b"".join(stream_zip(own_data.archive_files(select_own(alice, timezone.now())))))
    import_conversations(file, person_id=bob.pk)
    Document.objects.get(owner=bob).versions.get(number=2).delete()
    file.seek(0)

    assert import_conversations(file, person_id=bob.pk).imported == 1

    process_documents()
    versions = Document.objects.get(owner=bob).versions.order_by("number")
    assert [version.stage for version in versions] == ["replaced", "ready"]
    assert "four" in versions[1].chunks.first().exchange.user_message


@pytest.mark.parametrize("change", ["", "moved", "forgotten"])
def test_an_import_that_goes_on_attaches_no_file_to_what_was_moved_or_forgotten(memory, alice, bob, change):
    asked = remembered_turn(alice, thread(alice), "What is on it?", "A gate.")
    plan = store_attachment(ContentFile(b"# Plan\n\nDig first.", name="plan.md"), owner_id=alice.pk)
    add_attachments(asked, [plan])
    file = io.BytesIO(b"".join(stream_zip(own_data.archive_files(select_own(alice, timezone.now())))))
    import_conversations(file, person_id=bob.pk)
    imported = Turn.objects.get(author=bob)
    # As if the import had been interrupted before the file.
    imported.attachments.all().delete()
    if change == "forgotten":
        forget_everywhere(bob.pk, imported.exchange_id, is_administrator=False, with_answers=False)
    if change == "moved":
        crew = group("Crew")
        Thread.objects.filter(pk=imported.thread_id).update(space=crew)
        Exchange.objects.filter(pk=imported.exchange_id).update(space=crew)
    file.seek(0)

    import_conversations(file, person_id=bob.pk)

    assert imported.attachments.exists() is not bool(change)
    assert not Document.objects.filter(space__kind="group").exists()


def test_an_import_reads_a_file_outside_the_transaction_that_attaches_it(memory, alice, bob, monkeypatch):
    asked = remembered_turn(alice, thread(alice), "What is on it?", "A gate.")
    add_attachments(asked, [store_attachment(ContentFile(b"# Plan\n\nDig first.", name="plan.md"), owner_id=alice.pk)])
    file = io.BytesIO(b"".join(stream_zip(own_data.archive_files(select_own(alice, timezone.now())))))
    savepoints = []
    extract_text = api.extract_text

    def extract(*args, **options):
        savepoints.append(list(connection.savepoint_ids))
        return extract_text(*args, **options)

    monkeypatch.setattr("memory.api.extract_text", extract)

    import_conversations(file, person_id=bob.pk)

    assert Turn.objects.get(author=bob).attachments.get().text
    assert savepoints == [[]]


def test_if_the_last_version_of_an_imported_document_is_cancelled_the_one_before_is_read(memory, alice, bob):
    house = document(alice, "house.txt", "The house has three floors. " * 20)
    upload(alice, "house.txt", "The house has four floors. " * 20, version_of=house)
    file = io.BytesIO(b"".join(stream_zip(own_data.archive_files(select_own(alice, timezone.now())))))
    import_conversations(file, person_id=bob.pk)

    imported = Document.objects.get(owner=bob)
    cancel_document(imported.versions.get(number=2), by=bob.pk)
    process_documents()

    imported.refresh_from_db()
    assert imported.live_version.number == 1
    assert "three" in imported.live_version.chunks.first().exchange.user_message


def test_file_names_stay_inside_the_unpacked_folder(memory, alice):
    thread(alice, title="../../etc: passwd\x07")
    upload(alice, "..\\..\\system\\evil.txt", "Nothing to see here. " * 20)

    for name in exported_archive(alice).namelist():
        assert ".." not in name.split("/")
        assert not set(name) & set('\\:\x07"')


def test_a_missing_original_does_not_break_the_export(memory, alice):
    lost = document(alice, "lost.txt", "These words stay. " * 20)
    default_storage.delete(lost.versions.get().original.name)

    archive = exported_archive(alice)

    (about,) = names(archive, "about.json")
    assert not json.loads(archive.read(about))["versions"][0]["file"]
    assert "audit.jsonl" in archive.namelist()


def test_it_is_streamed_in_chunks(memory, alice):
    for number in range(4):
        upload(alice, f"noise-{number}.txt", base64.encodebytes(random.Random(number).randbytes(4_000_000)))

    tracemalloc.start()
    sizes = [len(chunk) for chunk in stream_zip(own_data.archive_files(select_own(alice, timezone.now())))]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert sum(sizes) > 16_000_000
    assert max(sizes) < 1_000_000
    assert peak < 3_000_000, "one of the files alone is larger"
