"""Questions of the command line: post one in a new or an existing thread, and report its answer with its sources."""

from __future__ import annotations

import uuid

from cato_web.accounts.models import User
from cato_web.api import serializers
from cato_web.cli.actions import resolve_space
from cato_web.cli.messages import CommandFailedError, CommandRequest, CommandResult, UsageError
from chat import access, services
from chat.llm import endpoint
from chat.llm.choices import validate_choice
from chat.models import Turn
from chat.services import ApiOrigin, PostedTurn
from memory.api import parse_uuid


def post_question(request: CommandRequest, person: User) -> PostedTurn:
    """Post the question; the caller starts the answer. Raises UsageError and expected errors."""
    origin = ApiOrigin(requested_model=_model(request.model))
    if request.thread is None:
        space = resolve_space(person.pk, request.space)
        return services.create_thread_with_message(
            person.pk, message=request.text, client_key=uuid.uuid4(), space=space, origin=origin
        )
    thread_id = parse_uuid(request.thread)
    if thread_id is None:
        raise UsageError(f"--thread {request.thread}: this is not an id. --output json shows the id of a thread.")
    return services.post_message(
        thread_id, author_id=person.pk, message=request.text, client_key=uuid.uuid4(), origin=origin
    )


def _model(name: str | None) -> str:
    """Return the model for this turn, "" for that of the thread. Raises InvalidInputError if there is no such model."""
    model_endpoint = endpoint.current()
    if not name or model_endpoint is None:
        return name or ""
    # The configured model is "" for a thread; here it is meant even if the thread has another one.
    return validate_choice(name) or name


def answer_result(person_id: uuid.UUID, posted: PostedTurn) -> CommandResult:
    """Return the ended answer, its sources and its usage. Raises CommandFailedError, NotFoundError if access was lost."""
    turn: Turn = access.get_turn(person_id, posted.turn.thread_id, posted.turn.id)
    is_stopped = turn.state == Turn.State.STOPPED
    if turn.state != Turn.State.COMPLETE and not is_stopped:
        raise CommandFailedError(turn.error or "The answer was interrupted.")
    (row,) = serializers.serialize_turns(turn.thread, [turn])
    result = {
        "answer": turn.answer,
        "state": turn.state,
        "finish_reason": turn.finish_reason,
        "thread_id": str(turn.thread_id),
        "turn_id": str(turn.id),
        **row.model_dump(mode="json", include={"sources", "usage"}),
    }
    text = f"{turn.answer}\n\nThe answer was stopped.".strip() if is_stopped else turn.answer
    chosen = endpoint.find(turn.model)
    return CommandResult(result, text, {"provider": chosen.endpoint.host if chosen else None, "model": turn.model})
