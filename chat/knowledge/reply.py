"""The model's reply for one cluster: parsed, and reduced to what its sources support."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from chat.knowledge.prompt import Source, letter_of
from memory import api as memory
from memory.api import MAX_STATEMENT_LENGTH, NewStatement, NewSupport, SourceText, Space, Statement

_MAX_STATEMENTS = 40
_MAX_QUOTE, _MIN_QUOTE = 500, 3
# A topic comes back in later requests, so it has no room for sentences.
_MAX_TOPIC, _MAX_TOPIC_WORDS = 40, 4


class UnusableReplyError(Exception):
    """The reply is not the JSON that was asked for."""


class Quotation(BaseModel):
    """A source by its number in the request, and words of it."""

    number: int
    quote: str


class Draft(BaseModel):
    """A statement as the model wrote it, with the letters of the known statements that it concerns."""

    text: str
    kind: Literal["decision", "fact", "preference", "plan"]
    topic: str
    sources: list[Quotation]
    updates: list[str] = []
    contradicts: list[str] = []


class Repetition(Quotation):
    """A source that says what a known statement says."""

    statement: str


class _Form(BaseModel):
    statements: list[Any]
    repeated: list[Any] = []


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the right form. Nothing in it is checked."""

    statements: list[Draft]
    repeated: list[Repetition]


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement that its sources support, and the known ones that it updates and contradicts."""

    new: NewStatement
    updates: list[Statement]
    contradicts: list[Statement]


@dataclass(frozen=True, slots=True)
class CheckedReply:
    """The parts of a reply that may be stored."""

    statements: list[CheckedStatement]
    repeated: list[tuple[Statement, NewSupport]]


def parse_reply(text: str) -> Reply:
    """Parse JSON, which can be in a code fence. Items of another form are left out.

    Raises UnusableReplyError if it is no such JSON, or if no item has the right form.
    """
    try:
        form = _Form.model_validate(json.loads(_without_fence(text.strip())))
    except (ValueError, RecursionError) as error:
        raise UnusableReplyError from error
    reply = Reply(_valid(form.statements, Draft), _valid(form.repeated, Repetition))
    if (form.statements or form.repeated) and not (reply.statements or reply.repeated):
        raise UnusableReplyError
    return reply


def _without_fence(text: str) -> str:
    """Return the text between the lines of a code fence, or the text itself without one.

    A regular expression would take cubic time for a reply that ends in a loop of line breaks.
    """
    first, _break, rest = text.partition("\n")
    return rest.removesuffix("```") if first.startswith("```") and text.endswith("```") else text


def check_reply(
    reply: Reply,
    sources: Sequence[Source],
    known: Sequence[Statement],
    topics: Sequence[str],
    *,
    space: Space,
    written_at: datetime,
) -> CheckedReply:
    """Leave out what the sources do not support, and what tells an assistant what to do. Raises EmbeddingError."""
    check = _Check(sources, known, topics, written_at)
    repeated = [pair for item in reply.repeated if (pair := check.repetition(item))]
    known_by_text = {row.exchange.user_message.casefold(): row for row in known}
    new: dict[str, CheckedStatement] = {}
    for draft in reply.statements:
        if (item := check.statement(draft)) is None:
            continue
        text = item.new.text.casefold()
        if text in known_by_text:
            repeated += [(known_by_text[text], support) for support in item.new.supports]
        else:
            new.setdefault(text, item)
    are_instructions = memory.are_instructions([item.new.text for item in new.values()], space=space)
    return CheckedReply(
        [item for item, is_one in zip(new.values(), are_instructions, strict=True) if not is_one], repeated
    )


class _Check:
    """Compares a reply with the sources and the known statements of its request."""

    def __init__(
        self, sources: Sequence[Source], known: Sequence[Statement], topics: Sequence[str], written_at: datetime
    ) -> None:
        self._sources = dict(enumerate(sources, 1))
        self._known = {letter_of(index): statement for index, statement in enumerate(known)}
        self._topics = {topic.casefold(): topic for topic in topics}
        self._written_at = written_at
        self._log_probabilities = memory.get_embedder().log_probabilities

    def statement(self, draft: Draft) -> CheckedStatement | None:
        """Return the statement if each of its sources has the quoted words, and together all that it names."""
        text, topic = _one_line(draft.text), self._topic(draft.topic)
        supports = [self._support(quotation) for quotation in draft.sources]
        valid = {support.exchange_id: support for support in supports if support}
        if not (0 < len(text) <= MAX_STATEMENT_LENGTH and topic and supports and all(supports)):
            return None
        cited = [self._sources[quotation.number].as_text for quotation in draft.sources]
        if not any(self._quotes_person(quotation) for quotation in draft.sources) or self._unsupported(text, cited):
            return None
        new = NewStatement(text=text, kind=draft.kind, topic=topic, supports=list(valid.values()))
        return CheckedStatement(new, self._named(draft.updates), self._named(draft.contradicts))

    def repetition(self, item: Repetition) -> tuple[Statement, NewSupport] | None:
        """Return the known statement with its new source, if its message alone has all that the statement names."""
        statement, support = self._known.get(item.statement), self._support(item)
        if statement is None or support is None or not self._quotes_person(item):
            return None
        if self._unsupported(statement.exchange.user_message, [self._sources[item.number].message_text]):
            return None
        return statement, support

    def _support(self, quotation: Quotation) -> NewSupport | None:
        """Return the words of the source, as they are in its text, if it has them."""
        source = self._sources.get(quotation.number)
        if source is None or len(quotation.quote.strip()) < _MIN_QUOTE:
            return None
        exchange = source.exchange
        found = _find(quotation.quote, exchange.user_message) or _find(quotation.quote, exchange.assistant_message)
        return NewSupport(exchange.pk, found[:_MAX_QUOTE], exchange.version) if found else None

    def _quotes_person(self, quotation: Quotation) -> bool:
        """Return whether the words are of a message or document: an answer alone is what a model said."""
        return bool(_find(quotation.quote, self._sources[quotation.number].exchange.user_message))

    def _unsupported(self, text: str, sources: Sequence[SourceText]) -> str:
        return memory.unsupported_part(text, sources, self._log_probabilities, written_at=self._written_at)

    def _topic(self, text: str) -> str:
        topic = " ".join(_one_line(text).split()[:_MAX_TOPIC_WORDS])[:_MAX_TOPIC].rstrip()
        return self._topics.get(topic.casefold(), topic)

    def _named(self, letters: Sequence[str]) -> list[Statement]:
        return [self._known[letter] for letter in dict.fromkeys(letters) if letter in self._known]


M = TypeVar("M", bound=BaseModel)


def _valid(items: Sequence[Any], form: type[M]) -> list[M]:
    found = []
    for item in items[:_MAX_STATEMENTS]:
        try:
            found.append(form.model_validate(item))
        except ValidationError:
            continue
    return found


def _one_line(text: str) -> str:
    return " ".join(memory.without_bidi_controls(memory.clean_text(text)).split())


def _find(quote: str, text: str) -> str:
    """Return the words of the text that are the quotation but for white space, or ""."""
    words = r"\s+".join(map(re.escape, quote.split()))
    found = re.search(words, text) if words else None
    return found[0] if found else ""
