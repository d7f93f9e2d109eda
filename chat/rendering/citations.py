"""Citations in answers as links to passages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.urls import reverse
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# [3] and [1, 4], unless they are Markdown links, references or definitions.
_CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2})*)\](?![(\[:])")
# A citation in rendered HTML, in which neither text nor attributes can contain a start tag.
_LINKED = re.compile(r'<a class="citation" [^>]*?data-source="(\d+)"')


@dataclass(frozen=True, slots=True)
class Source:
    """A recalled passage as the source of an answer, with its date; None if it is forgotten or not readable."""

    exchange_id: uuid.UUID
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Citations:
    """The recalled passages of a turn by their numbers; `is_quoted`: they are in the prompt, so the answer can cite them."""

    turn_id: uuid.UUID
    sources: Mapping[int, Source] = field(default_factory=dict)
    is_quoted: bool = True

    def link(self, number: int) -> str:
        """Return the link of a citation; a number without a passage is marked as unknown."""
        if number not in self.sources:
            title = _("No passage has this number")
            return f'<span class="citation citation--unknown" title="{title}">[{number}]</span>'
        url, title = reverse("citation", args=[self.turn_id, number]), _("Passage %(number)s") % {"number": number}
        return f'<a class="citation" href="{url}" title="{title}" data-source="{number}">{number}</a>'


def cited_numbers(blocks: Iterable[str]) -> list[int]:
    """Return the distinct numbers of the passages that these rendered blocks of an answer cite, in order."""
    return list(dict.fromkeys(int(number) for html in blocks for number in _LINKED.findall(html)))


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
