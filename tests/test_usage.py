"""Usage of models is counted once for each request: of answers, titles and knowledge, whatever becomes of them."""

from __future__ import annotations

import asyncio
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import connection
from django.test import AsyncClient
from django.test.utils import CaptureQueriesContext

from cato_web.accounts.deletion import delete_account, run_account_deletions
from chat.answers import persistence
from chat.answers.persistence import AnswerCheckpoint
from chat.knowledge import worker
from chat.llm import client
from chat.llm.endpoint import ModelEndpoint
from chat.llm.events import StreamChunk
from chat.llm.usage_counts import UsageCounts, UsageMeter
from chat.models import Thread, Turn, UsageDay, UsageLimit
from chat.services import count_ended_answers, delete_last_turns, delete_thread, purge_deleted, resume_turn, retry_turn
from chat.threads import lifecycle
from chat.turns.placing import ApiOrigin
from chat.turns.stopping import HEARTBEAT_TIMEOUT, interrupt_stale_answers
from chat.usage import prices
from chat.usage.counting import count_usage
from chat.usage.limits import is_limit_reached, set_limit
from chat.usage.reports import UsageFilter, total_usage
from memory import jobs
from memory.models import SpaceKnowledge
from memory.spaces import access
from tests.factories import (
    AdministratorFactory,
    PersonFactory,
    ago,
    api_client,
    exchange,
    exported_archive,
    group,
    thread,
    turn,
)
from tests.usage import KEY, answer, connect, last_month, posted, used, write_titles

pytestmark = pytest.mark.django_db(transaction=True)


def sums() -> list[tuple[str, int, int, int]]:
    """Return purpose, requests, prompt and completion tokens of all rows."""
    names = ("purpose", "requests", "prompt_tokens", "completion_tokens")
    return list(UsageDay.objects.order_by("purpose").values_list(*names))


@pytest.fixture(autouse=True)
def no_titles(settings):
    write_titles(settings, False)


def test_an_answer_is_counted_for_its_author_space_model_and_token(memory, endpoint, person):
    connect(endpoint, usage_details={"prompt_tokens_details": {"cached_tokens": 3}})
    token_id, crew = person.api_tokens.create().pk, group("Crew", person)
    one = answer(posted(person, in_thread=thread(person, space=crew), origin=ApiOrigin(token_id)))
    reported = one.usage

    assert count_ended_answers() == 1
    assert count_ended_answers() == 0, "nothing is counted twice"

    row = UsageDay.objects.get()
    assert (row.purpose, row.model) == ("answer", "fake")
    assert (row.person_id, row.space_id, row.api_token_id) == (person.pk, crew.pk, token_id)
    assert (row.requests, row.prompt_tokens, row.completion_tokens) == (
        1,
        reported["prompt_tokens"],
        reported["completion_tokens"],
    )
    assert (row.cached_tokens, row.estimated_tokens) == (3, 0)


def test_two_answers_of_a_day_are_one_row(memory, endpoint, person):
    connect(endpoint)
    in_thread = thread(person)
    first, second = answer(posted(person, in_thread=in_thread)), answer(posted(person, in_thread=in_thread))
    count_ended_answers()

    expected = first.usage["prompt_tokens"] + second.usage["prompt_tokens"]
    assert sums() == [("answer", 2, expected, 10)]


def test_each_request_with_tools_is_counted(memory, endpoint, person):
    connect(endpoint, answer=["Let me look.", "Behind the clock."], calls=[[["search_memory", '{"query": "key"}']], []])
    one = answer(posted(person))
    count_ended_answers()

    assert len(endpoint.requests(KEY)) == 2
    assert sums() == [("answer", 2, one.usage["prompt_tokens"], one.usage["completion_tokens"])]


def test_a_failed_answer_counts_what_was_received_as_an_estimate(memory, endpoint, person):
    connect(endpoint, mode="cut", tokens=3)
    one = answer(posted(person))
    count_ended_answers()

    row = UsageDay.objects.get()
    assert one.state == Turn.State.FAILED
    assert row.completion_tokens > 0
    assert row.prompt_tokens > 10, "the whole prompt was sent"
    assert row.estimated_tokens == row.prompt_tokens + row.completion_tokens


def test_a_refused_request_uses_nothing(memory, endpoint, person):
    connect(endpoint, mode="error-500")
    answer(posted(person))
    count_ended_answers()

    assert sums() == []


def test_the_usage_of_a_killed_process_is_in_its_last_checkpoint(memory, person):
    one = turn(thread(person), answer="", state="answering", attempt=1)
    checkpoint = AnswerCheckpoint(one.id, 1, "It hangs", "", 1, UsageCounts("fake", 1, 50, 0, 3, 53))
    persistence.save_checkpoints([checkpoint])

    assert count_ended_answers() == 0, "it is still running"
    Turn.objects.update(heartbeat_at=ago(seconds=HEARTBEAT_TIMEOUT.total_seconds() + 5))
    assert interrupt_stale_answers() == [one.id]
    count_ended_answers()

    assert sums() == [("answer", 1, 50, 3)]


@pytest.mark.parametrize("mode", ["cut", "finish-error"])
def test_a_retried_answer_counts_both_attempts_and_has_the_usage_of_the_last(memory, endpoint, person, mode):
    connect(endpoint, mode=mode, tokens=3)
    one = answer(posted(person))
    first = one.uncounted_usage["prompt_tokens"]
    connect(endpoint)
    retry_turn(one)
    again = answer(one)
    count_ended_answers()

    assert again.state == Turn.State.COMPLETE
    assert sums()[0][:3] == ("answer", 2, first + again.usage["prompt_tokens"])


def test_a_resumed_answer_has_the_usage_of_both_parts(memory, endpoint, person):
    connect(endpoint, mode="length")
    one = answer(posted(person))
    assert one.usage == {"prompt_tokens": 3, "completion_tokens": 4}
    connect(endpoint)
    resume_turn(one)
    whole = answer(one)
    count_ended_answers()

    assert whole.usage["completion_tokens"] == 4 + 5
    assert sums() == [("answer", 2, whole.usage["prompt_tokens"], whole.usage["completion_tokens"])]


def test_a_title_is_counted_with_its_thread(memory, endpoint, person, settings):
    write_titles(settings, True)
    connect(endpoint)
    token_id = person.api_tokens.create().pk
    answer(posted(person, in_thread=thread(person, title_source="first"), origin=ApiOrigin(token_id)))
    count_ended_answers()

    title = UsageDay.objects.get(purpose="title")
    assert Thread.objects.get().title == "It hangs behind the clock"
    assert (title.requests, title.completion_tokens, title.estimated_tokens) == (1, 5, 0)
    assert (title.person_id, title.api_token_id) == (person.pk, token_id)


def test_a_title_that_nobody_needs_any_more_is_counted_too(memory, endpoint, person, settings, monkeypatch):
    write_titles(settings, True)
    connect(endpoint)
    monkeypatch.setattr("chat.threads.titles.apply_model_title", lambda *args, **kwargs: False)
    answer(posted(person, in_thread=thread(person, title_source="first")))
    count_ended_answers()

    assert [purpose for purpose, *_counts in sums()] == ["answer", "title"]


def test_extraction_is_counted_for_its_space(memory, endpoint, person):
    connect(endpoint, answer=json.dumps({"statements": [], "repeated": []}))
    crew = group("Crew", person)
    exchange(person, "From now on a buoy makes 28 retries a day.", space=crew)
    memory.index_pending()
    row = SpaceKnowledge.objects.create(space=crew, is_on=True, model="fake-large", due_at=ago(minutes=1))
    extraction = worker.ExtractionRun(jobs.claim(SpaceKnowledge.objects.filter(pk=row.pk), 1)[0])

    extraction._ask([{"role": "user", "content": "Two words"}])

    counted = UsageDay.objects.get()
    assert (counted.purpose, counted.model, counted.space_id, counted.person_id) == (
        "extraction",
        "fake-large",
        crew.pk,
        None,
    )
    assert counted.prompt_tokens == 2


def test_a_background_request_of_an_app_is_counted_and_limited(memory, endpoint, person):
    connect(endpoint)
    authorization = api_client(person, "ask").defaults["HTTP_AUTHORIZATION"]
    body = {"messages": [{"role": "user", "content": "Write a title"}]}
    headers = {"X-Cato-Background": "yes", "Authorization": authorization}

    async def request():
        response = await AsyncClient().post(
            "/v1/chat/completions", body, content_type="application/json", headers=headers
        )
        await client.close_connections()
        return response

    def ask():
        return asyncio.run(request())

    assert ask().status_code == 200
    assert sums() == [("background", 1, 3, 5)]
    assert UsageDay.objects.get().api_token_id == person.api_tokens.get().pk

    set_limit("person", person.pk, unit="tokens", soft=None, hard=Decimal(8))
    assert ask().status_code == 429
    assert len(endpoint.requests(KEY)) == 1


def test_without_a_model_nothing_is_counted(memory, person):
    answer(posted(person))
    assert count_ended_answers() == 0


def test_deleting_messages_and_threads_does_not_lower_the_usage(memory, endpoint, person, monkeypatch):
    connect(endpoint)
    in_thread = thread(person)
    answer(posted(person, in_thread=in_thread))
    answer(posted(person, in_thread=in_thread))
    before = Turn.objects.filter(uncounted_usage__isnull=False).count()
    delete_last_turns(in_thread, 1, by=person.pk)
    delete_thread(in_thread)
    monkeypatch.setattr(lifecycle, "_UNDO_WINDOW", -HEARTBEAT_TIMEOUT)
    purge_deleted()

    assert (before, Turn.objects.count()) == (2, 0)
    assert sums()[0][:2] == ("answer", 2)


def test_a_price_applies_to_what_is_counted_after_it(memory, person):
    counts = UsageCounts("fake", 1, prompt_tokens=1_000_000, cached_tokens=400_000, completion_tokens=100_000)
    count_usage(counts, purpose="answer", person_id=person.pk)
    month = UsageDay.objects.get().date.replace(day=1)
    assert total_usage(month).known_cost is None, "it is unknown, not 0"

    fields = {"input_price": Decimal(2), "output_price": Decimal(10)}
    prices.set_price("fake", cached_price=Decimal("0.5"), **fields)
    count_usage(counts, purpose="answer", person_id=person.pk)
    total = total_usage(month)
    assert total.known_cost == Decimal("2.4"), "0.6 at 2, 0.4 at 0.5, 0.1 at 10"
    assert total.unpriced_tokens == 1_100_000

    prices.set_price("fake", cached_price=None, **fields)
    assert total_usage(month).known_cost == Decimal("2.4"), "the past does not change"
    count_usage(counts, purpose="answer", person_id=person.pk)
    assert total_usage(month).known_cost == Decimal("5.4"), "cached input costs as other input"


def test_a_price_of_0_is_known(memory, person):
    prices.set_price("fake", input_price=Decimal(0), output_price=Decimal(0), cached_price=None)
    count_usage(UsageCounts("fake", 1, 10, 0, 1), purpose="answer", person_id=person.pk)

    assert total_usage(UsageDay.objects.get().date.replace(day=1)).known_cost == 0


def test_counting_takes_no_statement_of_an_answer(memory, endpoint, person):
    connect(endpoint)
    answer(posted(person))
    with CaptureQueriesContext(connection) as queries:
        posted(person)
    assert not [q for q in queries if "usageday" in q["sql"] or q["sql"].startswith('SELECT "chat_usagelimit"')]
    assert any("usagelimit" in q["sql"] for q in queries), "the locked row says whether there are limits"


def test_the_meter_adds_reported_and_estimated_requests():
    meter = UsageMeter()
    assert meter.total() is None
    meter.begin_request([{"role": "user", "content": "x" * 35}], model="fake")
    assert meter.total() is None, "nothing has arrived"
    meter.add(StreamChunk("y" * 70))
    estimated = meter.total()
    assert (estimated.prompt_tokens, estimated.completion_tokens, estimated.estimated_tokens) == (11, 21, 32)
    meter.begin_request(
        [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}], model="fake"
    )
    meter.add(StreamChunk("Yes.", usage={"prompt_tokens": 100, "completion_tokens": 1}))
    assert meter.total() == UsageCounts("fake", 2, 111, 0, 22, 32)


def test_an_estimate_contains_the_definitions_of_the_tools_that_are_sent(endpoint):
    endpoint.script(KEY, mode="no-done")
    asked = ModelEndpoint(endpoint.openai_url, KEY, "fake")
    tools = [{"type": "function", "function": {"name": "weather", "description": "w" * 350}}]

    def estimate(**options: object) -> int:
        meter = UsageMeter()

        async def read() -> None:
            async for _chunk in client.stream(
                asked, [{"role": "user", "content": "Where?"}], options=options, meter=meter
            ):
                pass

        client.run(read())
        return meter.total().prompt_tokens

    assert estimate(tools=tools) > estimate() + 100


def test_a_deleted_account_leaves_its_usage_without_its_name(memory, endpoint, person):
    AdministratorFactory()
    own, crew = access.personal_space(person.pk).pk, group("Crew", person).pk
    other = PersonFactory()
    used(person, 100, space_id=own, api_token_id=uuid.uuid4())
    used(person, 20, space_id=crew)
    used(None, 3, space_id=crew)
    used(other, 4000, space_id=crew)
    set_limit("person", person.pk, unit="tokens", soft=None, hard=Decimal(1))
    connect(endpoint)
    UsageLimit.objects.update(hard=10**9)
    late = answer(posted(person))
    delete_account(person)
    late_tokens = late.usage["prompt_tokens"]
    assert not UsageDay.objects.filter(person_id=person.pk).exists(), "at once"
    run_account_deletions()

    rows = UsageDay.objects.exclude(person_id=other.pk)
    assert set(rows.values_list("person_id", flat=True)) == {None}
    assert own not in rows.values_list("space_id", flat=True)
    assert set(rows.values_list("api_token_id", flat=True)) == {None}
    assert sum(rows.values_list("prompt_tokens", flat=True)) == 123 + late_tokens
    assert rows.get(space_id=crew).prompt_tokens == 23
    assert not UsageLimit.objects.exists()


def test_an_archive_has_the_usage_of_its_person_alone(memory, person):
    used(person, 71)
    used(PersonFactory(), 82)

    lines = exported_archive(person).read("usage.jsonl").decode().splitlines()
    assert [json.loads(line)["prompt_tokens"] for line in lines] == [71]


def test_the_sum_of_a_month_ends_with_it(memory, person):
    used(person, 5)
    used(person, 70, on=last_month())
    month = last_month().replace(day=1)

    assert total_usage(month, UsageFilter(person_id=person.pk)).tokens == 70


def test_an_extraction_waits_while_a_limit_is_reached(memory, endpoint, person):
    crew = group("Crew", person)
    row = SpaceKnowledge.objects.create(space=crew, is_on=True, due_at=ago(minutes=1))
    run = worker.ExtractionRun(row)
    used(person, 100, space_id=crew.pk)
    set_limit("space", crew.pk, unit="tokens", soft=None, hard=Decimal(101))
    assert run._later() is None

    set_limit("space", crew.pk, unit="tokens", soft=None, hard=Decimal(100))
    assert run._later() is not None
    assert is_limit_reached(person_id=None, space=crew)


def test_processes_that_count_at_the_same_time_lose_and_double_nothing(memory, person):
    in_thread = thread(person)
    counts = UsageCounts("fake", 1, 10, 0, 1).as_json()
    for _number in range(20):
        turn(in_thread, uncounted_usage=counts)

    def count(number: int) -> None:
        try:
            count_ended_answers()
            count_usage(UsageCounts("fake", 1, 100, 0, 0), purpose="answer", person_id=person.pk)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count, range(8)))
    count_ended_answers()

    assert sum(requests for _purpose, requests, *_tokens in sums()) == 28
    assert sum(sent for _purpose, _requests, sent, _received in sums()) == 1000
    assert UsageDay.objects.count() == 2, "with and without a space"
