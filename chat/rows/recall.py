"""Template rows of recalled exchanges and of the results of commands."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from chat.rows.explanations import SourceRow, explanation_text, followed_numbers, passage_source, statement_text
from chat.rows.knowledge import StatementRow
from chat.rows.thread_titles import thread_titles, title_of
from memory.api import (
    BY_DATE,
    SIMILAR,
    SUPERSESSION,
    Exchange,
    ExchangeFeedback,
    ExchangeView,
    Hit,
    RecalledPassage,
    StatementFacts,
    excerpt,
    exchange_url,
    format_similarity,
    locations_of,
    statement_facts,
    strip_inline_markdown,
)

MAX_TEXT = 2000  # characters of a passage in a panel
# A longer passage is folded; in the margin a line has some 40 characters, in a sheet more.
_UNFOLDED_LINES, _CHARS_IN_LINE = 6, 48


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """The relation of an item to others of its panel that are messages on the same subject.

    `later_number` is the number of the latest of them, 0 if it is this one, and `later_at` its date. `earlier_numbers`
    are those of the others, separated by commas, if this one is the latest; `earlier_number` is that of the only one.
    """

    later_number: int = 0
    later_at: datetime | None = None
    earlier_numbers: str = ""
    earlier_number: int = 0


@dataclass(frozen=True, slots=True)
class RecallItemRow:
    """An item of a recall panel; the fields from `feedback` on depend on the person, and are empty in shared HTML.

    So is `rendered`, its text as HTML, because most panels are never opened. `is_long`: the page folds the text.

    `explanation` is not shown as it is if `is_similar_only`, because it addresses the person who asked. `is_mentioned`: the
    text of another item names its number. `source` is None outside of recall panels. `decision` is what the person decided
    about an earlier message: "confirmed" if it is superseded, "rejected" if it is on another subject. The latest message is
    "confirmed" if it supersedes another. `citation` is the link of an earlier message's citations as this person sees it.
    `statement` is what the text belongs to if it is one, and `statement_text` says what is known of one that was searched.
    `rank` is the item's place by similarity among the `ranked` recalled ones that have one, 0 if it is the only one.
    """

    # Only an item of the web has one, by which templates tell them apart.
    address: ClassVar[str] = ""

    number: int
    exchange_id: uuid.UUID
    is_missing: bool
    is_forgotten: bool
    is_below_gate: bool
    excerpt: str
    message_excerpt: str
    answer_excerpt: str
    text: str
    is_long: bool
    author_name: str
    created_at: datetime | None
    location: str
    similarity_text: str
    is_keyword_match: bool
    bar: int
    explanation: str
    is_similar_only: bool
    source: SourceRow | None
    is_mentioned: bool
    url: str
    open_label: str
    subject: SubjectRow | None = None
    rank: int = 0
    ranked: int = 0
    rendered: str = ""
    feedback: ExchangeFeedback | None = None
    dom_id: str = ""
    feedback_url: str = ""
    forget_url: str = ""
    decision: str = ""
    supersession_url: str = ""
    citation: str = ""
    uses_url: str = ""
    statement: StatementRow | None = None
    statement_url: str = ""
    statement_text: str = ""


def exchange_row(row: Exchange, number: int) -> RecallItemRow:
    """Return the row of an exchange (loaded with its owner), without a similarity."""
    text = ExchangeView.from_row(row, locations_of([row.id]).get(row.id))
    return item_row(
        number=number, exchange=text, similarity=None, explanation="", titles=thread_titles([text]), is_hit=False
    )


def result_rows(results: Iterable[Hit]) -> list[RecallItemRow]:
    """Return the rows of search results."""
    hits = list(results)
    titles = thread_titles(hit.exchange for hit in hits)
    facts = statement_facts([hit.exchange.id for hit in hits if hit.exchange.statement_state])
    return [
        item_row(
            number=number,
            exchange=hit.exchange,
            similarity=hit.similarity,
            explanation=hit.explanation,
            titles=titles,
            is_below_gate=hit.is_below_gate,
            statement=facts.get(hit.exchange.id),
        )
        for number, hit in enumerate(hits, start=1)
    ]


def item_row(
    *,
    number: int,
    exchange: ExchangeView | None,
    similarity: float | None,
    explanation: str,
    titles: Mapping[uuid.UUID, str],
    exchange_id: uuid.UUID | None = None,
    is_below_gate: bool = False,
    is_hit: bool = True,
    is_forgotten: bool = True,
    source: SourceRow | None = None,
    is_mentioned: bool = False,
    subject: SubjectRow | None = None,
    rank: int = 0,
    ranked: int = 0,
    statement: StatementFacts | None = None,
) -> RecallItemRow:
    """Return a row; `exchange` is None if it was forgotten (`is_forgotten`) or is not readable any more."""
    text = "" if exchange is None else "\n".join(filter(None, (exchange.user_message, exchange.assistant_message)))
    is_readable = exchange is not None
    key = exchange_id or (exchange.id if exchange else uuid.UUID(int=0))
    return RecallItemRow(
        number=number,
        exchange_id=key,
        is_missing=not is_readable,
        is_forgotten=not is_readable and is_forgotten,
        is_below_gate=is_below_gate,
        excerpt=excerpt(text),
        message_excerpt=excerpt(exchange.user_message) if exchange else "",
        answer_excerpt=excerpt(exchange.assistant_message) if exchange else "",
        text=strip_inline_markdown(text[:MAX_TEXT]),
        is_long=is_folded(text[:MAX_TEXT]),
        author_name=exchange.owner_name if exchange else "",
        created_at=exchange.timestamp if exchange else None,
        location=_location(exchange, titles),
        similarity_text=format_similarity(similarity) if is_readable and similarity is not None else "",
        is_keyword_match=is_readable and is_hit and similarity is None,
        bar=round(20 * min(1.0, max(0.0, similarity or 0.0))),
        explanation=explanation if is_readable else "",
        is_similar_only=is_readable and explanation == str(SIMILAR),
        source=source,
        is_mentioned=is_mentioned,
        url=exchange_url(exchange) if exchange else reverse("exchange", args=[key]),
        open_label=_open_label(exchange),
        subject=subject if is_readable else None,
        rank=rank if ranked > 1 else 0,
        ranked=ranked,
        statement_text=statement_text(statement) if statement else "",
    )


def is_folded(text: str) -> bool:
    """Return whether a panel folds a text of this length."""
    return sum(1 + len(line) // _CHARS_IN_LINE for line in text.splitlines()) > _UNFOLDED_LINES


def recalled_rows(passages: Sequence[RecalledPassage], titles: Mapping[uuid.UUID, str]) -> list[RecallItemRow]:
    """Return the rows of a turn's recalled passages for all readers of the thread."""
    subjects = _subject_rows(passages)
    followed = followed_numbers(passages)
    similarities = sorted((p.similarity for p in passages if p.similarity is not None), reverse=True)
    mentioned = set(followed.values()) | {passage.number for passage in passages if passage.exchange_id in subjects}
    return [
        item_row(
            number=passage.number,
            exchange=replace(passage.exchange, user_message=passage.message) if passage.exchange else None,
            similarity=passage.similarity,
            explanation=explanation_text(passage.explanation, followed.get(passage.number, 0)),
            titles=titles,
            source=passage_source(passage.exchanges, titles),
            is_mentioned=passage.number in mentioned,
            exchange_id=passage.exchange_id,
            is_forgotten=passage.is_forgotten,
            is_hit=passage.strategy not in (BY_DATE, SUPERSESSION),
            subject=subjects.get(passage.exchange_id),
            rank=similarities.index(passage.similarity) + 1 if passage.similarity is not None else 0,
            ranked=len(similarities),
        )
        for passage in passages
    ]


def _subject_rows(items: Iterable[RecalledPassage]) -> dict[uuid.UUID, SubjectRow]:
    """Return the relations of readable items on the same subject."""
    readable = {item.exchange_id: item for item in items if item.exchange}
    rows: dict[uuid.UUID, SubjectRow] = {}
    earlier: dict[uuid.UUID, list[int]] = defaultdict(list)
    for item in readable.values():
        later = readable.get(item.later_id) if item.later_id else None
        if later is not None and later.exchange is not None:
            rows[item.exchange_id] = SubjectRow(later.number, later.exchange.timestamp)
            earlier[later.exchange_id].append(item.number)
    return rows | {
        id: SubjectRow(
            earlier_numbers=", ".join(map(str, sorted(numbers))),
            earlier_number=numbers[0] if len(numbers) == 1 else 0,
        )
        for id, numbers in earlier.items()
    }


def _open_label(exchange: ExchangeView | None) -> str:
    """Return the label of the link to the place of an exchange."""
    if exchange is not None and exchange.location:
        return _("Open document")
    return _("Open thread") if exchange is not None and exchange.thread_id else _("Open")


def _location(exchange: ExchangeView | None, titles: Mapping[uuid.UUID, str]) -> str:
    if exchange is None:
        return ""
    if exchange.thread_id:
        return title_of(exchange, titles)
    if exchange.location and exchange.location.label:
        return f"{exchange.source_file}, {exchange.location.label}"
    if exchange.source == Exchange.Source.KNOWLEDGE:
        return _("Knowledge")
    return exchange.source_file or pgettext("in a place", "a note")


def thread_titles_of_recalled(recalled: dict[uuid.UUID, list[RecalledPassage]]) -> dict[uuid.UUID, str]:
    """Return the thread titles of recalled exchanges."""
    return thread_titles(passage.exchange for panel in recalled.values() for passage in panel if passage.exchange)
