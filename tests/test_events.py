"""The event feed: what services record, in which order programs read it, and how long it is kept."""

from __future__ import annotations

import re
import shlex
import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from cato_web.backups.restoring import restore
from cato_web.celery import cleanup
from memory import api as memory_api
from memory import events
from memory.errors import EventsExpiredError
from memory.models import Chunk, Document, Event, EventFeed, Exchange, Membership, Operation, Space
from memory.spaces import access
from tests.backups import create_backup, wipe_installation
from tests.factories import PersonFactory, ago, api_client, document, exchange, group, process_documents, upload

pytestmark = pytest.mark.django_db

TEXT = "The key of the archive hangs behind the door."
DOCS = Path(__file__).resolve().parent.parent / "docs"


def kinds(rows: Any = None) -> list[str]:
    """Return the kinds of these events, or of all events in the order in which they were recorded."""
    found = Event.objects.order_by("id") if rows is None else rows
    return [str(event.kind) for event in found]


def read(person: Any, after: int | None = None, limit: int = 100) -> events.EventPage:
    return events.list_events(spaces=access.readable_space_ids(person.id), after=after, limit=limit)


def store_in(space: Space, owner: Any, count: int) -> list[Exchange]:
    return [exchange(owner, f"{TEXT} {number}", space=space) for number in range(count)]


def make_older(**units: float) -> None:
    Event.objects.update(created_at=F("created_at") - timedelta(**units))


# What services record


def new_exchange(person: Any, **fields: Any) -> memory_api.NewExchange:
    space = access.personal_space(person.id)
    return memory_api.NewExchange(space=space, owner_id=person.id, user_message=TEXT, source="chat", **fields)


def record(person: Any, text: str = TEXT) -> uuid.UUID:
    space, row = access.personal_space(person.id), memory_api.NewRecord("device", text)
    return memory_api.upsert_records([row], space=space, owner_id=person.id)[0]


def store_and_answer_again(person: Any) -> object:
    turn_id = uuid.uuid4()
    for answer in ("It hangs there.", "It hangs behind the door."):
        memory_api.remember(new_exchange(person, turn_id=turn_id, assistant_message=answer))
    return None


def move_thread(person: Any) -> object:
    thread_id = uuid.uuid4()
    exchange(person, TEXT, thread_id=thread_id)
    gone = exchange(person, "forgotten before the thread is moved", thread_id=thread_id)
    memory_api.forget([gone.id], by=person.id)
    Event.objects.filter(object_id=gone.id).delete()
    return memory_api.move_thread(thread_id, to=access.team_space(), by=person.id)


def hide_and_show(person: Any) -> object:
    stored = exchange(person, TEXT)
    memory_api.deactivate([stored.id])
    memory_api.deactivate([stored.id], are_citable=True)
    return memory_api.activate([stored.id])


def change_and_delete_record(person: Any) -> object:
    for text in (TEXT, TEXT, "The key hangs elsewhere."):
        record(person, text)
    return memory_api.delete_records(
        spaces=frozenset({access.personal_space(person.id).pk}), by=person.id, ids=["device"]
    )


def change_metadata_of_record(person: Any) -> object:
    return memory_api.set_metadata(Exchange.objects.get(id=record(person)), {"zone": "north"})


def forget_record_as_exchange(person: Any) -> object:
    return memory_api.forget([record(person)], by=person.id)


def forget_in_operation(person: Any) -> object:
    operation = Operation.objects.create(kind="forget", created_by=person, created_at=ago(), due_at=ago())
    return memory_api.forget([exchange(person, TEXT).id], by=person.id, operation=operation)


def upload_twice(person: Any) -> object:
    upload(person, "key.txt", TEXT, metadata={"zone": "north"})
    upload(person, "key.txt", TEXT)
    return upload(person, "key.txt", TEXT + " It is red.")


def describe_document(person: Any) -> object:
    row = upload(person, "key.txt", TEXT).version.document
    memory_api.set_document_metadata(row, {"zone": "north"})
    return memory_api.set_document_metadata(row, {"zone": "north"})


def move_document(person: Any) -> object:
    return memory_api.move_document(document(person, "key.txt", TEXT), to=access.team_space(), by=person.id)


def forget_document(person: Any) -> None:
    memory_api.forget_documents([document(person, "key.txt", TEXT).pk], by=person.id)
    process_documents()


def fail_extraction(person: Any) -> object:
    upload(person, "broken.pdf", b"%PDF-1.7 and then nothing")
    return memory_api.read_documents()


def forget_version(person: Any) -> object:
    first = document(person, "key.txt", TEXT)
    memory_api.forget_version(upload(person, "key.txt", TEXT + " It is red.").version, by=person.id)
    return memory_api.forget_version(first.versions.get(number=1), by=person.id)


@pytest.mark.parametrize(
    ("act", "recorded"),
    [
        (lambda person: exchange(person, TEXT), "exchange.stored"),
        (store_and_answer_again, "exchange.stored exchange.changed"),
        (lambda person: memory_api.set_metadata(exchange(person, TEXT), {"a": 1}), "exchange.stored exchange.changed"),
        (hide_and_show, "exchange.stored exchange.hidden exchange.shown"),
        (move_thread, "exchange.stored exchange.moved_out exchange.moved_in"),
        (
            lambda person: memory_api.forget([exchange(person, TEXT).id], by=person.id),
            "exchange.stored exchange.forgotten",
        ),
        (forget_in_operation, "exchange.stored exchange.forgotten"),
        (record, "record.stored"),
        (change_and_delete_record, "record.stored record.changed record.forgotten"),
        (change_metadata_of_record, "record.stored record.changed"),
        (forget_record_as_exchange, "record.stored record.forgotten"),
        (upload_twice, "document.added document.changed document.changed"),
        (describe_document, "document.added document.changed"),
        (lambda person: document(person, "key.txt", TEXT), "document.added document.published"),
        (move_document, "document.added document.published document.moved_out document.moved_in"),
        (forget_document, "document.added document.published document.forgotten"),
        (fail_extraction, "document.added document.failed"),
        (forget_version, "document.added document.published document.changed document.changed document.forgotten"),
    ],
)
def test_each_service_records_what_it_changes_once(
    memory: Any, person: Any, act: Callable[[Any], object], recorded: str
) -> None:
    act(person)

    assert " ".join(kinds()) == recorded
    objects = {*Exchange.objects.values_list("pk", flat=True), *Document.objects.values_list("pk", flat=True)}
    assert {event.object_id for event in Event.objects.all()} <= objects


def test_an_event_names_the_object_its_thread_and_its_space(memory, person):
    stored = exchange(person, TEXT, thread_id=uuid.uuid4(), space=access.team_space())

    event = Event.objects.get()

    assert (event.object_id, event.thread_id, event.space_id) == (stored.id, stored.thread_id, stored.space_id)


def test_what_is_undone_is_not_recorded(memory, person):
    with transaction.atomic():
        exchange(person, TEXT)
        assert kinds() == ["exchange.stored"]
        transaction.set_rollback(True)

    assert kinds() == []


def test_many_exchanges_are_recorded_with_one_insert(memory, person):
    exchange(person, "the first one creates the index generation")

    with CaptureQueriesContext(
        connection,
    ) as queries:
        memory_api.remember_many([new_exchange(person) for _number in range(20)])

    inserts = [row["sql"] for row in queries.captured_queries if row["sql"].startswith('INSERT INTO "memory_event"')]
    assert len(inserts) == 1
    assert kinds() == ["exchange.stored"] * 21


def test_nothing_of_a_forgotten_exchange_is_in_its_events(memory, person):
    stored = exchange(person, "swordfish", metadata={"zone": "swordfish"})
    memory_api.forget([stored.id], by=person.id)

    rows = list(Event.objects.filter(object_id=stored.id).values())

    assert [row["kind"] for row in rows] == ["exchange.stored", "exchange.forgotten"]
    assert "swordfish" not in str(rows)
    assert str(person.id) not in str(rows)


def test_the_events_of_an_emptied_space_are_deleted(memory, person):
    own, crew = access.personal_space(person.id), group("Crew", person)
    store_in(own, person, 2)
    store_in(crew, person, 1)

    while memory_api.delete_space_contents(own.pk, by=person.id):
        assert Event.objects.filter(space=own).exists()

    assert [event.space_id for event in Event.objects.all()] == [crew.pk]


def test_the_events_of_a_removed_group_are_deleted(memory, person):
    crew = group("Crew", person)
    moved = document(person, "key.txt", TEXT, space=crew)
    memory_api.move_document(moved, to=access.personal_space(person.id), by=person.id)
    assert Event.objects.filter(space=crew).exists()

    Document.objects.filter(space=crew).delete()
    memory_api.remove_group(crew)

    assert kinds() == ["document.moved_in"]


# Order


def test_events_are_read_in_pages_without_gaps(memory, person):
    stored = store_in(access.personal_space(person.id), person, 5)

    found, after = [], None
    for size, has_more in ((2, True), (2, True), (1, False)):
        page = read(person, after, limit=2)
        assert (len(page.events), page.has_more) == (size, has_more)
        found += page.events
        after = page.next

    assert [event.object_id for event in found] == [one.id for one in stored]
    assert [event.position - found[0].position for event in found] == [0, 1, 2, 3, 4]
    assert after == found[-1].position == read(person, after).last
    assert read(person, after).events == []


def test_a_reader_who_waits_gets_only_what_is_new(memory, person):
    store_in(access.personal_space(person.id), person, 2)
    after = read(person).next

    (stored,) = store_in(access.personal_space(person.id), person, 1)

    assert [event.object_id for event in read(person, after).events] == [stored.id]


def test_a_read_places_a_limited_number_of_events(memory, person, monkeypatch):
    monkeypatch.setattr(events, "_BATCH_SIZE", 3)
    store_in(access.personal_space(PersonFactory().id), person, 3)
    own = store_in(access.personal_space(person.id), person, 1)

    first = read(person)

    assert (first.events, first.has_more) == ([], True)
    assert [event.object_id for event in read(person, first.next).events] == [own[0].id]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time")
def test_a_transaction_that_commits_late_comes_after_what_was_read_meanwhile(person):
    """The transaction that began first has the smaller id, and is visible only after a reader has passed its place."""
    space, has_inserted, may_commit = access.personal_space(person.id), threading.Event(), threading.Event()

    def insert_and_wait() -> None:
        with transaction.atomic():
            Event.objects.create(kind="exchange.stored", object_id=early, space=space)
            has_inserted.set()
            assert may_commit.wait(20)
        connection.close()

    early, late = uuid.uuid4(), uuid.uuid4()
    slow = threading.Thread(target=insert_and_wait)
    slow.start()
    assert has_inserted.wait(20)
    Event.objects.create(kind="exchange.stored", object_id=late, space=space)
    first = read(person)
    may_commit.set()
    slow.join()

    second = read(person, first.next)

    assert [event.object_id for event in first.events] == [late]
    assert [event.object_id for event in second.events] == [early]
    assert list(Event.objects.order_by("id").values_list("object_id", flat=True)) == [early, late]
    assert [event.object_id for event in read(person).events] == [late, early], "every reader has the same order"


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time")
def test_readers_at_the_same_time_place_each_event_once(person):
    space, count = access.personal_space(person.id), 40
    start, answers = threading.Barrier(4), []

    def write_and_read() -> None:
        start.wait()
        for _number in range(count // 4):
            Event.objects.create(kind="exchange.stored", object_id=uuid.uuid4(), space=space)
            answers.append(read(person))
        connection.close()

    workers = [threading.Thread(target=write_and_read) for _worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    everything = [event.position for event in read(person).events]
    assert everything == list(range(everything[0], everything[0] + count))
    orders = [[event.id for event in page.events] for page in answers]
    assert len(orders) == count
    final = [event.id for event in read(person).events]
    assert all(order == final[: len(order)] for order in orders)


# Rights


def test_a_reader_sees_the_events_of_their_spaces_alone(memory, person):
    reader = PersonFactory()
    crew, private = group("Crew", person, reader), access.personal_space(person.id)
    (hidden,) = store_in(private, person, 1)
    (shared,) = store_in(crew, person, 1)
    (public,) = store_in(access.team_space(), person, 1)

    assert [event.object_id for event in read(person).events] == [hidden.id, shared.id, public.id]
    assert [event.object_id for event in read(reader).events] == [shared.id, public.id]


def test_rights_are_those_of_the_moment_of_reading(memory, person):
    reader = PersonFactory()
    crew = group("Crew", person)
    store_in(crew, person, 1)
    assert read(reader).events == []

    member = Membership.objects.create(space=crew, person=reader)
    assert kinds(read(reader).events) == ["exchange.stored"]

    member.delete()
    assert read(reader).events == []


def test_readers_of_the_former_space_learn_that_something_left_it_and_not_where(memory, person):
    reader, thread_id = PersonFactory(), uuid.uuid4()
    stored = exchange(person, TEXT, thread_id=thread_id, space=access.team_space())
    memory_api.move_thread(thread_id, to=access.personal_space(person.id), by=person.id)
    memory_api.forget([stored.id], by=person.id)

    assert kinds(read(reader).events) == ["exchange.stored", "exchange.moved_out"]
    assert {event.space_id for event in read(reader).events} == {access.team_space().pk}
    assert kinds(read(person).events)[2:] == ["exchange.moved_in", "exchange.forgotten"]


# Retention


def test_events_are_deleted_after_the_configured_days(memory, person, settings, monkeypatch):
    monkeypatch.setattr("cato_web.celery._run_all", lambda *steps: [step() for step in steps])
    settings.CATO = settings.CATO.model_copy(
        update={"api": settings.CATO.api.model_copy(update={"keep_events_days": 7})}
    )
    store_in(access.personal_space(person.id), person, 2)
    first = read(person)
    make_older(days=8)
    (kept,) = store_in(access.personal_space(person.id), person, 1)

    cleanup()

    assert [event.object_id for event in read(person).events] == [kept.id]
    assert kinds(read(person, first.next).events) == ["exchange.stored"], (
        "the reader had read everything that is deleted"
    )
    with pytest.raises(EventsExpiredError, match=f"after={read(person).last}"):
        read(person, first.next - 1)


def test_events_are_kept_for_the_configured_days(memory, person):
    store_in(access.personal_space(person.id), person, 2)
    make_older(days=29)

    assert memory_api.delete_old_events() == 0
    assert len(read(person).events) == 2


def test_old_events_that_nobody_has_read_expire_too(memory, person):
    store_in(access.personal_space(person.id), person, 1)
    after = read(person).next
    store_in(access.personal_space(person.id), person, 2)
    make_older(days=31)

    assert memory_api.delete_old_events() == 3

    with pytest.raises(EventsExpiredError):
        read(person, after)


def test_a_reader_with_few_events_of_their_own_does_not_expire(memory, person):
    """The position to continue with is the end of the feed, although all the events before it are of others."""
    quiet = PersonFactory()
    after = read(quiet).next
    store_in(access.personal_space(person.id), person, 2)
    after = read(quiet, after).next
    make_older(days=31)
    memory_api.delete_old_events()

    assert read(quiet, after).events == []


def test_a_position_of_another_feed_is_refused(memory, person):
    """A restored installation begins another feed, with greater positions."""
    store_in(access.personal_space(person.id), person, 3)
    after = read(person).next
    Event.objects.all().delete()
    EventFeed.objects.all().delete()
    store_in(access.personal_space(person.id), person, 1)

    with pytest.raises(EventsExpiredError):
        read(person, after)
    with pytest.raises(EventsExpiredError):
        read(person, read(person).last + 1)
    assert kinds(read(person).events) == ["exchange.stored"]


@pytest.mark.django_db(transaction=True)
def test_a_restored_installation_begins_another_feed(memory, person):
    exchange(person, TEXT)
    memory_api.forget([exchange(person, "forgotten").id], by=person.id)
    after = read(person).next

    restore(wipe_installation(create_backup()))

    assert Exchange.objects.count() == 2
    with pytest.raises(EventsExpiredError):
        read(person, after)
    exchange(person, "stored after the restore")
    assert kinds(read(person).events) == ["exchange.stored"]


# The API


def test_the_api_lists_events_as_json(memory, person):
    stored = exchange(person, TEXT, thread_id=uuid.uuid4())
    client = api_client(person, "read")

    body = client.get("/api/events").json()

    (event,) = body["events"]
    assert event == {
        "position": event["position"],
        "kind": "exchange.stored",
        "object_id": str(stored.id),
        "thread_id": str(stored.thread_id),
        "space_id": str(stored.space_id),
        "created_at": event["created_at"],
    }
    assert (body["next"], body["last"], body["has_more"]) == (event["position"], event["position"], False)
    assert client.get("/api/events", {"after": body["next"]}).json()["events"] == []


def test_the_api_lists_the_events_of_one_space(memory, person):
    store_in(access.personal_space(person.id), person, 1)
    (public,) = store_in(access.team_space(), person, 1)
    client, crew = api_client(person, "read"), group("Crew", PersonFactory())

    found = client.get("/api/events", {"space": "team"}).json()["events"]

    assert [event["object_id"] for event in found] == [str(public.id)]
    assert client.get("/api/events", {"space": str(crew.id)}).status_code == 404


def test_the_api_says_where_to_start_again_when_events_expired(memory, person):
    store_in(access.personal_space(person.id), person, 1)
    client = api_client(person, "read")
    last = client.get("/api/events").json()["last"]

    answer = client.get("/api/events", {"after": 0})

    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "events_expired")
    assert f"after={last}" in answer.json()["error"]["message"]


@pytest.mark.parametrize("query", ["after=-1", "after=x", f"after={2**53}", "limit=0", "limit=501", "since=4"])
def test_the_api_refuses_other_parameters(memory, person, query):
    assert api_client(person, "read").get(f"/api/events?{query}").status_code == 422


def test_a_token_needs_the_scope_that_lists_need(memory, person):
    assert api_client(person, "write", "ask").get("/api/events").status_code == 403
    assert Client().get("/api/events").status_code == 401


def test_a_copy_that_follows_the_feed_as_documented_is_complete(memory, person):
    """The commands of docs/api.md, in their order, with what happens between them."""
    section = re.split(r"\n##+ ", (DOCS / "api.md").read_text().split("## Following changes")[1])[0]
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^    (curl .*)$", section, re.MULTILINE)]
    addresses = [argument for command in commands for argument in command if argument.startswith("$CATO")]
    begin, copy, follow = (address.replace("$CATO", "/api") for address in addresses)
    client = api_client(person, "read")
    early, (changed,) = exchange(person, "early"), store_in(access.team_space(), person, 1)

    position = client.get(begin).json()["last"]
    during = exchange(person, "stored while the lists are read")
    found = {row["id"] for row in client.get(copy).json()["exchanges"]}
    memory_api.forget([early.id], by=person.id)
    late = exchange(person, "late")
    for event in client.get(follow.replace("POSITION", str(position))).json()["events"]:
        answer = client.get(f"/api/exchanges/{event['object_id']}")
        (found.add if answer.status_code == 200 else found.discard)(event["object_id"])

    assert found == {str(one.id) for one in (changed, during, late)}
    for kind in Event.Kind.values:
        assert f"`{kind}`" in section


def test_chunks_have_no_events_of_their_own(memory, person):
    document(person, "long.txt", f"{TEXT} " * 500)

    assert Chunk.objects.count() > 1
    assert kinds() == ["document.added", "document.published"]
