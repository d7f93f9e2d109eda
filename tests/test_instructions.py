"""Standing instructions: what becomes one, where it applies, and that nothing of it is lost or leaked."""

from __future__ import annotations

import uuid

import pytest

from chat import services
from chat.answers.preparation import prepare_answer
from chat.answers.recall import TurnRecall, recall_for_turn
from chat.errors import ConflictError, InvalidMessageError
from chat.instructions import editing
from chat.instructions.applying import MAX_TOKENS, read_applicable
from chat.llm import endpoint as model_endpoint
from chat.models import Instruction, Thread, Turn
from memory.api import DetectedInstruction, SearchResults, estimate_tokens
from memory.models import Membership
from memory.spaces import access
from tests.factories import PersonFactory, answer_job, exchange, group, thread, turn

pytestmark = pytest.mark.django_db
State = Instruction.State
METRIC = "From now on always answer me in metric units."


@pytest.fixture(autouse=True)
def connected(db):
    model_endpoint.save(base_url="http://127.0.0.1:9/v1", api_key="", model="fake")


def say(in_thread, message=METRIC, *, detected=True, certain=True, **fields):
    """Post a typed message, with what recall would detect in it; return the prepared answer and the turn."""
    fields = {"is_typed": True, "attempt": 1, "answer": "", "state": Turn.State.RECALLING} | fields
    in_thread.turns.filter(state__in=Turn.RUNNING_STATES).update(state=Turn.State.COMPLETE, answer="Noted.")
    one = turn(in_thread, message, fields.pop("answer"), **fields)
    job = answer_job(one)
    instruction = None
    if detected and editing.can_be_detected(job.turn):
        instruction = DetectedInstruction(message, certain)
    prepared = prepare_answer(job, TurnRecall(SearchResults(instruction=instruction)), 1)
    one.refresh_from_db()
    return prepared, one


def system_of(prepared):
    return prepared.messages[0]["content"]


def texts(in_thread):
    return [row.text for row in read_applicable(Thread.objects.select_related("space").get(id=in_thread.id))]


def test_a_message_is_tried_again_after_its_instruction_was_kept_for_a_group(person):
    crew = group("Crew", person)
    _prepared, one = say(thread(person, space=crew))
    editing.keep(Instruction.objects.get(), space=crew)

    assert not editing.suggest(one, DetectedInstruction(METRIC, True))
    assert Instruction.objects.get().space == crew
    with pytest.raises(ConflictError, match="already kept or dismissed"):
        editing.keep(Instruction.objects.get(), space=access.personal_space(person.id))


def test_a_recognised_instruction_applies_from_the_next_answer_on(person):
    talk = thread(person)
    first, one = say(talk)
    second, another = say(talk, "How far is Kiel?", detected=False)
    elsewhere, _turn = say(thread(person), "How far is Bremen?", detected=False)

    assert METRIC not in system_of(first)
    assert one.has_instruction
    assert one.applied_instructions == []
    assert system_of(second).startswith("Follow these standing instructions")
    assert METRIC in system_of(second)
    assert METRIC in system_of(elsewhere)
    assert another.applied_instructions == [str(Instruction.objects.get().id)]
    assert not another.has_instruction


def test_an_ambiguous_one_applies_only_once_it_is_kept(person):
    talk = thread(person)
    say(talk, certain=False)
    assert texts(talk) == []

    editing.keep(Instruction.objects.get(), space=talk.space)
    assert texts(talk) == [METRIC]


def test_once_dismissed_the_message_is_an_ordinary_exchange(person):
    talk = thread(person)
    _prepared, one = say(talk)
    assert texts(talk) == [METRIC]

    editing.delete(Instruction.objects.get())
    assert texts(talk) == []
    assert Instruction.objects.get().text == ""

    Turn.objects.filter(id=one.id).update(state=Turn.State.RECALLING)
    job = answer_job(one)
    prepare_answer(job, TurnRecall(SearchResults(instruction=DetectedInstruction(METRIC, True))), 1)
    assert texts(talk) == [], "a retry does not detect it again"


def test_the_same_words_are_one_instruction(person):
    talk = thread(person)
    say(talk)
    _prepared, again = say(talk)

    assert Instruction.objects.count() == 1
    assert not again.has_instruction


def test_the_thirteenth_is_only_suggested(person):
    talk = thread(person)
    for number in range(12):
        say(talk, f"Always do number {number}.")
    assert len(texts(talk)) == 12

    say(talk, "Always do number 13.")
    assert "Always do number 13." not in texts(talk)
    last = Instruction.objects.get(text="Always do number 13.")
    assert last.state == State.SUGGESTED
    with pytest.raises(ConflictError, match="Limit of 12"):
        editing.keep(last, space=talk.space)
    with pytest.raises(ConflictError, match="Limit of 12"):
        editing.add(talk.space, "One more", by=person.id)

    editing.delete(Instruction.objects.get(text="Always do number 3."))
    editing.keep(last, space=talk.space)
    assert "Always do number 13." in texts(talk)


def test_suggestions_do_not_pile_up(person):
    talk = thread(person)
    for number in range(14):
        say(talk, f"Perhaps always do number {number}.", certain=False)

    assert Instruction.objects.filter(state=State.SUGGESTED).count() == 12
    assert Instruction.objects.filter(text="Perhaps always do number 13.").exists()
    assert not Instruction.objects.filter(text="Perhaps always do number 0.").exists()


def test_only_typed_messages_of_the_owner_in_a_saved_thread_can_become_instructions(person):
    other = PersonFactory()
    crew = group("Crew", person, other)
    assert say(thread(person))[1].has_instruction
    Instruction.objects.all().delete()

    shared = thread(person, space=crew)
    for one in (
        say(thread(person), is_typed=False)[1],  # API, command line, import, copy, regenerated
        say(shared, author=other)[1],
        say(thread(person, is_remembered=False))[1],
    ):
        assert not one.has_instruction
    person.detects_instructions = False
    person.save()
    assert not say(thread(person))[1].has_instruction
    assert not Instruction.objects.exists()


def test_only_pages_post_typed_messages(person):
    talk = thread(person)
    page = services.post_message(
        talk.id, author_id=person.id, message="one", client_key=uuid.uuid4(), is_typed=True
    ).turn
    api = services.post_message(talk.id, author_id=person.id, message="two", client_key=uuid.uuid4()).turn
    new = services.create_thread_with_message(person.id, message="three", client_key=uuid.uuid4()).turn
    Turn.objects.filter(thread=talk).update(state=Turn.State.COMPLETE, answer="Yes.")
    page.refresh_from_db()
    again = services.regenerate(page, person_id=person.id, client_key=uuid.uuid4()).posted.turn
    forked = services.fork_thread(page, person_id=person.id).turns.get()

    assert page.is_typed
    assert not any(one.is_typed for one in (api, new, again, forked))


def test_a_personal_thread_has_those_of_the_person_then_of_the_team(person):
    team, own, crew = access.team_space(), access.personal_space(person.id), group("Crew", person)
    editing.add(team, "Write British English.", by=person.id)
    editing.add(own, "Be brief.", by=person.id)
    editing.add(crew, "Name the torque.", by=person.id)
    editing.add(access.personal_space(PersonFactory().id), "Rhyme.", by=person.id)

    assert texts(thread(person)) == ["Be brief.", "Write British English."]
    assert texts(thread(person, space=crew)) == ["Name the torque.", "Write British English."]
    assert texts(thread(person, space=team)) == ["Write British English."]


def test_the_beginning_of_the_prompt_is_the_same_for_each_turn(person):
    own = access.personal_space(person.id)
    for number in range(12):
        editing.add(own, f"Instruction {number}.", by=person.id)
    talk = thread(person)
    prompts = [system_of(say(talk, f"Question {number}?", detected=False)[0]) for number in range(3)]

    assert len(set(prompts)) == 1
    positions = [prompts[0].index(f"- Instruction {number}.") for number in range(12)]
    assert positions == sorted(positions)


def test_the_newest_that_fit_the_budget_are_in_the_prompt(person):
    own = access.personal_space(person.id)
    for number in range(12):
        editing.add(own, f"{number}. " + "word " * 44, by=person.id)
    found = texts(thread(person))

    assert 1 < len(found) < 12
    assert found == [row.text for row in Instruction.objects.order_by("created_at")][-len(found) :]
    assert estimate_tokens("\n".join(found)) <= MAX_TOKENS


def test_an_instruction_can_be_switched_off_everywhere_and_in_one_thread(person):
    own = access.personal_space(person.id)
    row = editing.add(own, "Be brief.", by=person.id)
    talk, other = thread(person), thread(person)
    editing.set_on_in_thread(talk, row.id, False)
    assert (texts(talk), texts(other)) == ([], ["Be brief."])

    editing.set_on_in_thread(talk, row.id, True)
    editing.set_on(row, False)
    assert (texts(talk), texts(other)) == ([], [])
    editing.set_on(row, True)
    assert (texts(talk), texts(other)) == (["Be brief."], ["Be brief."])


def test_two_people_switch_off_an_instruction_each(person):
    own, talk = access.personal_space(person.id), thread(person)
    rows = [editing.add(own, text, by=person.id) for text in ("Be brief.", "Use metric units.")]
    for loaded, row in zip([Thread.objects.get(id=talk.id) for _ in rows], rows, strict=True):
        editing.set_on_in_thread(loaded, row.id, False)
    assert texts(talk) == []


def test_an_edited_text_replaces_the_former_one(person):
    row = editing.add(access.personal_space(person.id), "Be brief.", by=person.id)
    editing.edit(row, "  Be\nvery \u202ebrief. ")

    assert texts(thread(person)) == ["Be very brief."]
    with pytest.raises(InvalidMessageError):
        editing.edit(row, " ")
    with pytest.raises(InvalidMessageError):
        editing.edit(row, "x" * 241)


def stored(one, owner):
    """Store the exchange of this turn; return it."""
    row = exchange(owner, one.message, space=one.thread.space, turn_id=one.id, thread_id=one.thread_id)
    Turn.objects.filter(id=one.id).update(exchange_id=row.id, state=Turn.State.COMPLETE, answer="Noted.")
    return row


@pytest.mark.parametrize("is_kept_for_space", [False, True])
def test_forgetting_the_exchange_deletes_the_instruction(memory, person, is_kept_for_space):
    crew = group("Crew", person)
    talk = thread(person, space=crew)
    _prepared, one = say(talk)
    if is_kept_for_space:
        editing.keep(Instruction.objects.get(), space=crew)
    row = stored(one, person)
    typed = editing.add(crew, "Name the torque.", by=person.id)
    assert Instruction.objects.count() == 2

    memory.forget([row.id], by=person.id)

    assert list(Instruction.objects.present()) == [typed], "at once, before anything else runs"
    assert METRIC not in texts(thread(person)) + texts(talk)
    services.delete_forgotten_instructions()
    assert list(Instruction.objects.all()) == [typed]


def test_an_instruction_goes_with_its_turn_and_its_thread(memory, person):
    talk = thread(person)
    say(talk)
    Turn.objects.filter(thread=talk).update(state=Turn.State.COMPLETE)
    services.delete_last_turns(Thread.objects.get(id=talk.id), 1, by=person.id)
    assert not Instruction.objects.exists()

    other = thread(person)
    say(other)
    Turn.objects.filter(thread=other).update(state=Turn.State.COMPLETE)
    assert texts(talk) == [METRIC]
    services.delete_thread(Thread.objects.get(id=other.id))
    assert texts(talk) == []
    services.restore_thread(Thread.objects.get(id=other.id))
    assert texts(talk) == [METRIC]


def test_a_message_that_was_edited_no_longer_applies(person):
    talk = thread(person)
    _prepared, one = say(talk)
    Turn.objects.filter(id=one.id).update(is_on_active_branch=False)
    assert texts(talk) == []

    editing.keep(Instruction.objects.get(), space=talk.space)
    assert texts(talk) == [METRIC], "what a person kept does not depend on the message"


def test_an_instruction_goes_on_applying_when_its_message_is_answered_again(memory, person):
    talk = thread(person)
    _prepared, one = say(talk)
    Turn.objects.filter(id=one.id).update(state=Turn.State.COMPLETE, answer="Noted.")
    again = services.regenerate(one, person_id=person.id, client_key=one.id).posted.turn
    job = answer_job(again)

    prepared = prepare_answer(job, TurnRecall(SearchResults()), again.attempt)

    assert METRIC not in system_of(prepared), "the message says it"
    Turn.objects.filter(id=again.id).update(state=Turn.State.COMPLETE, answer="Noted.")
    assert texts(talk) == [METRIC]
    again.refresh_from_db()
    memory.forget([stored(again, person).id], by=person.id)
    assert texts(talk) == []


def test_an_instruction_stops_applying_when_its_message_is_replaced(person):
    talk = thread(person)
    _prepared, one = say(talk)
    Turn.objects.filter(id=one.id).update(state=Turn.State.COMPLETE, answer="Noted.")
    assert texts(talk) == [METRIC]

    services.edit_message(one, person_id=person.id, message="Use feet.", client_key=one.id)

    assert texts(talk) == []


def test_a_moved_thread_uses_the_instructions_of_its_new_space(memory, person):
    crew = group("Crew", person)
    editing.add(access.personal_space(person.id), "Be brief.", by=person.id)
    editing.add(crew, "Name the torque.", by=person.id)
    talk = thread(person)
    assert texts(talk) == ["Be brief."]

    services.move_thread(talk, to=crew, by=person.id)

    assert texts(talk) == ["Name the torque."]


def test_a_deleted_space_takes_its_instructions_along(person):
    crew = group("Crew", person)
    editing.add(crew, "Name the torque.", by=person.id)
    crew.delete()

    assert not Instruction.objects.exists()


def test_a_deleted_account_leaves_only_what_it_wrote_for_spaces(memory, person):
    from cato_web.accounts.deletion import delete_account

    crew = group("Crew", person)
    editing.add(crew, "Name the torque.", by=person.id)
    editing.add(access.personal_space(person.id), "Be brief.", by=person.id)
    say(thread(person))
    delete_account(person)

    assert [row.text for row in Instruction.objects.all()] == ["Name the torque."]
    assert not Membership.objects.filter(person=person).exists()


def test_the_history_leaves_room_for_the_instructions(person, settings):
    llm = settings.CATO.llm.model_copy(update={"context_tokens": 8500})
    settings.CATO = settings.CATO.model_copy(update={"llm": llm})
    talk = thread(person)
    for number in range(20):
        turn(talk, f"Question {number}", "word " * 100)
    before, _turn = say(talk, "And now?", detected=False)
    for number in range(8):
        editing.add(talk.space, f"{number} " + "word " * 44, by=person.id)
    after, _turn = say(talk, "And now?", detected=False)

    assert len(after.messages) < len(before.messages)


def test_recall_and_prompt_detect_and_apply_an_instruction(memory, person):
    talk = thread(person)
    one = turn(talk, METRIC, "", state=Turn.State.RECALLING, is_typed=True, attempt=1)
    job = answer_job(one)
    prepare_answer(job, recall_for_turn(job), 1)

    assert texts(talk) == [METRIC]
    assert Instruction.objects.get().space_id == talk.space_id
    Turn.objects.filter(id=one.id).update(state=Turn.State.COMPLETE)
    unsaved = turn(talk, METRIC + " Really.", "", state=Turn.State.RECALLING, attempt=1)
    assert recall_for_turn(answer_job(unsaved)).search_results.instruction is None
