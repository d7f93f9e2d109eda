"""Syntax highlighting of code in answers, for small blocks in the languages whose lexers stay cheap.

Many of Pygments' lexers need time that grows with the square of a block, or worse, for text that somebody made for it.
`python -m benchmarks.highlighting` measures each with hostile blocks of the largest size below and prints this list.
"""

from __future__ import annotations

import re

from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

LARGEST_CODE = 3_000  # characters
LONGEST_LINE = 200
MOST_BLANK_LINES = 3  # in succession
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
_UNUSUAL = re.compile(rf"[^\n]{{{LONGEST_LINE + 1}}}|(?:\n[ \t\r\f\v]*){{{MOST_BLANK_LINES + 2}}}")


def can_highlight(code: str) -> bool:
    """Whether the code is small enough, in lines and blank lines too: those are what most lexers are slow with."""
    return len(code) <= LARGEST_CODE and not _UNUSUAL.search(code)


def highlighted(code: str, language: str) -> str | None:
    """The code as HTML with a `span` for each token; None where it is shown as plain text."""
    name = language.lower()
    if name not in LEXERS or not can_highlight(code):
        return None
    return str(highlight(code, get_lexer_by_name(name, stripnl=False), _FORMATTER))
