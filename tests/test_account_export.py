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

from cato_web.accounts.export import archive as own_data
from cato_web.accounts.models import AuditEntry
from chat.imports.formats import conversations
from chat.instructions.editing import add as add_instruction
from chat.models import Attachment, ImportJob, Turn
from memory.administration import reveals
from memory.exchanges.feedback import set_feedback
from memory.exchanges.supersessions import decide
from memory.spaces import access
from tests.factories import PersonFactory, ago, document, exchange, signed_in, thread, turn, upload

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


def download(person) -> zipfile.ZipFile:
    client = signed_in(person)
    answer = client.post("/settings/export")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(b"".join(answer)))
    assert archive.testzip() is None
    return archive


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

    archive = download(alice)

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
    assert [line["action"] for line in lines(archive, "audit.jsonl")] == ["person.joined", "account.exported"]


def test_it_contains_reveals_of_the_personal_space_and_imports(memory, alice, bob):
    reason = "A letter from the court asks for it."
    reveals.reveal(access.personal_space(alice.pk), by=bob.pk, reason=reason)
    reveals.reveal(access.personal_space(bob.pk), by=alice.pk, reason="Looking for a lost invoice.")
    ImportJob.objects.create(owner=alice, name="conversations.json", due_at=ago(), found=3, imported=2)
    ImportJob.objects.create(owner=bob, name="of-bob.json", due_at=ago())

    archive = download(alice)

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

    archive = download(alice)

    (image,) = names(archive, ".png")
    assert (image, archive.read(image)) == ("attachments/00001 Alice Owner.png", b"\x89PNG")
    (about,) = lines(archive, "attachments.jsonl")
    assert (about["file"], len(about["turn_ids"])) == (image, 1)


def test_messages_of_others_in_a_forked_thread_are_omitted(memory, alice, bob):
    fork = thread(alice, title="Plans")
    turn(fork, "Bob wants to move to Bergen.", author=bob)
    turn(fork, "Alice asks when that will be.", author=alice)

    found = all_text(download(alice))

    assert "Alice asks when that will be." in found
    assert "Bob" not in found


def test_its_threads_can_be_imported_again(memory, alice, tmp_path):
    remembered_turn(alice, thread(alice, title="The greenhouse"), "The greenhouse is painted in May.")
    archive = download(alice)
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

    found = all_text(download(alice))

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

    found = all_text(download(alice))

    for words in ("12-34-56", "was deleted", "Deleted yesterday", "burnt"):
        assert words not in found
    assert "The cellar is damp." in found


def test_other_branches_are_in_a_separate_file(memory, alice):
    talk = thread(alice)
    turn(talk, "First try", is_on_active_branch=False)
    turn(talk, "Second try")

    archive = download(alice)

    (branches_file,) = names(archive, ".branches.json")
    (thread_file,) = [n for n in names(archive, ".json") if n.startswith("threads/") and n != branches_file]
    assert [t["message"] for t in json.loads(archive.read(branches_file))["turns"]] == ["First try"]
    assert [t["message"] for t in json.loads(archive.read(thread_file))["turns"]] == ["Second try"]


def test_file_names_stay_inside_the_unpacked_folder(memory, alice):
    thread(alice, title="../../etc: passwd\x07")
    upload(alice, "..\\..\\system\\evil.txt", "Nothing to see here. " * 20)

    for name in download(alice).namelist():
        assert ".." not in name.split("/")
        assert not set(name) & set('\\:\x07"')


def test_a_missing_original_does_not_break_the_export(memory, alice):
    lost = document(alice, "lost.txt", "These words stay. " * 20)
    default_storage.delete(lost.versions.get().original.name)

    archive = download(alice)

    (about,) = names(archive, "about.json")
    assert not json.loads(archive.read(about))["versions"][0]["original_is_here"]
    assert "audit.jsonl" in archive.namelist()


def test_it_is_streamed_in_chunks(memory, alice):
    for number in range(4):
        upload(alice, f"noise-{number}.txt", base64.encodebytes(random.Random(number).randbytes(4_000_000)))

    tracemalloc.start()
    sizes = [len(chunk) for chunk in own_data.stream_zip(alice, by=alice)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert sum(sizes) > 16_000_000
    assert max(sizes) < 1_000_000
    assert peak < 3_000_000, "one of the files alone is larger"
