"""Extract web pages: visible text with headings, without navigation; hidden text is stored separately."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder, collapse_whitespace
from memory.documents.extraction.encoding import declared_in, decode
from memory.documents.extraction.html_tables import Table
from memory.documents.extraction.html_visibility import Look, StyleSheet
from memory.documents.extraction.result import ExtractionLimits

_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
_DROPPED = frozenset(
    ["script", "style", "noscript", "template", "nav", "iframe", "object", "svg", "canvas", "audio", "video", "select"]
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(_HEADINGS) | {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li",
    "main", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
}  # fmt: skip
# Open elements that an opening tag closes implicitly.
_CELL = frozenset({"td", "th", "p", "li"})
_CLOSES = {
    "li": frozenset({"li", "p"}), "dt": frozenset({"dt", "dd", "p"}), "dd": frozenset({"dt", "dd", "p"}),
    "td": _CELL, "th": _CELL, "tr": _CELL | {"tr"}, "tbody": _CELL | {"tr", "thead", "tbody"},
}  # fmt: skip
_P = frozenset({"p"})
_HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\n\r\f]+")


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add the text of the page, with its headings marked."""
    data = file.read()
    builder.title = add_page(decode(data, declared=declared_in(data)), builder) or builder.title


def add_page(html: str, builder: TextBuilder) -> str:
    """Add the text of `html`; return the page's title, or its first heading, or ""."""
    page = _Page(builder)
    page.feed(html)
    page.close()
    page.finish()
    return collapse_whitespace(page.title) or page.first_heading


class _Page(HTMLParser):
    """Parse the tags with a stack of open elements, and flush a block of text at each block border."""

    def __init__(self, builder: TextBuilder) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.first_heading = ""
        self._builder = builder
        self._open: list[str] = []
        self._counts: Counter[str] = Counter()
        # Number of open tags when a dropped element began; 0 outside of one.
        self._dropped_at = 0
        self._words: list[str] = []
        self._bullet = False
        self._after_item = False
        self._tables: list[Table] = []
        # Look of each open tag, rules of style elements, and hidden text.
        self._looks: list[Look] = [Look()]
        self._sheet = StyleSheet()
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        closes = _CLOSES.get(tag, _P if tag in _BLOCKS else frozenset())
        while self._open and self._open[-1] in closes:
            self._pop()
        if "title" in self._counts:
            self._pop_to("title")
        if tag not in _VOID:
            self._open.append(tag)
            self._counts[tag] += 1
            self._looks.append(self._looks[-1].of_child(self._sheet.declared_for(tag, attrs)))
        if self._dropped_at:
            return
        if tag in _DROPPED or _is_hidden(attrs):
            self._dropped_at = len(self._open) if tag not in _VOID else 0
        elif tag == "br":
            self._words.append("\n")
        elif tag in _BLOCKS:
            self._flush()
            self._enter(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._counts:
            self._pop_to(tag)

    def handle_data(self, data: str) -> None:
        if self._dropped_at:
            if self._open[-1] == "style":
                self._sheet.add(data)
            return
        if "title" in self._counts:
            self.title += data
        elif self._looks[-1].is_hidden:
            self._hidden.append(_SPACES.sub(" ", data))
        else:
            self._words.append(data if "pre" in self._counts else _SPACES.sub(" ", data))

    def finish(self) -> None:
        """Flush the open elements."""
        while self._open:
            self._pop()
        self._flush()

    def _enter(self, tag: str) -> None:
        if tag == "li":
            self._bullet = True
        elif tag == "table":
            if self._tables:
                self._tables[-1].become_layout()
            self._tables.append(Table(self._builder))
        elif tag in _HEADINGS and self._tables:
            self._tables[-1].become_layout()
        elif tag == "tr" and self._tables:
            self._tables[-1].begin_row()
        elif tag in ("td", "th") and self._tables:
            self._tables[-1].begin_cell(is_name=tag == "th")

    def _pop_to(self, tag: str) -> None:
        while self._pop() != tag:
            pass

    def _pop(self) -> str:
        if not self._dropped_at and self._open[-1] in _BLOCKS:
            self._flush()
        tag = self._open.pop()
        self._looks.pop()
        self._counts[tag] -= 1
        if not self._counts[tag]:
            del self._counts[tag]
        if self._dropped_at:
            self._dropped_at = self._dropped_at if len(self._open) >= self._dropped_at else 0
        elif self._tables and tag in ("td", "th"):
            self._tables[-1].end_cell()
        elif self._tables and tag == "table":
            self._tables.pop().finish()
        elif tag == "li":
            self._bullet = False
        return tag

    def _flush(self) -> None:
        """Add the text since the last border to its cell, or as a block, heading or item."""
        raw, hidden = "".join(self._words), "".join(self._hidden)
        self._words.clear()
        self._hidden.clear()
        self._builder.conceal(hidden)
        in_pre = "pre" in self._counts
        text = raw.strip("\n") if in_pre else re.sub(r" *\n *", "\n", re.sub(r"  +", " ", raw)).strip()
        if not text.strip():
            return
        if self._tables and self._tables[-1].take(text):
            return
        level = next((_HEADINGS[tag] for tag in reversed(self._open[-4:]) if tag in _HEADINGS), 0)
        if level:
            self.first_heading = self.first_heading or collapse_whitespace(text)
            self._builder.heading(level, text)
            text = collapse_whitespace(text)
        if self._bullet:
            self._builder.block("- " + text, gap="\n" if self._after_item else "\n\n")
        else:
            self._builder.block(text)
        self._after_item, self._bullet = self._bullet, False


def _is_hidden(attrs: list[tuple[str, str | None]]) -> bool:
    return any(name == "hidden" or (name == "style" and _HIDING.search(value or "")) for name, value in attrs)
