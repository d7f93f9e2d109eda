"""Extracts the statements of one cluster: a request to the model, checks, and one transaction that stores all of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence

from django.db import transaction
from django.utils import timezone

from chat.knowledge.prompt import Source, build_messages, read_sources
from chat.knowledge.repetition import find_repetitions
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
    repeated, new = find_repetitions(sources, known)
    checked = CheckedReply([], repeated)
    if new:
        topics = memory.topics_of(space.pk)
        answer = _ask_for_reply(build_messages(new, known, topics), ask)
        reply = check_reply(answer, new, known, topics, space=space, written_at=timezone.now())
        checked = CheckedReply(reply.statements, [*repeated, *reply.repeated])
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
    ids = {row.pk for row in known} | {row.pk for row, _support in checked.repeated}
    locked = {row.pk: row for row in rows.filter(pk__in=ids, exchange__forgotten_at=None)}
    read = [NewSupport(source.exchange.pk, "", source.exchange.version) for source in sources]
    if not memory.are_unchanged(space, read) or not _are_as_they_were(checked.repeated, locked):
        return 0
    added = memory.add_statements(space, [item.new for item in checked.statements], read=read)
    for statement, support in checked.repeated:
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


def _are_as_they_were(repeated: Sequence[tuple[Statement, NewSupport]], locked: Mapping[uuid.UUID, Statement]) -> bool:
    """Return whether no repeated statement was forgotten or decided about since it was compared with the sources."""
    return all(row.pk in locked and locked[row.pk].revision == row.revision for row, _support in repeated)


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
