"""The endpoint at which a running Cato takes requests of the command line on this machine.

A request is signed with the secret key. Anybody who can read that key can also sign anybody in and usually read the
database, so the command line gets no right here that it would not have on its own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from cato_web.cli import actions
from cato_web.cli.messages import CommandFailedError, CommandRequest, CommandResult, UsageError, is_signed
from cato_web.health import is_from_this_machine
from chat import access
from chat.answers import runner
from chat.answers.tail import tail_answer
from chat.executors import run_in_db_thread
from chat.services import PostedTurn
from memory.api import NotFoundError


@csrf_exempt
@login_not_required
@require_POST
def run_command(request: HttpRequest) -> HttpResponseBase:
    """Run the signed request; return its result or failure as JSON, for a question preceded by lines of text."""
    signature = request.headers.get("X-Cato-Signature", "")
    if not is_from_this_machine(request) or not is_signed(request.body, settings.SECRET_KEY, signature):
        return HttpResponse("Only for the command line on this machine.\n", status=403, content_type="text/plain")
    command = CommandRequest(**json.loads(request.body))
    try:
        with actions.expected_errors():
            person = actions.resolve_user(command.user)
            if command.action == "ask":
                # Its serializers are loaded with the API, not with every page.
                from cato_web.cli.questions import post_question

                posted = post_question(command, person)
                runner.publish_and_start(posted)
                if not connection.in_atomic_block:
                    connection.close()  # otherwise this thread would hold it until the response ends
                return StreamingHttpResponse(_answer_lines(person.pk, posted), content_type="application/x-ndjson")
            result = {"query": actions.query, "stats": actions.stats}[command.action](command, person)
    except (UsageError, CommandFailedError) as error:
        return JsonResponse(_failure(error))
    return JsonResponse(_success(result))


async def _answer_lines(person_id: uuid.UUID, posted: PostedTurn) -> AsyncIterator[str]:
    from cato_web.cli.questions import answer_result

    can_receive = partial(access.can_receive, person_id, posted.turn.thread_id)
    try:
        with actions.expected_errors():
            async for text in tail_answer(posted.turn.id, can_receive):
                yield json.dumps({"text": text}) + "\n"
            if not await run_in_db_thread(can_receive):
                raise NotFoundError
            end = _success(await run_in_db_thread(answer_result, person_id, posted))
    except CommandFailedError as error:
        end = _failure(error)
    yield json.dumps(end, default=str) + "\n"


def _success(result: CommandResult) -> dict[str, Any]:
    return {"done": asdict(result)}


def _failure(error: Exception) -> dict[str, Any]:
    return {"failure": str(error), "is_usage": isinstance(error, UsageError)}
