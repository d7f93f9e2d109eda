"""Renders LaTeX formulas between dollar signs or backslashed brackets as MathML."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.dollarmath.index import math_inline_dollar

# The allowed output; no element or attribute of it can link to or load anything.
TAGS = {
    "math", "menclose", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
    "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder",
    "munderover",
}  # fmt: skip
ATTRIBUTES = {
    "accent", "columnalign", "columnspacing", "depth", "display", "displaystyle", "fence", "form", "height",
    "linethickness", "lspace", "mathvariant", "maxsize", "minsize", "notation", "rowspacing", "rspace", "scriptlevel",
    "separator", "stretchy", "voffset", "width",
}  # fmt: skip
_MAX_FORMULA_CHARS = 2_000
# The maximum size of a formula or its parts in em; a line of text is some 40 em wide.
_MAX_WIDTH, _MAX_HEIGHT, _MIN_SIZE = 20.0, 5.0, -2.0
_SIZE = re.compile(
    r' (columnspacing|depth|height|linethickness|lspace|maxsize|minsize|rowspacing|rspace|voffset|width)="([^"]*)"'
)
_LENGTH = re.compile(r"([+-]?\d{0,20}\.?\d{1,20})(em|ex|mu|pt|px|pc|mm|cm|in)")
_EM = {"em": 1, "ex": 0.5, "mu": 1 / 18, "pt": 0.1, "px": 0.0625, "pc": 1, "mm": 0.25, "cm": 2.4, "in": 6}
_VERTICAL = {"depth", "height", "linethickness", "maxsize", "minsize", "rowspacing", "voffset"}
CLOSERS = {"$$": "$$", r"\[": r"\]"}
# The converter's parser raises these for invalid input, and some of its own.
_PARSER_ERRORS = (AttributeError, LookupError, RecursionError, TypeError, ValueError)


@lru_cache(maxsize=1024)
def mathml(latex: str, is_display: bool) -> str:
    """Return the formula as a `<math>` element; an invalid one as its source."""
    if len(latex) <= _MAX_FORMULA_CHARS:
        convert, errors = _load_converter()
        try:
            return _SIZE.sub(_limit_lengths, convert(latex, display="block" if is_display else "inline"))
        except errors:
            pass
    return f'<code class="answer__formula">{escape(latex)}</code>'


@cache
def _load_converter() -> tuple[Callable[..., str], tuple[type[Exception], ...]]:
    """Return the converter and its errors. Its tables take a tenth of a second, for which no start waits."""
    from latex2mathml import exceptions
    from latex2mathml.converter import convert

    # They have no common base class.
    own = (error for _, error in inspect.getmembers(exceptions, inspect.isclass) if issubclass(error, Exception))
    return convert, (*own, *_PARSER_ERRORS)


def _limit_lengths(size: re.Match[str]) -> str:
    """Limit the lengths of an attribute; remove it if a length is invalid."""
    name, lengths = size[1], []
    limit = _MAX_HEIGHT if name in _VERTICAL else _MAX_WIDTH
    for length in size[2].split():
        match = _LENGTH.fullmatch(length)
        if match is None:
            return ""
        em = float(match[1]) * _EM[match[2]]
        lengths.append(length if _MIN_SIZE <= em <= limit else f"{min(max(em, _MIN_SIZE), limit):g}em")
    return f' {name}="{" ".join(lengths)}"'


def math_plugin(md: MarkdownIt) -> None:
    """Parse inline formulas (`$x$`, `$$x$$` and their bracketed forms) and block formulas."""
    md.inline.ruler.before("escape", "math_inline", math_inline_dollar(False, False, True))
    md.inline.ruler.before("escape", "math_bracket", _parse_bracket)
    md.renderer.rules |= {  # type: ignore[attr-defined]
        "math_inline": _render_in_line,
        "math_inline_double": _render_in_line,
        "math_block": _render_block,
    }
    math_blocks(md)


def math_blocks(md: MarkdownIt) -> None:
    """Add only the rule for block formulas."""
    md.block.ruler.before(
        "fence", "math_block", _parse_block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def _parse_bracket(state: StateInline, silent: bool) -> bool:
    opener = state.src[state.pos : state.pos + 2]
    if opener not in (r"\(", r"\["):
        return False
    end = state.src.find(r"\)" if opener == r"\(" else r"\]", state.pos + 2)
    if end < 0 or not state.src[state.pos + 2 : end].strip():
        return False
    if not silent:
        kind = "math_inline" if opener == r"\(" else "math_inline_double"
        state.push(kind, "math", 0).content = state.src[state.pos + 2 : end]
    state.pos = end + 2
    return True


def _parse_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    r"""Parse a formula from a line that starts with `$$` or `\[` to the line that ends with its counterpart.

    A blank line also ends it, so that a partial answer is parsed like the complete one.
    """
    if state.is_code_block(start):
        return False
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]].strip()
    closer = CLOSERS.get(first[:2])
    if closer is None or (closer in first[2:] and not first.endswith(closer)):
        return False
    if silent:
        return True
    line = start
    is_closed = len(first) > 3 and first.endswith(closer)
    while (
        not is_closed and line + 1 < end and not state.isEmpty(line + 1) and state.sCount[line + 1] >= state.blkIndent
    ):
        line += 1
        is_closed = state.src[state.bMarks[line] : state.eMarks[line]].rstrip().endswith(closer)
    token = state.push("math_block", "math", 0)
    token.content = state.getLines(start, line + 1, state.tShift[start], False).strip()
    token.map = [start, line + 1]
    token.meta = {"is_closed": is_closed}
    state.line = line + 1
    return True


def _render_in_line(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """Render a formula in a box that scrolls if it is wider than its line: browsers do not break formulas."""
    html = mathml(tokens[index].content.strip(), tokens[index].type == "math_inline_double")
    return f'<span class="answer__inline-math">{html}</span>'


def _render_block(tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    if not token.meta["is_closed"]:
        return f'<p class="answer__typing">{escape(token.content)}</p>'
    return f'<div class="answer__math">{mathml(token.content[2:-2].strip(), True)}</div>'
