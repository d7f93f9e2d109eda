"""Citations in answers as links to passages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from itertools import zip_longest

from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from memory.api import day_text

# [3] and [1, 4], also in a row, unless they are Markdown links or references.
_CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2})*)\](?!\(|\[(?!\d{1,2}[\],]))")
# Closing punctuation after a citation, which belongs to its line.
_PUNCTUATION = re.compile(r"[^\w\s([{<\"'«‹„“‚‘]{1,4}")
# The maximum number of citations, and of punctuation marks before them, that stay in one line with a word.
_MAX_JOINED = 4
_OPEN = '<span class="citation__word">'
# A citation in rendered HTML, in which neither text nor attributes can contain a start tag.
_LINKED = re.compile(r'<a class="citation[^"]*" data-source="(\d+)"')


@dataclass(frozen=True, slots=True)
class Source:
    """A recalled passage, or a page of the web, as the source of an answer.

    `item_id` is the id of the passage's exchange or `WebSource.item_id`. `name` is that of its document, thread, author or
    page, and `at` its date; "" and None if it is not readable.
    """

    item_id: uuid.UUID | str
    name: str
    at: datetime | None
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Citations:
    """The sources of a turn by their numbers; `is_quoted`: they are in the prompt, so the answer can cite them."""

    turn_id: uuid.UUID
    sources: Mapping[int, Source] = field(default_factory=dict)
    is_quoted: bool = True

    def link(self, number: int, superseded_at: datetime | None = None) -> str:
        """Return the link of a citation to its item on the page; a number without a passage is marked as unknown.

        `superseded_at` is the time of the message that supersedes the passage, for a person who decided that it does.
        """
        source = self.sources.get(number)
        if source is None:
            title = _("No passage has this number")
            return f'<span class="citation citation--unknown" title="{title}">[{number}]</span>'
        classes = "citation" if source.name else "citation citation--missing"
        label = _label(number, source)
        if superseded_at is not None:
            classes = "citation citation--superseded"
            label = _("Source %(number)s, superseded %(date)s") % {"number": number, "date": day_text(superseded_at)}
        target = item_dom_id(self.turn_id, source.item_id)
        return (
            f'<a class="{classes}" data-source="{number}" href="#{target}" aria-label="{escape(label)}" '
            f'aria-expanded="false" aria-controls="{target}">{number}</a>'
        )


def item_dom_id(turn_id: uuid.UUID, item_id: uuid.UUID | str) -> str:
    """Return the id of a source on the page of its turn."""
    return f"turn-{turn_id}-r{item_id}"


def _label(number: int, source: Source) -> str:
    if source.name:
        return _("Source %(number)s: %(name)s") % {"number": number, "name": source.name}
    if source.is_forgotten:
        return _("Source %(number)s, forgotten") % {"number": number}
    return _("Source %(number)s, no longer available in this thread") % {"number": number}


def cited_numbers(blocks: Iterable[str]) -> list[int]:
    """Return the distinct numbers of the passages that these rendered blocks of an answer cite, in order."""
    return list(dict.fromkeys(int(number) for html in blocks for number in _LINKED.findall(html)))


def numbers_in_text(answer: str) -> set[int]:
    """Return the numbers in brackets in the text of an answer, without rendering it: in code, they are no citations."""
    return {int(number) for match in _CITED.finditer(answer) for number in match[1].split(",")}


def cite_plugin(md: MarkdownIt) -> None:
    """Parse numbers in brackets as citations, if the environment has `citations` with passages."""
    md.inline.ruler.before("link", "citation", _parse)
    md.core.ruler.push("citation_word", _join_citations)
    md.renderer.rules["citation"] = _render_citation  # type: ignore[attr-defined]


def _parse(state: StateInline, silent: bool) -> bool:
    citations: Citations | None = state.env.get("citations")
    has_sources = citations is not None and citations.is_quoted and citations.sources
    match = _CITED.match(state.src, state.pos) if has_sources else None
    if match is None:
        return False
    if not silent:
        for number in match[1].split(","):
            state.push("citation", "", 0).content = number.strip()
    state.pos = match.end()
    return True


def _join_citations(state: StateCore) -> None:
    """Keep citations in one line with the end of the word before them and the punctuation after them."""
    for block in state.tokens:
        if block.children and any(token.type == "citation" for token in block.children):
            block.children = _join(block.children)


def _join(tokens: Sequence[Token]) -> list[Token]:
    joined: list[Token] = []
    count = 0  # citations in the open span
    for token, following in zip_longest(tokens, tokens[1:]):
        is_space = token.type == "softbreak" or (token.type == "text" and not token.content.strip())
        if token.type == "citation":
            if count == _MAX_JOINED:
                joined.append(_html("</span><wbr>"))
                count = 0
            if count == 0:
                joined[-1:] = _split_before(joined[-1]) if joined else [_html(_OPEN)]
            joined.append(token)
            count += 1
        elif count and is_space and following and following.type == "citation":
            joined.append(token)
        elif count:
            joined += _split_after(token)
            count = 0
        else:
            joined.append(token)
    return [*joined, _html("</span>")] if count else joined


def _split_before(token: Token) -> list[Token]:
    """Open the span before the last character of a word, the punctuation and the space; without a text, after it."""
    if token.type == "softbreak":
        return [_html(_OPEN), token]
    if token.type != "text":
        return [token, _html(_OPEN)]
    word = token.content.rstrip()
    at = len(word)
    while at and len(word) - at < _MAX_JOINED and not word[at - 1].isalnum() and not word[at - 1].isspace():
        at -= 1
    if at and word[at - 1].isalnum():
        at -= 1
    return [_text(token.content[:at]), _html(_OPEN), _text(token.content[at:])]


def _split_after(token: Token) -> list[Token]:
    """Close the span after the punctuation with which the text begins."""
    match = _PUNCTUATION.match(token.content) if token.type == "text" else None
    if match is None:
        return [_html("</span>"), token]
    return [_text(match[0]), _html("</span>"), _text(token.content[match.end() :])]


def _html(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _render_citation(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    citations: Citations = env["citations"]
    return citations.link(int(tokens[index].content))
