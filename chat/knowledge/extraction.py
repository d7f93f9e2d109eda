"""Extracts the statements of one cluster: a request to the model, checks, and one transaction that stores all of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence

from django.db import transaction

from chat.knowledge.prompt import Source, build_messages, read_sources
from chat.knowledge.reply import CheckedReply, Reply, UnusableReplyError, check_reply, parse_reply
from chat.llm.client import Message
from memory import api as memory
from memory.api import NewSupport, Space, Statement, knowledge_decisions

_MAX_QUOTED_REPLY = 4_000  # characters
_REPAIR = (
    "This is not the JSON object that was asked for. Reply with this object alone, without any other text, "
    'with the keys "statements" and "repeated".'
)
_IN_FORCE = (Statement.State.CURRENT, Statement.State.CONFLICTING)

Ask = Callable[[Sequence[Message]], str]


def extract(space: Space, exchange_ids: Collection[uuid.UUID], *, ask: Ask, hold: Callable[[], object]) -> int:
    """Store what the exchanges among `exchange_ids` that are still unread state; return the number of statements.

    `ask` returns the model's reply to messages, and `hold` raises an error in the transaction if the result must not be
    stored. What they raise, UnusableReplyError and errors of memory leave the cluster unread. So does a source that
    changes meanwhile.
    """
    # Read again, since clusters are formed minutes before: the request must not contain what was forgotten since.
    cluster = list(memory.unread_exchanges(space.pk).filter(pk__in=exchange_ids))
    if not cluster:
        return 0
    sources = read_sources(cluster)
    known = memory.related_statements(space.pk, cluster)
    topics = memory.topics_of(space.pk)
    reply = _ask_for_reply(build_messages(sources, known, topics), ask)
    checked = check_reply(reply, sources, known, topics)
    return _store(space, sources, known, checked, hold)


def _ask_for_reply(messages: list[Message], ask: Ask) -> Reply:
    """Return the reply, which can be repaired once. Raises UnusableReplyError and what `ask` raises."""
    text = ask(messages)
    try:
        return parse_reply(text)
    except UnusableReplyError:
        repair = [
            {"role": "assistant", "content": text[:_MAX_QUOTED_REPLY]},
            {"role": "user", "content": _REPAIR},
        ]
        return parse_reply(ask([*messages, *repair]))


@transaction.atomic
def _store(
    space: Space,
    sources: Sequence[Source],
    known: Sequence[Statement],
    checked: CheckedReply,
    hold: Callable[[], object],
) -> int:
    hold()
    rows = Statement.objects.select_for_update(of=("self",)).select_related("exchange__space").order_by("pk")
    locked = {row.pk: row for row in rows.filter(pk__in=[row.pk for row in known], exchange__forgotten_at=None)}
    read = [NewSupport(source.exchange.pk, "", source.exchange.version) for source in sources]
    if not memory.are_unchanged(space, read):
        return 0
    added = memory.add_statements(space, [item.new for item in checked.statements], read=read)
    for statement, support in checked.repeated:
        if statement.pk in locked:
            memory.add_support(locked[statement.pk], support)
    by_text = {statement.exchange.user_message: statement for statement in added}
    for item in checked.statements:
        new = by_text.get(item.new.text)
        if new is None:
            continue
        for old in item.updates:
            if old.pk in locked:
                _supersede(locked[old.pk], new)
        for old in item.contradicts:
            if old.pk in locked and _are_in_force(locked[old.pk], new):
                knowledge_decisions.contradict(locked[old.pk], new)
    return len(added)


def _supersede(old: Statement, new: Statement) -> None:
    """Let the statement that was said later supersede the other one: the cluster can be of older messages."""
    if not _are_in_force(old, new) or old.last_said_at == new.last_said_at:
        return
    earlier, later = sorted((old, new), key=lambda row: row.last_said_at)
    knowledge_decisions.supersede(earlier, by_statement=later, by=None)


def _are_in_force(*statements: Statement) -> bool:
    """Return whether none is superseded or rejected, also by what was stored a moment ago."""
    for statement in statements:
        statement.refresh_from_db(fields=["state"])
    return all(statement.state in _IN_FORCE for statement in statements)
