"""Citations in answers as links to passages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape

from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# [3] and [1, 4], unless they are Markdown links or references.
_CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2})*)\](?![(\[])")
# A citation in rendered HTML, in which neither text nor attributes can contain a start tag.
_LINKED = re.compile(r'<a class="citation[^"]*" data-source="(\d+)"')


@dataclass(frozen=True, slots=True)
class Source:
    """A recalled passage as the source of an answer.

    `name` is that of its document, thread or author, and `at` its date; "" and None if it is not readable.
    """

    exchange_id: uuid.UUID
    name: str
    at: datetime | None
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Citations:
    """The recalled passages of a turn by their numbers; `is_quoted`: they are in the prompt, so the answer can cite them."""

    turn_id: uuid.UUID
    sources: Mapping[int, Source] = field(default_factory=dict)
    is_quoted: bool = True

    def link(self, number: int) -> str:
        """Return the link of a citation to its item on the page; a number without a passage is marked as unknown."""
        source = self.sources.get(number)
        if source is None:
            title = _("No passage has this number")
            return f'<span class="citation citation--unknown" title="{title}">[{number}]</span>'
        classes = "citation" if source.name else "citation citation--missing"
        target = item_dom_id(self.turn_id, source.exchange_id)
        return (
            f'<a class="{classes}" data-source="{number}" href="#{target}" aria-label="{escape(_label(number, source))}" '
            f'aria-expanded="false" aria-controls="{target}">{number}</a>'
        )


def item_dom_id(turn_id: uuid.UUID, exchange_id: uuid.UUID) -> str:
    """Return the id of a recalled passage on the page of its turn."""
    return f"turn-{turn_id}-r{exchange_id}"


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
    md.renderer.rules["citation"] = _render_citations  # type: ignore[attr-defined]


def _parse(state: StateInline, silent: bool) -> bool:
    citations: Citations | None = state.env.get("citations")
    has_sources = citations is not None and citations.is_quoted and citations.sources
    match = _CITED.match(state.src, state.pos) if has_sources else None
    if match is None:
        return False
    if not silent:
        state.push("citation", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _render_citations(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    citations: Citations = env["citations"]
    return "".join(citations.link(int(number)) for number in tokens[index].content.split(","))
