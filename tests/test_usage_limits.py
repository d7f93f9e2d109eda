"""Monthly limits of usage: nothing new begins above one, whichever way it is requested, and nothing is cut off."""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import UTC, datetime, time

import pytest
from django.utils import timezone

from chat import services
from chat.errors import UsageLimitError
from chat.llm.usage_counts import UsageCounts
from chat.metrics import USAGE_LIMITS
from chat.models import Thread, Turn
from chat.services import ApiOrigin
from chat.turns.client_tools import answer_on
from chat.turns.queue import start_queued_in
from chat.usage.counting import next_month
from chat.usage.limits import limit_states, next_reset
from memory.errors import InvalidInputError
from tests.factories import PersonFactory, api_client, group, signed_in, thread, turn
from tests.usage import KEY, answer, connect, last_month, limit, posted, used, write_titles

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE = "Where does the spare key hang?"


def is_refused(person, **fields) -> bool:
    try:
        posted(person, **fields)
    except UsageLimitError:
        return True
    return False


def test_a_message_is_refused_from_the_limit_on(memory, person):
    limit("person", person.pk, hard=100)
    used(person, 99)
    assert not is_refused(person)

    used(person, 1, model="other")
    assert is_refused(person)


def test_a_limit_of_0_allows_nothing(memory, person):
    limit("person", person.pk, hard=0)
    assert is_refused(person)


def test_the_usage_of_other_months_people_and_groups_does_not_count(memory, person):
    limit("person", person.pk, hard=100)
    limit("space", group("Crew", person).pk, hard=100)
    used(person, 1000, on=last_month())
    used(PersonFactory(), 1000)
    used(PersonFactory(), 1000, space_id=group("Others", person).pk)

    assert not is_refused(person)


def test_the_limit_of_everyone_counts_each_person_alone(memory, person):
    other = PersonFactory()
    limit("everyone", hard=100)
    used(person, 100)

    assert is_refused(person)
    assert not is_refused(other)


def test_a_persons_own_limit_replaces_that_of_everyone(memory, person):
    limit("everyone", hard=10)
    limit("person", person.pk, hard=1000)
    used(person, 100)

    assert not is_refused(person)


def test_the_limit_of_a_group_counts_all_its_members_in_its_threads(memory, person):
    other = PersonFactory()
    crew = group("Crew", person, other)
    limit("space", crew.pk, hard=100)
    used(other, 100, space_id=crew.pk)

    assert is_refused(person, in_thread=thread(person, space=crew))
    assert not is_refused(person), "elsewhere it does not apply"


def test_the_limit_of_a_token_counts_its_messages(memory, person):
    token_id = person.api_tokens.create().pk
    limit("token", token_id, hard=100)
    used(person, 100, api_token_id=token_id)

    assert is_refused(person, origin=ApiOrigin(token_id))
    assert not is_refused(person, origin=ApiOrigin(uuid.uuid4()))
    assert not is_refused(person)


def test_a_limit_in_money_counts_what_has_a_price(memory, person):
    limit("person", person.pk, hard=2, unit="money")
    used(person, 1_900_000)
    used(person, 5_000_000, cost=0, unpriced_tokens=5_000_000, model="unknown")
    assert not is_refused(person)

    used(person, 100_000, model="other")
    assert is_refused(person)


def test_an_answer_that_ended_just_now_counts_at_once(memory, endpoint, person):
    connect(endpoint)
    limit("person", person.pk, hard=10)
    one = answer(posted(person))

    assert one.state == Turn.State.COMPLETE, "it crossed the limit and was not cut off"
    assert one.answer == "It hangs behind the clock."
    assert is_refused(person)


def not_added_yet(one: Turn, tokens: int, *, ended_at: datetime) -> None:
    """Let the turn have used these tokens, which the worker has not added to the days yet."""
    counts = asdict(UsageCounts("fake", 1, tokens))
    Turn.objects.filter(pk=one.pk).update(uncounted_usage=counts, completed_at=ended_at)


def test_an_answer_of_last_month_that_is_not_added_yet_does_not_count(memory, person):
    limit("person", person.pk, hard=100)
    one = turn(thread(person))
    not_added_yet(one, 1000, ended_at=datetime.combine(last_month(), time(23, 59), UTC))
    assert not is_refused(person)

    not_added_yet(one, 1000, ended_at=timezone.now())
    assert is_refused(person)


def test_an_answer_to_another_person_that_is_not_added_yet_counts_for_the_group_alone(memory, person):
    other = PersonFactory()
    of_crew = thread(person, space=group("Crew", person, other))
    limit("person", person.pk, hard=100)
    not_added_yet(turn(of_crew, author=other), 1000, ended_at=timezone.now())
    assert not is_refused(person, in_thread=of_crew)

    limit("space", of_crew.space_id, hard=100)
    assert is_refused(person, in_thread=of_crew)


def test_an_answer_is_not_cut_off_by_a_limit_that_is_set_meanwhile(memory, endpoint, person):
    connect(endpoint)
    one = posted(person)
    limit("person", person.pk, hard=0)

    assert answer(one).answer == "It hangs behind the clock."


def test_the_message_says_which_limit_how_much_was_used_and_when_it_resets(memory, person):
    crew = group("Crew", person)
    limit("space", crew.pk, hard=1200)
    used(person, 1234, space_id=crew.pk)

    with pytest.raises(UsageLimitError) as caught:
        posted(person, in_thread=thread(person, space=crew))
    text = str(caught.value)
    assert "The monthly limit of the space Crew is reached: 1,234 of 1,200 tokens are used." in text
    assert f"resets on {next_reset().day} " in text
    seconds = (next_reset() - datetime.now(UTC)).total_seconds()
    assert abs(caught.value.retry_after - seconds) < 60


def test_another_persons_usage_is_not_told(memory, person):
    writer = PersonFactory()
    crew = group("Crew", person, writer)
    one = turn(thread(person, space=crew), author=writer, state="failed", answer="")
    limit("person", writer.pk, hard=100)
    used(writer, 4321)

    with pytest.raises(UsageLimitError) as caught:
        services.retry_turn(one, by=person.pk)
    assert "4,321" not in str(caught.value)
    with pytest.raises(UsageLimitError) as caught:
        services.retry_turn(one)
    assert "4,321" in str(caught.value)


def test_months_follow_each_other():
    assert [next_month(datetime(2026, month, 5, tzinfo=UTC).date()).isoformat() for month in (1, 11, 12)] == [
        "2026-02-01",
        "2026-12-01",
        "2027-01-01",
    ]


# Every way to request an answer.


@pytest.fixture
def over_limit(memory, person):
    limit("everyone", hard=100)
    used(person, 100)
    return person


def test_the_browser_refuses_and_keeps_the_text(over_limit):
    client = signed_in(over_limit)
    form = {"message": MESSAGE, "client_key": str(uuid.uuid4())}
    in_thread = thread(over_limit)

    for path in ("/", f"/t/{in_thread.id}/messages"):
        swapped = client.post(path, form, headers={"HX-Request": "true"})
        assert swapped.status_code == 422
        assert "Your monthly limit is reached" in swapped.content.decode()
        whole = client.post(path, form)
        assert f"{MESSAGE}</textarea>" in whole.content.decode(), "without script the page has it again"
    assert not Turn.objects.exists()
    assert Thread.objects.count() == 1, "nothing is left of a thread that could not begin"


def test_edits_regenerations_retries_and_resumed_answers_are_refused(over_limit):
    client = signed_in(over_limit)
    in_thread = thread(over_limit)
    one = turn(in_thread, state="stopped", answer="It hangs")
    Thread.objects.update(head=one)
    url = f"/t/{in_thread.id}/turns/{one.id}"

    edited = client.post(f"{url}/edit", {"message": "Another", "client_key": str(uuid.uuid4())})
    assert (edited.status_code, "Another" in edited.content.decode()) == (422, True)
    for action in ("regenerate", "retry", "resume"):
        refused = client.post(f"{url}/{action}")
        assert refused.status_code == 429, action
        assert int(refused["Retry-After"]) > 0
        assert "Your monthly limit is reached" in refused.content.decode()
    assert [turn.state for turn in Turn.objects.all()] == ["stopped"]


def test_the_apis_answer_429_with_the_time_until_the_reset(over_limit):
    client = api_client(over_limit, "ask")
    own = client.post("/api/ask", {"message": MESSAGE}, content_type="application/json")
    assert own.status_code == 429
    assert own.json()["error"]["code"] == "limit_reached"
    body = {"messages": [{"role": "user", "content": MESSAGE}]}
    chat = client.post("/v1/chat/completions", body, content_type="application/json")
    response = client.post("/v1/responses", {"input": MESSAGE}, content_type="application/json")

    for refused in (chat, response):
        error = refused.json()["error"]
        assert (refused.status_code, error["type"], error["code"]) == (429, "rate_limit_error", "insufficient_quota")
        assert "Your monthly limit is reached" in error["message"]
    seconds = (next_reset() - datetime.now(UTC)).total_seconds()
    assert all(abs(int(refused["Retry-After"]) - seconds) < 60 for refused in (own, chat, response))
    assert not Turn.objects.exists()


def test_a_message_that_was_posted_before_is_returned_and_not_refused(memory, person):
    in_thread, key = thread(person), uuid.uuid4()
    fields = {"author_id": person.pk, "message": MESSAGE, "client_key": key}
    first = services.post_message(in_thread.id, **fields)
    limit("everyone", hard=0)

    again = services.post_message(in_thread.id, **fields)
    assert (again.turn.id, again.is_new) == (first.turn.id, False)


def test_queued_messages_fail_with_the_limit_and_can_be_retried(memory, person):
    in_thread = thread(person)
    running = posted(person, in_thread=in_thread)
    waiting = [posted(person, in_thread=in_thread) for _number in range(2)]
    limit("everyone", hard=0)
    Turn.objects.filter(id=running.id).update(state="complete")

    assert start_queued_in([in_thread.id]) == [one.id for one in waiting]
    for one in waiting:
        one.refresh_from_db()
        assert (one.state, one.error_code) == ("failed", "limit_reached")
        assert "Your monthly limit is reached" in one.error
        assert one.can_retry
    limit("everyone")
    assert services.retry_turn(one).state == "recalling"


@pytest.mark.parametrize(("hard", "requests"), [(10, 1), (10**9, 2)])
def test_above_a_limit_no_title_is_written(memory, endpoint, person, settings, hard, requests):
    write_titles(settings, True)
    connect(endpoint)
    limit("person", person.pk, hard=hard)
    one = answer(posted(person, in_thread=thread(person, title_source="first")))

    assert one.state == "complete"
    assert len(endpoint.requests(KEY)) == requests


def test_an_answer_goes_on_with_the_results_of_a_clients_tools(over_limit):
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "clock"}}]}
    one = turn(thread(over_limit), state="complete", finish_reason="tool_calls", tool_messages=[calls])
    results = (calls, {"role": "tool", "tool_call_id": "a", "content": "12:00"})

    conversation = services.ClientConversation(message=one.message, tool_messages=results)
    switched = answer_on(one, conversation, ApiOrigin(), client_key=uuid.uuid4())
    assert switched.posted.turn.state == "recalling"


# The notice.


def notice_of(person, in_thread: Thread | None = None) -> str:
    page = signed_in(person).get(f"/t/{in_thread.id}" if in_thread else "/").content.decode()
    return page.partition('id="usage-notice"')[2].partition("</div>")[0]


def test_a_soft_limit_shows_a_notice_and_lets_messages_through(memory, person):
    in_thread = thread(person)
    limit("everyone", soft=50, hard=100)
    used(person, 49)
    assert "used" not in notice_of(person, in_thread)

    used(person, 1, model="other")
    before = USAGE_LIMITS.labels("soft")._value.get()
    assert "You have used 50 of 100 tokens this month." in notice_of(person, in_thread)
    assert "You have used 50 of" in notice_of(person)
    assert not is_refused(person)
    assert USAGE_LIMITS.labels("soft")._value.get() == before + 1


def test_a_reached_limit_is_told_before_a_message_is_written(over_limit):
    assert "No more messages can be sent until it resets" in notice_of(over_limit)


def test_the_notice_is_renewed_with_each_message(memory, person):
    in_thread = thread(person)
    limit("everyone", soft=0)
    form = {"message": MESSAGE, "client_key": str(uuid.uuid4())}

    response = signed_in(person).post(f"/t/{in_thread.id}/messages", form, headers={"HX-Request": "true"})
    assert 'id="usage-notice"' in response.content.decode()


def test_without_limits_nothing_is_shown(memory, person):
    used(person, 10**9)
    assert "used" not in notice_of(person, thread(person))


# Setting limits.


@pytest.mark.parametrize(
    "fields",
    [
        {"target": "everyone", "soft": 10, "hard": 5},
        {"target": "everyone", "hard": -1},
        {"target": "person", "hard": 1},
        {"target": "nobody", "hard": 1},
        {"target": "everyone", "hard": 1, "unit": "apples"},
    ],
)
def test_impossible_limits_are_refused(memory, fields):
    with pytest.raises(InvalidInputError):
        limit(**fields)


def test_a_limit_can_be_changed_and_removed(memory, person):
    limit("everyone", hard=5)
    limit("everyone", hard=7)
    (state,) = limit_states(person_id=person.pk)
    assert state.limit.hard == 7
    limit("everyone")
    assert limit_states(person_id=person.pk) == []
