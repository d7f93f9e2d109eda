"""Which spaces' text a model endpoint is sent: of messages, recall, searches, instructions, titles, statements and /v1."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import pytest
from django.urls import reverse

from chat import services
from chat.answers import memory_searches, preparation, recall
from chat.answers.job import ensure_sendable
from chat.errors import DataPolicyError, ModelError
from chat.instructions import editing as instructions
from chat.knowledge import worker
from chat.models import Endpoint, Thread, Turn
from chat.services import ApiOrigin
from chat.turns.queue import start_next_queued
from memory import jobs
from memory.api import DataPolicy, may_receive, permitted_spaces
from memory.models import SpaceKnowledge
from memory.retrieval.search import SearchResults
from memory.retrieval.types import ExchangeView, Hit
from memory.spaces import access
from tests.factories import PersonFactory, ago, answer_job, api_client, exchange, group, signed_in, thread, turn
from tests.usage import KEY, answer, connect, posted, write_titles

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "Where does the spare key hang?"
REMOTE = "remote"  # a further endpoint, and its API key


@pytest.fixture(autouse=True)
def connected(endpoint, settings) -> None:
    """Connect a first endpoint, which may receive everything, and a further one."""
    write_titles(settings, False)
    connect(endpoint)
    add_endpoint(endpoint)


def add_endpoint(endpoint: Any, name: str = REMOTE, **fields: Any) -> Endpoint:
    from chat.encryption import encrypt

    endpoint.script(name, answer="It hangs behind the clock.")
    endpoint.clear(name)
    fields = {"base_url": endpoint.openai_url, "encrypted_key": encrypt(name), "model": "fake"} | fields
    return Endpoint.objects.create(name=name, **fields)


def limit(name: str, *places: object, kind: str = DataPolicy.LISTED) -> None:
    """Let the endpoint of this name receive text of these spaces only."""
    row = Endpoint.objects.get(name=name)
    row.policy, row.allowed_in = kind, [str(getattr(place, "id", place)) for place in places]
    row.save()


def sent(endpoint: Any, name: str = REMOTE) -> str:
    """Return all that the endpoint was sent."""
    return json.dumps(endpoint.requests(name))


def remember(memory: Any, owner: Any, space: Any, where: str) -> None:
    """Store and index where the key hangs, in this space."""
    exchange(owner, "Where is the spare key?", f"The spare key hangs {where}.", space=space)
    memory.index_pending()


# The decision itself


def test_a_policy_permits_all_none_or_the_listed_spaces():
    own, crew, team = (uuid.uuid4() for _ in range(3))
    spaces = frozenset({own, crew, team})

    assert permitted_spaces(DataPolicy(DataPolicy.ALL), spaces) == spaces
    assert permitted_spaces(DataPolicy(DataPolicy.NONE, frozenset({str(crew)})), spaces) == frozenset()
    assert permitted_spaces(DataPolicy(DataPolicy.LISTED, frozenset({str(crew)})), spaces) == {crew}
    assert permitted_spaces(DataPolicy("unheard of"), spaces) == frozenset()


def test_personal_spaces_are_permitted_together_and_by_nothing_else():
    own, crew = uuid.uuid4(), uuid.uuid4()
    spaces, personal = frozenset({own, crew}), frozenset({own})

    assert permitted_spaces(
        DataPolicy(DataPolicy.LISTED, frozenset({DataPolicy.PERSONAL})), spaces, personal=personal
    ) == {own}
    assert (
        permitted_spaces(DataPolicy(DataPolicy.LISTED, frozenset({str(own)})), spaces, personal=personal) == frozenset()
    )


def test_a_space_may_be_received_if_it_is_listed(person):
    crew, others = group("Crew", person), group("Others", person)
    policy = DataPolicy(DataPolicy.LISTED, frozenset({str(crew.id)}))
    assert [may_receive(policy, space) for space in (crew, others, access.personal_space(person.id))] == [
        True,
        False,
        False,
    ]


# Posting


def test_a_message_is_refused_before_it_is_stored_and_its_text_is_kept(person):
    crew = group("Crew", person)
    talk = thread(person, space=crew, model="remote/fake")
    limit(REMOTE, access.team_space())

    refused = signed_in(person).post(
        reverse("post_message", args=[talk.id]), {"message": QUESTION, "client_key": str(uuid.uuid4())}
    )

    page = refused.content.decode()
    assert refused.status_code == 422
    assert "may not receive text of Crew. Choose another model." in page
    assert "remote (127.0.0.1" in page
    assert re.search(rf"<textarea[^>]*>\s*{re.escape(QUESTION)}\s*</textarea>", page)
    assert not Turn.objects.exists()


def test_a_message_to_an_endpoint_that_may_receive_the_space_is_stored(person):
    crew = group("Crew", person)
    limit(REMOTE, crew)
    posted(person, in_thread=thread(person, space=crew, model="remote/fake"))
    assert Turn.objects.count() == 1


@pytest.mark.parametrize("space", ["personal", "shared"])
def test_the_first_message_of_a_thread_is_refused_as_well(person, space):
    limit(REMOTE, group("Crew", person))
    target = access.personal_space(person.id) if space == "personal" else access.team_space()
    with pytest.raises(DataPolicyError, match="may not receive text of"):
        services.create_thread_with_message(
            person.id, message=QUESTION, client_key=uuid.uuid4(), space=target, model="remote/fake"
        )
    assert not Thread.objects.exists()


def test_a_model_that_an_api_client_requests_is_refused_for_the_thread(person):
    limit(REMOTE, DataPolicy.PERSONAL)
    talk = thread(person, space=access.team_space())
    with pytest.raises(DataPolicyError):
        posted(person, in_thread=talk, origin=ApiOrigin(requested_model="remote/fake"))
    assert not Turn.objects.exists()


def test_editing_regenerating_and_retrying_are_refused(person):
    talk = thread(person, space=access.team_space(), model="remote/fake")
    complete = turn(talk, QUESTION)
    Thread.objects.filter(id=talk.id).update(head=complete)
    failed = turn(thread(person, space=access.team_space(), model="remote/fake"), state=Turn.State.FAILED)
    limit(REMOTE, DataPolicy.PERSONAL)

    with pytest.raises(DataPolicyError):
        services.edit_message(complete, person_id=person.id, message="Another", client_key=uuid.uuid4())
    with pytest.raises(DataPolicyError):
        services.regenerate(complete, person_id=person.id, client_key=uuid.uuid4())
    with pytest.raises(DataPolicyError):
        services.retry_turn(failed)
    assert Turn.objects.count() == 2


def test_an_endpoint_that_was_removed_answers_nothing(person, administrator_of_endpoints):
    talk = thread(person, model="remote/fake")
    administrator_of_endpoints.post(reverse("change_model_endpoint", args=[REMOTE]), {"action": "remove"})
    with pytest.raises(DataPolicyError, match="was removed by an administrator"):
        posted(person, in_thread=talk)


@pytest.fixture
def administrator_of_endpoints():
    from tests.factories import AdministratorFactory

    return signed_in(AdministratorFactory())


# Answering


def test_recall_leaves_out_what_the_endpoint_may_not_receive_and_says_how_much(memory, endpoint, person):
    crew, others = group("Crew", person), group("Others", person)
    remember(memory, person, crew, "behind the clock")
    remember(memory, person, others, "under the swordfish")
    limit(REMOTE, DataPolicy.PERSONAL, crew)
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))

    assert one.state == Turn.State.COMPLETE
    assert "behind the clock" in sent(endpoint)
    assert "swordfish" not in sent(endpoint)
    assert (one.withheld["sources"], one.withheld["instructions"]) == (1, 0)
    page = signed_in(person).get(reverse("thread", args=[one.thread_id])).content.decode()
    assert "1 source not sent to remote (127.0.0.1" in page
    assert "under the swordfish" not in page


def test_without_a_limit_everything_is_recalled_and_nothing_said(memory, endpoint, person):
    remember(memory, person, group("Others", person), "under the swordfish")
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))
    assert "swordfish" in sent(endpoint)
    assert one.withheld == {}


def test_the_first_endpoint_has_a_policy_too(memory, endpoint, person):
    remember(memory, person, group("Others", person), "under the swordfish")
    limit("", DataPolicy.PERSONAL)
    one = answer(posted(person, in_thread=thread(person), message=QUESTION))
    assert one.state == Turn.State.COMPLETE
    assert "swordfish" not in sent(endpoint, KEY)
    assert one.withheld["sources"] == 1


def test_instructions_of_the_team_are_left_out(memory, endpoint, person):
    instructions.add(access.team_space(), "Always mention the swordfish.", by=person.id)
    instructions.add(access.personal_space(person.id), "Always answer briefly.", by=person.id)
    limit(REMOTE, DataPolicy.PERSONAL)
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))

    assert "Always answer briefly." in sent(endpoint)
    assert "swordfish" not in sent(endpoint)
    assert one.withheld["instructions"] == 1
    assert len(one.applied_instructions) == 1


def test_searches_of_the_model_read_permitted_spaces_only(memory, endpoint, person):
    crew, others = group("Crew", person), group("Others", person)
    remember(memory, person, crew, "behind the clock")
    remember(memory, person, others, "under the swordfish")
    limit(REMOTE, DataPolicy.PERSONAL, crew)
    calls = [[["search_memory", json.dumps({"query": "spare key"})]], []]
    endpoint.script(REMOTE, answer=["Let me look.", "It hangs there."], calls=calls)
    answer(posted(person, in_thread=thread(person, model="remote/fake"), message="Hello"))

    first, second = endpoint.requests(REMOTE)
    assert "behind the clock" in json.dumps(second)
    assert "swordfish" not in json.dumps([first, second])


# A policy that changes meanwhile


def test_a_queued_message_fails_if_its_endpoint_may_no_longer_receive_it(memory, endpoint, person):
    talk = thread(person, space=access.team_space(), model="remote/fake")
    running = turn(talk, state=Turn.State.ANSWERING)
    Thread.objects.filter(id=talk.id).update(head=running)
    waiting = posted(person, in_thread=talk, message=QUESTION)
    assert waiting.state == Turn.State.QUEUED
    limit(REMOTE, DataPolicy.PERSONAL)
    Turn.objects.filter(id=running.id).update(state=Turn.State.COMPLETE)

    assert start_next_queued(talk.id) is not None
    one = answer(waiting)

    assert (one.state, one.error_code) == (Turn.State.FAILED, "data_policy")
    assert "may not receive text of the space for everyone. Choose another model." in one.error
    assert endpoint.requests(REMOTE) == []


def test_a_policy_that_changes_during_recall_counts_for_the_prompt(memory, endpoint, person, monkeypatch):
    others = group("Others", person)
    remember(memory, person, others, "under the swordfish")
    recalled = change_after(monkeypatch, recall, "recall_for_turn", lambda: limit(REMOTE, DataPolicy.PERSONAL))
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))

    assert "swordfish" in str(recalled[0]), "it could have been sent"
    assert one.state == Turn.State.COMPLETE
    assert "swordfish" not in sent(endpoint)
    assert one.withheld["sources"] == 1


def test_a_thread_that_is_excluded_during_recall_is_not_sent(memory, endpoint, person, monkeypatch):
    change_after(monkeypatch, recall, "recall_for_turn", lambda: limit(REMOTE, kind=DataPolicy.NONE))
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))
    assert (one.state, one.error_code) == (Turn.State.FAILED, "data_policy")
    assert endpoint.requests(REMOTE) == []


def test_a_first_endpoint_without_a_row_gets_its_policy_during_recall(memory, endpoint, person, monkeypatch, settings):
    """Its address is configured, so its row is created by the policy."""
    Endpoint.objects.filter(name="").delete()
    llm = settings.CATO.llm.model_copy(update={"base_url": endpoint.openai_url, "model": "fake"})
    settings.CATO = settings.CATO.model_copy(update={"llm": llm})
    monkeypatch.setattr(type(settings.CATO), "origin", lambda self, key: "file" if key == "llm.base_url" else "default")
    endpoint.clear("")
    change_after(monkeypatch, recall, "recall_for_turn", lambda: Endpoint.objects.create(policy=DataPolicy.NONE))
    one = answer(posted(person, in_thread=thread(person), message=QUESTION))
    assert (one.state, one.error_code) == (Turn.State.FAILED, "data_policy")


def test_a_policy_that_changes_during_a_search_ends_the_answer(memory, endpoint, person, monkeypatch):
    others = group("Others", person)
    remember(memory, person, others, "under the swordfish")
    endpoint.script(
        REMOTE,
        answer=["Let me look.", "It hangs there."],
        calls=[[["search_memory", json.dumps({"query": "spare key"})]], []],
    )
    change_after(monkeypatch, memory_searches, "run_tool", lambda: limit(REMOTE, DataPolicy.PERSONAL))
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message="Hello"))

    assert (one.state, one.error_code) == (Turn.State.FAILED, "data_policy")
    assert "may no longer receive everything in this prompt" in one.error
    assert len(endpoint.requests(REMOTE)) == 1
    assert "swordfish" not in sent(endpoint)


def change_after(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, change: Any) -> list[Any]:
    """Change something after the first call of a function; return what the calls have returned."""
    original, results = getattr(module, name), []

    def call(*args: Any, **options: Any) -> Any:
        results.append(original(*args, **options))
        if len(results) == 1:
            change()
        return results[-1]

    monkeypatch.setattr(module, name, call)
    return results


def test_what_is_in_a_prompt_is_checked_for_later_requests(person):
    crew = group("Crew", person)
    job = answer_job(turn(thread(person, model="remote/fake"), state=Turn.State.RECALLING))
    spaces = frozenset({crew.id, job.turn.thread.space_id})
    ensure_sendable(job, spaces)
    limit(REMOTE, DataPolicy.PERSONAL)
    with pytest.raises(ModelError):
        ensure_sendable(job, spaces)
    limit(REMOTE, DataPolicy.PERSONAL, crew)
    ensure_sendable(job, spaces)
    Endpoint.objects.filter(name=REMOTE).delete()
    with pytest.raises(ModelError):
        ensure_sendable(job, spaces)


# Other requests to the model


def test_no_title_is_requested_of_an_endpoint_that_may_no_longer_receive_the_thread(
    memory, endpoint, person, settings, monkeypatch
):
    from chat.answers import persistence

    write_titles(settings, True)
    limit(REMOTE, DataPolicy.PERSONAL)
    change_after(monkeypatch, persistence, "complete_turn", lambda: limit(REMOTE, kind=DataPolicy.NONE))
    one = answer(posted(person, in_thread=thread(person, model="remote/fake", title_source="first")))
    assert one.state == Turn.State.COMPLETE
    assert len(endpoint.requests(REMOTE)) == 1

    limit(REMOTE, DataPolicy.PERSONAL)
    answer(posted(person, in_thread=thread(person, model="remote/fake", title_source="first")))
    assert len(endpoint.requests(REMOTE)) == 3, "an answer and its title"


@pytest.mark.parametrize("is_permitted", [True, False])
def test_statements_are_extracted_by_an_endpoint_that_may_receive_the_space(memory, endpoint, person, is_permitted):
    crew = group("Crew", person)
    endpoint.script(REMOTE, answer=json.dumps({"statements": [], "repeated": []}))
    row = SpaceKnowledge.objects.create(space=crew, is_on=True, model="remote/fake", due_at=ago(minutes=1))
    run = worker.ExtractionRun(jobs.claim(SpaceKnowledge.objects.filter(pk=row.pk), 1)[0])
    limit(REMOTE, crew if is_permitted else DataPolicy.PERSONAL)
    message = [{"role": "user", "content": "The swordfish"}]
    if is_permitted:
        run._ask(message)
    else:
        with pytest.raises(ModelError, match="may not receive text of Crew"):
            run._ask(message)
    assert ("swordfish" in sent(endpoint)) == is_permitted


@pytest.mark.parametrize("is_permitted", [True, False])
def test_a_request_to_v1_follows_the_policy_of_personal_threads(memory, endpoint, person, is_permitted):
    crew = group("Crew", person)
    limit(REMOTE, DataPolicy.PERSONAL if is_permitted else crew)
    body = {"model": "remote/fake", "messages": [{"role": "user", "content": "### Task: <chat_history> swordfish"}]}
    response = api_client(person).post("/v1/chat/completions", body, content_type="application/json")
    assert (response.status_code == 200) == is_permitted, response.content
    assert ("swordfish" in sent(endpoint)) == is_permitted


def test_an_answer_by_the_api_is_refused(person):
    limit(REMOTE, group("Crew", person))
    body = {"message": QUESTION, "model": "remote/fake"}
    response = api_client(person).post("/api/ask", body, content_type="application/json")
    assert response.status_code == 422
    assert "may not receive text of personal threads" in response.json()["error"]["message"]
    assert not Turn.objects.exists()


# Another endpoint instead


@pytest.mark.parametrize("mode", ["error-500", "error-429"])
def test_a_fallback_answers_if_the_endpoint_does_not(memory, endpoint, person, mode):
    add_endpoint(endpoint, "spare")
    Endpoint.objects.filter(name=REMOTE).update(fallback="spare")
    endpoint.script(REMOTE, mode=mode)
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))

    assert (one.state, one.model) == (Turn.State.COMPLETE, "spare/fake")
    page = signed_in(person).get(reverse("thread", args=[one.thread_id])).content.decode()
    assert "Answered by spare (127.0.0.1" in page
    assert "because remote (127.0.0.1" in page


def test_without_permission_of_an_administrator_there_is_no_fallback(memory, endpoint, person):
    add_endpoint(endpoint, "spare")
    endpoint.script(REMOTE, mode="error-500")
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))
    assert one.state == Turn.State.FAILED
    assert endpoint.requests("spare") == endpoint.requests(KEY) == []


def test_a_fallback_is_not_sent_what_it_may_not_receive(memory, endpoint, person):
    others = group("Others", person)
    remember(memory, person, others, "under the swordfish")
    add_endpoint(endpoint, "spare")
    Endpoint.objects.filter(name=REMOTE).update(fallback="spare")
    endpoint.script(REMOTE, mode="error-500")
    limit("spare", DataPolicy.PERSONAL)
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))
    assert one.state == Turn.State.FAILED
    assert endpoint.requests("spare") == []

    limit("spare", DataPolicy.PERSONAL, others)
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))
    assert one.state == Turn.State.COMPLETE
    assert "swordfish" in sent(endpoint, "spare")


def test_a_fallback_does_not_continue_an_answer_that_has_begun(memory, endpoint, person):
    add_endpoint(endpoint, "spare")
    Endpoint.objects.filter(name=REMOTE).update(fallback="spare")
    endpoint.script(REMOTE, mode="cut", answer="It hangs behind the clock.", tokens=2)
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))
    assert one.state == Turn.State.FAILED
    assert one.answer
    assert endpoint.requests("spare") == []


def test_people_are_not_affected_by_what_another_may_read(memory, endpoint, person):
    """The policy narrows what is recalled, and never widens it."""
    stranger = PersonFactory()
    remember(memory, stranger, access.personal_space(stranger.id), "under the swordfish")
    limit(REMOTE, DataPolicy.PERSONAL)
    one = answer(posted(person, in_thread=thread(person, model="remote/fake"), message=QUESTION))
    assert "swordfish" not in sent(endpoint)
    assert one.withheld == {}


def test_recall_and_the_check_of_the_prompt_each_leave_out_what_may_not_be_sent(person, monkeypatch):
    crew, others = group("Crew", person), group("Others", person)
    limit(REMOTE, DataPolicy.PERSONAL, crew)
    stored = [exchange(person, "A key", "It hangs here.", space=space) for space in (crew, others)]
    hits = [Hit(ExchangeView.from_row(row), 0.8, 0.8, "hybrid", "Best match", is_below_gate=False) for row in stored]
    asked = turn(thread(person, model="remote/fake"), QUESTION, "", state=Turn.State.RECALLING, attempt=1)
    job = answer_job(asked)
    spaces: list[Any] = []

    def record(messages: Any, **options: Any) -> SearchResults:
        spaces.append(options["spaces"])
        return SearchResults(tuple(hits))

    monkeypatch.setattr(recall.memory, "recall", record)
    prepared = preparation.prepare_answer(job, recall.recall_for_turn(job), 1)

    assert spaces == [{access.personal_space(person.id).id, crew.id}]
    assert prepared is not None
    assert [passage.exchange_id for passage in prepared.recalled] == [stored[0].id]
