"""Citations in answers as links to passages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# [3] and [1, 4], unless they are Markdown links, references or definitions.
_CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2})*)\](?![(\[:])")


@dataclass(frozen=True, slots=True)
class Citations:
    """The passages that a turn's answer can cite: those numbered from 1 to `count`."""

    turn_id: uuid.UUID
    count: int

    def link(self, number: int) -> str:
        """Return the link of a citation; a number without a passage is marked as unknown."""
        if not 1 <= number <= self.count:
            title = _("No passage has this number")
            return f'<span class="citation citation--unknown" title="{title}">[{number}]</span>'
        url, title = reverse("citation", args=[self.turn_id, number]), _("Passage %(number)s") % {"number": number}
        return f'<a class="citation" href="{url}" title="{title}">{number}</a>'


def cited_numbers(answer: str, count: int) -> list[int]:
    """Return the distinct numbers from 1 to `count` that the answer cites, in order."""
    numbers = (int(number) for match in _CITED.finditer(answer) for number in match[1].split(","))
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= count))


def cite_plugin(md: MarkdownIt) -> None:
    """Parse numbers in brackets as citations, if the environment has `citations` with passages."""
    md.inline.ruler.before("link", "citation", _parse)
    md.renderer.rules["citation"] = _render_citations  # type: ignore[attr-defined]


def _parse(state: StateInline, silent: bool) -> bool:
    citations: Citations | None = state.env.get("citations")
    match = _CITED.match(state.src, state.pos) if citations is not None and citations.count else None
    if match is None:
        return False
    if not silent:
        state.push("citation", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _render_citations(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    citations: Citations = env["citations"]
    return "".join(citations.link(int(number)) for number in tokens[index].content.split(","))
