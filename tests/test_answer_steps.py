"""The steps of an answer in the database: load its job, recall, build the prompt, save, complete, remember."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError

from chat import services
from chat.answers import persistence, preparation, recall, recall_step
from chat.answers.job import ACCESS_LOST, AnswerJob, end_without_access, load_job
from chat.answers.persistence import AnswerCheckpoint, AnswerOutcome
from chat.answers.preparation import PreparedAnswer, prepare_answer
from chat.answers.recall import TurnRecall, recall_for_turn
from chat.llm import endpoint
from chat.models import Thread, Turn
from chat.rows.recall import thread_titles_of_recalled
from memory import api as memory_api
from memory.models import Exchange, Membership, RecallLogEntry, Space
from memory.retrieval.search import SearchResults
from memory.retrieval.types import ExchangeView, Hit
from memory.spaces import access
from tests.factories import PersonFactory, ago, answer_job, exchange, group, thread, turn

pytestmark = pytest.mark.django_db
State = Turn.State


@pytest.fixture
def configure(settings) -> Callable[..., None]:
    """Return a function that changes options of the vector store."""

    def change(**options: object) -> None:
        conf = settings.CATO.vector_store.model_copy(update=options)
        settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})

    return change


@pytest.fixture
def model_endpoint(db) -> endpoint.ModelEndpoint | None:
    endpoint.save(base_url="http://127.0.0.1:1/v1", api_key="", model="m")
    return endpoint.current()


@pytest.fixture
def recall_of(monkeypatch) -> Callable[[Turn], tuple[list[str], dict[str, Any]]]:
    """Return a function that returns the messages and options of the recall for a turn."""

    def capture(one: Turn) -> tuple[list[str], dict[str, Any]]:
        calls: list[tuple[list[str], dict[str, Any]]] = []

        def record(messages: list[str], **options: Any) -> SearchResults:
            calls.append((messages, options))
            return SearchResults()

        with monkeypatch.context() as patch:
            patch.setattr(recall.memory, "recall", record)
            recall_for_turn(answer_job(one))
        (call,) = calls
        return call

    return capture


def waiting(in_thread: Thread, message: str = "Where is the key?", **fields: Any) -> Turn:
    """Append a turn that waits for its answer."""
    return turn(in_thread, message, fields.pop("answer", ""), state=State.RECALLING, attempt=1, **fields)


def hit(stored: Exchange) -> Hit:
    return Hit(ExchangeView.from_row(stored), 0.8, 0.8, "hybrid", "Best match", is_below_gate=False)


def prepare(job: AnswerJob | Turn, *hits: Hit, note: str = "") -> PreparedAnswer | None:
    job = answer_job(job) if isinstance(job, Turn) else job
    return prepare_answer(job, TurnRecall(SearchResults(hits, note)), 120)


def job_of(one: Turn) -> AnswerJob:
    """Return the job of a turn that waits, and start its answer."""
    job = load_job(one.id)
    assert isinstance(job, AnswerJob)
    assert prepare(job)
    return job


def row(one: Turn) -> dict[str, Any]:
    return Turn.objects.values().get(id=one.id)


@pytest.mark.parametrize("state", State)
def test_a_job_is_loaded_only_while_its_turn_waits_for_an_answer(person, state):
    waiting(thread(person))
    one = turn(thread(person), "Where is the key?", state=state)
    job = load_job(one.id)
    assert (job.turn_id if job else None) == (one.id if state == State.RECALLING else None)
    assert load_job(uuid.uuid4()) is None


def test_a_job_has_the_partial_answer_and_the_endpoint(person, model_endpoint):
    author = PersonFactory()
    one = waiting(
        thread(person, space=access.team_space(), is_remembered=False),
        author=author,
        answer="Half",
        reasoning="Because",
        revision=7,
    )
    job = load_job(one.id)
    assert (job.thread_id, job.turn.author_id, job.attempt, job.turn.revision) == (one.thread_id, author.id, 1, 7)
    assert (job.turn.answer, job.turn.reasoning, job.turn.thread.is_remembered) == ("Half", "Because", False)
    assert job.endpoint == model_endpoint


def test_the_requested_model_takes_precedence_over_the_model_of_the_thread(person):
    of_thread = waiting(thread(person, model="large"))
    requested = waiting(thread(person, model="large"), requested_model="small")
    assert load_job(of_thread.id).model == "large"
    assert load_job(requested.id).model == "small"


def test_a_turn_whose_author_lost_access_ends_before_recall(person):
    author = PersonFactory()
    shared = thread(person, space=group("Crew", person, author))
    one, other = waiting(shared, author=author, revision=3), waiting(thread(person))
    assert not end_without_access(one.id)
    before = row(other)

    Membership.objects.filter(person=author).delete()

    assert end_without_access(one.id)
    one.refresh_from_db()
    assert (one.state, one.error_code, one.revision) == (State.STOPPED, ACCESS_LOST, 4)
    assert "no longer has access" in one.error
    assert one.completed_at > ago(minutes=1)
    assert not end_without_access(other.id)
    assert row(other) == before


def test_no_job_is_loaded_for_a_turn_whose_author_lost_access(person):
    author = PersonFactory()
    one = waiting(thread(person, space=group("Crew", person, author)), author=author)
    assert isinstance(load_job(one.id), AnswerJob)

    Membership.objects.filter(person=author).delete()

    ended = load_job(one.id)
    assert isinstance(ended, Turn)
    assert row(one)["state"] == State.STOPPED
    assert load_job(one.id) is None


def test_a_turn_that_no_longer_waits_is_not_ended_before_recall(person):
    author = PersonFactory()
    one = turn(thread(person), author=author, state=State.ANSWERING)
    before = row(one)
    assert not end_without_access(one.id)
    assert row(one) == before


@pytest.mark.parametrize("window", [1, 2, 3])
def test_recall_uses_the_last_messages_up_to_the_new_one(person, configure, recall_of, window):
    configure(search_context_window=window)
    one = thread(person)
    turn(one, "First"), turn(one, "Second"), turn(one, "Third")
    messages, _options = recall_of(waiting(one, "Fourth"))
    assert messages[-window:] == ["First", "Second", "Third", "Fourth"][-window:]


def test_recall_and_prompt_use_the_answered_turns_of_the_active_branch_before_this_one(person, configure, recall_of):
    configure(search_context_window=50)
    talk = thread(person)
    first, last = turn(talk, "First"), turn(talk, "Second")
    turn(talk, "Unanswered", "", state=State.FAILED)
    turn(talk, "Without a model", is_dummy=True)
    turn(talk, "Another version", is_on_active_branch=False)
    forgotten = exchange(person, "Forgotten")
    Exchange.objects.filter(id=forgotten.id).update(forgotten_at=ago(seconds=1))
    turn(talk, "Forgotten", exchange_id=forgotten.id)
    turn(thread(person), "Another thread")
    one = waiting(talk, "Third")
    turn(talk, "Later")

    messages, options = recall_of(one)
    prompt = prepare(one).messages

    assert messages == [first.message, last.message, one.message]
    assert options["conversation_length"] == 5
    assert [message["content"] for message in prompt if message["role"] == "user"] == messages


def test_recall_searches_the_spaces_that_all_readers_of_the_thread_share(person, recall_of):
    crew = group("Crew", person, PersonFactory())
    own, team = access.personal_space(person.id), access.team_space()
    for space, searched in ((own, {own, crew, team}), (crew, {crew, team}), (team, {team})):
        _messages, options = recall_of(waiting(thread(person, space=space)))
        assert options["spaces"] == {space.id for space in searched}


def test_recall_excludes_its_own_exchange_and_those_in_the_prompt(person, configure, recall_of):
    configure(chat_window=2)
    talk = thread(person)
    ids = [exchange(person, f"Question {n}").id for n in range(4)]
    turn(talk, exchange_id=ids[0])
    turn(talk, exchange_id=ids[1])
    turn(talk, copied_exchange_id=ids[2])
    _messages, options = recall_of(waiting(talk, exchange_id=ids[3]))
    assert options["exclude"] == set(ids[1:])

    _messages, options = recall_of(waiting(thread(person)))
    assert options["exclude"] == set()


@pytest.mark.parametrize("is_remembered", [True, False])
def test_recall_caches_the_query_of_a_remembered_thread_only(person, recall_of, is_remembered):
    author = PersonFactory()
    _messages, options = recall_of(waiting(thread(person, is_remembered=is_remembered), author=author))
    assert (options["keep_query"], options["person_id"]) == (is_remembered, author.id)


def test_a_prepared_answer_can_cite_what_was_recalled(person):
    stored = exchange(person, "The key hangs behind the clock.")
    one = waiting(thread(person), revision=3, finish_reason="length", heartbeat_at=ago(minutes=1))
    other = waiting(thread(person))
    before = row(other)

    prepared = prepare(one, hit(stored), note="words")

    new = prepared.messages[-1]
    assert stored.user_message in new["content"]
    assert new["content"].endswith(one.message)
    assert (prepared.citations.turn_id, list(prepared.citations.sources)) == (one.id, [1])
    one.refresh_from_db()
    assert one.state == State.ANSWERING
    assert one.revision == prepared.revision == 4
    assert (one.recall_note, one.recall_ms, one.finish_reason) == ("words", 120, "")
    assert one.heartbeat_at > ago(seconds=30)
    assert list(RecallLogEntry.objects.values_list("turn_id", "exchange_id")) == [(one.id, stored.id)]
    assert row(other) == before


def test_a_resumed_answer_recalls_nothing_anew_and_keeps_what_the_recall_said(person):
    known = {"recall_note": "words", "recall_ms": 120, "is_correction": True, "withheld": {"sources": 3}}
    one = waiting(thread(person), answer="Half", **known)
    recalled, elapsed = asyncio.run(recall_step._recall(answer_job(one), asked_at=0.0))

    results = recalled.search_results
    assert (results.results, results.note, results.is_correction) == ((), "words", True)
    assert (recalled.withheld, elapsed) == (3, 0.12)


def test_a_resumed_answer_keeps_the_numbers_of_what_it_cites(person):
    forgotten, cited = (exchange(person, f"The {name} hangs behind the clock.") for name in ("axe", "key"))
    one = waiting(thread(person), answer="Half [2]")
    memory_api.log_recall(one.id, [hit(forgotten), hit(cited)])
    memory_api.forget([forgotten.id], by=person.pk)

    prepared = prepare(one, note="words")

    *_, new, partial, _go_on = prepared.messages
    assert partial == {"role": "assistant", "content": "Half [2]"}
    assert ('number="2"' in new["content"], cited.user_message in new["content"]) == (True, True)
    assert forgotten.user_message not in new["content"]
    sources = prepared.citations.sources
    assert (sources[1].is_forgotten, sources[2].item_id) == (True, cited.id)


def test_without_injected_context_nothing_can_be_cited(person, configure):
    stored = exchange(person, "The key hangs behind the clock.")
    configure(inject_context=False)
    prepared = prepare(waiting(thread(person)), hit(stored))
    assert prepared.messages[-1]["content"] == "Where is the key?"
    assert not prepared.citations.is_quoted
    assert RecallLogEntry.objects.exists()


LOST_LEASES = {"a later attempt": {"attempt": 2}, "an end": {"state": State.STOPPED}}


@pytest.mark.parametrize("change", LOST_LEASES)
def test_an_answer_is_not_prepared_after(person, change):
    one = waiting(thread(person))
    job = answer_job(one)
    Turn.objects.filter(id=one.id).update(**LOST_LEASES[change])
    before = row(one)
    assert prepare(job, hit(exchange(person, "The key hangs behind the clock."))) is None
    assert row(one) == before
    assert not RecallLogEntry.objects.exists()


@pytest.mark.parametrize("change", LOST_LEASES)
def test_an_answer_is_not_saved_after(person, change):
    lost, kept = (turn(thread(person), answer="", state=State.ANSWERING, attempt=1) for _ in range(2))
    Turn.objects.filter(id=lost.id).update(**LOST_LEASES[change])
    before = row(lost)

    stops, lost_leases = persistence.save_checkpoints(
        AnswerCheckpoint(one.id, 1, f"Half of {one.id}", "Because", 5) for one in (lost, kept)
    )

    assert (stops, lost_leases) == (set(), {lost.id})
    assert row(lost) == before
    kept.refresh_from_db()
    assert (kept.answer, kept.reasoning, kept.revision) == (f"Half of {kept.id}", "Because", 5)
    assert kept.heartbeat_at > ago(minutes=1)


def test_saving_reports_the_requests_to_stop_these_answers(person):
    stopped, running, elsewhere = (turn(thread(person), answer="", state=State.ANSWERING, attempt=1) for _ in range(3))
    Turn.objects.filter(id__in=[stopped.id, elsewhere.id]).update(stop_requested=True)
    checkpoints = [AnswerCheckpoint(one.id, 1, "Half", "", 1) for one in (stopped, running)]
    assert persistence.save_checkpoints(checkpoints) == ({stopped.id}, set())


def test_a_completed_answer_shows_its_outcome_and_notifies_the_readers(person, model_endpoint, notified_people):
    reader = PersonFactory()
    one = waiting(thread(person, space=group("Crew", person, reader)))
    other = turn(thread(person), answer="", state=State.ANSWERING, attempt=1)
    outcome = AnswerOutcome(
        state=State.COMPLETE,
        answer="Behind the clock.",
        reasoning="Because",
        model="m",
        usage={"prompt_tokens": 3},
        finish_reason="length",
        images_dropped=True,
    )
    job, before = job_of(one), row(other)

    assert notified_people(lambda: persistence.complete_turn(job, outcome, 9)) == {person.id, reader.id}

    one.refresh_from_db()
    assert (one.state, one.answer, one.reasoning) == (State.COMPLETE, "Behind the clock.", "Because")
    assert (one.model, one.usage, one.finish_reason) == ("m", {"prompt_tokens": 3}, "length")
    assert (one.images_dropped, one.is_dummy, one.revision) == (True, False, 9)
    assert one.completed_at > ago(minutes=1)
    one.thread.refresh_from_db()
    other.thread.refresh_from_db()
    assert one.thread.changed_at > ago(minutes=1)
    assert other.thread.changed_at is None
    assert row(other) == before


def test_a_failed_answer_shows_the_beginning_of_its_error(person, model_endpoint):
    one = waiting(thread(person))
    job = job_of(one)
    persistence.complete_turn(job, AnswerOutcome(State.FAILED, "", error_code="timeout", error="x" * 400), 9)
    one.refresh_from_db()
    assert (one.state, one.error_code, one.error) == (State.FAILED, "timeout", "x" * 300)


@pytest.mark.parametrize("change", LOST_LEASES)
def test_an_answer_is_not_completed_after(person, model_endpoint, notified_people, change):
    one = waiting(thread(person))
    job = job_of(one)
    Turn.objects.filter(id=one.id).update(**LOST_LEASES[change])
    before = row(one)

    def complete() -> None:
        assert not persistence.complete_turn(job, AnswerOutcome(State.COMPLETE, "Behind the clock."), 9)

    assert notified_people(complete) == set()
    assert row(one) == before
    one.thread.refresh_from_db()
    assert one.thread.changed_at is None
    assert not Exchange.objects.exists()


def test_a_completed_answer_is_remembered_with_what_it_recalled(person, model_endpoint):
    author = PersonFactory()
    crew = group("Crew", person, author)
    stored = exchange(person, "The key hangs behind the clock.")
    talk = thread(person, space=crew)
    session = turn(talk).session
    type(session).objects.filter(id=session.id).update(seq=3)
    one = waiting(talk, author=author)
    job = job_of(one)
    persistence.memory.log_recall(one.id, [hit(stored)])

    assert persistence.complete_turn(job, AnswerOutcome(State.COMPLETE, "Behind the clock."), 9)

    one.refresh_from_db()
    remembered = Exchange.objects.get(id=one.exchange_id)
    assert not one.is_missing_in_memory
    assert (remembered.user_message, remembered.assistant_message) == (one.message, "Behind the clock.")
    assert (remembered.owner_id, remembered.space_id, remembered.source) == (author.id, crew.id, "chat")
    assert (remembered.thread_id, remembered.session_id, remembered.turn_id) == (talk.id, session.id, one.id)
    assert (remembered.thread_continuation_seq, remembered.prior_exchange_ids) == (3, [str(stored.id)])
    assert remembered.timestamp == one.created_at


@pytest.mark.parametrize("state", [State.STOPPED, State.FAILED, State.INTERRUPTED])
def test_the_text_of_an_answer_that_ended_early_is_remembered(person, model_endpoint, state):
    job = job_of(waiting(thread(person)))
    persistence.complete_turn(job, AnswerOutcome(state, "Behind"), 9)
    assert [stored.assistant_message for stored in Exchange.objects.all()] == ["Behind"]


def test_an_answer_without_text_is_not_remembered(person, model_endpoint):
    one = waiting(thread(person))
    assert persistence.complete_turn(job_of(one), AnswerOutcome(State.FAILED, " \n"), 9)
    assert not Exchange.objects.exists()


def test_an_answer_in_a_thread_that_is_not_remembered_is_not_remembered(person, model_endpoint):
    one = waiting(thread(person, is_remembered=False))
    assert persistence.complete_turn(job_of(one), AnswerOutcome(State.COMPLETE, "Behind the clock."), 9)
    assert not Exchange.objects.exists()
    assert not row(one)["is_missing_in_memory"]


def test_the_placeholder_without_an_endpoint_is_not_remembered(person):
    one = waiting(thread(person))
    assert persistence.complete_turn(job_of(one), AnswerOutcome(State.COMPLETE, "No model is configured."), 9)
    one.refresh_from_db()
    assert one.is_dummy
    persistence.store_exchange(one)
    assert not Exchange.objects.exists()


def test_an_answer_that_cannot_be_remembered_is_not_completed(person, model_endpoint, monkeypatch):
    def fail(_new: object) -> None:
        raise DatabaseError

    one = waiting(thread(person))
    job = job_of(one)
    before = row(one)
    with monkeypatch.context() as patch:
        patch.setattr(persistence.memory, "remember", fail)
        with pytest.raises(DatabaseError):
            persistence.complete_turn(job, AnswerOutcome(State.COMPLETE, "Behind the clock."), 9)
    assert row(one) == before


def test_an_answer_is_marked_as_missing_while_the_vector_store_is_disabled(person, model_endpoint, configure):
    other, one = turn(thread(person)), waiting(thread(person))
    job = job_of(one)
    configure(enabled=False)
    assert persistence.complete_turn(job, AnswerOutcome(State.COMPLETE, "Behind the clock."), 9)
    assert list(Turn.objects.filter(is_missing_in_memory=True)) == [one]
    assert not Exchange.objects.exists()

    configure(enabled=True)
    one.refresh_from_db()
    persistence.store_exchange(one)
    one.refresh_from_db()
    assert (one.is_missing_in_memory, Exchange.objects.get().id) == (False, one.exchange_id)
    other.refresh_from_db()
    assert other.exchange_id is None


def test_a_placeholder_is_not_remembered_even_if_its_process_dies(person):
    one = waiting(thread(person))
    assert prepare(one)
    Turn.objects.filter(id=one.id).update(answer="No model is connected.", heartbeat_at=ago(seconds=16))

    assert services.interrupt_stale_answers() == [one.id]
    assert not Exchange.objects.exists()


def test_the_history_is_read_once_for_recall_and_prompt(person, monkeypatch):
    in_thread = thread(person)
    turn(in_thread, "The key hangs behind the clock.", "Noted.")
    one = waiting(in_thread)
    reads: list[Turn] = []
    earlier_turns = recall.earlier_turns
    for module in (recall, preparation):
        monkeypatch.setattr(module, "earlier_turns", lambda row: reads.append(row) or earlier_turns(row))
    monkeypatch.setattr(recall.memory, "recall", lambda *_, **__: SearchResults())
    job = answer_job(one)

    prepared = prepare_answer(job, recall_for_turn(job), 120)

    assert prepared is not None
    assert "The key hangs behind the clock." in str(prepared.messages)
    assert len(reads) == 1


def test_what_is_forgotten_during_the_recall_is_neither_recalled_nor_in_the_prompt(person, monkeypatch):
    in_thread = thread(person)
    stored = exchange(person, "The key hangs behind the clock.")
    turn(in_thread, "The key hangs behind the clock.", "Noted.", exchange_id=stored.id)
    kept = turn(in_thread, "We water on Mondays.", "Noted.", exchange_id=exchange(person, "We water on Mondays.").id)
    elsewhere = exchange(person, "The safe is behind the picture.")
    one = waiting(in_thread)
    results = SearchResults((hit(elsewhere),))
    monkeypatch.setattr(recall.memory, "recall", lambda *_, **__: results)
    job = answer_job(one)
    recalled = recall_for_turn(job)

    memory_api.forget([stored.id, elsewhere.id], by=person.id)
    prepared = prepare_answer(job, recalled, 120)

    assert prepared is not None
    prompt = str(prepared.messages)
    assert kept.message in prompt
    assert "clock" not in prompt
    assert "picture" not in prompt
    assert not RecallLogEntry.objects.filter(turn_id=one.id).exists()


@pytest.mark.parametrize("change", [{"is_inactive": True}, {"space": None}])
def test_what_is_hidden_or_moved_during_the_recall_is_neither_recalled_nor_in_the_prompt(person, change):
    job = answer_job(waiting(thread(person)))
    stored, kept = exchange(person, "The safe is behind the picture."), exchange(person, "The key hangs here.")
    hits = hit(stored), hit(kept)
    Exchange.objects.filter(id=stored.id).update(**{k: v or group("Crew", person) for k, v in change.items()})

    prepared = prepare(job, *hits)

    assert prepared is not None
    assert "picture" not in str(prepared.messages)
    assert kept.user_message in str(prepared.messages)
    assert [item.exchange_id for item in prepared.recalled] == [kept.id]
    assert list(RecallLogEntry.objects.values_list("exchange_id", flat=True)) == [kept.id]


@pytest.mark.parametrize("is_project", [False, True])
def test_what_is_in_a_space_that_a_reader_loses_during_the_recall_is_not_in_the_prompt(person, is_project):
    ines = PersonFactory()
    crew, project = group("Crew", person, ines), None
    if is_project:
        project = Space.objects.create(kind=Space.Kind.PROJECT, name="Boat")
        Membership.objects.bulk_create([Membership(space=project, person=member) for member in (person, ines)])
    job = answer_job(waiting(thread(person, space=project)))
    stored = exchange(person, "The safe is behind the picture.", space=crew)
    kept = exchange(person, "The key hangs here.", space=project)
    assert {stored.space_id, kept.space_id} <= job.audience
    Membership.objects.filter(space=crew, person=ines if is_project else person).delete()

    prepared = prepare(job, hit(stored), hit(kept))

    assert prepared is not None
    assert "picture" not in str(prepared.messages)
    assert [item.exchange_id for item in prepared.recalled] == [kept.id]


def test_a_panel_shows_the_same_before_and_after_a_reload(person):
    earlier = thread(person, title="Keys")
    session = turn(earlier).session
    type(session).objects.filter(id=session.id).update(seq=1)
    stored = exchange(person, "The key hangs here.", thread_id=earlier.id, session_id=session.id)
    one = waiting(thread(person))

    prepared = prepare(one, hit(stored))

    spaces = access.readable_space_ids(person.id)
    assert prepared is not None
    assert list(prepared.recalled) == memory_api.recalled_for([one.id], spaces=spaces)[one.id]
    assert prepared.titles == thread_titles_of_recalled({one.id: list(prepared.recalled)})
    assert prepared.titles[session.id] == "Keys, session 2"


def test_a_thread_whose_memory_is_switched_off_during_the_answer_is_not_remembered(person, model_endpoint):
    one = waiting(thread(person))
    job = job_of(one)
    services.set_memory_enabled(one.thread, False)

    assert persistence.complete_turn(job, AnswerOutcome(State.COMPLETE, "Behind the clock."), 9)

    assert row(one)["state"] == State.COMPLETE
    assert not Exchange.objects.exists()


def test_a_thread_that_is_renamed_during_the_answer_is_listed_under_its_new_title(person, model_endpoint):
    one = waiting(thread(person))
    job = job_of(one)
    services.rename_thread(one.thread, "Keys")

    completed = persistence.complete_turn(job, AnswerOutcome(State.COMPLETE, "Behind the clock."), 9)

    assert completed is not None
    assert completed.turn.thread.title == "Keys"
    assert Exchange.objects.get().id == row(one)["exchange_id"], "stored once, although completing it was repeated"
