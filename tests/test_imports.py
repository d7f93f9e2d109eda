"""Imports from other products: complete, dated, remembered once, and without forgotten data."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from chat.export import to_json
from chat.imports import importer, pictures
from chat.imports.formats import conversations
from chat.imports.formats.conversation import Unread
from chat.imports.formats.pieces import pieces
from chat.imports.importer import import_conversations
from chat.imports.pictures import PictureImport
from chat.imports.report import ImportReport
from chat.models import Attachment, ReaderMarks, SavedPrompt, Thread, ThreadSession, Turn
from chat.threads.lifecycle import delete_thread, move_thread, purge_deleted
from chat.turns.branches import switch_branch
from chat.turns.forgetting import forget_everywhere
from memory.errors import ExtractionError, InvalidInputError
from memory.models import Document, Exchange
from memory.spaces import access
from tests.factories import PNG, PersonFactory, ago, exchange, group, process_documents, thread, turn

pytestmark = pytest.mark.django_db

EXPORTED = Path(__file__).with_name("exported")
BREAD, TIDES, BEES, KILN = (
    "Sauerteig für Anfänger 🍞",
    "Gezeiten auf Föhr",
    "Bienen im Winter ❄️",
    "Brennofen für Töpfer",
)
SAMPLES = {"chatgpt.json": BREAD, "claude.json": TIDES, "open_webui.json": BEES, "librechat.json": KILN}


def import_sample(person, sample: str | Path) -> ImportReport:
    return import_conversations(EXPORTED / sample, person_id=person.id)


def import_json(person, value: object) -> ImportReport:
    return import_conversations(io.BytesIO(json.dumps(value).encode()), person_id=person.id)


def turns_of(title: str) -> list[tuple[str, str]]:
    """Return the messages and answers of the active branch."""
    return list(Turn.objects.filter(thread__title=title).active_branch().values_list("message", "answer"))


def claude_conversation(*messages: str, id: str = "simple", **fields: object) -> dict[str, object]:
    """Return a conversation of an old Claude export; messages and answers alternate."""
    rows = [
        {
            "uuid": f"{id}-{n}",
            "sender": ("human", "assistant")[n % 2],
            "text": text,
            "created_at": f"2025-03-01T10:00:{n:02}Z",
        }
        for n, text in enumerate(messages)
    ]
    return {"uuid": id, "name": f"About {id}", "created_at": "2025-03-01T10:00:00Z", "chat_messages": rows, **fields}


def delete_threads() -> None:
    Turn.objects.all().delete()
    Thread.objects.all().delete()


def zipped(**members: object) -> io.BytesIO:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as package:
        for name, value in members.items():
            package.writestr(name, value if isinstance(value, str) else json.dumps(value))
    data.seek(0)
    return data


# What is read from each product


@pytest.mark.parametrize(
    ("sample", "title", "pairs"),
    [
        (
            "chatgpt.json",
            BREAD,
            [
                (
                    "How long does sourdough rise in a cold kitchen?",
                    "About fourteen hours at 16 °C.\n\nThe loaf from Bäckerei Lönne needs less.",
                ),
                ("Is this crumb dense?", "A little; it wanted two hours more."),
                ("And the crust?", ""),
            ],
        ),
        (
            "claude.json",
            TIDES,
            [
                ("When is low tide at Utersum?", "Low tide is at 14:20.\n\nWalk out an hour before."),
                ("[beach.jpg]", "That is the groyne at Utersum."),
                ("Which boots?", ""),
            ],
        ),
        (
            "open_webui.json",
            BEES,
            [
                ("How warm is the winter cluster?", "About 25 °C at its core."),
                ("Is this hive alive?", "It hums, so yes."),
                ("When do I feed them?", ""),
            ],
        ),
        (
            "librechat.json",
            KILN,
            [
                ("How hot is a bisque firing?", "Around 1000 °C.\n\nCone 06."),
                ("Does this glaze run?\n\n[glaze.png]", "It will, near the foot."),
                ("And in reduction?", ""),
            ],
        ),
        (
            "librechat_tree.json",
            "Baum",
            [
                ("What grows on the north wall?", "Ivy and a climbing hydrangea."),
                ("Does it need a trellis?", "The hydrangea clings by itself."),
            ],
        ),
        ("open_webui.json", "A list only", [("What came before the tree?", "A list of messages.")]),
    ],
)
def test_the_active_branch_is_imported_without_system_tool_and_reasoning_messages(person, sample, title, pairs):
    import_sample(person, sample)
    assert turns_of(title) == pairs


@pytest.mark.parametrize("sample", SAMPLES)
def test_omitted_messages_are_counted(person, sample):
    left_out = import_sample(person, sample).left_out
    assert left_out["images and files"] == 1
    assert left_out["system and tool messages"] >= 2
    assert left_out["empty messages"] == 1


def test_an_answer_without_a_message_is_omitted_and_counted(person):
    greeted = claude_conversation("How do I begin?", "With flour.")
    greeted["chat_messages"].insert(0, {"uuid": "hello", "sender": "assistant", "text": "Hello, ask me anything."})
    assert import_json(person, [greeted]).left_out == {"answers without a question": 1}
    assert turns_of("About simple") == [("How do I begin?", "With flour.")]


def test_a_tree_without_a_current_node_uses_its_latest_branch(person):
    value = json.loads((EXPORTED / "open_webui.json").read_text())[:1]
    del value[0]["chat"]["history"]["currentId"]
    import_json(person, value)
    assert [message for message, _ in turns_of(BEES)][-1] == "When do I feed them?"


def test_a_cycle_of_parents_ends(person):
    value = json.loads((EXPORTED / "chatgpt.json").read_text())[:1]
    value[0]["mapping"]["root"]["parent"] = "a3"
    assert import_json(person, value).imported == 1


@pytest.mark.parametrize(
    "names",
    [
        ["conversations.json"],
        ["conversations-000.json", "conversations-001.json"],
        ["export/conversations/one.json", "export/conversations/two.json"],
    ],
)
def test_a_zip_is_read_as_downloaded_with_one_file_or_many(person, names):
    rows = [claude_conversation("A question", "An answer", id=str(n)) for n in range(2 * len(names))]
    parts = {name: rows[2 * n : 2 * n + 2] for n, name in enumerate(names)}
    data = zipped(**parts, **{"user.json": {"id": "me"}, "__MACOSX/conversations.json": "x", "chat.html": "<p>"})

    report = import_conversations(data, person_id=person.id)

    assert (report.found, report.imported, report.skipped) == (len(rows), len(rows), [])


def test_an_unpacked_folder_is_read_too(person, tmp_path):
    (tmp_path / "conversations-000.json").write_text(json.dumps([claude_conversation("One", "1", id="one")]))
    (tmp_path / "conversations-001.json").write_text(json.dumps([claude_conversation("Two", "2", id="two")]))
    (tmp_path / "user.json").write_text("{}")
    assert import_sample(person, tmp_path).imported == 2


# Texts of files, and texts that the model made


def claude_artifact(command: str, **fields: str) -> dict[str, object]:
    return {"type": "tool_use", "name": "artifacts", "input": {"id": "poem", "command": command, **fields}}


def test_the_texts_of_claude_attachments_are_stored_as_files_and_searchable(memory, person):
    row = claude_conversation("Summarise this", "It is about rent.")
    contract = {"file_name": "contract.pdf", "extracted_content": "The rent of the lighthouse is due in March."}
    row["chat_messages"][0]["attachments"] = [contract, {"file_name": "", "extracted_content": "Pasted: Hooge."}]
    row["chat_messages"][0]["files"] = [{"file_name": "photo.jpg"}]

    report = import_json(person, [row])
    process_documents()

    assert report.left_out == {"images and files": 1}
    one = Turn.objects.get()
    assert one.message == "Summarise this\n\n[photo.jpg]"
    names = [(file.name, file.text, file.file.read().decode()) for file in one.attachments.order_by("name")]
    assert [name for name, *_texts in names] == ["contract.pdf.txt", "pasted text.txt"]
    assert {text for _name, *texts in names for text in texts} == {
        "The rent of the lighthouse is due in March.",
        "Pasted: Hooge.",
    }
    found = memory.search("when is the rent of the lighthouse due", spaces=access.readable_space_ids(person.id))
    assert "lighthouse" in found.results[0].exchange.user_message

    import_json(person, [row])
    assert Attachment.objects.count() == 2


def test_claude_artifacts_are_part_of_the_answer(person):
    row = claude_conversation("Write a poem", "", "And shorter", "", "As code", "")
    poem = claude_artifact("create", title="The tide", type="text/markdown", content="It comes and goes.")
    code = {"type": "tool_use", "name": "create_file", "input": {"path": "/a/tide.py", "file_text": "```\nprint(1)"}}
    contents = [
        [{"type": "text", "text": "Here it is."}, poem, {"type": "tool_result"}],
        [
            claude_artifact("update", old_str="comes and ", new_str=""),
            claude_artifact("update", old_str="no", new_str=""),
        ],
        [code],
    ]
    for message, content in zip(row["chat_messages"][1::2], contents, strict=True):
        message["content"] = content

    report = import_json(person, [row])

    assert [answer for _message, answer in turns_of("About simple")] == [
        "Here it is.\n\n**The tide**\n\nIt comes and goes.",
        "**The tide**\n\nIt goes.",
        "**tide.py**\n\n````\n```\nprint(1)\n````",
    ]
    assert report.left_out["system and tool messages"] == 2


def test_an_update_of_a_long_artifact_is_imported_as_its_own_words(person):
    row = claude_conversation("Write it", "", "Change it", "")
    created = claude_artifact("create", title="The tide", type="text/markdown", content="It goes. " * 10_000)
    updated = claude_artifact("update", old_str="It goes. ", new_str="It comes.")
    for message, block in zip(row["chat_messages"][1::2], (created, updated), strict=True):
        message["content"] = [block]

    import_json(person, [row])

    (_message, whole), (_message, change) = turns_of("About simple")
    assert len(whole) > 80_000
    assert change == "**The tide**\n\nIt comes."


CLAUDE_PROJECT = {
    "uuid": "p1",
    "name": "Island / guide",
    "prompt_template": "Answer as a guide of Föhr.",
    "docs": [{"uuid": "d1", "filename": "ferries.pdf", "content": "The ferry to Dagebüll leaves at six."}],
}
CLAUDE_MEMORIES = {"conversations_memory": "Lives in Wyk.", "project_memories": {"p1": "Prefers morning tours."}}


def test_projects_and_memories_of_claude_are_imported_once_and_stay_forgotten(memory, person):
    def import_zip() -> ImportReport:
        conversations = [claude_conversation("One", "1")]
        names = {"conversations.json": conversations, "projects.json": [CLAUDE_PROJECT], "users.json": [{"a": 1}]}
        return import_conversations(zipped(**names, **{"memories.json": [CLAUDE_MEMORIES]}), person_id=person.id)

    assert (first := import_zip()).imported == first.found == 3
    process_documents()
    prompt = SavedPrompt.objects.get()
    assert (prompt.name, prompt.text) == ("island-guide", "Answer as a guide of Föhr.")
    assert Document.objects.get().name == "Island guide/ferries.pdf.txt"
    notes = Exchange.objects.filter(manual_entry=True, source="import", chunk_index=0, thread_id=None)
    assert {"Lives in Wyk.", "Prefers morning tours."} <= {note.user_message for note in notes}
    found = memory.search("when does the ferry to Dagebüll leave", spaces=access.readable_space_ids(person.id))
    assert "at six" in found.results[0].exchange.user_message

    assert import_zip().already_there == 3
    memory.forget_documents([Document.objects.get().pk], by=person.id)
    memory.forget(notes.values_list("id", flat=True), by=person.id)
    again = import_zip()
    assert (again.imported, again.already_there, again.not_imported) == (0, 2, {"forgotten earlier": 1})
    assert not Document.objects.filter(forgotten_at=None).exists()


def test_custom_instructions_of_chatgpt_become_a_saved_prompt_and_apply_nowhere(person):
    context = {
        "author": {"role": "user"},
        "content": {"content_type": "user_editable_context", "user_profile": "A baker.", "user_instructions": "Short."},
    }
    nodes = (("q0", "", context), ("q1", "q0", "Hello"), ("a1", "q1", "Yes."))
    import_json(person, [chatgpt_conversation(*nodes), chatgpt_conversation(*nodes, conversation_id="other")])
    prompt = SavedPrompt.objects.get()
    assert (prompt.name, prompt.text) == ("chatgpt-instructions", "A baker.\n\nShort.")
    assert set(Thread.objects.values_list("instructions", flat=True)) == {""}


def chatgpt_conversation(*nodes: tuple[str, str, object], **fields: object) -> dict[str, object]:
    """Return a conversation of messages (id, id of the parent, text or fields); ids that begin with q are questions."""
    mapping = {}
    for number, (id, parent, said) in enumerate(nodes):
        message = {
            "author": {"role": "user" if id.startswith("q") else "assistant"},
            "content": {"content_type": "text", "parts": [said]},
            "create_time": 1714557600 + number,
        }
        if isinstance(said, dict):
            message |= said
        mapping[id] = {"parent": parent or None, "message": message}
    return {"conversation_id": "gpt", "title": "About gpt", "mapping": mapping, "current_node": nodes[-1][0], **fields}


def canvas_call(recipient: str, **call: object) -> dict[str, object]:
    return {"recipient": f"canmore.{recipient}", "content": {"content_type": "code", "text": json.dumps(call)}}


def test_a_chatgpt_canvas_is_part_of_the_answer_with_its_changes(person):
    rewrite = {"pattern": ".*", "multiple": False, "replacement": "Dear Ines"}
    conversation = chatgpt_conversation(
        ("q1", "", "Write a letter"),
        ("c1", "q1", canvas_call("create_textdoc", name="Letter", type="document", content="Dear Sir")),
        ("a1", "c1", "I have made the canvas."),
        ("q2", "a1", "Warmer"),
        ("c2", "q2", canvas_call("update_textdoc", updates=[rewrite])),
        ("c3", "c2", canvas_call("update_textdoc", updates=[rewrite | {"pattern": "(a+)+$"}])),
        ("a2", "c3", "Done."),
    )
    report = import_json(person, [conversation])
    assert turns_of("About gpt") == [
        ("Write a letter", "**Letter**\n\nDear Sir\n\nI have made the canvas."),
        ("Warmer", "**Letter**\n\nDear Ines\n\nDone."),
    ]
    assert report.left_out == {"system and tool messages": 1}


def test_names_of_chatgpt_files_are_part_of_the_message(person):
    message = {"content": {"content_type": "text", "parts": ["What does it say?"]}}
    message["metadata"] = {"attachments": [{"id": "file-1", "name": "lease.pdf"}]}
    report = import_json(person, [chatgpt_conversation(("q1", "", message), ("a1", "q1", "Rent."))])
    assert turns_of("About gpt") == [("What does it say?\n\n[lease.pdf]", "Rent.")]
    assert report.left_out == {"images and files": 1}


def picture_message(*pointers: str, text: str = "What is this?", **names: str) -> dict[str, object]:
    """Return the fields of a ChatGPT message with pictures; `names` are those of its attachments, by their ids."""
    pictures = [{"content_type": "image_asset_pointer", "asset_pointer": pointer} for pointer in pointers]
    attached = [{"id": f"file-{id}", "name": name} for id, name in names.items()]
    content = {"content_type": "multimodal_text", "parts": [*pictures, text]}
    return {"content": content, "metadata": {"attachments": attached}}


def chatgpt_export(*nodes: tuple[str, str, object], **files: bytes) -> io.BytesIO:
    """Return a zip of a conversation and these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as package:
        package.writestr("conversations.json", json.dumps([chatgpt_conversation(*nodes)]))
        for name, content in files.items():
            package.writestr(name, content)
    data.seek(0)
    return data


def limit_chat(settings, **limits: int) -> None:
    settings.CATO = settings.CATO.model_copy(update={"chat": settings.CATO.chat.model_copy(update=limits)})


def pictures_of(message: str) -> list[tuple[str, str]]:
    rows = Attachment.objects.filter(turns__message__startswith=message).order_by("name")
    return [(row.name, row.media_type) for row in rows]


PICTURES = (
    ("q1", "", picture_message("file-service://file-A1", "sediment://file_0b", A1="boat.png")),
    ("a1", "q1", "A boat."),
)
PICTURE_FILES = {
    "file-A1-boat.png": PNG,
    "user-x/file_0b-sanitized.png": PNG,
    "dalle-generations/file-Z9-cat.webp": PNG,
}


def test_the_pictures_of_chatgpt_messages_are_attached(person):
    report = import_conversations(chatgpt_export(*PICTURES, **PICTURE_FILES), person_id=person.id)
    assert turns_of("About gpt") == [("What is this?", "A boat.")]
    assert Exchange.objects.get().user_message == "What is this?"
    assert pictures_of("What is this?") == [("boat.png", "image/png"), ("file_0b-sanitized.png", "image/png")]
    (row, _other) = Attachment.objects.order_by("name")
    assert (row.file.read(), row.owner_id, row.thread_id) == (PNG, person.id, Thread.objects.get().id)
    assert report.left_out["images and files"] == 0

    again = import_conversations(chatgpt_export(*PICTURES, **PICTURE_FILES), person_id=person.id)
    assert (again.already_there, again.left_out["images and files"], Attachment.objects.count()) == (1, 0, 2)


def test_pictures_that_were_missing_before_are_added(person):
    report = import_json(person, [chatgpt_conversation(*PICTURES)])
    assert (report.left_out["images and files"], pictures_of("What is this?")) == (2, [])
    assert Exchange.objects.get().user_message == "What is this?\n\n[boat.png]", "names what is missing"
    import_conversations(chatgpt_export(*PICTURES, **PICTURE_FILES), person_id=person.id)
    assert len(pictures_of("What is this?")) == 2
    assert (turns_of("About gpt"), Exchange.objects.get().user_message) == (
        [("What is this?", "A boat.")],
        "What is this?",
    )


@pytest.mark.parametrize(
    ("text", "message"), [("What is this?", "What is this?\n\n[lost.png]\n[deed.pdf]"), ("", "[lost.png]\n[deed.pdf]")]
)
def test_a_message_names_only_the_files_that_are_missing(person, text, message):
    pointers = ("file-service://file-A1", "file-service://file-L0")
    asked = picture_message(*pointers, text=text, A1="boat.png", L0="lost.png", D1="deed.pdf")
    import_conversations(
        chatgpt_export(("q1", "", asked), ("a1", "q1", "A boat."), **PICTURE_FILES), person_id=person.id
    )
    assert turns_of("About gpt") == [(message, "A boat.")]


def test_a_message_of_a_picture_alone_has_its_name(person):
    asked = picture_message("file-service://file-A1", text="", A1="boat.png")
    import_conversations(
        chatgpt_export(("q1", "", asked), ("a1", "q1", "A boat."), **PICTURE_FILES), person_id=person.id
    )
    assert turns_of("About gpt") == [("[boat.png]", "A boat.")]


def test_pictures_of_answers_and_missing_damaged_or_large_ones_are_left_out(person, settings):
    limit_chat(settings, max_image_mb=1)
    pointers = [f"file-service://file-{id}" for id in ("A1", "missing", "text", "large")]
    nodes = (
        ("q1", "", picture_message(*pointers)),
        ("a1", "q1", picture_message("file-service://file-Z9", text="Here it is.")),
    )
    files = PICTURE_FILES | {"file-text.png": b"no picture", "file-large.png": PNG + b"0" * 1_000_000}
    report = import_conversations(chatgpt_export(*nodes, **files), person_id=person.id)
    assert pictures_of("What is this?") == [("file-A1-boat.png", "image/png")]
    assert report.left_out["images and files"] == 4


def test_as_many_pictures_as_a_message_may_have(person, settings):
    limit_chat(settings, max_attachments=1)
    report = import_conversations(chatgpt_export(*PICTURES, **PICTURE_FILES), person_id=person.id)
    assert pictures_of("What is this?") == [("boat.png", "image/png")]
    assert report.left_out["images and files"] == 1


def test_versions_of_an_answer_share_the_picture(person):
    nodes = (*PICTURES, ("a2", "q1", "A ship."))
    report = import_conversations(chatgpt_export(*nodes, **PICTURE_FILES), person_id=person.id)
    assert [turn.attachments.count() for turn in Turn.objects.all()] == [2, 2]
    assert (Attachment.objects.count(), report.left_out["images and files"]) == (2, 0)


def forget_message(person, message: str = "What is this?") -> None:
    for one in Turn.objects.filter(message__startswith=message):
        forget_everywhere(person.id, one.exchange_id, is_administrator=False, with_answers=False)


def delete_its_thread(person) -> None:
    delete_thread(Thread.objects.get(owner=person))


@pytest.mark.parametrize("end", [forget_message, delete_its_thread])
def test_a_message_that_is_gone_when_its_pictures_are_stored_gets_none(person, monkeypatch, end):
    add = PictureImport.add

    def add_after_the_end(pictures, pairs):
        end(person)
        return add(pictures, pairs)

    monkeypatch.setattr(PictureImport, "add", add_after_the_end)
    import_conversations(chatgpt_export(*PICTURES, **PICTURE_FILES), person_id=person.id)

    assert not Attachment.objects.exists()


def test_a_message_that_is_forgotten_while_pictures_of_another_are_stored_stays_forgotten(person, monkeypatch):
    secret = picture_message("sediment://file_0b", text="The code is 4711", **{"0b": "code.png"})
    secret["metadata"]["attachments"][0]["id"] = "file_0b"
    nodes = (*PICTURES, ("q2", "a1", secret), ("a2", "q2", "I see."))
    store_image = pictures.store_image

    def forget_the_other_and_store(*args, **options):
        forget_message(person, "The code is 4711")
        return store_image(*args, **options)

    monkeypatch.setattr(pictures, "store_image", forget_the_other_and_store)
    import_conversations(chatgpt_export(*nodes, **PICTURE_FILES), person_id=person.id)

    assert [one.message for one in Turn.objects.order_by("position")] == ["What is this?", ""]
    assert not Attachment.objects.filter(turns__message="").exists()


def test_pictures_are_not_added_to_a_thread_that_others_can_read(person):
    import_json(person, [chatgpt_conversation(*PICTURES)])
    move_thread(Thread.objects.get(), to=access.team_space(), by=person.id)
    import_conversations(chatgpt_export(*PICTURES, **PICTURE_FILES), person_id=person.id)
    assert pictures_of("What is this?") == []


def test_the_texts_of_open_webui_and_librechat_files_are_stored(person):
    webui = {"name": "tide.md", "file": {"data": {"content": "Ebb at nine."}}}
    user = {"id": "1", "role": "user", "content": "When?", "files": [webui, {"name": "b.png"}]}
    libre = {"filename": "kiln.csv", "text": "cone,heat"}
    rows = [{"messageId": "1", "isCreatedByUser": True, "text": "How hot?", "files": [libre, {"filename": "c.png"}]}]
    import_json(person, [{"id": "w", "title": "Webui", "chat": {"messages": [user]}}])
    import_json(person, [{"conversationId": "l", "title": "Libre", "messages": rows}])
    assert turns_of("Webui") == [("When?\n\n[b.png]", "")]
    assert turns_of("Libre") == [("How hot?\n\n[c.png]", "")]
    assert set(Attachment.objects.values_list("name", "text")) == {
        ("tide.md", "Ebb at nine."),
        ("kiln.csv.txt", "cone,heat"),
    }


# Versions of messages and answers


VERSIONS = (
    ("q1", "", "Which loaf?"),
    ("a1", "q1", "Rye."),
    ("q2", "a1", "Why rye?"),
    ("a2", "q2", "It keeps."),
    ("a1b", "q1", "Spelt."),
    ("q3", "a1b", "Why spelt?"),
    ("q3b", "a1b", "Is spelt dear?"),
    ("a3", "q3b", "A little."),
)


def shape(of_thread: Thread) -> dict[str, tuple[str, bool]]:
    """Return what precedes each turn, and whether it is on the active branch, by message and answer."""
    turns = {one.id: one for one in of_thread.turns.all()}
    label = {id: f"{one.message} {one.answer}".strip() for id, one in turns.items()} | {None: ""}
    return {label[id]: (label[one.parent_id], one.is_on_active_branch) for id, one in turns.items()}


def test_all_versions_are_kept_and_the_current_one_is_active(memory, person):
    import_json(person, [chatgpt_conversation(*VERSIONS)])

    imported = Thread.objects.get()
    assert shape(imported) == {
        "Which loaf? Rye.": ("", False),
        "Why rye? It keeps.": ("Which loaf? Rye.", False),
        "Which loaf? Spelt.": ("", True),
        "Why spelt?": ("Which loaf? Spelt.", False),
        "Is spelt dear? A little.": ("Which loaf? Spelt.", True),
    }
    assert imported.head.message == "Is spelt dear?"
    assert set(Exchange.objects.filter(is_inactive=False).values_list("assistant_message", flat=True)) == {
        "Spelt.",
        "A little.",
    }
    switch_branch(Turn.objects.get(answer="Rye."), person_id=person.id)
    assert turns_of("About gpt") == [("Which loaf?", "Rye."), ("Why rye?", "It keeps.")]
    assert Exchange.objects.get(assistant_message="It keeps.", is_inactive=False)


def test_a_later_version_of_an_imported_answer_is_added_without_hiding_the_thread(person):
    import_json(person, [chatgpt_conversation(*VERSIONS[:4])])
    turn(Thread.objects.get(), "Said here since", "Yes")

    report = import_json(person, [chatgpt_conversation(*VERSIONS)])

    assert report.turns == 3
    assert [message for message, _answer in turns_of("About gpt")] == ["Which loaf?", "Why rye?", "Said here since"]
    assert shape(Thread.objects.get())["Is spelt dear? A little."] == ("Which loaf? Spelt.", False)
    assert import_json(person, [chatgpt_conversation(*VERSIONS)]).already_there == 1


def test_versions_survive_an_interruption_between_batches(person, monkeypatch):
    import_json(person, [chatgpt_conversation(*VERSIONS)])
    whole = shape(Thread.objects.get())
    Exchange.objects.all().delete()
    delete_threads()

    monkeypatch.setattr(importer, "_BATCH_SIZE", 1)
    save, calls = importer.save_batch, iter(range(100))

    def fail_at_third(*arguments):
        if next(calls) == 2:
            raise ConnectionError
        return save(*arguments)

    monkeypatch.setattr(importer, "save_batch", fail_at_third)
    with pytest.raises(ConnectionError):
        import_json(person, [chatgpt_conversation(*VERSIONS)])
    import_json(person, [chatgpt_conversation(*VERSIONS)])

    assert shape(Thread.objects.get()) == whole


@pytest.mark.parametrize(
    ("conversation", "mark"),
    [
        (chatgpt_conversation(*VERSIONS[:2], is_archived=True), "archived_at"),
        (chatgpt_conversation(*VERSIONS[:2], is_starred=True), "pinned_at"),
        (claude_conversation("One", "1", is_starred=True), "pinned_at"),
        ({"id": "w", "chat": {"messages": [{"role": "user", "content": "Hi"}]}, "pinned": True}, "pinned_at"),
        ({"id": "w", "chat": {"messages": [{"role": "user", "content": "Hi"}]}, "archived": True}, "archived_at"),
        (
            {"conversationId": "l", "messages": [{"isCreatedByUser": True, "text": "Hi"}], "isArchived": True},
            "archived_at",
        ),
    ],
)
def test_pinned_and_archived_conversations_stay_so(person, conversation, mark):
    import_json(person, [conversation])
    marks = ReaderMarks.objects.get(person=person, thread=Thread.objects.get())
    assert {name for name in ("pinned_at", "archived_at") if getattr(marks, name)} == {mark}


def test_tags_and_folders_are_counted(person):
    chat = {"messages": [{"role": "user", "content": "Hi"}]}
    report = import_json(person, [{"id": "w", "chat": chat, "meta": {"tags": ["a", "b"]}, "folder_id": "f"}])
    assert report.left_out == {"tags and folders": 3}


# Imported threads


def test_dates_and_models_are_kept(person):
    import_sample(person, "chatgpt.json")

    of_bread = Thread.objects.get(title=BREAD)
    first = of_bread.turns.active_branch().first()
    assert of_bread.created_at == datetime(2024, 5, 1, 10, 0, tzinfo=UTC)
    assert of_bread.last_message_at == datetime(2024, 5, 1, 10, 2, tzinfo=UTC)
    assert first.created_at == datetime(2024, 5, 1, 10, 0, tzinfo=UTC)
    assert first.completed_at == datetime(2024, 5, 1, 10, 0, 21, tzinfo=UTC)
    assert (first.model, first.state) == ("gpt-4o", "complete")
    assert Exchange.objects.get(turn_id=first.id).timestamp == first.created_at


def test_a_message_without_a_date_gets_the_date_of_the_previous_one(person):
    undated = claude_conversation("First", "Answer", "Second", "Answer")
    undated["chat_messages"][2]["created_at"] = "the other day"
    import_json(person, [undated])
    first, second = Turn.objects.order_by("position")
    assert second.created_at == first.completed_at == datetime(2025, 3, 1, 10, 0, 1, tzinfo=UTC)


def test_it_is_stored_in_the_personal_space_as_one_session_and_can_be_continued(person):
    import_sample(person, "claude.json")
    of_tides = Thread.objects.get(title=TIDES)
    turns = list(of_tides.turns.active_branch())
    assert (of_tides.owner, of_tides.space) == (person, access.personal_space(person.id))
    assert ThreadSession.objects.get(thread=of_tides).seq == 0
    assert of_tides.head == turns[-1]
    assert [one.parent_id for one in turns] == [None, turns[0].id, turns[1].id]


def test_answered_turns_are_remembered_and_found(memory, person):
    import_sample(person, "chatgpt.json")
    import_sample(person, "claude.json")
    memory.index_pending()

    found = (
        memory.search("how long does the bread rise", spaces=access.readable_space_ids(person.id)).results[0].exchange
    )

    assert found.user_message == "How long does sourdough rise in a cold kitchen?"
    assert found.source == "import"
    assert Turn.objects.get(exchange_id=found.id).thread.title == BREAD
    assert memory.search("low tide at Utersum", spaces=access.readable_space_ids(PersonFactory().id)).results == ()
    assert not Exchange.objects.filter(user_message="And the crust?").exists()


def test_a_conversation_excluded_from_memory_is_not_remembered(person):
    import_sample(person, "chatgpt.json")
    locker = Thread.objects.get(title="Not to be kept in mind")
    assert not locker.is_remembered
    assert locker.turns.get().exchange_id is None
    assert not Exchange.objects.filter(thread_id=locker.id).exists()


def test_without_a_store_only_turns_are_imported_and_a_later_import_remembers_them(person, settings):
    with_store = settings.CATO
    without = with_store.vector_store.model_copy(update={"enabled": False})
    settings.CATO = with_store.model_copy(update={"vector_store": without})
    assert import_sample(person, "librechat.json").turns == 4
    assert Exchange.objects.count() == 0
    assert import_sample(person, "librechat.json").already_there == 1

    settings.CATO = with_store
    import_sample(person, "librechat.json")
    assert Exchange.objects.count() == 2
    assert Turn.objects.exclude(exchange_id=None).count() == 2


# Repetition and forgotten data


@pytest.mark.parametrize("sample", SAMPLES)
def test_importing_twice_changes_nothing(person, sample):
    first = import_sample(person, sample)
    before = list(Turn.objects.order_by("id").values()), list(Exchange.objects.order_by("id").values())

    second = import_sample(person, sample)

    assert (second.found, second.already_there, second.not_imported) == (
        first.found,
        first.imported,
        first.not_imported,
    )
    assert (second.imported, second.turns) == (0, 0)
    assert (list(Turn.objects.order_by("id").values()), list(Exchange.objects.order_by("id").values())) == before


def test_two_people_can_import_the_same_file(person):
    import_sample(person, "claude.json")
    other = PersonFactory()
    assert import_sample(other, "claude.json").imported == 2
    assert Thread.objects.filter(owner=other).count() == 2


def test_a_longer_version_adds_new_turns_after_those_written_in_cato(person):
    import_json(person, [claude_conversation("One", "1", "Two")])
    imported = Thread.objects.get()
    turn(imported, "Said here since", "Yes")

    report = import_json(person, [claude_conversation("One", "1", "Two", "2", "Three", "3")])

    assert (report.imported, report.turns) == (1, 2)
    assert turns_of("About simple") == [("One", "1"), ("Two", "2"), ("Said here since", "Yes"), ("Three", "3")]
    assert Exchange.objects.filter(source="import").count() == 3


def test_an_interrupted_import_is_completed(person, monkeypatch):
    long = [claude_conversation(*(f"Line {n}" for n in range(120)))]
    remember, calls = importer.memory.remember_many, []

    def fail_at_second(items):
        calls.append(items)
        if len(calls) == 2:
            raise ConnectionError
        return remember(items)

    monkeypatch.setattr(importer.memory, "remember_many", fail_at_second)
    with pytest.raises(ConnectionError):
        import_json(person, long)
    assert Turn.objects.count() == Exchange.objects.count() == 50

    import_json(person, long)
    assert Turn.objects.count() == Exchange.objects.count() == 60
    assert [message for message, _ in turns_of("About simple")] == [f"Line {n}" for n in range(0, 120, 2)]


def test_a_forgotten_turn_stays_forgotten(memory, person):
    import_json(person, [claude_conversation("The PIN is 8253", "Noted", "Two", "2")])
    pin = Exchange.objects.get(user_message="The PIN is 8253")
    memory.forget([pin.id], by=person.id)
    memory.erase_forgotten()
    Turn.objects.filter(exchange_id=pin.id).delete()

    report = import_json(person, [claude_conversation("The PIN is 8253", "Noted", "Two", "2")])

    assert report.skipped == [("About simple", "Forgotten earlier and not imported again: 1 of 2 turns.")]
    assert not Turn.objects.filter(message__contains="8253").exists()
    assert not Exchange.objects.filter(user_message__contains="8253").exists()


@pytest.mark.parametrize("is_everywhere", [False, True])
def test_a_forgotten_message_does_not_come_back_with_another_version_of_its_answer(memory, person, is_everywhere):
    nodes = [("q1", "", "The PIN is 8253"), ("a1", "q1", "Noted."), ("q2", "a1", "Two"), ("a2", "q2", "2")]
    import_json(person, [chatgpt_conversation(*nodes)])
    pin = Exchange.objects.get(user_message="The PIN is 8253")
    if is_everywhere:
        forget_everywhere(person.id, pin.id, is_administrator=False, with_answers=False)
    else:
        memory.forget([pin.id], by=person.id)

    report = import_json(person, [chatgpt_conversation(*nodes, ("a1b", "q1", "I keep it."), ("q2b", "a1", "Three"))])

    assert report.skipped == [("About gpt", "Forgotten earlier and not imported again: 2 of 4 turns.")]
    assert not Turn.objects.filter(answer="I keep it.").exists()
    assert list(Exchange.objects.filter(forgotten_at=None).values_list("user_message", flat=True)) == ["Two"]
    assert Turn.objects.filter(message="Three").exists()


def test_a_turn_that_is_forgotten_everywhere_during_the_import_does_not_get_its_text_back(memory, person, monkeypatch):
    export = [claude_conversation("One", "1", "The PIN is 8253", "Noted: 8253")]
    import_json(person, export)
    pin = Exchange.objects.get(user_message="The PIN is 8253")
    monkeypatch.setattr(importer, "_BATCH_SIZE", 1)

    def forget_after_first_batch(what: str, count: int) -> None:
        if what == "turns" and not Exchange.objects.get(pk=pin.pk).forgotten_at:
            forget_everywhere(person.id, pin.pk, is_administrator=False, with_answers=False)

    import_conversations(
        io.BytesIO(json.dumps(export).encode()), person_id=person.id, progress=forget_after_first_batch
    )
    assert list(Turn.objects.order_by("position").values_list("message", "answer")) == [("One", "1"), ("", "")]


def test_a_turn_whose_text_was_deleted_does_not_get_it_back(memory, person):
    import_json(person, [claude_conversation("The PIN is 8253", "Noted: 8253")])
    memory.forget([Exchange.objects.get().id], by=person.id)
    Turn.objects.update(message="", answer="")
    import_json(person, [claude_conversation("The PIN is 8253", "Noted: 8253")])
    assert Turn.objects.get().answer == ""


def test_a_deleted_thread_stays_deleted_also_in_longer_versions(memory, person):
    import_json(person, [claude_conversation("One", "1")])
    memory.forget(Exchange.objects.values_list("id", flat=True), by=person.id)
    delete_threads()

    report = import_json(person, [claude_conversation("One", "1", "Two", "2")])

    assert report.skipped == [("About simple", "Skipped: forgotten earlier.")]
    assert not Thread.objects.exists()


def test_nothing_is_added_to_a_thread_deleted_meanwhile(memory, person):
    import_json(person, [claude_conversation("One", "1")])
    delete_thread(Thread.objects.get())
    import_json(person, [claude_conversation("One", "1", "Two", "2")])
    assert Turn.objects.count() == 1


def import_long_thread(person, act) -> ImportReport:
    """Import a conversation of two batches, and act on its thread between them."""

    def after_first(what: str, count: int) -> None:
        if what == "turns" and Turn.objects.count() == 50:
            act(Thread.objects.get())

    lines = io.BytesIO(json.dumps([claude_conversation(*(f"Line {n}" for n in range(120)))]).encode())
    return import_conversations(lines, person_id=person.id, progress=after_first)


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_thread_deleted_while_it_is_imported_stays_deleted(memory, person, is_removed):
    def delete(one: Thread) -> None:
        delete_thread(one)
        if is_removed:
            Thread.objects.update(deleted_at=ago(minutes=1))
            purge_deleted()

    report = import_long_thread(person, delete)

    assert not Exchange.objects.findable().exists()
    assert not Thread.objects.filter(deleted_at=None).exists()
    assert (report.imported, report.skipped) == (1, [("About simple", "Skipped: forgotten earlier.")])


def test_a_thread_moved_while_it_is_imported_gets_nothing_more_that_others_could_read(person):
    crew = group("Crew", person)
    report = import_long_thread(person, lambda one: move_thread(one, to=crew, by=person.id))

    assert Turn.objects.count() == 50
    assert report.skipped == [("About simple", "Skipped new messages: the thread is in another space.")]


def test_turns_of_inactive_branches_are_not_remembered_by_a_second_import(person):
    import_json(person, [claude_conversation("One", "1", "Two")])
    Turn.objects.filter(message="Two").update(is_on_active_branch=False)
    import_json(person, [claude_conversation("One", "1", "Two", "2")])
    assert Turn.objects.get(message="Two").answer == "2"
    assert Exchange.objects.get().user_message == "One"


@pytest.mark.parametrize("new", [["Two", "2"], ["Two", "2", "Three", "3"]])
def test_new_turns_are_not_added_to_a_thread_that_was_moved_to_a_shared_space(person, new):
    import_json(person, [claude_conversation("One", "1", "Two")])
    Thread.objects.update(space=access.team_space())

    report = import_json(person, [claude_conversation("One", "1", *new)])

    assert report.skipped[0][1].startswith("Skipped new messages: the thread is in another space")
    assert turns_of("About simple") == [("One", "1"), ("Two", "")]
    assert import_json(person, [claude_conversation("One", "1", "Two")]).already_there == 1


# Cato's own exports


def export_of(of_thread: Thread) -> io.BytesIO:
    return io.BytesIO("".join(to_json(of_thread, of_thread.turns.select_related("author"))).encode())


def test_an_export_is_imported_completely_elsewhere(person):
    alice = PersonFactory(name=person.name)
    exported = thread(alice, title="Übergabe", is_remembered=False)
    turn(exported, "Ünïcode\n\n```\ncode\n```", "# An answer\n\nwith *marks*", model="m")
    turn(exported, "Not answered", "")

    import_conversations(export_of(exported), person_id=person.id)

    copy = Thread.objects.get(owner=person)
    fields = ("message", "answer", "created_at", "completed_at", "model")
    assert (copy.title, copy.created_at, copy.is_remembered) == ("Übergabe", exported.created_at, False)
    assert [one.message for one in copy.turns.all()] == [one.message for one in exported.turns.all()]
    first, was = copy.turns.first(), exported.turns.first()
    assert [getattr(first, name) for name in fields[:3]] == [getattr(was, name) for name in fields[:3]]
    assert export_of(copy).getvalue().count(b'"message"') == 2


def test_messages_of_a_shared_thread_name_their_authors(person):
    ines = PersonFactory(name="Ines Dvorak")
    shared = thread(person, space=group("Boat crew", person, ines))
    turn(shared, "Who has the key?", "Ines.", author=person)
    turn(shared, "I hung it up.", "Noted.", author=ines)

    import_conversations(export_of(shared), person_id=PersonFactory().id)

    copy = Thread.objects.exclude(pk=shared.pk).get()
    assert [one.message for one in copy.turns.order_by("position")] == [
        f"{person.name}: Who has the key?",
        "Ines Dvorak: I hung it up.",
    ]


def test_messages_of_a_thread_of_somebody_else_name_their_author(person):
    theirs = thread(PersonFactory(name="Ines Dvorak"))
    turn(theirs, "I hung up the key.", "Noted.")

    import_conversations(export_of(theirs), person_id=person.id)

    copy = Turn.objects.get(author=person)
    assert (copy.message, copy.answer) == ("Ines Dvorak: I hung up the key.", "Noted.")


def test_an_export_of_an_existing_thread_is_recognised(person):
    own_thread = thread(person)
    turn(own_thread)
    assert import_conversations(export_of(own_thread), person_id=person.id).already_there == 1
    assert Thread.objects.count() == 1


def test_an_export_does_not_restore_data_forgotten_since(memory, person):
    own_thread = thread(person)
    secret_turn = turn(own_thread, "The PIN is 8253", "Noted")
    stored = exchange(person, secret_turn.message, secret_turn.answer, thread_id=own_thread.id, turn_id=secret_turn.id)
    file = export_of(own_thread)
    memory.forget([stored.id], by=person.id)
    delete_threads()

    report = import_conversations(file, person_id=person.id)

    assert report.skipped == [("A thread", "Skipped: forgotten earlier.")]
    assert not Thread.objects.exists()


def test_a_turn_forgotten_before_the_export_is_not_imported(memory, person):
    alice = PersonFactory(name=person.name)
    exported = thread(alice)
    removed, stored = turn(exported, "The PIN is 8253", "Noted"), turn(exported, "Two", "2")
    forgotten = exchange(alice, removed.message, removed.answer, thread_id=exported.id, turn_id=removed.id)
    Turn.objects.filter(id=removed.id).update(exchange_id=forgotten.id)
    memory.forget([forgotten.id], by=alice.id)

    import_conversations(export_of(exported), person_id=person.id)

    assert [one.message for one in Turn.objects.filter(author=person)] == [stored.message]


# Invalid files


@pytest.mark.parametrize("data", [b"", b"[]", b'Dear diary, "quoted', b"[1, 2, [3]]", b"null"])
def test_a_file_without_conversations_is_reported(person, data):
    with pytest.raises(
        ExtractionError, match="exports of ChatGPT, Claude, Open WebUI, LibreChat, Slack, Mattermost, Cato"
    ):
        import_conversations(io.BytesIO(data), person_id=person.id)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("[{}]".encode("utf-16"), "This is not JSON in UTF-8."),
        (b'[{"title": "Diary", "pages": []}]', "It is not a conversation from"),
        (b'[{"mapping": }]', "It is damaged: it is not valid JSON."),
    ],
)
def test_a_file_of_which_nothing_can_be_read_is_an_error_that_says_what_to_choose(person, data, why):
    report = ImportReport()
    with pytest.raises(ExtractionError, match=f"{why}.* Supported: .*, as a zip or as JSON in UTF-8"):
        import_conversations(io.BytesIO(data), person_id=person.id, report=report)
    assert report.found == report.not_imported.total() == 1


def test_the_figures_of_the_report_add_up(memory, person):
    known, gone = claude_conversation("One", "1", id="known"), claude_conversation("Two", "2", id="gone")
    import_json(person, [known, gone])
    memory.forget(Exchange.objects.filter(user_message="Two").values_list("id", flat=True), by=person.id)
    Turn.objects.filter(message="Two").delete()
    Thread.objects.exclude(turns__message="One").delete()
    new, empty = claude_conversation("Three", "3", id="new"), claude_conversation(id="empty")

    report = import_json(person, [known, gone, new, empty, {"title": "Diary"}, {"uuid": "p", "docs": []}])

    assert (report.found, report.imported, report.already_there) == (6, 1, 1)
    assert report.not_imported == {"forgotten earlier": 1, "without messages": 2, "of an unknown format": 1}


def test_readable_parts_of_a_damaged_file_are_imported(person):
    good = [json.dumps(claude_conversation("One", "1", id=id)) for id in ("first", "second")]
    bad = ['{"title": "Broken", "mapping": }', '{"title": "Unknown"}', '{"a":' * 3000 + "1" + "}" * 3000]
    data = f"[{good[0]}, {', '.join(bad)}, {good[1]}, {good[0][:-20]}".encode()

    report = import_conversations(io.BytesIO(data), person_id=person.id)

    assert report.imported == 2
    assert [reason for _, reason in report.skipped] == [
        "It is damaged: it is not valid JSON.",
        "It is not a conversation from ChatGPT, Claude, Open WebUI, LibreChat, Slack, Mattermost or Cato.",
        "It is nested too deeply to be read.",
        "The file is cut off; what came before that was read.",
    ]


WRONG = [None, True, 7, 1e400, "\ud800\x00", [], {}, [[]], {"role": {}}, ["x"], [{"type": "text", "text": 5}]]


def mutations(value: object):
    """Yield the value with each of its parts in turn replaced by each of the wrong values."""
    if isinstance(value, dict):
        for key in value:
            yield from ({**value, key: other} for other in WRONG)
            yield from ({**value, key: inner} for inner in mutations(value[key]))
    elif isinstance(value, list):
        for cut, member in enumerate(value):
            yield from ([*value[:cut], other, *value[cut + 1 :]] for other in WRONG)
            yield from ([*value[:cut], inner, *value[cut + 1 :]] for inner in mutations(member))


@pytest.mark.parametrize("sample", [*SAMPLES, "librechat_tree.json"])
def test_a_wrong_value_in_any_field_is_imported_or_reported(sample):
    value = json.loads((EXPORTED / sample).read_text())
    one = value[0] if isinstance(value, list) else value
    data = io.BytesIO("\n".join(json.dumps(each) for each in mutations(one)).encode())

    read = list(conversations(data))

    assert len(read) > 500
    assert all(each.why if isinstance(each, Unread) else each.id for each in read)
    texts = (message.text + message.id for each in read if not isinstance(each, Unread) for message in each.messages)
    assert not any("\x00" in text or "\ud800" in text for text in texts)


def test_an_oversized_conversation_stops_the_import_and_earlier_ones_stay():
    small, large = b'{"a": 1}', b'{"a": "' + b"x" * 3_000_000 + b'"}'
    found = []
    with pytest.raises(ExtractionError, match="more than 2 MB"):
        found.extend(pieces(io.BytesIO(b"[%s, %s, %s]" % (small, large, small)), largest=2_000_000))
    assert found == [small]


def test_json_parts_do_not_depend_on_read_boundaries():
    rows = [{"a": '"}]\\', "b": [{"c": {}}, '\\"']}, {}, {"é": "ü" * 50}]

    class SlowFile(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(1)

    for data in (
        json.dumps(rows, ensure_ascii=False),
        "\ufeff" + json.dumps(rows, indent=2),
        "\n".join(map(json.dumps, rows)),
    ):
        assert [json.loads(part) for part in pieces(SlowFile(data.encode()))] == rows


def test_a_zip_bomb_is_refused(person):
    bomb = zipped(**{"conversations.json": "[" + " " * 30_000_000 + "]"})
    with pytest.raises(ExtractionError, match="200 times its size"):
        import_conversations(bomb, person_id=person.id)


def test_a_zip_damaged_midway_yields_the_conversations_before(person):
    rows = [claude_conversation(str(uuid.uuid4()) * 1000, "1", id=str(n)) for n in range(60)]
    data = bytearray(zipped(**{"conversations.json": rows}).getvalue())
    cut = len(data) * 9 // 10
    data[cut : cut + 50] = b"\x00" * 50

    report = import_conversations(io.BytesIO(bytes(data)), person_id=person.id)

    assert 0 < report.imported < 60
    assert "what came before" in report.skipped[-1][1]


def test_a_truncated_zip_is_reported(person):
    data = zipped(**{"conversations.json": [claude_conversation("One", "1")]}).getvalue()
    with pytest.raises(ExtractionError, match="cannot be unpacked"):
        import_conversations(io.BytesIO(data[:-30]), person_id=person.id)


# The command


def test_the_command_imports_for_a_person_and_prints_a_report(person, capsys):
    call_command("import_history", str(EXPORTED / "chatgpt.json"), "--user", person.email)

    output = capsys.readouterr().out
    assert output.startswith(
        "4 conversations, projects and memories found: 2 imported (5 turns), 0 existed already, 2 were not"
    )
    assert "Not imported, without messages: 1" in output
    assert "Left out, images and files: 1" in output
    assert "Nothing in it: Empty conversation." in output


def test_the_command_reports_an_unreadable_file(person, tmp_path):
    with pytest.raises(CommandError, match="no account Nobody"):
        call_command("import_history", str(EXPORTED / "chatgpt.json"), "--user", "Nobody")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_history", str(tmp_path / "not there.zip"), "--user", person.email)
    with pytest.raises(InvalidInputError, match="no files"):
        import_sample(person, tmp_path)
