"""The numbers in an answer that name what was recalled for it, as links to the passages."""

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

# [3] and [1, 4]; what is followed by an address, a reference or a definition is Markdown's own.
_CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2})*)\](?![(\[:])")


@dataclass(frozen=True, slots=True)
class Citations:
    """The passages a turn's answer may cite: `most` is the highest number there is, 0 where nothing was recalled."""

    turn_id: uuid.UUID
    most: int

    def link(self, number: int) -> str:
        """The number as a link; one that no passage has is shown as such."""
        if not 1 <= number <= self.most:
            title = _("No passage has this number")
            return f'<span class="citation citation--unknown" title="{title}">[{number}]</span>'
        url, title = reverse("cited", args=[self.turn_id, number]), _("Passage %(number)s") % {"number": number}
        return f'<a class="citation" href="{url}" title="{title}">{number}</a>'


def cited_numbers(answer: str, most: int) -> list[int]:
    """The numbers of passages, up to `most`, that the answer cites, in their order, each once."""
    numbers = (int(number) for found in _CITED.finditer(answer) for number in found[1].split(","))
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= most))


def cite_plugin(md: MarkdownIt) -> None:
    """Read numbers in brackets as citations, where the environment has `citations` with a passage at least."""
    md.inline.ruler.before("link", "citation", _read)
    md.renderer.rules["citation"] = _draw  # type: ignore[attr-defined]


def _read(state: StateInline, silent: bool) -> bool:
    citations: Citations | None = state.env.get("citations")
    found = _CITED.match(state.src, state.pos) if citations is not None and citations.most else None
    if found is None:
        return False
    if not silent:
        state.push("citation", "", 0).content = found[1]
    state.pos = found.end()
    return True


def _draw(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    citations: Citations = env["citations"]
    return "".join(citations.link(int(number)) for number in tokens[index].content.split(","))
