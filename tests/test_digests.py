"""Digests: one message for each due time, of what the person may read then, answered like a message of theirs."""

from __future__ import annotations

import json
import re
import threading
import uuid
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from celery import current_app
from django.utils import timezone

from cato_web.accounts.deletion import delete_account
from cato_web.celery import sweep
from chat import services
from chat.answers.recall import recall_for_turn
from chat.digests import worker
from chat.digests.schedule import Schedule
from chat.digests.switching import switch_off, switch_on
from chat.models import Digest, Thread, Turn
from chat.threads.reader_marks import has_news, with_marks
from chat.web_search.records import set_web_search
from memory.errors import InvalidInputError
from memory.models import DocumentVersion, Exchange, Membership
from memory.spaces import access
from tests.factories import (
    PersonFactory,
    ago,
    answer_job,
    exchange,
    exported_archive,
    group,
    process_documents,
    signed_in,
    thread,
    turn,
    upload,
)
from tests.usage import KEY, connect, limit, used

# Answers are written in other threads, which see what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

DAILY = Schedule(time(8), "UTC")


# When a digest is due


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        (Schedule(time(8), "UTC"), utc(2026, 11, 27, 7, 59), utc(2026, 11, 27, 8)),
        (Schedule(time(8), "UTC"), utc(2026, 11, 27, 8), utc(2026, 11, 28, 8)),
        # In winter Berlin is one hour ahead of UTC, in summer two; the clocks change on 29 March and 25 October.
        (Schedule(time(8), "Europe/Berlin"), utc(2026, 3, 28, 7), utc(2026, 3, 29, 6)),
        (Schedule(time(8), "Europe/Berlin"), utc(2026, 10, 24, 6), utc(2026, 10, 25, 7)),
        # 02:30 does not exist on 29 March, and exists twice on 25 October.
        (Schedule(time(2, 30), "Europe/Berlin"), utc(2026, 3, 28, 1, 30), utc(2026, 3, 29, 1, 30)),
        (Schedule(time(2, 30), "Europe/Berlin"), utc(2026, 3, 29, 1, 30), utc(2026, 3, 30, 0, 30)),
        (Schedule(time(2, 30), "Europe/Berlin"), utc(2026, 10, 24, 0, 30), utc(2026, 10, 25, 0, 30)),
        (Schedule(time(2, 30), "Europe/Berlin"), utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30)),
        # On the other side of the date line it is another day.
        (Schedule(time(8), "Pacific/Auckland"), utc(2026, 11, 27, 12), utc(2026, 11, 27, 19)),
        (Schedule(time(23), "America/Los_Angeles"), utc(2026, 11, 27, 12), utc(2026, 11, 28, 7)),
        # 27 November 2026 is a Friday.
        (Schedule(time(8), "UTC", 0), utc(2026, 11, 27, 12), utc(2026, 11, 30, 8)),
        (Schedule(time(8), "UTC", 4), utc(2026, 11, 27, 8), utc(2026, 12, 4, 8)),
        (Schedule(time(8), "Pacific/Auckland", 0), utc(2026, 11, 27, 12), utc(2026, 11, 29, 19)),
        (Schedule(time(8), "Nowhere/Unknown"), utc(2026, 11, 27, 7), utc(2026, 11, 27, 8)),
    ],
)
def test_a_digest_is_due_at_the_persons_time_of_day(schedule, after, due):
    assert schedule.next_after(after) == due
    assert schedule.last_until(due) == due
    assert schedule.last_until(due - timedelta(seconds=1)) <= after


def test_in_a_year_there_is_one_for_each_day_whatever_the_clocks_do():
    for hour in range(0, 24):
        schedule, at, count = Schedule(time(hour, 30), "Europe/Berlin"), utc(2026, 1, 1), 0
        while (at := schedule.next_after(at)) < utc(2027, 1, 1):
            count += 1
        assert count == 365


# What is posted


@pytest.fixture
def model(memory: Any, endpoint: Any) -> Any:
    """Connect the fake endpoint."""
    connect(endpoint, answer="The boat is red now.")
    return endpoint


def due(person: Any, schedule: Schedule = DAILY, **fields: Any) -> Digest:
    """Switch the digest on and have it due now, a day after the one before."""
    digest = switch_on(person.pk, schedule, **fields)
    Digest.objects.filter(pk=digest.pk).update(due_at=ago(minutes=1), covered_until=ago(days=1))
    return digest


def run() -> int:
    return worker.run_digests()


def digests(person: Any) -> list[Turn]:
    return list(Turn.objects.filter(author=person, digest_scope__isnull=False).order_by("created_at"))


def recalled(one: Turn) -> set[str]:
    return {hit.exchange.user_message for hit in recall_for_turn(answer_job(one)).search_results.results}


def row(person: Any) -> Digest:
    return Digest.objects.get(person=person)


def test_a_digest_is_answered_from_what_happened_since_the_last_one(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    exchange(person, "The harbour opens in May", timestamp=ago(days=2))
    digest = due(person)

    assert run() == 1

    (one,) = digests(person)
    assert (one.state, one.answer, one.recall_note) == (Turn.State.COMPLETE, "The boat is red now.", "date")
    prompt = str(model.requests(KEY)[0]["messages"])
    assert "The boat is red" in prompt
    assert "The harbour opens in May" not in prompt
    thread = one.thread
    assert (thread.title, thread.space, thread.is_remembered) == ("Digest", access.personal_space(person.pk), False)
    assert not Exchange.objects.filter(thread_id=thread.pk).exists()
    assert has_news(with_marks(Thread.objects.filter(pk=thread.pk), person.pk).get(), person.pk)
    after = row(person)
    assert (after.turn, after.thread, after.locked_until, after.error) == (None, thread, None, "")
    assert after.due_at == DAILY.next_after(timezone.now())
    assert after.covered_until > digest.covered_until
    assert run() == 0


def test_the_next_one_goes_to_the_same_thread_and_does_not_tell_of_the_last_one(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    run()
    thread = row(person).thread
    services.rename_thread(thread, "Every morning")
    # Even if its person has it remembered.
    services.set_memory_enabled(thread, True)
    exchange(person, "About the boat", "It is red.", timestamp=ago(hours=1), thread_id=thread.pk)
    exchange(person, "The anchor is new", timestamp=ago(minutes=30))
    due(person)
    model.clear(KEY)

    run()

    first, second = digests(person)
    assert (second.thread_id, second.thread.title) == (thread.pk, "Every morning")
    assert recalled(second) == {"The boat is red", "The anchor is new"}
    assert len(model.requests(KEY)[0]["messages"]) == 2, "earlier digests are not in the prompt"
    assert first.answer not in str(model.requests(KEY)[0]["messages"])


def test_its_message_is_not_sent_to_a_search_engine(model, person, settings):
    """The web can be searched for what the person asks in its thread; the message names spaces."""
    conf = settings.CATO.web_search.model_copy(update={"searxng_url": "http://127.0.0.1:9"})
    settings.CATO = settings.CATO.model_copy(update={"web_search": conf})
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    run()
    set_web_search(row(person).thread, True)
    exchange(person, "The anchor is new", timestamp=ago(minutes=30))
    due(person, space_ids=[access.personal_space(person.pk).pk])

    run()

    _first, second = digests(person)
    assert (second.thread.has_web_search, second.web_search) == (True, {})


def test_what_is_still_in_progress_is_told_by_the_next_one(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    asked = turn(thread(person), "Where is the anchor?", state="answering")
    Turn.objects.filter(pk=asked.pk).update(created_at=ago(minutes=10))
    due(person)

    run()

    (first,) = digests(person)
    assert recalled(first) == {"The boat is red"}
    exchange(person, "Where is the anchor?", "In the shed.", timestamp=Turn.objects.get(pk=asked.pk).created_at)
    Turn.objects.filter(pk=asked.pk).update(state="complete")
    Digest.objects.update(due_at=ago(minutes=1))
    run()
    assert recalled(digests(person)[1]) == {"Where is the anchor?"}


def test_a_document_that_is_still_read_is_told_by_the_next_one(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    upload(person, "Harbour.md", "The harbour opens in May.")
    DocumentVersion.objects.update(created_at=ago(minutes=10))
    due(person)
    run()
    assert row(person).covered_until == DocumentVersion.objects.get().created_at
    process_documents()

    Digest.objects.update(due_at=ago(minutes=1))
    run()

    assert recalled(digests(person)[1]) == {"The harbour opens in May."}


def test_an_answer_that_does_not_end_holds_a_digest_back_for_an_hour(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    turn(thread(person), "Where is the anchor?", state="answering")
    Turn.objects.update(created_at=ago(hours=2))
    due(person)

    run()

    assert row(person).covered_until > ago(minutes=1)


def test_a_deleted_thread_and_one_that_others_can_read_now_are_replaced(model, person):
    crew = group("Crew", person, PersonFactory())
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    for change in (services.delete_thread, lambda thread: services.move_thread(thread, to=crew, by=person.pk)):
        due(person)
        run()
        change(Thread.objects.get(pk=row(person).thread_id))
    due(person)
    run()

    threads = [one.thread for one in digests(person)]
    assert len({thread.pk for thread in threads}) == 3
    assert threads[-1].space.owner_id == person.pk


def test_a_thread_that_is_moved_to_others_while_the_digest_is_prepared_is_replaced(model, person, monkeypatch):
    crew = group("Crew", person, PersonFactory())
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    moved = thread(person)
    Digest.objects.filter(pk=due(person).pk).update(thread=moved)
    has_happened = worker.memory.has_happened

    def move_and_tell(*args: Any, **kwargs: Any) -> bool:
        services.move_thread(moved, to=crew, by=person.pk)
        return has_happened(*args, **kwargs)

    monkeypatch.setattr(worker.memory, "has_happened", move_and_tell)

    assert run() == 1

    (one,) = digests(person)
    assert one.thread.space.owner_id == person.pk
    assert not Turn.objects.filter(thread=moved).exists()


def test_only_the_chosen_spaces_are_told(model, person):
    crew, others = group("Crew", person), group("Others", person)
    exchange(person, "For the crew", space=crew, timestamp=ago(hours=1))
    exchange(person, "For the others", space=others, timestamp=ago(hours=1))
    exchange(person, "For myself", timestamp=ago(hours=1))
    due(person, space_ids=[crew.pk])
    run()
    (one,) = digests(person)
    assert recalled(one) == {"For the crew"}
    assert "Only in: Crew." in one.message
    assert answer_job(one).audience == {crew.pk}, "also for searches of the model"

    due(person)
    run()
    assert recalled(digests(person)[-1]) == {"For the crew", "For the others", "For myself"}


def test_spaces_that_were_lost_are_not_told(model, person):
    crew = group("Crew", person, PersonFactory())
    exchange(person, "For the crew", space=crew, timestamp=ago(hours=1))
    exchange(person, "For myself", timestamp=ago(hours=1))
    due(person, space_ids=[crew.pk])
    Membership.objects.filter(space=crew, person_id=person.pk).delete()

    assert run() == 0
    assert digests(person) == []
    assert "no longer read" in row(person).error

    due(person)
    run()
    assert recalled(digests(person)[0]) == {"For myself"}


def test_a_space_that_is_lost_while_it_is_answered_is_not_recalled(model, person):
    crew = group("Crew", person, PersonFactory())
    exchange(person, "For the crew", space=crew, timestamp=ago(hours=1))
    due(person, space_ids=[crew.pk])
    run()
    Membership.objects.filter(space=crew, person_id=person.pk).delete()
    assert recalled(digests(person)[0]) == set()


def test_a_deactivated_person_gets_nothing(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    type(person).objects.filter(pk=person.pk).update(is_active=False)
    assert run() == 0
    assert digests(person) == []
    assert row(person).due_at > timezone.now()


def test_other_peoples_spaces_are_never_told(model, person):
    exchange(PersonFactory(), "A secret", timestamp=ago(hours=1))
    due(person)
    assert run() == 0
    assert digests(person) == []


def test_if_nothing_happened_nothing_is_written(model, person):
    exchange(person, "The harbour opens in May", timestamp=ago(days=2))
    due(person)
    assert run() == 0
    assert not Thread.objects.filter(owner=person).exists()
    after = row(person)
    assert after.error == ""
    assert after.due_at > timezone.now() - timedelta(seconds=1)
    assert after.covered_until > ago(minutes=1)


def test_after_a_time_without_workers_there_is_one_digest_of_all_of_it(model, person):
    digest = due(person)
    for days in (1, 3, 6):
        exchange(person, f"{days} days ago", timestamp=ago(days=days))
    Digest.objects.filter(pk=digest.pk).update(due_at=ago(days=6), covered_until=ago(days=7))
    assert run() == 1
    assert run() == 0
    (one,) = digests(person)
    assert recalled(one) == {"1 days ago", "3 days ago", "6 days ago"}


def test_a_limit_of_usage_skips_it_and_the_next_one_tells_of_this_time_too(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    before = due(person)
    limit("person", person.pk, hard=100)
    used(person, 100)
    assert run() == 0
    after = row(person)
    assert digests(person) == []
    assert not Thread.objects.filter(owner=person).exists()
    assert "monthly limit" in after.error
    assert after.due_at > timezone.now()
    assert "monthly limit" in signed_in(person).get("/settings/digest").content.decode()

    limit("person", person.pk)
    Digest.objects.filter(pk=before.pk).update(due_at=ago(minutes=1))
    assert run() == 1
    assert recalled(digests(person)[0]) == {"The boat is red"}
    assert row(person).error == ""


def test_it_counts_for_the_usage_of_its_person(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    run()
    assert digests(person)[0].uncounted_usage


def test_without_a_model_it_is_not_run_and_says_so(memory, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    assert run() == 0
    assert digests(person) == []
    assert "No model is connected" in row(person).error


# Once only


def test_two_workers_post_one_message(model, person, monkeypatch):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    # As in two processes.
    monkeypatch.setattr(worker, "_lock", threading.Semaphore(2))
    start = threading.Barrier(2)

    def work() -> None:
        from django.db import connection

        start.wait()
        worker.run_digests()
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(digests(person)) == 1


def test_a_worker_whose_lease_has_ended_posts_nothing(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    (slow,) = worker.jobs.claim(worker.due_digests(), 1)
    Digest.objects.update(locked_until=ago(minutes=1))
    run()
    assert worker.DigestRun(slow).start() is None
    assert len(digests(person)) == 1


def test_an_answer_whose_worker_was_killed_is_written_by_the_next_one(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    (claimed,) = worker.jobs.claim(worker.due_digests(), 1)
    turn_id = worker.DigestRun(claimed).start()
    assert turn_id is not None
    assert run() == 0, "the lease is held"

    Digest.objects.update(locked_until=ago(minutes=1))
    assert run() == 0, "its answer is not interrupted yet"
    Turn.objects.update(heartbeat_at=ago(minutes=1))
    Digest.objects.update(due_at=ago(minutes=1))
    services.interrupt_stale_answers()
    assert run() == 1

    (one,) = digests(person)
    assert (one.pk, one.state, one.answer) == (turn_id, Turn.State.COMPLETE, "The boat is red now.")
    assert row(person).due_at > timezone.now()


def test_a_failed_answer_is_left_in_the_thread_to_be_retried(model, person):
    model.script(KEY, mode="error-500")
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    run()
    (one,) = digests(person)
    assert (one.state, one.can_retry) == (Turn.State.FAILED, True)
    assert row(person).due_at > timezone.now()


def test_while_the_person_has_answers_in_progress_it_waits_in_the_queue(model, person, settings):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    run()
    thread = Thread.objects.get(pk=row(person).thread_id)
    busy = turn(thread, "Busy", answer="", state=Turn.State.ANSWERING, heartbeat_at=timezone.now())
    due(person)
    assert run() == 0
    one = digests(person)[-1]
    assert one.state == Turn.State.QUEUED
    Turn.objects.filter(pk=busy.pk).update(state=Turn.State.COMPLETE)
    services.start_all_queued()
    Turn.objects.filter(pk=one.pk).update(state=Turn.State.COMPLETE)
    Digest.objects.update(due_at=ago(minutes=1))
    assert run() == 0
    assert row(person).due_at > timezone.now()
    assert len(digests(person)) == 2


def test_the_sweep_wakes_a_worker(person, monkeypatch, settings):
    sent: list[str] = []
    settings.REDIS_URL = "redis://127.0.0.1:1"
    monkeypatch.setattr(current_app, "send_task", sent.append)
    services.resume_digests()
    assert sent == []
    due(person)
    services.resume_digests()
    assert sent == ["chat.tasks.post_digests"]
    assert "resume_digests" in sweep.__code__.co_names


# Versions and visits


def test_a_regenerated_digest_tells_of_the_same_time_and_an_edited_one_is_a_message(model, person):
    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    run()
    (one,) = digests(person)
    again = services.regenerate(one, person_id=person.pk, client_key=uuid.uuid4()).posted.turn
    assert again.digest_scope == one.digest_scope
    Turn.objects.filter(pk=again.pk).update(state=Turn.State.COMPLETE)
    edited = services.edit_message(one, person_id=person.pk, message="Hello", client_key=uuid.uuid4()).posted.turn
    assert edited.digest_scope is None


def test_a_digest_is_no_visit_of_its_person(model, person):
    from chat.answers.recall import _last_visit

    exchange(person, "The boat is red", timestamp=ago(hours=3))
    due(person)
    run()
    Turn.objects.update(created_at=ago(hours=5))
    (one,) = digests(person)
    assert _last_visit(one) is None
    Turn.objects.update(digest_scope=None)
    assert _last_visit(one) is not None


# The page


def form(**changes: Any) -> dict[str, Any]:
    return {"action": "on", "day": "0", "at": "07:15", "time_zone": "Europe/Berlin", "of": "all", **changes}


def test_it_is_off_until_the_person_switches_it_on(person):
    client = signed_in(person)
    assert "Off." in client.get("/settings/digest").content.decode()
    assert not Digest.objects.exists()

    crew = group("Crew", person)
    assert client.post("/settings/digest", form(of="chosen", space=[crew.pk])).status_code == 302
    digest = row(person)
    assert (digest.at, digest.time_zone, digest.weekday, digest.is_on) == (time(7, 15), "Europe/Berlin", 0, True)
    assert digest.space_ids == [str(crew.pk)]
    schedule = Schedule(digest.at, digest.time_zone, digest.weekday)
    assert digest.due_at == schedule.next_after(timezone.now())
    assert digest.covered_until == schedule.last_until(timezone.now()), "the first one tells of a whole week"
    assert "On." in client.get("/settings/digest").content.decode()

    client.post("/settings/digest", {"action": "off"})
    assert not row(person).is_on
    Digest.objects.update(due_at=ago(days=1))
    assert run() == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"at": "25:00"}, {"at": ""}, {"day": "7"}, {"day": "x"}, {"day": ""}, {"time_zone": "Mars/Base"},
        {"of": "chosen"}, {"of": "chosen", "space": "x"}, {"of": "chosen", "space": str(uuid.uuid4())},
    ],
)  # fmt: skip
def test_a_wrong_form_is_shown_again_with_the_reason(person, changes):
    response = signed_in(person).post("/settings/digest", form(**changes))
    assert response.status_code == 422
    assert 'role="alert"' in response.content.decode()
    assert not Digest.objects.exists()


@pytest.mark.parametrize(
    ("changes", "id"), [({"at": "25:00"}, "at"), ({"day": "7"}, "day"), ({"time_zone": "Mars/Base"}, "zone")]
)
def test_an_error_stands_at_its_field_beside_those_of_others(person, changes, id):
    page = signed_in(person).post("/settings/digest", form(of="chosen", **changes)).content.decode()

    assert page.count('role="alert"') == 2
    field = page[page.index(f'id="digest-{id}"') :].split("</div>")[0]
    assert f'aria-invalid="true" aria-describedby="digest-{id}-error"' in field
    assert re.search(rf'<p class="error-message" id="digest-{id}-error" role="alert">', field)
    assert page.count('aria-describedby="digest-spaces-error"') == 2


def test_the_error_about_a_space_of_others_stands_at_the_spaces(person):
    other = group("Others", PersonFactory())
    page = signed_in(person).post("/settings/digest", form(of="chosen", space=str(other.pk))).content.decode()
    assert "Choose another one." in page[page.index("These spaces only") :]


def test_without_a_space_the_error_stands_at_the_spaces(person):
    group("Crew", person)
    page = signed_in(person).post("/settings/digest", form(of="chosen")).content.decode()

    assert "Choose at least one space, or all." in page[page.index("These spaces only") :]
    boxes = re.findall(r'<input type="checkbox" name="space"[^>]*>', page)
    assert len(boxes) == 3
    assert all('aria-invalid="true" aria-describedby="digest-spaces-error"' in box for box in boxes)
    assert page.count('role="alert"') == 1


def test_a_space_of_others_cannot_be_chosen(person):
    with pytest.raises(InvalidInputError):
        switch_on(person.pk, DAILY, space_ids=[group("Others", PersonFactory()).pk])


def test_switching_it_on_again_does_not_tell_of_the_time_when_it_was_off(person):
    due(person)
    switch_off(person.pk)
    Digest.objects.update(covered_until=ago(days=20))
    assert switch_on(person.pk, DAILY).covered_until > ago(days=2)


def test_changing_the_time_loses_nothing(person):
    due(person)
    covered_until = row(person).covered_until
    assert switch_on(person.pk, Schedule(time(9), "UTC")).covered_until == covered_until


def test_a_deleted_account_has_no_digest(person):
    due(person)
    delete_account(person)
    assert not Digest.objects.exists()


def test_the_export_of_the_account_says_what_was_chosen(person):
    due(person, Schedule(time(8), "Europe/Berlin", 4))
    (chosen,) = json.loads(exported_archive(person).read("account.json"))["digest"]
    assert (chosen["at"], chosen["time_zone"], chosen["weekday"]) == ("08:00:00", "Europe/Berlin", 4)
