"""Where a recalled passage comes from and why it was recalled, in sentences that are true for all readers of a thread."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from chat.rows.thread_titles import title_of
from memory.api import SIMILAR, Exchange, ExchangeView, RecalledPassage, Statement, StatementFacts, day_text

_KINDS = {
    "decision": gettext_noop("Decision"),
    "fact": gettext_noop("Fact"),
    "preference": gettext_noop("Preference"),
    "plan": gettext_noop("Plan"),
}
_STATES = {
    "current": gettext_noop("current"),
    "superseded": gettext_noop("superseded"),
    "conflicting": gettext_noop("conflicting"),
    "rejected": gettext_noop("rejected"),
}

_MAX_SENTENCES = 2


@dataclass(frozen=True, slots=True)
class SourceRow:
    """The sentence about the source of a passage, which ends with its date.

    Of a message or note: `text` for all but its author (`owner_id`), `own_text` for its author, and the title of its thread
    if it has one. Of a document: the name and the location as `text`.
    """

    text: str
    own_text: str = ""
    owner_id: uuid.UUID | None = None
    title: str = ""


def source_name(exchange: ExchangeView, titles: Mapping[uuid.UUID, str]) -> str:
    """Return the name of the exchange's document or thread; "Note" or its author's name if it has neither."""
    name = exchange.source_file or title_of(exchange, titles)
    if name:
        return name
    names = {Exchange.Source.NOTE: _("Note"), Exchange.Source.KNOWLEDGE: _("Knowledge")}
    return names.get(Exchange.Source(exchange.source), exchange.owner_name)


def passage_source(exchanges: Sequence[ExchangeView], titles: Mapping[uuid.UUID, str]) -> SourceRow | None:
    """Return the source of a passage that consists of these readable exchanges; None without any."""
    if not exchanges:
        return None
    exchange = exchanges[0]
    if exchange.source_file:
        return SourceRow(", ".join([exchange.source_file, *_locations(exchanges)]))
    title, name = title_of(exchange, titles), {"name": exchange.owner_name}
    if title:
        text, own_text = _("%(name)s said in") % name, _("You said in")
    elif exchange.thread_id:
        text, own_text = _("%(name)s said on") % name, _("You said on")
    elif exchange.source == Exchange.Source.NOTE:
        text, own_text = _("%(name)s noted on") % name, _("You noted on")
    elif exchange.source == Exchange.Source.KNOWLEDGE:
        text, own_text = _("Knowledge: last said on"), _("Knowledge: last said on")
        if exchange.statement_state == Statement.State.CONFLICTING:
            text = own_text = _("Knowledge, contradicted: last said on")
        elif exchange.statement_state == Statement.State.SUPERSEDED:
            text = own_text = _("Knowledge, superseded: last said on")
    else:
        text, own_text = _("%(name)s added this on") % name, _("You added this on")
    return SourceRow(text, own_text, exchange.owner_id, title)


def followed_numbers(passages: Sequence[RecalledPassage]) -> dict[int, int]:
    """Return, by number, the number of the passage that is the exchange right before it in the same thread."""
    messages = {p.exchange.id: p for p in passages if p.exchange and p.exchange.thread_id}
    return {
        passage.number: messages[previous_id].number
        for id, passage in messages.items()
        if (previous_id := messages[id].exchanges[0].previous_id) in messages
        and messages[previous_id].exchanges[0].thread_id == passage.exchanges[0].thread_id
    }


def explanation_text(reason: str, followed: int) -> str:
    """Return why a passage was recalled, in at most two sentences; `followed` is the passage before it, 0 for none."""
    if not followed:
        return reason
    follows = _("Follows %(number)s in the same thread") % {"number": followed}
    sentences = [] if reason == str(SIMILAR) else reason.split("; ")
    return "; ".join([*sentences, follows][:_MAX_SENTENCES])


def _locations(exchanges: Sequence[ExchangeView]) -> list[str]:
    """Return the version of a document unless it is the first, and the page, slide, sheet, heading or passage."""
    places = [exchange.location for exchange in exchanges if exchange.location]
    if not places:
        return []
    first, last = places[0], places[-1]
    version = [_("version %(number)s") % {"number": first.version_number}] if first.version_number > 1 else []
    if first.label:
        is_one = first.label == last.label or not last.label
        span = _("%(first)s to %(last)s") % {"first": first.label, "last": last.label}
        return [*version, first.label if is_one else span]
    numbers = {"first": first.index + 1, "last": last.index + 1}
    passage = _("passage %(first)s") if first.index == last.index else _("passages %(first)s to %(last)s")
    return [*version, passage % numbers]


def dates_text(times: Sequence[datetime]) -> str:
    """Return e.g. "from 9 Oct to 2 Nov", with the years if they are not the current one; "" without times."""
    if not times:
        return ""
    first, last = (day_text(t) for t in (min(times), max(times)))
    span = _("from %(first)s") if first == last else _("from %(first)s to %(last)s")
    return span % {"first": first, "last": last}


def statement_text(facts: StatementFacts) -> str:
    """Return e.g. "Decision, current, from 9 Oct to 2 Nov, 2 sources, not confirmed since 2 Nov"."""
    sources = ngettext("%(count)s source", "%(count)s sources", len(facts.sources)) % {"count": len(facts.sources)}
    said = dates_text([facts.first_said_at, facts.last_said_at])
    stale = [unconfirmed_text(facts.unconfirmed_since)] if facts.unconfirmed_since else []
    return ", ".join((_(_KINDS[facts.kind]), _(_STATES[facts.state]), said, sources, *stale))


def unconfirmed_text(since: datetime) -> str:
    """Return that a statement was neither repeated nor confirmed since then."""
    return _("not confirmed since %(day)s") % {"day": day_text(since)}
