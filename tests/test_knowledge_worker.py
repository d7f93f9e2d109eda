"""Extraction runs where it is switched on, within its budget and after answers; a failure changes nothing and is retried."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from celery import current_app
from django.utils import timezone

from cato_web.accounts.models import AuditEntry
from cato_web.celery import app, sweep
from chat.errors import PermissionDeniedError
from chat.knowledge import extraction, worker
from chat.knowledge.reply import check_reply
from chat.knowledge.switching import set_knowledge
from chat.llm import endpoint as model_endpoint
from chat.llm import structured
from chat.llm.structured import Completion
from memory.errors import InvalidInputError, NotFoundError
from memory.knowledge.unread import unread_exchanges
from memory.models import Exchange, Job, Space, SpaceKnowledge, Statement
from memory.spaces import access
from tests.crashes import crashes_at
from tests.factories import AdministratorFactory, PersonFactory, ago, exchange, group, thread, turn

pytestmark = pytest.mark.django_db

KEY = "knowledge"
SAID = "From now on a buoy makes 28 retries a day when the uplink drops."
RETRIES = "A buoy makes 28 retries a day when the uplink drops."
FOUND = {
    "text": RETRIES,
    "kind": "decision",
    "topic": "Uplink",
    "sources": [{"number": 1, "quote": "28 retries a day"}],
    "updates": [],
    "contradicts": [],
}
REPLY = json.dumps({"statements": [FOUND], "repeated": []})


@pytest.fixture
def model(memory: Any, endpoint: Any) -> Any:
    """Connect the fake endpoint, which finds a statement in every request."""
    model_endpoint.save(base_url=endpoint.openai_url, api_key=KEY, model="fake")
    endpoint.script(KEY, answer=REPLY)
    endpoint.clear(KEY)
    structured._without_schema.clear()
    return endpoint


@pytest.fixture
def each_alone(settings: Any) -> None:
    """Make a request for each exchange."""
    knowledge = settings.CATO.knowledge.model_copy(update={"max_cluster": 1})
    settings.CATO = settings.CATO.model_copy(update={"knowledge": knowledge})


def said(person: Any, text: str = SAID) -> Exchange:
    return exchange(person, text, space=access.team_space())


def switch_on(space: Space | None = None, **fields: Any) -> SpaceKnowledge:
    administrator = AdministratorFactory()
    return set_knowledge(administrator.id, space or access.team_space(), is_on=True, **fields)


def run(memory: Any) -> SpaceKnowledge:
    """Let the worker run some minutes later, and return the row of the team's space."""
    memory.index_pending()
    Exchange.objects.update(created_at=ago(minutes=10))
    SpaceKnowledge.objects.update(due_at=timezone.now())
    worker.run_extractions()
    return SpaceKnowledge.objects.get(space=access.team_space())


def states() -> dict[str, str]:
    return dict(Statement.objects.values_list("exchange__user_message", "state"))


def unread() -> int:
    return unread_exchanges(access.team_space().pk).count()


def minutes_until(at: datetime) -> int:
    return round((at - timezone.now()).total_seconds() / 60)


def test_statements_are_extracted_once_with_a_schema_and_the_chosen_model(memory, model, person):
    said(person)
    switch_on(model="fake-large")

    row = run(memory)
    again = run(memory)

    assert (states(), unread()) == ({RETRIES: Statement.State.CURRENT}, 0)
    (request,) = model.requests(KEY)
    assert (request["model"], request["response_format"]["json_schema"]["strict"]) == ("fake-large", True)
    assert (again.state, again.locked_until, again.failures, minutes_until(again.due_at)) == ("pending", None, 0, 1)
    assert row.tokens_used == again.tokens_used > 100


@pytest.mark.parametrize(
    ("mode", "with_schema"), [("schemaless", [True, False, False]), ("schemaless-500", [True, False, True, False])]
)
def test_an_endpoint_without_structured_output_is_asked_without(memory, model, person, mode, with_schema):
    model.script(KEY, answer=REPLY, mode=mode)
    switch_on()

    for text in (SAID, "The lid of the buoy is 3 mm thick."):
        said(person, text)
        run(memory)

    assert [("response_format" in request) for request in model.requests(KEY)] == with_schema
    assert (list(states()), unread()) == ([RETRIES], 0)


def test_nothing_is_read_before_it_is_switched_on_and_while_it_is_off_or_paused(memory, model, person):
    said(person)
    SpaceKnowledge.objects.create(space=access.team_space(), due_at=timezone.now())
    run(memory)
    switch_on(is_paused=True)
    run(memory)
    switch_on(is_paused=False)
    set_knowledge(AdministratorFactory().id, access.team_space(), is_on=False)
    run(memory)
    assert (model.requests(KEY), unread()) == ([], 1)

    switch_on()
    run(memory)
    assert unread() == 0


def test_without_an_endpoint_nothing_is_read(memory, person):
    said(person)
    switch_on()

    row = run(memory)

    assert (states(), unread(), row.error, minutes_until(row.due_at)) == ({}, 1, "", 1)


def test_a_space_that_is_not_quiet_waits(memory, model, person):
    said(person)
    switch_on()
    memory.index_pending()

    worker.run_extractions()

    assert (model.requests(KEY), unread()) == ([], 1)


@pytest.mark.parametrize(
    ("script", "requests", "reason"),
    [
        ({"mode": "error-429"}, 1, "Rate limited"),
        ({"mode": "error-500"}, 2, "failed (HTTP 500)"),
        ({"mode": "error-401"}, 1, "refuses the API key"),
        ({"answer": REPLY, "mode": "cut", "tokens": 3}, 1, "cut off"),
        ({"answer": ""}, 1, "empty answer"),
        ({"answer": "I cannot help with that."}, 2, "could not be used"),
        ({"answer": REPLY[:-20]}, 2, "could not be used"),
    ],
)
def test_a_failure_of_the_model_changes_nothing_and_is_retried_after_growing_delays(
    memory, model, person, script, requests, reason
):
    said(person)
    switch_on()
    model.script(KEY, **script)

    first = run(memory)
    assert (states(), unread(), len(model.requests(KEY))) == ({}, 1, requests)
    assert reason in first.error
    assert minutes_until(first.failed_at) == 0
    assert (first.state, first.locked_until, minutes_until(first.due_at)) == (Job.State.PENDING, None, 1)
    second = run(memory)
    assert (second.failures, minutes_until(second.due_at)) == (2, 2)

    model.script(KEY, answer=REPLY)
    last = run(memory)
    assert (states(), last.error, last.failures) == ({RETRIES: Statement.State.CURRENT}, "", 0)


def test_a_cluster_with_unusable_replies_does_not_keep_others_waiting(memory, model, person, each_alone):
    said(person)
    said(person, "Lunch is at noon.")
    switch_on()
    model.script(KEY, answer=["What?", "What?", REPLY])

    row = run(memory)

    assert (unread(), row.failures) == (1, 1)
    assert "could not be used" in row.error


def test_small_talk_tasks_and_questions_are_not_sent_to_the_model(memory, model, person):
    for text in ("Thanks, have a nice evening!", "Übersetze ins Englische: Guten Morgen.", "Who keeps the spare keys?"):
        said(person, text)
    switch_on()
    run(memory)
    assert (model.requests(KEY), unread()) == ([], 0)

    said(person)
    said(person, "thanks")
    run(memory)
    (request,) = model.requests(KEY)
    assert request["messages"][-1]["content"].count("<passage-") == 1
    assert (states(), unread()) == ({RETRIES: Statement.State.CURRENT}, 0)


def test_small_clusters_share_a_request(memory, model, person):
    for text in (SAID, "Lunch is at noon.", "The lid has six screws."):
        said(person, text)
    switch_on()

    run(memory)

    (request,) = model.requests(KEY)
    assert request["messages"][1]["content"].count(' source="') == 3
    assert unread() == 0


def test_the_budget_of_a_day_ends_the_run_until_the_next_day(memory, model, person, each_alone):
    said(person)
    said(person, "Lunch is at noon.")
    switch_on(daily_tokens=100)

    row = run(memory)

    assert (len(model.requests(KEY)), unread()) == (1, 1)
    today = timezone.now().astimezone(UTC).date()
    assert row.due_at == datetime.combine(today + timedelta(days=1), time(), UTC)
    assert row.tokens_used_on == today
    run(memory)
    assert len(model.requests(KEY)) == 1, "nothing more on the same day"

    SpaceKnowledge.objects.update(tokens_used_on=today - timedelta(days=1))
    assert run(memory).tokens_used < 2 * row.tokens_used
    assert unread() == 0


def test_the_backlog_counts_from_when_nothing_was_left(memory, model, person, each_alone):
    said(person)
    said(person, "Lunch is at noon.")
    switch_on(daily_tokens=100)
    assert (run(memory).backlog, unread()) == (2, 1)

    SpaceKnowledge.objects.update(daily_tokens=1_000_000)
    assert (run(memory).backlog, unread()) == (0, 0)
    said(person, "The lid has six screws.")
    model.script(KEY, mode="error-500")
    assert (run(memory).backlog, unread()) == (1, 1)


def test_tokens_are_estimated_if_the_endpoint_does_not_tell(memory, model, person):
    said(person)
    switch_on()
    model.script(KEY, answer=REPLY, usage_details={"prompt_tokens": "many"})

    assert run(memory).tokens_used > 500


def test_answers_of_people_go_first(memory, model, person):
    said(person)
    switch_on()
    answering = turn(thread(person), state="answering")

    row = run(memory)
    assert (model.requests(KEY), unread(), row.failures) == ([], 1, 0)
    assert timezone.now() < row.due_at < timezone.now() + timedelta(seconds=30)

    answering.state = "waiting"
    answering.save()
    run(memory)
    assert unread() == 0, "a turn that waits for a person does not use the model"


def test_what_is_switched_off_before_it_is_stored_is_not_stored(memory, model, person, monkeypatch):
    said(person)
    switch_on()

    def check(*args: Any, **kwargs: Any) -> Any:
        set_knowledge(AdministratorFactory().id, access.team_space(), is_on=False)
        return check_reply(*args, **kwargs)

    monkeypatch.setattr(extraction, "check_reply", check)

    row = run(memory)

    assert (states(), unread(), row.is_on, row.locked_until) == ({}, 1, False, None)


@pytest.mark.django_db(transaction=True)
def test_switching_it_on_wakes_the_worker_and_the_sweep_finds_a_space_that_is_due(memory, settings, monkeypatch):
    settings.REDIS_URL, wake_ups = "redis://nobody.invalid", []
    monkeypatch.setattr(current_app, "send_task", wake_ups.append)
    app.loader.import_default_modules()
    task = "chat.tasks.extract_statements"

    switch_on()
    assert (wake_ups, task in app.tasks) == ([task], True)
    sweep()
    assert wake_ups.count(task) == 2
    worker.run_extractions()
    sweep()
    assert wake_ups.count(task) == 2


@pytest.mark.django_db(transaction=True)
def test_a_crash_between_two_requests_or_anywhere_else_loses_and_doubles_nothing(
    memory, model, person, each_alone, monkeypatch
):
    texts = {"28 retries a day": RETRIES, "3 mm thick": "The lid of the buoy is 3 mm thick."}

    async def complete(endpoint: Any, messages: Any, **kwargs: Any) -> Completion:
        (quote,) = [quote for quote in texts if re.search(rf"<passage-\w+ source.*\n.*{quote}", messages[1]["content"])]
        found = FOUND | {"text": texts[quote], "sources": [{"number": 1, "quote": quote}]}
        return Completion(json.dumps({"statements": [found], "repeated": []}), 1)

    monkeypatch.setattr(worker, "complete_json", complete)
    switch_on()
    step, crashed = -1, True
    while crashed:
        step += 14
        memory.forget(list(Exchange.objects.filter(forgotten_at=None).values_list("pk", flat=True)), by=person.id)
        said(person)
        said(person, texts["3 mm thick"])
        memory.index_pending()
        Exchange.objects.update(created_at=ago(minutes=10))
        SpaceKnowledge.objects.update(due_at=timezone.now(), locked_until=None)
        crashed = crashes_at(step, worker.run_extractions, {extraction.__file__, worker.__file__})

        SpaceKnowledge.objects.update(locked_until=None)
        run(memory)

        assert sorted(states()) == sorted(texts.values()), step
        assert unread() == 0, step
    assert step > 30


def test_who_may_switch_it_and_what_is_recorded(person):
    administrator, member = AdministratorFactory(), PersonFactory()
    hardware, personal = group("Hardware", member), access.personal_space(person.id)

    row = set_knowledge(administrator.id, hardware, is_on=True, model=" small ", daily_tokens=9_000)
    assert (row.is_on, row.is_paused, row.model, row.daily_tokens) == (True, False, "small", 9_000)
    entry = AuditEntry.objects.get()
    assert (entry.actor_id, entry.target) == (
        administrator.id,
        f"knowledge of {hardware.pk}: on, 9,000 tokens a day, small",
    )
    assert set_knowledge(person.id, personal, is_on=True).is_on
    for who, space, error in (
        (member, hardware, PermissionDeniedError),
        (member, access.team_space(), PermissionDeniedError),
        (person, hardware, NotFoundError),
        (administrator, personal, NotFoundError),
    ):
        with pytest.raises(error):
            set_knowledge(who.id, space, is_on=False)
    assert SpaceKnowledge.objects.filter(is_on=True, state=Job.State.PENDING).count() == 2
    assert set_knowledge(person.id, personal, is_on=False).daily_tokens == 200_000


@pytest.mark.parametrize("fields", [{"model": "x" * 121}, {"daily_tokens": 0}, {"daily_tokens": 10**10}])
def test_invalid_settings_change_nothing(person, fields):
    with pytest.raises(InvalidInputError):
        set_knowledge(person.id, access.personal_space(person.id), is_on=True, **fields)
    assert not SpaceKnowledge.objects.exists()
