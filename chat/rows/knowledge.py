"""Rows of statements: state, who said it when and where, and the sources."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import Turn
from chat.rows.explanations import unconfirmed_text
from chat.rows.thread_titles import thread_titles
from chat.turns.uses import answers_recalling, count_answers_recalling
from memory import api as memory
from memory.api import (
    Exchange,
    ExchangeView,
    Statement,
    Support,
    day_text,
    excerpt,
    exchange_url,
    format_number,
    unconfirmed_since,
)

State = Statement.State

_MAX_ANSWERS = 50


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source: the words that support the statement, and where they are from."""

    quote: str
    attribution: str
    place: str
    said_at: datetime
    url: str


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A statement that contradicts another, and could be kept instead."""

    id: uuid.UUID
    text: str
    revision: int


@dataclass(frozen=True, slots=True)
class StatementRow:
    """A statement. `state`: one of the states, or "unconfirmed"; `facts` is the second line of its label."""

    id: uuid.UUID
    text: str
    topic: str
    state: str
    label: str
    facts: str
    attribution: str
    place: str
    said_at: datetime
    sources: Sequence[SourceRow]
    sources_text: str
    conflicts: Sequence[ChoiceRow]
    answers_text: str
    revision: int
    space_name: str
    space_kind: str
    can_confirm: bool
    can_forget: bool

    @property
    def is_settled(self) -> bool:
        """Return whether nothing has to be decided, so that the actions are shown once it is opened."""
        return self.state in (State.CURRENT, State.SUPERSEDED)

    @property
    def only_conflict(self) -> ChoiceRow | None:
        """Return the statement that contradicts this one, if it is the only one."""
        return self.conflicts[0] if len(self.conflicts) == 1 else None


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer for which a statement was recalled."""

    message: str
    thread_title: str
    at: datetime
    url: str


@dataclass(frozen=True, slots=True)
class AnswersRow:
    """The newest answers for which a statement was recalled; `more_text` says how many others there are."""

    answers: Sequence[AnswerRow]
    more_text: str


@dataclass(frozen=True, slots=True)
class TopicRow:
    """Statements of one topic, or all of a list that is not by topic (an empty name)."""

    name: str
    count_text: str
    statements: Sequence[StatementRow]


def topic_rows(rows: Sequence[StatementRow], counts: Mapping[str, int]) -> list[TopicRow]:
    """Return the rows by topic; `counts` has the number of statements of each topic on all pages."""
    topics = []
    for name, group in groupby(rows, key=lambda row: row.topic):
        text = ngettext("%(count)s statement", "%(count)s statements", counts[name])
        topics.append(TopicRow(name, text % {"count": format_number(counts[name])}, list(group)))
    return topics


def statement_rows(
    statements: Sequence[Statement], person_id: uuid.UUID, *, is_administrator: bool
) -> list[StatementRow]:
    """Return the rows of statements that this person may read."""
    sources = memory.sources_of(statements)
    views = {support.exchange_id: support.exchange for supports in sources.values() for support in supports}
    locations = memory.locations_of(views)
    exchanges = {id: ExchangeView.from_row(row, locations.get(id)) for id, row in views.items()}
    titles = thread_titles(exchanges.values())
    conflicts = memory.conflicts_of(statements)
    answers = count_answers_recalling(person_id, (statement.pk for statement in statements))
    # A source can be hidden or forgotten between the two queries.
    shown = [statement for statement in statements if sources[statement.pk]]
    above = {below.pk: statement.pk for statement, below in pairwise(shown)}
    return [
        _row(
            statement,
            [_source(support, exchanges[support.exchange_id], titles) for support in sources[statement.pk]],
            [ChoiceRow(other.pk, other.exchange.user_message, other.revision) for other in conflicts[statement.pk]],
            answers.get(statement.pk, 0),
            can_confirm=_can_confirm(statement, person_id),
            can_forget=is_administrator or statement.exchange.owner_id == person_id,
            is_below_successor=statement.pk in above and above[statement.pk] == statement.superseded_by_id,
        )
        for statement in shown
    ]


def _can_confirm(statement: Statement, person_id: uuid.UUID) -> bool:
    """Return whether the person's confirmation would say something new."""
    is_theirs = statement.confirmed_by_id == person_id
    return statement.state == State.CURRENT and (not is_theirs or unconfirmed_since(statement) is not None)


def answers_row(person_id: uuid.UUID, statement_id: uuid.UUID) -> AnswersRow:
    """Return the answers in threads that this person reads for which the statement, which they read, was recalled."""
    turns = answers_recalling(person_id, statement_id)
    shown = [_answer(turn) for turn in turns[:_MAX_ANSWERS]]
    more = turns.count() - len(shown) if len(shown) == _MAX_ANSWERS else 0
    text = ngettext("%(count)s earlier answer is not shown", "%(count)s earlier answers are not shown", more)
    return AnswersRow(shown, text % {"count": format_number(more)} if more else "")


def _answer(turn: Turn) -> AnswerRow:
    return AnswerRow(excerpt(turn.message), turn.thread.title, turn.created_at, reverse("turn", args=[turn.id]))


def _row(
    statement: Statement,
    sources: Sequence[SourceRow],
    conflicts: Sequence[ChoiceRow],
    answers: int,
    *,
    can_confirm: bool,
    can_forget: bool,
    is_below_successor: bool,
) -> StatementRow:
    is_unconfirmed = statement.state == State.CURRENT and not statement.confirmed_at and len(sources) == 1
    label, facts = _state_texts(statement, len(sources), len(conflicts), is_unconfirmed=is_unconfirmed)
    if is_below_successor and statement.state == State.SUPERSEDED:
        facts = _("by the statement above")
    first = sources[0]
    attribution = first.attribution
    if statement.kind == Statement.Kind.DECISION:
        attribution = _("Decided by %(name)s") % {"name": statement.exchange.owner}
    count = ngettext("%(count)s source", "%(count)s sources", len(sources)) % {"count": len(sources)}
    show = ngettext("Show %(count)s answer", "Show %(count)s answers", answers)
    return StatementRow(
        id=statement.pk,
        text=statement.exchange.user_message,
        topic=statement.topic,
        state="unconfirmed" if is_unconfirmed else statement.state,
        label=label,
        facts=facts,
        attribution=attribution,
        place=first.place,
        said_at=statement.first_said_at,
        sources=sources,
        sources_text=count,
        conflicts=conflicts,
        answers_text=show % {"count": format_number(answers)} if answers else "",
        revision=statement.revision,
        space_name=statement.exchange.space.display_name,
        space_kind=statement.exchange.space.kind,
        can_confirm=can_confirm,
        can_forget=can_forget,
    )


def _state_texts(statement: Statement, sources: int, conflicts: int, *, is_unconfirmed: bool) -> tuple[str, str]:
    """Return the label of a statement's state, and what follows it."""
    count = ngettext("%(count)s source", "%(count)s sources", sources) % {"count": sources}
    since = day_text(statement.state_since)
    if statement.state == State.SUPERSEDED:
        successor = statement.superseded_by
        # A rejected statement is hidden, and one without a findable source.
        text = "" if successor is None or successor.exchange.is_inactive else successor.exchange.user_message
        by = _("by “%(statement)s”") % {"statement": text} if text else ""
        return _("Superseded %(day)s") % {"day": since}, by
    if statement.state == State.CONFLICTING and conflicts:
        others = ngettext("with %(count)s other, since %(day)s", "with %(count)s others, since %(day)s", conflicts)
        return _("Conflicting"), others % {"count": conflicts, "day": since}
    if is_unconfirmed:
        day = day_text(statement.exchange.created_at)
        return _("Unconfirmed"), _("extracted %(day)s, %(sources)s") % {"day": day, "sources": count}
    said, stale_since = day_text(statement.first_said_at), unconfirmed_since(statement)
    facts = _("since %(day)s, %(sources)s") % {"day": said, "sources": count}
    if statement.confirmed_by:
        facts = _("since %(day)s, confirmed by %(name)s") % {"day": said, "name": statement.confirmed_by}
    return _("Current"), f"{facts}, {unconfirmed_text(stale_since)}" if stale_since else facts


def _source(support: Support, exchange: ExchangeView, titles: Mapping[uuid.UUID, str]) -> SourceRow:
    # Titles stand within sentences.
    place = titles.get(exchange.thread_id, "").removesuffix(".") if exchange.thread_id else ""
    attribution = _("Said by %(name)s") % {"name": exchange.owner_name}
    if exchange.location:
        attribution, place = _("From a document"), exchange.source_file
    elif exchange.source == Exchange.Source.NOTE:
        attribution = _("Noted by %(name)s") % {"name": exchange.owner_name}
    return SourceRow(support.quote, attribution, place, exchange.timestamp, exchange_url(exchange))
