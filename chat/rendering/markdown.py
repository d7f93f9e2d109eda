"""Renders a block of Markdown as safe HTML at a bounded cost."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import nh3
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chat.rendering import math
from chat.rendering.citations import Citations, cite_plugin
from chat.rendering.highlighting import highlight_code
from chat.rendering.tables import table_plugin

# Larger blocks are rendered as plain text: the worst case of the parser is not linear.
MAX_BLOCK_CHARS = 16_000  # characters
_MAX_CELLS = 5_000
_BOXES = {"[ ] ": (gettext_noop("To do"), ""), "[x] ": (gettext_noop("Done"), " checked")}
_TAGS = {
    "a", "blockquote", "br", "button", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "input",
    "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
    "wbr",
} | math.TAGS  # fmt: skip
_ATTRIBUTES = {
    "a": {"class", "href", "title", "target", "data-source", "aria-label", "aria-expanded", "aria-controls"},
    "button": {"type", "class", "data-copy"},
    "code": {"class"},
    "div": {"class", "aria-label"},
    "input": {"aria-label", "checked", "disabled"},
    "ol": {"start"},
    "p": {"class"},
    "pre": {"class"},
    "span": {"class", "title"},
    "td": {"class"},
    "th": {"class"},
} | {tag: math.ATTRIBUTES for tag in math.TAGS}
# Built once: building it takes thirty times as long as cleaning a paragraph, and each block is cleaned on its own.
_cleaner = nh3.Cleaner(
    tags=_TAGS,
    attributes=_ATTRIBUTES,
    tag_attribute_values={"input": {"type": {"checkbox"}}, "div": {"role": {"group"}, "tabindex": {"0"}}},
    link_rel="noopener noreferrer nofollow",
)


def render(text: str, citations: Citations | None = None, number: int | None = None) -> str:
    """Render a block as sanitised HTML; large blocks, and tables with many cells, as plain text.

    `number` is the number of the first list item, if it differs from the text.
    """
    if len(text) > MAX_BLOCK_CHARS or _has_many_cells(text):
        return render_plain(text)
    env = {"citations": citations}
    tokens = _md.parse(text, env)
    if number is not None and tokens and tokens[0].type == "ordered_list_open":
        tokens[0].attrSet("start", str(number))
    return _cleaner.clean(_md.renderer.render(tokens, _md.options, env)).strip()


def render_plain(text: str) -> str:
    """Render text as it is, with its line breaks."""
    return f'<pre class="answer__plain">{escape(text)}</pre>'


def render_open_code(text: str) -> str:
    """Render a code block without closing fence; its first line contains the language."""
    first, _newline, code = text.partition("\n")
    return _code_frame(first.strip("`~ \n"), escape(code))


def _has_many_cells(text: str) -> bool:
    """Return whether columns times rows is large; missing cells count, because the parser adds them."""
    lines = text.split("\n")
    return len(lines) * max(line.count("|") for line in lines) > _MAX_CELLS


def _code_frame(language: str, code_html: str) -> str:
    label = escape(language.split()[0].capitalize()) if language.split() else _("Text")
    copy = _("Copy")
    return (
        f'<div class="code-block"><div class="code-block__header"><span>{label}</span>'
        f'<button type="button" class="code-block__copy" data-copy="code">{copy}</button></div>'
        f'<pre><code class="highlight">{code_html}</code></pre></div>'
    )


def _fence(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    language = token.info.strip()
    name = language.split()[0] if language else ""
    return _code_frame(language, highlight_code(token.content, name) or escape(token.content))


def _image(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """Render an image as a link: loading it would reveal to its host who reads the answer, and when."""
    token = tokens[index]
    source, alt = escape(str(token.attrs.get("src", ""))), escape(token.content or _("image"))
    return f'<a href="{source}" target="_blank">{alt}</a>'


def _link_open(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    href = escape(str(tokens[index].attrs.get("href", "")))
    return f'<a href="{href}" target="_blank">'


def _task_list(state: StateCore) -> None:
    """Add checkboxes to list items that start with `[ ]` or `[x]`."""
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
        token.children = [box, *token.children]  # type: ignore[misc]  # not empty, as checked above


def _build_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.use(cite_plugin).use(math.math_plugin).use(table_plugin)
    parser.core.ruler.after("inline", "task_list", _task_list)
    parser.renderer.rules |= {  # type: ignore[attr-defined]
        "fence": _fence,
        "code_block": _fence,
        "image": _image,
        "link_open": _link_open,
    }
    return parser


_md = _build_parser()
