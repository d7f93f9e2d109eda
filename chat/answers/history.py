"""The earlier turns of a thread in the prompt of an answer, as far as they fit."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce

from chat.llm.prompts import PromptHistory, fit_history, history_token_budget, tool_text
from chat.models import Turn, load_attachments
from memory.api import Exchange

_MAX_TURNS = 500


def earlier_turns(turn: Turn) -> list[Turn]:
    """Return the answered, not forgotten turns of the active branch before this one, oldest first.

    Only the columns that prompts need are loaded. A digest has none: those before it are digests of other periods.
    """
    if turn.position == 0 or turn.digest_scope is not None:
        return []
    exchange_id = Coalesce(OuterRef("exchange_id"), OuterRef("copied_exchange_id"))
    forgotten = Exchange.objects.filter(id=exchange_id, forgotten_at__isnull=False)
    rows = Turn.objects.active_branch().with_attachment_marks()
    rows = rows.filter(
        ~Q(answer=""), ~Exists(forgotten), thread_id=turn.thread_id, position__lt=turn.position, is_dummy=False
    )
    # The reasoning and the searches of hundreds of turns would take longer to read than the rest.
    needed = rows.only("message", "answer", "exchange_id", "copied_exchange_id")
    turns = list(needed.order_by("-position")[:_MAX_TURNS])[::-1]
    load_attachments(turns)
    return turns


def history_of(turn: Turn, earlier: list[Turn]) -> PromptHistory:
    """Return those of the earlier turns, the newest ones, that fit beside the message of this turn."""
    return fit_history(earlier, max_tokens=token_budget(turn))


def fit_beside(turn: Turn, history: PromptHistory, standing: str, attached: str) -> PromptHistory:
    """Return the history without the oldest turns that no longer fit beside standing instructions and `attached` texts."""
    return fit_history(list(history.turns), max_tokens=token_budget(turn, standing=standing, attached=attached))


def token_budget(turn: Turn, *, standing: str = "", attached: str = "") -> int:
    """Return the tokens left for history beside the turn's message and its tool messages."""
    texts = "\n".join(filter(None, (attached, tool_text(turn))))
    budget = history_token_budget(turn.message, turn.thread.instructions, standing=standing, attached=texts)
    # For the definitions of tools and for what they return.
    return budget - (settings.CATO.llm.context_tokens // 4 if turn.thread.tool_server_ids else 0)
