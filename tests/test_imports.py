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
from chat.imports import importer
from chat.imports.formats import conversations
from chat.imports.formats.conversation import Unread
from chat.imports.formats.pieces import pieces
from chat.imports.importer import ImportReport, import_conversations
from chat.models import Thread, ThreadSession, Turn
from chat.threads.lifecycle import delete_thread
from memory.errors import ExtractionError, InvalidInputError
from memory.models import Exchange
from memory.spaces import access
from tests.factories import PersonFactory, exchange, thread, turn

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
    return list(Turn.objects.filter(thread__title=title).order_by("position").values_list("message", "answer"))


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
                ("[image or file]", "That is the groyne at Utersum."),
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
                ("Does this glaze run?", "It will, near the foot."),
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


# Imported threads


def test_dates_and_models_are_kept(person):
    import_sample(person, "chatgpt.json")

    of_bread = Thread.objects.get(title=BREAD)
    first = of_bread.turns.order_by("position").first()
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
    turns = list(of_tides.turns.order_by("position"))
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
    assert import_sample(person, "librechat.json").turns == 3
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

    assert (second.found, second.already_there) == (first.found, first.imported)
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

    assert report.skipped == [("About simple", "Forgotten earlier and left so: 1 of 2 turns.")]
    assert not Turn.objects.filter(message__contains="8253").exists()
    assert not Exchange.objects.filter(user_message__contains="8253").exists()


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


def test_turns_of_inactive_branches_are_not_remembered_by_a_second_import(person):
    import_json(person, [claude_conversation("One", "1", "Two")])
    Turn.objects.filter(message="Two").update(is_on_active_branch=False)
    import_json(person, [claude_conversation("One", "1", "Two", "2")])
    assert turns_of("About simple") == [("One", "1"), ("Two", "2")]
    assert Exchange.objects.get().user_message == "One"


@pytest.mark.parametrize("new", [["Two", "2"], ["Two", "2", "Three", "3"]])
def test_new_turns_are_not_added_to_a_thread_that_was_moved_to_a_shared_space(person, new):
    import_json(person, [claude_conversation("One", "1", "Two")])
    Thread.objects.update(space=access.team_space())

    report = import_json(person, [claude_conversation("One", "1", *new)])

    assert report.skipped[0][1].startswith("Skipped new messages: the thread was moved")
    assert turns_of("About simple") == [("One", "1"), ("Two", "")]
    assert import_json(person, [claude_conversation("One", "1", "Two")]).already_there == 1


# Cato's own exports


def export_of(of_thread: Thread) -> io.BytesIO:
    return io.BytesIO("".join(to_json(of_thread, of_thread.turns.select_related("author"))).encode())


def test_an_export_is_imported_completely_elsewhere(person):
    alice = PersonFactory()
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
    alice = PersonFactory()
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
    with pytest.raises(ExtractionError, match="exports of ChatGPT, Claude, Open WebUI, LibreChat, Cato"):
        import_conversations(io.BytesIO(data), person_id=person.id)


def test_a_file_in_another_encoding_is_reported(person):
    report = import_conversations(io.BytesIO("[{}]".encode("utf-16")), person_id=person.id)
    assert report.skipped == [("The file", "This is no JSON in UTF-8.")]


def test_readable_parts_of_a_damaged_file_are_imported(person):
    good = [json.dumps(claude_conversation("One", "1", id=id)) for id in ("first", "second")]
    bad = ['{"title": "Broken", "mapping": }', '{"title": "Unknown"}', '{"a":' * 3000 + "1" + "}" * 3000]
    data = f"[{good[0]}, {', '.join(bad)}, {good[1]}, {good[0][:-20]}".encode()

    report = import_conversations(io.BytesIO(data), person_id=person.id)

    assert report.imported == 2
    assert [reason for _, reason in report.skipped] == [
        "It is damaged: this is no JSON.",
        "It is no conversation of ChatGPT, Claude, Open WebUI, LibreChat or Cato.",
        "It is nested too deeply to be read.",
        "The file breaks off in the middle; what came before that was read.",
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
    with pytest.raises(ExtractionError, match="does not unpack"):
        import_conversations(io.BytesIO(data[:-30]), person_id=person.id)


# The command


def test_the_command_imports_for_a_person_and_prints_a_report(person, capsys):
    call_command("import_history", str(EXPORTED / "chatgpt.json"), "--user", person.email)

    output = capsys.readouterr().out
    assert output.startswith("2 conversations found: 2 imported (4 turns), 0 existed already, 2 are incomplete.")
    assert "Left out, images and files: 1" in output
    assert "Nothing in it: Empty conversation." in output


def test_the_command_reports_an_unreadable_file(person, tmp_path):
    with pytest.raises(CommandError, match="no account Nobody"):
        call_command("import_history", str(EXPORTED / "chatgpt.json"), "--user", "Nobody")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_history", str(tmp_path / "not there.zip"), "--user", person.email)
    with pytest.raises(InvalidInputError, match="no files"):
        import_sample(person, tmp_path)
