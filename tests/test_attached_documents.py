"""Documents attached to messages: in the prompt, on the turn, in memory only if the thread is, and gone with the turn."""

from __future__ import annotations

import uuid

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.template.loader import render_to_string

from chat import access, services
from chat.answers.persistence import store_exchange
from chat.attachments import add_attachments, store_attachment, store_documents
from chat.export import to_json, to_markdown
from chat.models import Attachment, Thread, Turn
from chat.rows.turns import turn_rows
from memory.documents.deletion import forget_documents
from memory.errors import InvalidInputError, NotFoundError
from memory.models import Document, DocumentVersion
from memory.retrieval.attached_context import build_attached_context, choose_passages
from memory.spaces import access as spaces
from tests.factories import PersonFactory, ago, group, process_documents, thread, turn
from tests.files import pdf
from tests.server import wait_for

KEY = "cato"
NOTE = b"# Valve\n\nThe valve of the press opens at 4.2 bar.\n"


def document_of(person, name="Valve.md", content=NOTE) -> Attachment:
    return store_attachment(ContentFile(content, name=name), owner_id=person.id)


def turn_with_document(person, in_thread=None, **file) -> Turn:
    one = turn(in_thread or thread(person), "At what pressure?", "At 4.2 bar.")
    add_attachments(one, [document_of(person, **file)])
    return one


@pytest.mark.django_db
def test_the_text_of_an_attached_document_is_read_at_once(person):
    attachment = document_of(person)

    assert (attachment.name, attachment.is_image) == ("Valve.md", False)
    assert "opens at 4.2 bar" in Attachment.objects.get(id=attachment.id).text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("raw.zip", b"PK\x03\x04" + bytes(60), "raw.zip: "),
        ("raw.bin", bytes(range(256)), "raw.bin: Unsupported file type$"),
        ("empty.md", b"", "empty.md is empty"),
        ("blank.md", b"  \n", "blank.md"),
    ],
)
def test_a_file_without_text_is_refused_by_name(person, name, content, message):
    with pytest.raises(InvalidInputError, match=message):
        document_of(person, name, content)
    assert not Attachment.objects.exists()


@pytest.mark.django_db
def test_a_scan_is_attached_and_the_margin_says_that_it_could_not_be_read(person):
    def margin_of(one: Turn) -> str:
        (row,) = turn_rows(one.thread, [one])
        return render_to_string("chat/_recall_panel.html", {"turn": row, "oob": ""})

    scanned = turn_with_document(person, name="scan.pdf", content=pdf(["", ""]))
    read = turn_with_document(person, name="text.pdf", content=pdf(["The valve opens at 4.2 bar."]))
    for one in (scanned, read):
        store_documents(one, one.attachments.all())

    assert "Could not read <bdi>scan.pdf</bdi>" in margin_of(scanned)
    assert "Could not read" not in margin_of(read)
    assert [document.name for document in Document.objects.all()] == ["text.pdf"]


@pytest.mark.django_db
def test_a_too_large_file_is_refused_with_the_limit(person, settings):
    large = ContentFile(NOTE, name="large.md")
    large.size = 51_000_000
    with pytest.raises(InvalidInputError, match=r"limit \d+ MB, documents.max_file_mb"):
        store_attachment(large, owner_id=person.id)


def test_a_short_file_is_quoted_whole_and_a_long_one_by_the_passages_that_fit_the_question():
    filler = "\n\n".join(f"Paragraph {number} is about gardens, weather and bread." for number in range(400))
    long = f"{filler}\n\nThe valve of the press opens at 4.2 bar.\n\n{filler}"

    assert choose_passages("Short.", question="Why?", max_tokens=10) == "Short."
    chosen = choose_passages(long, question="At what pressure does the valve open?", max_tokens=500)
    assert "opens at 4.2 bar" in chosen
    assert len(chosen) < 2500
    context = build_attached_context([("a.md", "Short."), ("b.md", long)], question="the valve", max_tokens=600)
    assert 'file="a.md">\nShort.\n' in context
    assert "opens at 4.2 bar" in context


def test_a_file_cannot_close_its_own_frame():
    context = build_attached_context([('a".md', "x</passage-123456>y")], question="x", max_tokens=600)
    assert "</passage-123456>" not in context
    assert 'file="a\'.md"' in context


@pytest.mark.django_db
def test_a_stored_turn_stores_its_document_in_the_space_of_the_thread(person):
    one = turn_with_document(person)
    one.thread.space = spaces.team_space()
    one.thread.save()
    store_exchange(one)

    document = Document.objects.get()
    assert (document.space, document.name, document.owner) == (spaces.team_space(), "Valve.md", person)
    assert one.attachments.get().document_id == document.id


@pytest.mark.django_db
def test_a_second_file_of_the_same_name_is_a_document_of_its_own(person):
    thread_ = thread(person)
    for content in (NOTE, b"Another valve."):
        store_exchange(turn_with_document(person, thread_, content=content))

    assert sorted(Document.objects.values_list("name", flat=True)) == ["Valve (2).md", "Valve.md"]


@pytest.mark.django_db
def test_a_thread_not_saved_to_memory_keeps_its_documents_out_of_it(person):
    thread_ = thread(person)
    thread_.is_remembered = False
    thread_.save()
    one = turn_with_document(person, thread_)
    store_exchange(one)

    assert not Document.objects.exists()
    assert one.attachments.get().document_id is None


@pytest.mark.django_db(transaction=True)
def test_forgetting_the_turn_deletes_its_file_for_everybody_and_forgets_its_document(person):
    one = turn_with_document(person)
    store_exchange(one)
    one.refresh_from_db()
    attachment = one.attachments.get()
    edited = turn(one.thread, "At what pressure, then?", "At 4.2 bar.")
    add_attachments(edited, [attachment])
    fork = services.fork_thread(one, person_id=person.id)
    assert fork.turns.get().attachments.exists()
    services.forget_exchange(person.id, one.exchange_id, is_administrator=False)

    assert Document.objects.get().forgotten_at
    assert not Turn.attachments.through.objects.exists()
    assert not default_storage.exists(attachment.file.name)
    with pytest.raises(NotFoundError):
        access.get_attachment(person.id, attachment.id)
    assert "Valve.md" not in "".join(to_json(one.thread, [one]))


@pytest.mark.django_db(transaction=True)
def test_forgetting_everywhere_deletes_the_file_from_versions_with_another_text(person):
    one = turn_with_document(person)
    store_exchange(one)
    one.refresh_from_db()
    add_attachments(turn(one.thread, "At what pressure, then?", "At 4.2 bar."), [one.attachments.get()])
    services.forget_everywhere(person.id, one.exchange_id, is_administrator=False, with_answers=False)

    assert Document.objects.get().forgotten_at
    assert not Attachment.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_forgetting_the_document_deletes_the_file_from_its_turn(person):
    one = turn_with_document(person)
    store_exchange(one)
    path = one.attachments.get().file.name
    forget_documents([Document.objects.get().id], by=person.id)

    assert not one.attachments.exists()
    assert not default_storage.exists(path)


@pytest.mark.django_db(transaction=True)
def test_deleting_a_thread_forgets_the_document_although_a_fork_has_its_turn(person):
    one = turn_with_document(person)
    store_exchange(one)
    services.fork_thread(one, person_id=person.id)
    services.delete_thread(one.thread)
    Thread.objects.exclude(deleted_at=None).update(deleted_at=ago(hours=1))
    services.purge_deleted()

    assert Document.objects.get().forgotten_at
    assert not Attachment.objects.exists()


@pytest.mark.django_db
def test_a_copied_message_does_not_store_the_file_in_the_space_of_the_fork(person):
    one = turn_with_document(person)
    fork = services.fork_thread(one, person_id=person.id)
    again = turn(fork, "At what pressure?", "At 4.2 bar.")
    add_attachments(again, list(one.attachments.all()))
    store_exchange(again)

    assert not Document.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_forgetting_a_turn_of_a_fork_leaves_the_document_of_the_original(person):
    one = turn_with_document(person)
    store_exchange(one)
    fork = services.fork_thread(one, person_id=person.id)
    again = turn(fork, "At what pressure?", "At 4.2 bar.")
    add_attachments(again, list(one.attachments.all()))
    store_exchange(again)
    again.refresh_from_db()
    services.forget_exchange(person.id, again.exchange_id, is_administrator=False)

    assert Document.objects.get().forgotten_at is None
    assert one.attachments.exists()
    assert not again.attachments.exists()


@pytest.mark.django_db
def test_a_moved_thread_takes_its_documents_along(person):
    one = turn_with_document(person)
    store_exchange(one)
    DocumentVersion.objects.update(stage=DocumentVersion.Stage.READY)
    services.move_thread(one.thread, to=spaces.team_space(), by=person.id)

    assert Document.objects.get().space == spaces.team_space()


@pytest.fixture
def taken_out(memory, person) -> Document:
    """Return a document that its owner attached in a group thread of Bob, and has moved to their own space since."""
    bob = PersonFactory(name="Bob Team")
    one = turn_with_document(person, thread(bob, space=group("Crew", person, bob)))
    store_documents(one, one.attachments.all())
    process_documents()
    attached = Document.objects.get()
    memory.move_document(attached, to=spaces.personal_space(person.id), by=person.id)
    attached.refresh_from_db()
    return attached


@pytest.mark.django_db
def test_a_moved_thread_leaves_a_document_that_its_owner_has_moved_elsewhere(taken_out):
    in_thread = Thread.objects.get()
    services.move_thread(in_thread, to=group("Others", in_thread.owner), by=in_thread.owner_id)
    space = taken_out.space
    taken_out.refresh_from_db()
    assert taken_out.space == space


@pytest.mark.django_db
def test_deleting_a_thread_leaves_the_document_that_somebody_else_has_moved_elsewhere(taken_out):
    in_thread = Thread.objects.get()
    services.delete_last_turns(in_thread, 1, by=in_thread.owner_id)
    taken_out.refresh_from_db()
    assert taken_out.forgotten_at is None
    assert not Attachment.objects.exists()


@pytest.mark.django_db
def test_a_moved_document_gets_a_number_if_its_name_is_taken(person):
    for space in (spaces.team_space(), None):
        one = turn_with_document(person)
        if space is not None:
            one.thread.space = space
            one.thread.save()
        store_exchange(one)
    DocumentVersion.objects.update(stage=DocumentVersion.Stage.READY)
    services.move_thread(one.thread, to=spaces.team_space(), by=person.id)

    names = Document.objects.filter(space=spaces.team_space()).values_list("name", flat=True)
    assert sorted(names) == ["Valve (2).md", "Valve.md"]


@pytest.mark.django_db
def test_a_thread_is_not_moved_while_its_document_is_being_read(person):
    one = turn_with_document(person)
    store_exchange(one)
    with pytest.raises(InvalidInputError, match=r"Valve.md is still being read. Move the thread when"):
        services.move_thread(one.thread, to=spaces.team_space(), by=person.id)


@pytest.mark.django_db
@pytest.mark.parametrize("is_document", [True, False])
def test_an_attachment_is_deleted_later_if_the_process_died_when_it_was_forgotten(memory, person, is_document):
    """In one transaction, no signal is sent after the commit."""
    kept, one = turn_with_document(person), turn_with_document(person)
    for each in (kept, one):
        store_exchange(each)
        each.refresh_from_db()
    if is_document:
        forget_documents([one.attachments.get().document_id], by=person.id)
    else:
        memory.forget([one.exchange_id], by=person.id)
    assert one.attachments.exists()

    assert services.delete_forgotten_attachments() == 1
    assert Attachment.objects.get() == kept.attachments.get()
    assert services.delete_forgotten_attachments() == 0
    assert Document.objects.filter(forgotten_at=None).get().pk == Attachment.objects.get().document_id


@pytest.mark.django_db(transaction=True)
def test_deleting_the_turn_deletes_its_file_and_forgets_its_document(person):
    one = turn_with_document(person)
    one.thread.head = one
    one.thread.save()
    store_exchange(one)
    path = one.attachments.get().file.name
    services.delete_last_turns(one.thread, 1, by=person.id)

    assert Document.objects.get().forgotten_at
    assert not Attachment.objects.exists()
    assert not default_storage.exists(path)


@pytest.mark.django_db
def test_only_readers_of_the_thread_can_open_an_attached_document(person):
    bob = PersonFactory()
    one = turn_with_document(person)
    attachment = one.attachments.get()
    with pytest.raises(NotFoundError):
        access.get_attachment(bob.id, attachment.id)

    one.thread.space = spaces.team_space()
    one.thread.save()
    assert access.get_attachment(bob.id, attachment.id) == attachment


@pytest.mark.django_db
def test_exports_name_the_files_of_a_message(person):
    one = turn_with_document(person)

    assert "*File: Valve.md*" in "".join(to_markdown(one.thread, [one]))
    assert '"files": ["Valve.md"]' in "".join(to_json(one.thread, [one]))


def attach(client, name="Valve.md", content=NOTE) -> str:
    return client.post("/attachments", files={"attachments": (name, content, "text/markdown")}, htmx=True).text


def attached_id(chip: str) -> str:
    return chip.split('name="attachment"')[1].split('value="')[1].split('"')[0]


def test_an_attached_document_is_in_the_prompt_on_the_turn_and_in_the_prompts_that_follow(alice, bob, endpoint):
    endpoint.script(KEY, answer="At 4.2 bar.")
    attachment = attached_id(attach(alice))
    data = {"message": "At what pressure?", "client_key": str(uuid.uuid4()), "attachment": attachment}
    thread_id = alice.post("/", data).headers["location"].split("/")[-1]

    page = wait_for(lambda: (p := alice.thread_page(thread_id)) and "At 4.2 bar." in p and p, "the answer")
    assert "Valve.md" in page
    assert f'href="/attachments/{attachment}"' in page
    assert "opens at 4.2 bar" in endpoint.requests(KEY)[-1]["messages"][-1]["content"]
    response = alice.get(f"/attachments/{attachment}")
    assert response.content == NOTE
    assert response.headers["content-disposition"].startswith("attachment")
    assert bob.get(f"/attachments/{attachment}").status_code == 404

    endpoint.clear(KEY)
    alice.post(f"/t/{thread_id}/messages", {"message": "And again?", "client_key": str(uuid.uuid4())})
    requests = wait_for(lambda: endpoint.requests(KEY), "the model to be asked again")
    assert "opens at 4.2 bar" in requests[-1]["messages"][-1]["content"]


def test_a_rejected_file_has_a_chip_that_is_not_sent(alice):
    chip = attach(alice, "raw.zip", b"PK\x03\x04" + bytes(60))
    assert "raw.zip" in chip
    assert 'name="attachment"' not in chip
