"""Imports of Slack and Mattermost: public channels become threads whose messages are transcripts, once."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from cato_web.accounts.models import AuditEntry
from chat import services
from chat.answers.recall import recall_for_turn
from chat.imports.formats import conversations, count_conversations
from chat.imports.importer import import_conversations
from chat.imports.worker import run_imports
from chat.models import Thread, Turn
from memory import api
from memory.errors import ExtractionError
from memory.index.parts import embedding_texts
from memory.models import Exchange, Membership, Space
from memory.spaces import access
from tests.factories import PersonFactory, answer_job, group, signed_in, thread, turn

pytestmark = pytest.mark.django_db

MAY_3, MAY_4 = 1714730400, 1714816800  # 2024-05-03 and 04, 10:00 UTC
USERS = [
    {"id": "U1", "name": "anna", "profile": {"real_name": "Anna Sund", "email": "anna@halden.example"}},
    {"id": "U2", "name": "ben", "profile": {"real_name": "Ben Lie", "email": "ben@halden.example"}},
]
CHANNELS = [{"id": "C1", "name": "buoys"}]


def said(at: int, text: str, user: str = "U1", **fields) -> dict:
    return {"type": "message", "user": user, "text": text, "ts": f"{at}.000100", **fields}


def slack(days: dict[str, list[dict]], channels=CHANNELS, **members) -> io.BytesIO:
    files = {"users.json": USERS, "channels.json": channels, **members}
    files |= {f"{path}.json": rows for path, rows in days.items()}
    return zipped({name: json.dumps(value) for name, value in files.items()})


def zipped(files: dict[str, str]) -> io.BytesIO:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in files.items():
            package.writestr(name, text)
    data.seek(0)
    return data


def mattermost(*lines: dict) -> io.BytesIO:
    rows = [{"type": "version", "version": 1}, *lines]
    return zipped({"import.jsonl": "\n".join(json.dumps(row) for row in rows), "data/plan.pdf": "no text"})


def import_day(person, *rows: dict):
    return import_conversations(slack({"buoys/2024-05-03": list(rows)}), person_id=person.id)


def messages() -> list[str]:
    return list(Turn.objects.order_by("position").values_list("message", flat=True))


def test_messages_that_follow_each_other_are_one_part_of_the_channel(person):
    days = {
        "buoys/2024-05-03": [
            said(MAY_3, "The line is 12 mm"),
            said(MAY_3 + 600, "Thanks", "U2"),
            said(MAY_3 + 9000, "Lunch?"),
        ],
        "buoys/2024-05-04": [said(MAY_4, "The anchor has 80 kg")],
    }
    report = import_conversations(slack(days), person_id=person.id)
    assert messages() == [
        "#buoys, 2024-05-03\nAnna Sund: The line is 12 mm\nBen Lie: Thanks",
        "#buoys, 2024-05-03\nAnna Sund: Lunch?",
        "#buoys, 2024-05-04\nAnna Sund: The anchor has 80 kg",
    ]
    assert (report.found, report.imported, report.turns) == (1, 1, 3)
    assert Thread.objects.get().title == "#buoys"
    assert [at.isoformat() for at in Exchange.objects.order_by("timestamp").values_list("timestamp", flat=True)] == [
        "2024-05-03T10:00:00.000100+00:00",
        "2024-05-03T12:30:00.000100+00:00",
        "2024-05-04T10:00:00.000100+00:00",
    ]


def test_a_thread_is_one_part_also_over_days(person):
    root = f"{MAY_3}.000100"
    days = {
        "buoys/2024-05-03": [said(MAY_3, "Who has the key?", thread_ts=root), said(MAY_3 + 60, "Hello", "U2")],
        "buoys/2024-05-04": [said(MAY_4, "I have it", "U2", thread_ts=root)],
    }
    import_conversations(slack(days), person_id=person.id)
    assert messages() == [
        "#buoys, 2024-05-03\nAnna Sund: Who has the key?\n#buoys, 2024-05-04\nBen Lie: I have it",
        "#buoys, 2024-05-03\nBen Lie: Hello",
    ]


def test_codes_of_slack_become_text_and_its_own_messages_are_left_out(person):
    days = {
        "buoys/2024-05-03": [
            said(MAY_3, "<@U2> see <https://halden.example/a|the plan> &amp; <#C1|buoys> <!here> <https://b.example>"),
            said(MAY_3 + 1, "<@U1> has joined", subtype="channel_join"),
            said(MAY_3 + 2, "", "U2", files=[{"name": "plan.pdf"}]),
            {"type": "message", "subtype": "bot_message", "username": "Deploy", "text": "Done", "ts": f"{MAY_3 + 3}.0"},
        ],
    }
    report = import_conversations(slack(days), person_id=person.id)
    assert messages() == [
        "#buoys, 2024-05-03\n"
        "Anna Sund: @Ben Lie see the plan (https://halden.example/a) & #buoys @here https://b.example\n"
        "Ben Lie: [plan.pdf]\nDeploy: Done"
    ]
    assert report.left_out["images and files"] == 1
    assert report.left_out["system and tool messages"] == 1


def test_people_with_an_account_have_the_name_of_their_account(person):
    PersonFactory(name="Anna Sund-Berg", email="Anna@halden.example")
    import_conversations(slack({"buoys/2024-05-03": [said(MAY_3, "Hello <@U1>", "U2")]}), person_id=person.id)
    assert messages() == ["#buoys, 2024-05-03\nBen Lie: Hello @Anna Sund-Berg"]
    assert Exchange.objects.get().owner_id == person.id


def test_long_parts_are_split_between_messages(person):
    days = {"buoys/2024-05-03": [said(MAY_3 + n, f"{n} " + "word " * 60) for n in range(12)]}
    import_conversations(slack(days), person_id=person.id)
    found = messages()
    assert len(found) == 4
    assert all(len(text) < 1500 for text in found)
    assert sum(text.count("Anna Sund: ") for text in found) == 12


def test_a_second_import_adds_only_what_is_new(person):
    days = {"buoys/2024-05-03": [said(MAY_3, "The line is 12 mm")]}
    import_conversations(slack(days), person_id=person.id)
    before = Exchange.objects.get()
    again = import_conversations(slack(days), person_id=person.id)
    assert (again.imported, again.already_there, again.turns) == (0, 1, 0)

    days["buoys/2024-05-03"].append(said(MAY_3 + 60, "And the shackle 16 mm", "U2"))
    days["buoys/2024-05-04"] = [said(MAY_4, "Thanks")]
    grown = import_conversations(slack(days), person_id=person.id)
    assert (grown.imported, grown.turns) == (1, 2)
    assert messages() == [
        "#buoys, 2024-05-03\nAnna Sund: The line is 12 mm\nBen Lie: And the shackle 16 mm",
        "#buoys, 2024-05-04\nAnna Sund: Thanks",
    ]
    assert Exchange.objects.get(pk=before.pk).user_message == messages()[0]
    assert Exchange.objects.count() == 2


def test_a_part_grows_although_a_person_and_the_channel_were_renamed(person):
    days = {"buoys/2024-05-03": [said(MAY_3, "The line is 12 mm")]}
    import_conversations(slack(days), person_id=person.id)
    PersonFactory(name="Anna Sund-Lie", email="anna@halden.example")
    days = {"marks/2024-05-03": [*days["buoys/2024-05-03"], said(MAY_3 + 60, "And the shackle 16 mm", "U2")]}

    import_conversations(slack(days, channels=[{"id": "C1", "name": "marks"}]), person_id=person.id)

    assert messages() == ["#marks, 2024-05-03\nAnna Sund-Lie: The line is 12 mm\nBen Lie: And the shackle 16 mm"]


def test_a_part_grows_although_a_person_whom_it_mentions_was_renamed(person):
    days = {"buoys/2024-05-03": [said(MAY_3, "The line is for <@U1>, 12 mm")]}
    import_conversations(slack(days), person_id=person.id)
    PersonFactory(name="Anna Sund-Lie", email="anna@halden.example")
    days["buoys/2024-05-03"].append(said(MAY_3 + 60, "And the shackle 16 mm", "U2"))

    import_conversations(slack(days), person_id=person.id)

    lines = "Anna Sund-Lie: The line is for @Anna Sund-Lie, 12 mm\nBen Lie: And the shackle 16 mm"
    assert messages() == [f"#buoys, 2024-05-03\n{lines}"]


@pytest.mark.parametrize("is_later_first", [False, True])
def test_a_thread_grows_by_an_export_of_other_days(person, is_later_first):
    root = f"{MAY_3}.000100"
    earlier = {"buoys/2024-05-03": [said(MAY_3, "Who has the key?", thread_ts=root)]}
    later = {"buoys/2024-05-04": [said(MAY_4, "I have it", "U2", thread_ts=root)]}

    for days in (later, earlier) if is_later_first else (earlier, later):
        import_conversations(slack(days), person_id=person.id)

    assert messages() == ["#buoys, 2024-05-03\nAnna Sund: Who has the key?\n#buoys, 2024-05-04\nBen Lie: I have it"]


def test_a_line_that_differs_without_being_marked_as_edited_is_a_new_one(person):
    days = {"buoys/2024-05-03": [said(MAY_3, "The line is 12 mm")]}
    import_conversations(slack(days), person_id=person.id)
    days = {"buoys/2024-05-03": [said(MAY_3, "The line is 14 mm"), said(MAY_3 + 60, "Thanks", "U2")]}

    import_conversations(slack(days), person_id=person.id)

    lines = "Anna Sund: The line is 14 mm\nBen Lie: Thanks\nAnna Sund: The line is 12 mm"
    assert messages() == [f"#buoys, 2024-05-03\n{lines}"]


EDITED = {"edited": {"user": "U2", "ts": f"{MAY_4}.000100"}}


def test_an_edited_message_takes_the_place_of_its_former_text(person):
    root = f"{MAY_3}.000100"
    first, second, third = (
        said(MAY_3, "How thick is the line?", thread_ts=root),
        said(MAY_3 + 60, "I measured.\nIt is 12 mm", "U2", thread_ts=root),
        said(MAY_3 + 120, "Thanks", thread_ts=root),
    )
    next_day = said(MAY_4, "And the shackle 16 mm", "U2", thread_ts=root)
    days = {"buoys/2024-05-03": [first, second, third], "buoys/2024-05-04": [next_day]}
    import_conversations(slack(days), person_id=person.id)

    # The later export is of the first day alone.
    second |= EDITED | {"text": "I measured.\nIt is 14 mm"}
    rows = [first, second, third, said(MAY_3 + 180, "Good", thread_ts=root)]
    import_conversations(slack({"buoys/2024-05-03": rows}), person_id=person.id)

    lines = "Anna Sund: How thick is the line?\nBen Lie: I measured.\nIt is 14 mm\nAnna Sund: Thanks\nAnna Sund: Good"
    (message,) = messages()
    assert message == f"#buoys, 2024-05-03\n{lines}\n#buoys, 2024-05-04\nBen Lie: And the shackle 16 mm"
    assert Exchange.objects.get().user_message == message


@pytest.mark.parametrize("is_older_edited", [False, True])
def test_an_older_export_does_not_replace_what_was_edited_later(person, is_older_edited):
    line, shackle = said(MAY_3, "The line is 12 mm"), said(MAY_3 + 60, "The shackle has 16 mm")
    if is_older_edited:
        line |= {"edited": {"user": "U1", "ts": f"{MAY_3 + 300}.000100"}}
    import_day(person, line, shackle | EDITED | {"text": "The shackle has 18 mm"})
    import_day(person, line, shackle, said(MAY_3 + 120, "Thanks", "U2"))

    lines = ["Anna Sund: The line is 12 mm", "Anna Sund: The shackle has 18 mm"]
    (message,) = messages()
    assert message.split("\n")[1:3] == lines
    assert "Ben Lie: Thanks" in message


def test_a_later_edit_replaces_the_text_of_an_earlier_one(person):
    line, day = said(MAY_3, "The line is 12 mm"), 86_400
    for number, text in enumerate(("The line is 14 mm", "The line is 16 mm")):
        edited = {"edited": {"user": "U1", "ts": f"{MAY_4 + number * day}.000100"}, "text": text}
        import_day(person, line | edited)
        assert messages() == [f"#buoys, 2024-05-03\nAnna Sund: {text}"]
    import_day(person, line)
    assert messages()[0].startswith("#buoys, 2024-05-03\nAnna Sund: The line is 16 mm")


def test_what_was_deleted_at_another_place_than_an_edited_message_stays(person):
    first, second, third, last = (said(MAY_3 + 60 * number, f"Buoy {number} is out") for number in range(4))
    import_conversations(slack({"buoys/2024-05-03": [first, second, third, last]}), person_id=person.id)

    rows = [first, third, last | EDITED | {"text": "Buoy 3 is in"}]
    import_conversations(slack({"buoys/2024-05-03": rows}), person_id=person.id)

    lines = ("Buoy 0 is out", "Buoy 2 is out", "Buoy 3 is in", "Buoy 1 is out")
    assert messages() == ["\n".join(["#buoys, 2024-05-03", *(f"Anna Sund: {line}" for line in lines)])]


@pytest.mark.parametrize("length", [1, 200])
@pytest.mark.parametrize("is_older_last", [False, True])
def test_a_line_of_a_long_part_moves_with_an_edit_of_another_length(person, length, is_older_last):
    rows = [said(MAY_3 + n, f"Buoy {n} " + "word " * 70) for n in range(9)]
    edited = [rows[0] | EDITED | {"text": "Buoy 0 " + "word " * length}, *rows[1:]]
    import_day(person, *rows)
    former = messages()

    import_day(person, *edited)
    if is_older_last:
        import_day(person, *rows)

    assert messages() != former
    text = "\n".join(messages())
    assert [text.count(f": Buoy {n} ") for n in range(1, 9)] == [1] * 8
    assert [row.user_message for row in Exchange.objects.order_by("timestamp")] == messages()


def test_a_part_that_lost_lines_is_not_replaced(person):
    root = f"{MAY_3}.000100"
    first, second = said(MAY_3, "Who has the key?", thread_ts=root), said(MAY_4, "I have it", "U2", thread_ts=root)
    import_conversations(slack({"buoys/2024-05-03": [first], "buoys/2024-05-04": [second]}), person_id=person.id)
    before = messages()
    import_conversations(slack({"buoys/2024-05-04": [second]}), person_id=person.id)
    assert messages() == before


def test_a_forgotten_part_does_not_come_back(person):
    days = {"buoys/2024-05-03": [said(MAY_3, "The code is 4711")], "buoys/2024-05-04": [said(MAY_4, "Hello")]}
    import_conversations(slack(days), person_id=person.id)
    api.forget([Exchange.objects.order_by("timestamp").first().pk], by=person.id)
    Turn.objects.filter(message__contains="4711").update(message="")
    days["buoys/2024-05-03"].append(said(MAY_3 + 60, "Thanks for the code", "U2"))
    import_conversations(slack(days), person_id=person.id)
    assert not any("4711" in text for text in messages())
    assert Exchange.objects.filter(forgotten_at=None).count() == 1


CONVERSATION = [
    said(MAY_3, "How thick is the line?"),
    said(MAY_3 + 60, "It is 12 mm", "U2"),
    said(MAY_3 + 120, "Thanks for measuring"),
]
OF_CONVERSATION = "Anna Sund: How thick is the line?\nBen Lie: It is 12 mm\nAnna Sund: Thanks for measuring"


def test_a_part_whose_first_message_was_deleted_is_not_imported_again(person):
    import_day(person, *CONVERSATION, said(MAY_3 + 9000, "Lunch?"))
    report = import_day(person, *CONVERSATION[1:], said(MAY_3 + 180, "Welcome", "U2"), said(MAY_3 + 9000, "Lunch?"))

    lines = "\n".join(sorted([*OF_CONVERSATION.split("\n"), "Ben Lie: Welcome"]))
    part, other = messages()
    assert ("\n".join(sorted(part.split("\n")[1:])), other) == (lines, "#buoys, 2024-05-03\nAnna Sund: Lunch?")
    assert Exchange.objects.count() == 2
    assert report.turns == 1
    again = import_day(person, *CONVERSATION[1:], said(MAY_3 + 180, "Welcome", "U2"), said(MAY_3 + 9000, "Lunch?"))
    assert (again.turns, messages()) == (0, [part, other])


def test_a_part_whose_first_message_begins_a_thread_is_not_imported_again(person):
    import_day(person, *CONVERSATION)
    root = CONVERSATION[0]["ts"]
    reply = said(MAY_3 + 600, "Or 14 mm", "U2", thread_ts=root)
    import_day(person, CONVERSATION[0] | {"thread_ts": root}, *CONVERSATION[1:], reply)

    (message,) = messages()
    assert sorted(message.split("\n")[1:]) == sorted([*OF_CONVERSATION.split("\n"), "Ben Lie: Or 14 mm"])


def test_another_part_with_the_same_words_is_new(person):
    import_day(person, said(MAY_3, "Who has the key?"), said(MAY_3 + 60, "I have"))
    import_day(person, said(MAY_3, "Who has the key?"), said(MAY_3 + 60, "I have"), said(MAY_3 + 9000, "I have", "U2"))
    assert messages()[1:] == ["#buoys, 2024-05-03\nBen Lie: I have"]


@pytest.mark.parametrize("is_everywhere", [False, True])
def test_a_forgotten_part_does_not_come_back_when_its_first_message_was_deleted(person, is_everywhere):
    import_day(person, *CONVERSATION, said(MAY_3 + 9000, "Lunch?"))
    stored = Exchange.objects.order_by("timestamp").first()
    if is_everywhere:
        services.forget_everywhere(person.id, stored.pk, is_administrator=False, with_answers=False)
    else:
        api.forget([stored.pk], by=person.id)
    before = messages()

    report = import_day(person, *CONVERSATION[1:], said(MAY_3 + 9000, "Lunch?"), said(MAY_3 + 20_000, "Dinner?"))

    assert messages() == [*before, "#buoys, 2024-05-03\nAnna Sund: Dinner?"]
    assert report.skipped == [("#buoys", "Forgotten earlier and not imported again: 1 of 3 turns.")]
    remembered = Exchange.objects.filter(forgotten_at=None).values_list("user_message", flat=True)
    assert not any("12 mm" in text for text in remembered)


def test_a_thread_in_another_space_does_not_grow(person):
    days = {"buoys/2024-05-03": [said(MAY_3, "The line is 12 mm")]}
    import_conversations(slack(days), person_id=person.id)
    crew = group("Crew", person)
    services.move_thread(Thread.objects.get(), to=crew, by=person.id)
    days["buoys/2024-05-03"].append(said(MAY_3 + 60, "Between us: 14 mm", "U2"))
    report = import_conversations(slack(days), person_id=person.id)
    assert report.skipped[0][1] == "Skipped new messages: the thread is in another space."
    assert messages() == ["#buoys, 2024-05-03\nAnna Sund: The line is 12 mm"]


def test_private_channels_and_direct_messages_are_not_imported(person):
    data = slack(
        {"buoys/2024-05-03": [said(MAY_3, "Hello")], "wages/2024-05-03": [said(MAY_3, "Secret")]},
        **{"groups.json": [{"id": "G1", "name": "wages"}], "dms.json": [{"id": "D1", "members": ["U1", "U2"]}]},
    )
    assert count_conversations(data) == 3
    report = import_conversations(data, person_id=person.id)
    assert report.not_imported == {"private channels and direct messages": 2}
    assert (report.found, report.imported) == (3, 1)
    assert not any("Secret" in text for text in messages())


def test_a_damaged_day_is_reported_and_other_channels_are_imported(person):
    channels = [*CHANNELS, {"id": "C2", "name": "anchors"}, {"id": "C3", "name": "silent"}]
    data = slack({"buoys/2024-05-03": [said(MAY_3, "Hello")], "anchors/2024-05-03": []}, channels)
    with zipfile.ZipFile(data, "a") as package:
        package.writestr("anchors/2024-05-04.json", '[{"ts": 12')
    data.seek(0)
    report = import_conversations(data, person_id=person.id)
    assert report.imported == 1
    assert report.not_imported == {"unreadable": 1, "without messages": 1}


def test_a_zip_that_unpacks_to_too_much_is_refused(person):
    data = slack({"buoys/2024-05-03": [said(MAY_3, "a" * 30_000_000)]})
    with pytest.raises(ExtractionError, match="200 times"):
        import_conversations(data, person_id=person.id)


def test_a_folder_is_read_like_its_zip(person, tmp_path, settings):
    with zipfile.ZipFile(slack({"buoys/2024-05-03": [said(MAY_3, "Hello")]})) as package:
        package.extractall(tmp_path / "export")
    assert import_conversations(tmp_path / "export", person_id=person.id).imported == 1


def test_what_was_said_is_recalled(person, memory):
    days = {"buoys/2024-05-03": [said(MAY_3, "The mooring line of the north buoy is 12 mm thick", "U2")]}
    import_conversations(slack(days), person_id=person.id)
    memory.index_pending()
    asked = turn(thread(person), "How thick is the mooring line of the north buoy?", "", state=Turn.State.RECALLING)
    (hit,) = recall_for_turn(answer_job(asked)).search_results.results
    assert "Ben Lie: The mooring line" in hit.exchange.user_message
    assert hit.exchange.thread_id == Thread.objects.get(title="#buoys").id


def test_a_part_is_found_by_its_own_text_alone(person):
    days = {
        "buoys/2024-05-03": [said(MAY_3, "The mooring line is 12 mm thick")],
        "buoys/2024-05-04": [said(MAY_4, "Lithium batteries arrived")],
    }
    import_conversations(slack(days), person_id=person.id)
    texts = [embedding_texts(exchange) for exchange in Exchange.objects.order_by("timestamp")]
    assert texts == [[message] for message in messages()]


POST = {"team": "sea", "channel": "buoys", "user": "ben", "create_at": MAY_3 * 1000}


def test_a_mattermost_export_is_imported(person):
    lines = (
        {"type": "user", "user": {"username": "ben", "first_name": "Ben", "last_name": "Lie"}},
        {"type": "channel", "channel": {"team": "sea", "name": "buoys", "display_name": "Buoys", "type": "O"}},
        {"type": "channel", "channel": {"team": "sea", "name": "wages", "display_name": "Wages", "type": "P"}},
        {
            "type": "post",
            "post": POST
            | {
                "message": "The line is 12 mm",
                "attachments": [{"path": "2024/plan.pdf"}],
                "replies": [{"user": "mia", "message": "Thanks", "create_at": MAY_4 * 1000}],
            },
        },
        {"type": "post", "post": POST | {"message": "ben joined", "type": "system_join_channel"}},
        {"type": "post", "post": POST | {"channel": "wages", "message": "Secret"}},
        {"type": "direct_channel", "direct_channel": {"members": ["ben", "mia"]}},
        {"type": "direct_post", "direct_post": {"user": "ben", "message": "Secret", "create_at": MAY_3 * 1000}},
    )
    data = mattermost(*lines)
    assert count_conversations(data) == 3
    report = import_conversations(data, person_id=person.id)
    assert messages() == ["#Buoys, 2024-05-03\nBen Lie: The line is 12 mm [plan.pdf]\n#Buoys, 2024-05-04\nmia: Thanks"]
    assert report.not_imported == {"private channels and direct messages": 2}
    assert import_conversations(data, person_id=person.id).turns == 0


CHANNEL = {"type": "channel", "channel": {"team": "sea", "name": "buoys", "display_name": "Buoys", "type": "O"}}


def test_an_edited_message_of_mattermost_takes_the_place_of_its_former_text(person):
    reply = {"user": "mia", "message": "Thanks", "create_at": MAY_3 * 1000 + 60, "edit_at": 0}
    before = POST | {"message": "The line is 12 mm", "edit_at": 0, "replies": [reply]}
    import_conversations(mattermost(CHANNEL, {"type": "post", "post": before}), person_id=person.id)

    after = before | {"message": "The line is 14 mm", "edit_at": MAY_4 * 1000}
    import_conversations(mattermost(CHANNEL, {"type": "post", "post": after}), person_id=person.id)

    assert messages() == ["#Buoys, 2024-05-03\nben: The line is 14 mm\nmia: Thanks"]


def test_messages_of_one_person_in_the_same_millisecond_are_all_imported(person):
    posts = [{"type": "post", "post": POST | {"message": f"Buoy {number} is out"}} for number in range(3)]
    import_conversations(mattermost(CHANNEL, *posts), person_id=person.id)

    lines = "\n".join(f"ben: Buoy {number} is out" for number in range(3))
    assert messages() == [f"#Buoys, 2024-05-03\n{lines}"]


@pytest.mark.parametrize(
    "data",
    [
        slack({"buoys/2024-05-03": [said(MAY_3, "Hello")]}),
        mattermost(CHANNEL, {"type": "post", "post": POST | {"message": "Hello"}}),
    ],
    ids=["slack", "mattermost"],
)
def test_an_export_packed_with_its_folder_is_read_like_the_folder(person, tmp_path, data):
    with zipfile.ZipFile(data) as package:
        files = {f"halden/export/{name}": package.read(name).decode() for name in package.namelist()}
        package.extractall(tmp_path / "folder" / "export")
    packed = zipped({"halden/": "", **files, "__MACOSX/halden/._export": "x", ".DS_Store": "x"})

    assert count_conversations(packed) == 1
    assert import_conversations(packed, person_id=person.id).imported == 1
    assert import_conversations(tmp_path / "folder", person_id=person.id).already_there == 1


def test_other_lines_are_no_mattermost_export(person):
    assert not list(conversations(zipped({"notes.jsonl": '{"id": 1}', "a.json": "[]"})))


def test_the_imported_channel_is_for_the_readers_of_its_space(person, memory):
    crew, stranger = group("Crew", person), PersonFactory()
    import_conversations(slack({"buoys/2024-05-03": [said(MAY_3, "Hello")]}), person_id=person.id, space=crew)
    assert Exchange.objects.get().space_id == crew.id
    assert not memory.search("Hello", spaces=access.readable_space_ids(stranger.id)).results


TWO_CHANNELS = [{"id": "C1", "name": "buoys"}, {"id": "C2", "name": "Kitchen"}]


def two_channels(*kitchen: str) -> io.BytesIO:
    rows = [said(MAY_3 + 9000 * number, text) for number, text in enumerate(kitchen)]
    return slack({"buoys/2024-05-03": [said(MAY_3, "The line is 12 mm")], "Kitchen/2024-05-03": rows}, TWO_CHANNELS)


def projects() -> dict[str, list[str]]:
    """Return the messages of each project."""
    return {
        space.name: list(
            Exchange.objects.filter(space=space).order_by("timestamp").values_list("user_message", flat=True)
        )
        for space in Space.objects.filter(kind=Space.Kind.PROJECT)
    }


def test_each_channel_can_become_a_project_of_its_own_which_the_next_import_continues(person):
    first, second = two_channels("The kettle leaks"), two_channels("The kettle leaks", "It is repaired")
    import_conversations(first, person_id=person.id, has_channel_projects=True)
    assert {name: len(rows) for name, rows in projects().items()} == {"buoys": 1, "Kitchen": 1}
    created = AuditEntry.objects.filter(action="project.created", actor=person)
    assert created.count() == 2

    # Whatever a project is called by now, the channel stays in it.
    Space.objects.filter(name="Kitchen").update(name="Galley")
    report = import_conversations(second, person_id=person.id, has_channel_projects=True)

    assert {name: len(rows) for name, rows in projects().items()} == {"buoys": 1, "Galley": 2}
    assert (report.imported, report.already_there) == (1, 1)
    assert created.count() == 2


def test_a_channel_does_not_get_into_a_project_of_others_or_an_archived_one(person):
    other = PersonFactory()
    api.create_project("Buoys", by=other.id)
    mine = api.create_project("kitchen", by=person.id)
    api.archive_project(mine)

    report = import_conversations(two_channels("The kettle leaks"), person_id=person.id, has_channel_projects=True)

    assert projects() == {"Buoys": [], "kitchen": []}
    assert not Thread.objects.exists()
    assert [title for title, _why in report.skipped] == ["#buoys", "#Kitchen"]
    assert report.skipped[0][1] == "buoys is taken. Choose another name."


def test_a_member_who_does_not_manage_a_project_does_not_fill_it(person):
    buoys = api.create_project("buoys", by=PersonFactory().id)
    Membership.objects.create(space=buoys, person=person)

    import_conversations(two_channels("The kettle leaks"), person_id=person.id, has_channel_projects=True)

    assert projects()["buoys"] == []


def test_a_channel_whose_thread_is_elsewhere_gets_no_project(person):
    import_conversations(two_channels("The kettle leaks"), person_id=person.id)

    more = two_channels("The kettle leaks", "It is repaired")
    report = import_conversations(more, person_id=person.id, has_channel_projects=True)

    assert projects() == {}
    assert [title for title, _why in report.skipped] == ["#buoys", "#Kitchen"]
    assert "Move the thread to one first." in report.skipped[0][1]
    assert not Exchange.objects.filter(user_message__contains="It is repaired").exists()


def test_conversations_with_a_model_stay_personal(person):
    said_at = "2024-05-03T10:00:00Z"
    messages = [
        {"uuid": sender, "sender": sender, "text": "How do kettles leak?", "created_at": said_at}
        for sender in ("human", "assistant")
    ]
    chat = [{"uuid": "c", "name": "Kettles", "created_at": said_at, "chat_messages": messages}]
    export = io.BytesIO(json.dumps(chat).encode())

    import_conversations(export, person_id=person.id, has_channel_projects=True)

    assert Thread.objects.get().space.owner == person
    assert projects() == {}


def test_the_page_offers_projects_for_channels(person):
    client = signed_in(person)
    assert "a project for each channel" in client.get("/import").content.decode()

    upload = SimpleUploadedFile("slack.zip", two_channels("The kettle leaks").getvalue())
    assert client.post("/import", {"file": upload, "space": "channels"}).status_code == 302
    run_imports()

    assert set(projects()) == {"buoys", "Kitchen"}
