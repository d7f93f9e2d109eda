"""Conversations whose beginning a client has dropped: they continue their thread only if nothing else is possible."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from chat.models import Thread, Turn
from chat.services import ClientConversation, PastExchange, submit_conversation
from tests.factories import PersonFactory, group, turn

pytestmark = pytest.mark.django_db
TOKEN = uuid.uuid4()
LONG = (("Where is the key?", "In the hall."), ("And the spare one?", "With Bob."), ("Thanks", "You are welcome."))


@pytest.fixture
def alice():
    return PersonFactory()


def conversation_thread(owner, *exchanges: tuple[str, str], token: uuid.UUID = TOKEN, **last: Any) -> Thread:
    """Create a thread as a client's conversation would; `last` are columns of its last turn."""
    created = submit(owner, exchanges[0][0], token=token).thread
    Turn.objects.filter(thread=created).update(answer=exchanges[0][1], state=Turn.State.COMPLETE)
    head = Turn.objects.get(thread=created)
    for number, (message, answer) in enumerate(exchanges[1:], 2):
        fields = last if number == len(exchanges) else {}
        head = turn(created, message, answer, parent=head, api_token_id=token, **fields)
    Thread.objects.filter(id=created.id).update(head=head)
    return created


def submit(owner, message: str, *earlier: tuple[str, str], token: uuid.UUID = TOKEN, **parts: Any) -> Turn:
    conversation = ClientConversation(message, tuple(PastExchange(*exchange) for exchange in earlier), **parts)
    return submit_conversation(owner.id, conversation, client_key=uuid.uuid4(), api_token_id=token).posted.turn


@pytest.mark.parametrize("kept", [1, 2])
def test_a_trimmed_conversation_continues_its_thread(alice, kept):
    known = conversation_thread(alice, *LONG)
    posted = submit(alice, "One more thing", *LONG[-kept:])
    assert (posted.thread_id, posted.parent.message) == (known.id, "Thanks")


@pytest.mark.parametrize("earlier", [LONG, LONG[-1:]], ids=["whole", "trimmed"])
@pytest.mark.parametrize("is_readable", [True, False])
def test_a_conversation_continues_only_a_thread_that_its_owner_reads(alice, earlier, is_readable):
    known = conversation_thread(alice, *LONG)
    Thread.objects.filter(id=known.id).update(space=group("Crew", *([alice] if is_readable else [])))
    posted = submit(alice, "One more thing", *earlier)
    assert (posted.thread_id == known.id) is is_readable


def test_an_answer_at_the_beginning_is_compared_and_is_no_instruction(alice):
    known = conversation_thread(alice, *LONG)
    posted = submit(alice, "One more thing", LONG[-1], opening="With Bob.")
    assert posted.thread_id == known.id
    known.refresh_from_db()
    assert known.instructions == ""


def test_another_text_at_the_beginning_is_an_instruction_of_a_new_thread(alice):
    known = conversation_thread(alice, *LONG)
    other = submit(alice, "One more thing", LONG[-1], opening="Hello, I am new.")
    assert other.thread_id != known.id
    assert "Hello, I am new." in other.thread.instructions


def test_of_two_threads_that_end_alike_more_messages_decide(alice):
    one = conversation_thread(alice, *LONG)
    two = conversation_thread(alice, ("Who plays?", "Bob."), ("And tomorrow?", "Ada."), LONG[-1])
    assert submit(alice, "One more thing", ("And tomorrow?", "Ada."), LONG[-1]).thread_id == two.id
    assert submit(alice, "One more thing", *LONG[-2:]).thread_id == one.id


def test_of_two_threads_that_end_alike_none_is_guessed(alice):
    one = conversation_thread(alice, *LONG)
    two = conversation_thread(alice, ("Who plays?", "Bob."), LONG[-1])
    assert submit(alice, "One more thing", LONG[-1]).thread_id not in (one.id, two.id)


def test_a_conversation_that_can_be_whole_is_not_taken_for_the_end_of_another(alice):
    known = conversation_thread(alice, *LONG)
    conversation_thread(alice, ("Thanks", "You are welcome."), ("Later", "Of course."))
    assert submit(alice, "One more thing", LONG[-1]).thread_id != known.id


@pytest.mark.parametrize(
    "earlier",
    [
        (("Thanks", "Not at all."),),
        (("And the spare key?", "With Bob."), LONG[-1]),
        (("Before", "Before."), *LONG),
        LONG[1:2],
    ],
)
def test_every_message_must_agree_with_the_end_of_the_thread(alice, earlier):
    known = conversation_thread(alice, *LONG)
    assert submit(alice, "One more thing", *earlier).thread_id != known.id


def test_threads_of_other_people_and_other_tokens_are_not_compared(alice):
    bob = PersonFactory()
    others = [conversation_thread(bob, *LONG), conversation_thread(alice, *LONG, token=uuid.uuid4())]
    posted = submit(alice, "One more thing", *LONG[-2:])
    assert posted.thread_id not in {one.id for one in others}
    assert submit(bob, "One more thing", *LONG[-2:]).thread_id == others[0].id


def test_a_turn_that_waits_for_tools_is_found_without_the_beginning(alice):
    call = {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    waits = {"finish_reason": Turn.FinishReason.TOOL_CALLS, "tool_messages": [calls]}
    known = conversation_thread(alice, *LONG, ("What time is it?", ""), **waits)
    result = {"role": "tool", "tool_call_id": "c1", "content": "noon"}

    posted = submit(alice, "What time is it?", tool_messages=(calls, result))
    assert (posted.thread_id, posted.attempt) == (known.id, 1)
    assert posted.tool_messages == [calls, result]
    assert posted.is_running
