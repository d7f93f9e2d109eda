"""Calls of tools while an answer is generated, and the decisions of people about those that ask first.

The process that answers writes `Turn.tool_uses`; a decision, in any process, only changes a call that still waits. Both lock
the turn's row and keep what the other wrote.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import ConflictError
from chat.models import Turn

ASK_FOR = timedelta(minutes=10)  # then a call counts as declined


@dataclass(slots=True)
class ToolUse:
    """One call of a tool.

    `arguments` are JSON as text, for people to read. `decided_by` is the name of who allowed or declined it, and
    `decided_by_id` the id, by which the name is removed with the account.
    Its state is waiting, allowed, declined, expired (nobody decided), running, done or failed.
    """

    server: str
    tool: str
    title: str
    arguments: str
    state: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    asked_at: str = ""
    decided_by: str = ""
    decided_by_id: str = ""
    result: str = ""

    @property
    def expires_at(self) -> datetime | None:
        """The time at which a call that asks counts as declined."""
        return datetime.fromisoformat(self.asked_at) + ASK_FOR if self.asked_at else None

    def as_json(self) -> dict[str, Any]:
        """Return the call as `Turn.tool_uses` stores it."""
        return asdict(self)


def tool_uses(turn: Turn) -> list[ToolUse]:
    """Return the calls of a turn's answer, in their order."""
    return [ToolUse(**use) for use in turn.tool_uses]


def ended_calls(stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return calls, or searches, as the turn stores them, of a part of an answer that has ended: none of them is open."""
    ends = {"waiting": "expired", "allowed": "failed", "running": "failed"}
    return [call | {"state": ends.get(call["state"], call["state"])} for call in stored]


@transaction.atomic
def decide(turn: Turn, use_id: uuid.UUID, *, by: Any, is_allowed: bool) -> None:
    """Allow or decline a call that waits; `by` is a person who may. Raises ConflictError if it no longer waits."""
    locked = Turn.objects.select_for_update(of=("self",)).get(id=turn.id)
    uses = tool_uses(locked)
    use = next((use for use in uses if use.id == str(use_id) and use.state == "waiting"), None)
    is_late = use is not None and use.expires_at is not None and use.expires_at < timezone.now()
    if use is None or is_late or locked.state != Turn.State.WAITING or locked.stop_requested:
        raise ConflictError(_("This question has already been answered, or the answer has ended."))
    use.state = "allowed" if is_allowed else "declined"
    use.decided_by, use.decided_by_id = by.name, str(by.pk)
    Turn.objects.filter(id=turn.id).update(tool_uses=[each.as_json() for each in uses])


@transaction.atomic
def rename_in_tool_uses(person_id: uuid.UUID, name: str) -> None:
    """Show this name for the decisions of a person about tools."""
    stored = Turn.objects.exclude(tool_uses=[]).alias(text=Cast("tool_uses", TextField()))
    turns = stored.filter(text__contains=str(person_id)).select_for_update(of=("self",)).order_by("id")
    for turn in turns.only("tool_uses"):
        uses = [
            use | {"decided_by": name} if use.get("decided_by_id") == str(person_id) else use for use in turn.tool_uses
        ]
        Turn.objects.filter(id=turn.id).update(tool_uses=uses)
