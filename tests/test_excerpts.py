"""Excerpts of texts: one line without Markdown syntax, with the words that were asked for marked."""

from __future__ import annotations

import pytest

from memory.lexical.marks import marked_excerpt
from memory.text import excerpt

ANSWER = """## The pump

| part | size |
|------|------|
| hose | 12 mm |

- **Drain** it before the `frost`.
> Keep the *key* behind the clock.
"""


def shown(text: str, query: str, length: int = 320) -> str:
    return "".join(f"[{part.text}]" if part.is_marked else part.text for part in marked_excerpt(text, query, length))


def test_an_excerpt_has_no_markdown_syntax():
    line = "The pump part size hose 12 mm Drain it before the frost. Keep the key behind the clock."
    assert excerpt(ANSWER) == line
    assert shown(ANSWER, "nothing of it") == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("On Sundays. **Bring cash.**", "On Sundays. Bring cash."),
        ("*Really?* **Yes!** (*so*)", "Really? Yes! (so)"),
        ("2 * 3 and a ** b", "2 * 3 and a ** b"),
        ("snake_case and 3*4", "snake_case and 3*4"),
    ],
)
def test_emphasis_is_removed_and_other_stars_stay(text, line):
    assert excerpt(text) == line


@pytest.mark.parametrize(
    "line", ["dmesg | grep usb", "if (a || b) stop();", "|x| is never negative", "| grep usb", "P(A|B)"]
)
def test_bars_that_are_no_table_stay(line):
    assert excerpt(f"```sh\n{line}\nexit\n```") == f"{line} exit"
    assert shown(f"```sh\n{line}\nexit\n```", "exit") == f"{line} [exit]"


def test_the_words_of_the_query_are_marked_without_the_syntax_around_them():
    assert shown(ANSWER, "drain key") == (
        "The pump part size hose 12 mm [Drain] it before the frost. Keep the [key] behind the clock."
    )


def test_a_marked_excerpt_begins_near_the_first_word():
    text = "- An ordinary line.\n" * 40 + "- The **heron** stands in the pond.\n" + "- Another line.\n" * 40
    part = shown(text, "heron", 120)
    assert part.startswith("… ")
    assert part.endswith(" …")
    assert "The [heron] stands in the pond." in part
    assert "-" not in part
    assert len(part) <= 120 + len("… []  …")


@pytest.mark.parametrize("filler", ["word ", "字"])
def test_a_long_line_is_cut_before_and_after_the_word(filler):
    part = shown(filler * 500 + " heron " + filler * 500, "heron", 120)
    assert part.startswith("… ")
    assert part.endswith("…")
    assert "[heron]" in part
    assert len(part) <= 120 + len("… []  …")


@pytest.mark.parametrize("text", ["-\n", "- ", "---\n", "* ", "*", "#", "`", "|", ">\n", " \n", "\t", "-|:"])
def test_no_run_of_syntax_takes_long(text):
    """With a pattern that tries such a run repeatedly, this would take hours."""
    assert len(excerpt(text * 60_000 + "x", 20_000)) <= 20_000
    assert len(shown(text * 20_000 + "x", "x")) <= 400
