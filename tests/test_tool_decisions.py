"""Decisions about tools that ask first: until when they count, and what the model is told without one."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from chat.answers.stream import AnswerStream
from chat.answers.tool_uses import ToolUses
from chat.errors import ConflictError
from chat.llm.tool_calls import ToolCall
from chat.models import ToolServer, Turn
from chat.tools.connection import ServerTool
from chat.tools.offered import OfferedTool
from chat.tools.uses import ASK_FOR, ToolUse, decide, tool_uses
from chat.turns.restarting import resume_turn
from tests.factories import PersonFactory, ago, answer_job, thread, turn
from tests.server import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def waiting(person, **fields: Any) -> Turn:
    """Return a turn whose answer waits for a decision about a tool."""
    use = ToolUse("weather", "set_alarm", "", '{"city": "Bergen"}', "waiting", **fields)
    return turn(thread(person), "Wake me", "", state=Turn.State.WAITING, tool_uses=[use.as_json()])


def state_of(one: Turn) -> tuple[str, str]:
    (use,) = tool_uses(Turn.objects.get(id=one.id))
    return use.state, use.decided_by


@pytest.mark.parametrize(("is_allowed", "state"), [(True, "allowed"), (False, "declined")])
def test_a_decision_counts_once(person, is_allowed, state):
    asked = waiting(person, asked_at=timezone.now().isoformat())
    (use,) = tool_uses(asked)

    decide(asked, uuid.UUID(use.id), by=person, is_allowed=is_allowed)
    with pytest.raises(ConflictError):
        decide(asked, uuid.UUID(use.id), by=PersonFactory(), is_allowed=not is_allowed)

    assert state_of(asked) == (state, person.name)


@pytest.mark.parametrize(
    "change",
    [
        {"stop_requested": True},
        {"state": Turn.State.INTERRUPTED},
        {"state": Turn.State.STOPPED},
    ],
)
def test_a_decision_does_not_count_once_the_answer_is_stopped_or_interrupted(person, change):
    asked = waiting(person, asked_at=timezone.now().isoformat())
    Turn.objects.filter(id=asked.id).update(**change)
    (use,) = tool_uses(asked)

    with pytest.raises(ConflictError):
        decide(asked, uuid.UUID(use.id), by=person, is_allowed=True)

    assert state_of(asked) == ("waiting", "")


def test_a_decision_after_ten_minutes_does_not_count(person):
    assert timedelta(minutes=10) == ASK_FOR
    asked = waiting(person, asked_at=ago(minutes=11).isoformat())
    (use,) = tool_uses(asked)

    with pytest.raises(ConflictError):
        decide(asked, uuid.UUID(use.id), by=person, is_allowed=True)

    assert state_of(asked) == ("waiting", "")


@pytest.fixture
def alarm(person):
    """Return a tool that asks first, of a server whose tools can be used in personal threads."""
    tool = ServerTool("set_alarm", "set_alarm", "Sets an alarm.", {"type": "object"}, is_read_only=False)
    allowed_in = [ToolServer.PERSONAL]
    server = ToolServer.objects.create(name="weather", tools=[tool.as_json()], allowed_in=allowed_in)
    return OfferedTool("weather_set_alarm", server.id, server.name, tool)


@pytest.fixture
def answering(person, alarm):
    """Return a turn that is being answered, in a thread in which the server is switched on."""
    own_thread = thread(person, tool_server_ids=[str(alarm.server_id)])
    return turn(own_thread, "Wake me", "", state=Turn.State.ANSWERING)


def call(alarm: OfferedTool, one: Turn, meanwhile: Callable[[], None] = lambda: None, *, arguments: str = "{}") -> str:
    """Let the model call the tool; return what it is told."""
    uses = ToolUses(AnswerStream(answer_job(one)), [alarm])

    async def use() -> str:
        running = asyncio.create_task(uses.run([ToolCall("call-1", alarm.function_name, arguments)], []))
        await asyncio.to_thread(meanwhile)
        (answer,) = await running
        return str(answer["content"])

    return asyncio.run(use())


def test_the_model_is_told_that_nobody_allowed_a_call_in_time(alarm, answering, monkeypatch):
    monkeypatch.setattr("chat.answers.tool_uses.ASK_FOR", timedelta(0))

    assert call(alarm, answering) == "Nobody allowed this call in time. Answer without it."

    assert state_of(answering) == ("expired", "")
    assert Turn.objects.get(id=answering.id).state == Turn.State.ANSWERING


@pytest.mark.parametrize("is_stopped", [False, True])
def test_an_allowed_call_is_made_unless_the_answer_is_stopped(person, alarm, answering, monkeypatch, is_stopped):
    calls: list[object] = []

    async def call_tool(*args: object) -> tuple[str, bool]:
        calls.append(args)
        return "The alarm is set.", False

    def allow() -> None:
        wait_for(lambda: Turn.objects.get(id=answering.id).state == Turn.State.WAITING, "the question")
        (use,) = tool_uses(Turn.objects.get(id=answering.id))
        with transaction.atomic():
            decide(answering, uuid.UUID(use.id), by=person, is_allowed=True)
            Turn.objects.filter(id=answering.id).update(stop_requested=is_stopped)
        connection.close()

    monkeypatch.setattr("chat.answers.tool_uses.call_tool", call_tool)
    monkeypatch.setattr("chat.answers.tool_uses.target_of", lambda server: server)

    told = call(alarm, answering, allow)

    assert len(calls) == (not is_stopped)
    assert ("no longer available" if is_stopped else "The alarm is set.") in told


@pytest.mark.parametrize("half", ["\\ud83d", "\\udc00"])
def test_half_a_character_in_arguments_is_shown_and_sent_as_a_replacement_character(
    alarm, answering, monkeypatch, half
):
    """An escape of half a surrogate pair is valid JSON, and cannot be encoded in a page or a request."""
    sent: list[object] = []

    async def call_tool(_target: object, _name: str, arguments: object) -> tuple[str, bool]:
        sent.append(arguments)
        return "It rains.", False

    alarm = replace(alarm, tool=replace(alarm.tool, is_read_only=True))
    ToolServer.objects.update(tools=[alarm.tool.as_json()])
    monkeypatch.setattr("chat.answers.tool_uses.call_tool", call_tool)
    monkeypatch.setattr("chat.answers.tool_uses.target_of", lambda server: server)

    call(alarm, answering, arguments=f'{{"city": "Bergen{half}"}}')

    (use,) = tool_uses(Turn.objects.get(id=answering.id))
    assert sent == [{"city": "Bergen\ufffd"}]
    assert json.loads(use.arguments) == sent[0]


def test_a_resumed_answer_keeps_the_calls_of_its_first_part_and_ends_what_was_open(alarm, answering, monkeypatch):
    monkeypatch.setattr("chat.answers.tool_uses.ASK_FOR", timedelta(0))
    uses = [ToolUse("weather", "set_alarm", "", "{}", state) for state in ("done", "waiting", "allowed", "running")]
    stored = {"tool_uses": [use.as_json() for use in uses], "state": Turn.State.INTERRUPTED, "answer": "It is"}
    Turn.objects.filter(id=answering.id).update(**stored)

    resumed = resume_turn(Turn.objects.get(id=answering.id))
    call(alarm, resumed)

    states = [use.state for use in tool_uses(Turn.objects.get(id=answering.id))]
    assert states == ["done", "expired", "failed", "failed", "expired"]
