"""Answers' Markdown as safe HTML, block by block, so that what is finished never changes while the rest grows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

import nh3
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from chat import math
from chat.citations import Citations, cite_plugin

# Above this a block is shown as plain text: a parser's worst cases grow faster than its input.
_LARGEST_BLOCK = 60_000
_FORMATTER = HtmlFormatter(nowrap=True)
_BOXES = {"[ ] ": (gettext_noop("To do"), ""), "[x] ": (gettext_noop("Done"), " checked")}
_TAGS = {
    "a", "blockquote", "br", "button", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "input",
    "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
} | math.TAGS  # fmt: skip
_ATTRIBUTES = {
    "a": {"class", "href", "title", "target"},
    "button": {"type", "class", "data-copy"},
    "code": {"class"},
    "div": {"class"},
    "input": {"aria-label", "checked", "disabled"},
    "ol": {"start"},
    "p": {"class"},
    "pre": {"class"},
    "span": {"class", "title"},
    "td": {"class"},
    "th": {"class"},
} | {tag: math.ATTRIBUTES for tag in math.TAGS}


def blocks_of(text: str, citations: Citations | None = None) -> list[str]:
    """The whole of an answer as one HTML string per top-level block; its numbers in brackets lead to `citations`."""
    return [render_block(block, citations) for block in _split(text)]


class GrowingAnswer:
    """An answer while it is written: feed it text, take finished blocks once, and look at the open one."""

    def __init__(self, text: str = "", citations: Citations | None = None) -> None:
        self.citations = citations
        self.has_finished = False
        self._open = ""
        self._drawn: tuple[int, str] = (0, "")
        self.feed(text)

    def feed(self, text: str) -> list[str]:
        """Add `text`; returns the HTML of the blocks that it finished."""
        self._open += text
        if "\n" not in text:
            return []
        # Only whole lines may close a block: half a line can still become something else.
        whole = self._open[: self._open.rfind("\n") + 1]
        starts = _starts(whole)
        if len(starts) < 2:
            return []
        closed, self._open = self._open[: starts[-1]], self._open[starts[-1] :]
        self._drawn = (0, "")
        self.has_finished = True
        return blocks_of(closed, self.citations)

    def close(self) -> list[str]:
        """The HTML of what is still open, now that nothing more comes."""
        rest, self._open = self._open, ""
        return blocks_of(rest, self.citations)

    def open_html(self) -> str:
        """The unfinished rest: whole lines as Markdown, drawn once each, the line being written as plain text.

        So nothing flickers between two meanings, and the cost of a look does not grow with the block. Code is not
        highlighted before its fence closes.
        """
        if not self._open.strip():
            return ""
        first, _newline, code = self._open.lstrip("\n").partition("\n")
        if first.startswith("```") and not code.rstrip().endswith("```"):
            return _block(_code_frame(first.strip("` \n"), escape(code)))
        end = self._open.rfind("\n") + 1
        if self._drawn[0] != end:
            self._drawn = (end, "".join(blocks_of(self._open[:end], self.citations)))
        line = self._open[end:]
        return self._drawn[1] + (_block(f'<p class="typing">{escape(line)}</p>') if line.strip() else "")


def render_block(text: str, citations: Citations | None = None) -> str:
    """One block's Markdown as sanitised HTML in its `<div class="block">`."""
    if len(text) > _LARGEST_BLOCK:
        return _block(f'<pre class="plain">{escape(text)}</pre>')
    return _block(
        nh3.clean(
            _md.render(text, {"citations": citations}),
            tags=_TAGS,
            attributes=_ATTRIBUTES,
            tag_attribute_values={"input": {"type": {"checkbox"}}},
            link_rel="noopener noreferrer nofollow",
        )
    )


def _split(text: str) -> list[str]:
    starts = _starts(text)
    if not starts:
        return [text] if text.strip() else []
    borders = [0, *starts[1:], len(text)]
    return [text[a:b] for a, b in pairwise(borders)]


def _starts(text: str) -> list[int]:
    """Where the top-level blocks of `text` begin, as character offsets."""
    if len(text) > 10 * _LARGEST_BLOCK:
        return [0]
    offsets = [0]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    tokens = _structure.parse(text)
    return [offsets[token.map[0]] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]


def _block(html: str) -> str:
    return f'<div class="block">{html.strip()}</div>'


def _code_frame(language: str, code_html: str) -> str:
    label = escape(language.split()[0].capitalize()) if language.split() else _("Text")
    copy = _("Copy")
    return (
        f'<div class="code"><div class="code-head"><span>{label}</span>'
        f'<button type="button" class="copy" data-copy="code">{copy}</button></div>'
        f'<pre><code class="highlight">{code_html}</code></pre></div>'
    )


def _fence(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    language = token.info.strip()
    try:
        lexer = get_lexer_by_name(language.split()[0], stripnl=False) if language else None
    except ClassNotFound:
        lexer = None
    code = highlight(token.content, lexer, _FORMATTER) if lexer else escape(token.content)
    return _code_frame(language, code)


def _image(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """An image becomes a link to it: loading it would tell its host who reads this, and when."""
    token = tokens[index]
    source, alt = escape(str(token.attrs.get("src", ""))), escape(token.content or _("image"))
    return f'<a href="{source}" target="_blank">{alt}</a>'


def _link_open(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    href = escape(str(tokens[index].attrs.get("href", "")))
    return f'<a href="{href}" target="_blank">'


def _cell(name: str) -> Any:
    def cell(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        """Alignment as a class, since no style may stand in the page."""
        align = str(tokens[index].attrs.get("style", "")).removeprefix("text-align:")
        return f'<{name} class="{align}">' if align in ("right", "center") else f"<{name}>"

    return cell


def _task_list(state: StateCore) -> None:
    """List items that begin with `[ ]` or `[x]` get a box that shows it."""
    for item, paragraph, token in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if (item.type, paragraph.type, token.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        first = token.children[0] if token.children else None
        mark = token.content[:4].lower()
        if first is None or first.type != "text" or mark not in _BOXES:
            continue
        box = Token("html_inline", "", 0)
        label, checked = _BOXES[mark]
        box.content = f'<input type="checkbox" disabled aria-label="{_(label)}"{checked}>'
        first.content = first.content[4:]
        token.children = [box, *token.children]  # type: ignore[misc]  # there are some, as just seen


def _make() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.use(cite_plugin).use(math.math_plugin)
    made.core.ruler.after("inline", "task_list", _task_list)
    made.renderer.rules |= {  # type: ignore[attr-defined]
        "fence": _fence,
        "code_block": _fence,
        "image": _image,
        "link_open": _link_open,
        "td_open": _cell("td"),
        "th_open": _cell("th"),
    }
    return made


_md = _make()
# The same block rules without reading what stands inside the blocks: enough to see where they begin.
_structure = MarkdownIt("commonmark", {"html": False}).enable(["table"]).use(math.math_blocks)
_structure.disable(["inline", "text_join"])
