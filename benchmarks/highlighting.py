"""Find Pygments lexers with bounded cost; chat/rendering/highlighting.py lists the accepted ones.

    python -m benchmarks.highlighting [NAME ...]

Each lexer gets blocks of hostile text within the limits of what is highlighted: one or two characters repeated, in the
longest and the shortest lines, also after an unclosed comment, string or bracket. A lexer is accepted if none of them
costs more than `MAX_MS` of CPU time, about as much as the most expensive Markdown of that size. The table also shows
how the cost grew from half of the block: twice is linear, four times is quadratic.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from itertools import product
from types import FrameType

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from benchmarks.command_line import command_parser
from benchmarks.figures import table
from chat.rendering.highlighting import MAX_BLANK_LINES, MAX_CODE_CHARS, MAX_LINE_CHARS, can_highlight

MAX_MS, NOISE_MS = 100.0, 40.0
GIVE_UP_AFTER = 0.5  # CPU seconds; a lexer that needs longer for one block is rejected at once
CHARACTERS = "aA1 \n.,\"'`/\\*#<({[:-_$@%&="
PAIRED = "a1 \n.,\"'/\\*#<>({[:-_$"
OPENINGS = (
    "", '"', "'", "`", "/*", "<!--", "<", "(", "{", "[", "r'", '"""', "#", "//", "--", "$", "${", "@", "%", "&", "a",
    "a ", "a(", "a =", "a.", "a:", "<a ", "<?php ", "def ", "class ", "function ", "import ", "<<E\n", "#if 0\n", "1",
    "\\", "template<", "var a = ",
)  # fmt: skip
CANDIDATES = (
    "python", "json", "bash", "sql", "yaml", "html", "css", "javascript", "typescript", "tsx", "java", "c", "cpp",
    "csharp", "go", "rust", "php", "ruby", "kotlin", "swift", "scala", "r", "perl", "lua", "dart", "julia", "haskell",
    "elixir", "erlang", "clojure", "ocaml", "fsharp", "groovy", "powershell", "batch", "docker", "make", "cmake", "toml",
    "ini", "xml", "diff", "markdown", "console", "pycon", "pytb", "http", "nginx", "graphql", "protobuf", "scss", "less",
    "jsx", "objective-c", "matlab", "postgres", "mysql", "sqlite3", "django", "jinja", "terraform", "hcl", "tex", "nix",
    "zig", "nim", "elm", "scheme", "common-lisp", "racket", "prolog", "fortran", "pascal", "ada", "cobol", "vb.net",
    "asm", "nasm", "llvm", "glsl", "vhdl", "verilog", "awk", "tcl", "vim", "sparql", "turtle", "solidity", "gherkin",
    "properties", "crystal", "d", "rst", "text",
)  # fmt: skip


class TooSlowError(Exception):
    """One block exceeded the time limit."""


def seeds() -> Iterator[str]:
    """Yield repeated units, each optionally after an opening."""
    blank = "\n" * MAX_BLANK_LINES
    for opening, repeated in [*product(OPENINGS, CHARACTERS), *(("", a + b) for a, b in product(PAIRED, PAIRED))]:
        if "\n" not in repeated:
            yield opening + repeated * ((MAX_LINE_CHARS - len(opening)) // len(repeated)) + "\n"
        yield opening + repeated.replace("\n", blank) + "\n"


def cost(lexer: Lexer, text: str, times: int = 1) -> float:
    """Return the CPU milliseconds for tokenising `text`, the best of several tries."""
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        for _token in lexer.get_tokens(text):
            pass
        best = min(best, 1000 * (time.process_time() - began))
    return best


def judge(name: str) -> tuple[bool, float, float, str]:
    """Return whether the lexer is accepted, its maximum cost, the growth from half of the block, and the repeated unit."""
    lexer = get_lexer_by_name(name, stripnl=False)
    worst = (0.0, 1.0, "")
    for repeated in seeds():
        text = (repeated * (MAX_CODE_CHARS // len(repeated) + 1))[:MAX_CODE_CHARS]
        if not can_highlight(text):
            continue
        signal.setitimer(signal.ITIMER_VIRTUAL, GIVE_UP_AFTER)
        try:
            ms = cost(lexer, text)
            if ms < NOISE_MS:
                worst = max(worst, (ms, 1.0, repr(repeated[:12])))
                continue
            signal.setitimer(signal.ITIMER_VIRTUAL, 6 * GIVE_UP_AFTER)
            ms = cost(lexer, text, times=3)
            growth = ms / max(cost(lexer, text[: MAX_CODE_CHARS // 2], times=3), 0.001)
        except TooSlowError:
            return False, 1000 * GIVE_UP_AFTER, float("inf"), repr(repeated[:12])
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if ms > MAX_MS:
            return False, ms, growth, repr(repeated[:12])
        worst = max(worst, (ms, growth, repr(repeated[:12])))
    return True, *worst


def main() -> None:
    """Print the lexers with their most expensive blocks, accepted ones first."""
    parser = command_parser("highlighting", __doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="aliases of lexers; by default those people ask for")
    names = parser.parse_args().names or CANDIDATES

    def abort(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    signal.signal(signal.SIGVTALRM, abort)
    rows = []
    for name in names:
        is_accepted, ms, growth, repeated = judge(name)
        rows.append((not is_accepted, name, f"{ms:.0f}", f"{growth:.1f}", repeated))
        print(*rows[-1], flush=True)
    head = ("lexer", "taken", "dearest block, ms", "of half of it", "repeats")
    print()
    table(head, [(name, "no" if refused else "yes", *rest) for refused, name, *rest in sorted(rows)])


if __name__ == "__main__":
    main()
