"""Renders a table in a region of its own, which scrolls if the table is wider than the column of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from django.utils.translation import ngettext
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

# The narrowest screens show this many characters in a line; the padding of a cell takes the width of some of them.
_LINE_CHARS, _PADDING_CHARS = 28, 4
# The first column stays in place if its longest word has no more characters than this, so that it leaves room.
_FIXED_CHARS = 16
_ALIGNED = {"right": "end", "center": "center"}


def table_plugin(md: MarkdownIt) -> None:
    """Render each table in a region, and the alignment of its cells as classes."""
    md.core.ruler.after("block", "table_region", _measure_tables)
    md.renderer.rules |= {  # type: ignore[attr-defined]
        "table_open": _render_open,
        "table_close": _render_close,
        "td_open": _cell("td"),
        "th_open": _cell("th"),
    }


def _measure_tables(state: StateCore) -> None:
    """Store with each table its number of columns, and how it scrolls if it can be wider than its line."""
    table: Token | None = None
    columns, cells = 0, list[str]()
    for token in state.tokens:
        if token.type == "table_open":
            table, columns, cells = token, 0, []
        elif token.type == "th_open":
            columns += 1
        elif token.type == "inline" and table:
            cells.append(token.content)
        elif token.type == "table_close" and table:
            table.meta = _measure(cells, columns)
            table = None


def _measure(cells: Sequence[str], columns: int) -> dict[str, int | str]:
    """Return the columns and CSS classes of a table; those of a table that cannot scroll are "".

    Each row has a cell for each column: the parser adds missing cells.
    """
    words = [
        max((len(word) for cell in cells[at::columns] for word in cell.split()), default=0) for at in range(columns)
    ]
    if sum(words) + _PADDING_CHARS * (columns - 1) <= _LINE_CHARS:
        return {"columns": columns, "classes": ""}
    classes = "answer__table"
    if columns > 1 and words[0] <= _FIXED_CHARS:
        classes += " answer__table--fixed"
        if max(map(len, cells[::columns])) <= _FIXED_CHARS:
            classes += " answer__table--line"
    return {"columns": columns, "classes": classes}


def _render_open(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """Render the region; only one that can scroll takes the focus, so that arrow keys reach all of it."""
    columns, classes = tokens[index].meta["columns"], tokens[index].meta["classes"]
    if not classes:
        return '<div class="answer__table"><table>'
    label = ngettext("Table, %(count)s column", "Table, %(count)s columns", columns) % {"count": columns}
    return f'<div class="{classes}" role="group" tabindex="0" aria-label="{escape(label)}"><table>'


def _render_close(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    return "</table></div>"


def _cell(name: str) -> Any:
    def cell(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        """Render the alignment as a class: the Content Security Policy forbids style attributes."""
        align = str(tokens[index].attrs.get("style", "")).removeprefix("text-align:")
        return f'<{name} class="answer__cell--{_ALIGNED[align]}">' if align in _ALIGNED else f"<{name}>"

    return cell
