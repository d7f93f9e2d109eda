"""Syntax highlighting of small code blocks, in languages whose lexers have a bounded cost.

For hostile text, many of Pygments' lexers need quadratic time or worse. `python -m benchmarks.highlighting` measures
each with hostile blocks of the maximum size, and prints the list below.
"""

from __future__ import annotations

import re

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

MAX_CODE_CHARS = 3_000  # characters
MAX_LINE_CHARS = 200
MAX_BLANK_LINES = 3  # consecutive
LEXERS = frozenset(
    (
        "bash", "sh", "shell", "zsh", "batch", "bat", "c", "c++", "cpp", "clojure", "cmake", "css", "dart", "diff", "docker",
        "dockerfile", "elixir", "erlang", "fsharp", "go", "golang", "graphql", "haskell", "hs", "html", "http", "ini",
        "javascript", "js", "json", "julia", "kotlin", "less", "lua", "make", "makefile", "nginx", "ocaml", "perl",
        "php", "powershell", "ps1", "protobuf", "pycon", "py", "python", "python3", "pytb", "r", "rb", "ruby", "rs", "rust",
        "scss", "sql", "swift", "toml", "tsx", "xml", "yaml", "yml",
    )
)  # fmt: skip
_FORMATTER = HtmlFormatter(nowrap=True)
_UNUSUAL = re.compile(rf"[^\n]{{{MAX_LINE_CHARS + 1}}}|(?:\n[ \t\r\f\v]*){{{MAX_BLANK_LINES + 2}}}")


def can_highlight(code: str) -> bool:
    """Return whether the code is within the limits, also of lines and blank lines, with which most lexers are slow."""
    return len(code) <= MAX_CODE_CHARS and not _UNUSUAL.search(code)


def highlight_code(code: str, language: str) -> str | None:
    """Return the code as HTML with a `span` for each token; None if it is not highlighted."""
    name = language.lower()
    if name not in LEXERS or not can_highlight(code):
        return None
    return str(highlight(code, get_lexer_by_name(name, stripnl=False), _FORMATTER))
