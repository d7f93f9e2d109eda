"""Rendering of answers: safe HTML, and a stream ends as the same page as the complete text."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

import pytest

from chat.rendering import highlighting
from chat.rendering.blocks import GrowingAnswer, render_blocks
from chat.rendering.math import mathml
from chat.rendering.open_line import readable_line

RICH = """# Title

Hello **bold** [a link](http://x.example "t")
second line
- a
- b

  more of b
1. x
2. y

| a | b |
|---|--:|
| 1 | 2 |

```python
def f(x): return "s"  # c
```
> quote
lazily continued

    indented code

Underlined
===
- [ ] to do
- [x] done

The sum $a_1 + b$ and \\(c\\):
$$
\\frac{a}{b}
+ c
$$
then \\[ d \\] in a line
\\[
e = \\sqrt{2}
\\]
> $$
> unclosed

$$
unclosed

last *line"""


@pytest.mark.parametrize("seed", range(40))
def test_a_stream_ends_as_the_complete_page_wherever_it_is_split(seed):
    pieces = random.Random(seed)
    growing, page_blocks, at = GrowingAnswer(), [], 0
    while at < len(RICH):
        size = pieces.randint(1, 12)
        page_blocks += growing.feed(RICH[at : at + size])
        growing.open_html()
        at += size
    assert page_blocks + growing.close() == render_blocks(RICH)


def test_a_page_that_joins_midway_shows_the_same_finished_blocks():
    for length in range(0, len(RICH), 7):
        complete, late = GrowingAnswer(), GrowingAnswer()
        page_blocks = [block for char in RICH[:length] for block in complete.feed(char)]
        assert late.feed(RICH[:length]) == page_blocks
        assert late.open_html() == complete.open_html()


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("<script>alert(1)</script>", "<script"),
        ("<img src=x onerror=alert(1)>", "<img"),
        ("![pixel](http://evil.example/p.png)", "<img"),
        ("[x](javascript:alert(1))", 'href="javascript'),
        ("[x](data:text/html,hi)", 'href="data'),
        ('```"><script>\nx\n```', "<script"),
        ('<div id="send" hx-post="/x">', "<div id"),
        ('[x](http://a.example "a\\" onclick=alert(1)")', 'onclick=alert(1)"'),
    ],
)
def test_an_answer_cannot_contain_active_or_external_content(text, never):
    assert never not in "".join(render_blocks(text))
    growing = GrowingAnswer()
    growing.feed(text)
    assert never not in growing.open_html()


def test_code_is_highlighted_and_labelled_also_in_an_open_fence():
    growing = GrowingAnswer()
    growing.feed("```python\ndef f():\n    return '<b>'")
    assert "<pre>" in growing.open_html()
    assert "&lt;b&gt;" in growing.open_html()
    assert "Python" in growing.open_html()
    (finished,) = growing.feed("\n```\n")
    assert '<span class="k">def</span>' in finished
    assert growing.open_html() == ""


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "*a " * 20_000,
        ">" * 5_000,
        "`" * 20_001,
        "x" * 500_000,
        "$a " * 20_000,
        "\\(" * 20_000,
        "- [ ] x\n" * 8_000,
        "$$\n" * 15_000,
        "${" + "{" * 1_900 + "}" * 1_901 + "$",
    ],
)
def test_rendering_a_hostile_answer_ends(text):
    """Only the test timeout limits this."""
    assert render_blocks(text)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("the root $x_1$ of it", "<msub><mi>x</mi><mn>1</mn></msub>"),
        (r"so \(a < b\) holds", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        (
            "Thus:\n$$\na\n+ b\n$$",
            '<div class="answer__math"><math display="block"><mrow><mi>a</mi><mo>+</mo><mi>b</mi>',
        ),
        ("\\[\n\\frac{1}{2}\n\\]", "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>"),
        (r"$x^$", '<code class="answer__formula">x^</code>'),
        ("- [x] done\n- [ ] open", '<input type="checkbox" disabled="" aria-label="Done" checked="">done'),
        ("- [ ] **now**", '<input type="checkbox" disabled="" aria-label="To do"><strong>now</strong>'),
    ],
)
def test_formulas_and_task_lists_are_rendered(text, drawn):
    assert drawn in "".join(render_blocks(text))


@pytest.mark.parametrize("text", ["It costs $5, or $10 with a frame.", "Use `$HOME` and $PATH.", "A [ ] b", "[ ] c"])
def test_text_that_resembles_a_formula_or_task_is_unchanged(text):
    html = "".join(render_blocks(text))
    assert "<math" not in html
    assert "<input" not in html


def test_an_incomplete_formula_is_plain_text():
    growing = GrowingAnswer()
    assert growing.feed("$$\n\\frac{a}{b}\n+ c\n") == []
    assert (
        growing.open_html()
        == '<div class="answer__block" dir="auto"><p class="answer__typing">$$\n\\frac{a}{b}\n+ c</p></div>'
    )
    growing.feed("$$\n")
    assert "<mfrac>" in growing.open_html()


def test_formulas_contain_no_links():
    assert "javascript" not in "".join(
        render_blocks(r"$\href{javascript:alert(1)}{x}$ $\style{x:url(http://a.example)}{y}$")
    )


# Fragments that made parsers and lexers slow, alone and in lines.
UNITS = [
    "[", "![", "*a **", "_a", "`a", "> ", "- ", "- a\n", "1. a\n", "  - a\n", "a\n", "a\n\n", "a  \n", "\\", "<a@b.c>", "[a](",
    "[a][", "$a$ ", "\\(a\\)", "$$\n", "|a|\n|-|\n", "|a", "```\n", "```\na\n```\n", "# a\n", "**a", "~~a", "[1]", "\t", "\n",
    " \n", "$\\frac{a}{b}$ ", "$" + "\\frac{a}{" * 150 + "}" * 150 + "$ ", "- [ ] x\n", "> > > a\n", "x", "&amp;", "=\n",
]  # fmt: skip
RAGGED = "|a" * 1000 + "|\n" + "|-" * 1000 + "|\n" + "a\n" * 9000


def assert_cheap(call: Callable[[], object], seconds: float) -> None:
    """Assert that the call takes no more CPU time in at least one of three tries."""
    for _ in range(3):
        began = time.process_time()
        call()
        if time.process_time() - began < seconds:
            return
    raise AssertionError(f"more than {seconds} s in each of three tries")


@pytest.mark.parametrize("unit", [*UNITS, RAGGED])
def test_the_cost_of_an_answer_is_bounded_whatever_it_contains(unit):
    """Assert CPU time at ten times the measured values.

    Without limits, 600,000 characters took from ten seconds to several minutes.
    """
    answer = (unit * 130_000)[:130_000]
    assert_cheap(lambda: render_blocks(answer), 25)


@pytest.mark.parametrize("unit", [*UNITS, RAGGED])
def test_a_flush_of_an_open_block_costs_the_same_however_long_the_answer_is(unit):
    """Assert CPU time at ten times the measured values; the cost used to grow with the block."""
    growing = GrowingAnswer((unit * 20_000)[:20_000])
    growing.segments()

    def flush() -> None:
        growing.feed(unit)
        growing.segments()
        growing.open_html()

    assert_cheap(flush, 2)


@pytest.mark.parametrize("name", sorted(highlighting.LEXERS))
@pytest.mark.parametrize("unit", ["a\n", " \n", "a.", '\\"\n', '"', "/*a\n", "(", "<", "{a", "a b(\n", "@"])
def test_highlighting_a_block_has_a_bounded_cost(name, unit):
    """benchmarks/highlighting.py measures more; only a lexer that became slow takes ten times this."""
    code = (unit * highlighting.MAX_CODE_CHARS)[: highlighting.MAX_CODE_CHARS]
    broken = "\n".join(code[at : at + 199] for at in range(0, len(code), 200))[: highlighting.MAX_CODE_CHARS]
    assert_cheap(lambda: highlighting.highlight_code(code, name), 1)
    assert_cheap(lambda: highlighting.highlight_code(broken, name), 1)


@pytest.mark.parametrize(
    ("code", "language", "is_highlighted"),
    [
        ("def f():\n    return 1\n", "python", True),
        ("x = 1\n" * 600, "python", False),
        ("x = " + "1" * 300, "python", False),
        ("x = 1\n\n\n\n\n\ny = 2\n", "python", False),
        ("int a;\n", "java", False),
        ("a", "no-such-language", False),
    ],
)
def test_only_small_blocks_with_cheap_lexers_are_highlighted(code, language, is_highlighted):
    assert (highlighting.highlight_code(code, language) is not None) == is_highlighted
    assert ("<span class" in "".join(render_blocks(f"```{language}\n{code}\n```")).split("<pre>")[1]) == is_highlighted


LONG = [
    "Before.\n\n" + "- an item of a list, and then some\n" * 600 + "\nAfter.\n",
    "".join(f"{number}. counts\n\n   more of it\n" for number in range(1, 400)),
    "| a | b |\n|---|---|\n" + "| cell | another cell |\n" * 500 + "\nAfter.\n",
    "```python\n" + "x = 1\n\n" * 2000 + "```\nAfter.\n",
    "a line\n" * 1500 + "\nAfter.\n",
    "one word " * 2000 + "\n\nAfter.\n",
    "- one\n" + "  much of one item\n" * 800 + "- two\n",
    "Short.\n\n" * 3000,
]


@pytest.mark.parametrize("text", LONG)
@pytest.mark.parametrize("seed", range(3))
def test_long_blocks_are_sent_in_segments_and_end_as_the_complete_page(text, seed):
    pieces = random.Random(seed)
    growing, page_blocks, at, largest = GrowingAnswer(), [], 0, 0
    segments: list[str] = []
    while at < len(text):
        size = pieces.randint(1, 900)
        if finished := growing.feed(text[at : at + size]):
            segments = []
        page_blocks += finished
        segments += growing.segments()
        largest = max(largest, len(growing.open_html()))
        at += size
        if pieces.random() < 0.05:  # a page loaded now shows the same
            late = GrowingAnswer()
            assert late.feed(text[:at]) == page_blocks
            assert late.segments() == segments
            assert late.open_html() == growing.open_html()
    assert page_blocks + growing.close() == render_blocks(text)
    assert largest < 40_000


def test_a_split_list_continues_its_numbers_and_a_split_table_repeats_its_header():
    numbered = render_blocks("1. a line of a list\n" * 900)
    assert len(numbered) > 2
    assert '<ol start="' in numbered[1]
    assert sum(html.count("<li>") for html in numbered) == 900
    parts = render_blocks("| a | b |\n|---|---|\n" + "| cell | another cell |\n" * 500)
    assert len(parts) > 2
    assert all("<thead>" in html for html in parts)
    assert sum(html.count("<tr>") for html in parts) == 500 + len(parts)


@pytest.mark.parametrize(
    "latex",
    [
        r"\hspace{100000em}x",
        r"\rule{100000em}{100000em}",
        r"\rule{1em}{400em}",
        r"\hspace{-60em}x",
        r"\hspace{9e9in}",
        r"\hspace{5000px}x",
        r"\rule{5000px}{1px}",
    ],
)
def test_a_formula_is_not_taller_than_a_line(latex):
    lengths = re.findall(r'="([+-]?[\d.]+)em"', mathml(latex, False))
    assert all(-2 <= float(length) <= 20 for length in lengths)
    assert not re.search(r'="[^"h]*\d{3}', mathml(latex, False))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("The **tap is beh", "The tap is beh"),
        ("The **tap** is *here*, `turn le", "The tap is here, turn le"),
        ("## Wint", "Wint"),
        ("- step on", "– step on"),
        ("> quo", "quo"),
        ("says [the pl", "says the pl"),
        ("says [the plan](https://a.exa", "says the plan"),
        ("says [the plan](https://a.example/plan) now", "says the plan now"),
        ("Behind the clock [1], and [1, 2]", "Behind the clock [1], and [1, 2]"),
        ("2*3 is 6, a * b, snake_case_name", "2*3 is 6, a * b, snake_case_name"),
        ("| Day | Lit", ""),
        ("```py", ""),
        ("**", ""),
        ("- ", ""),
    ],
)
def test_a_line_that_is_being_written_shows_no_markers(line, shown):
    assert readable_line(line) == shown


def test_the_first_row_of_a_table_waits_for_the_line_that_makes_it_one():
    answer = GrowingAnswer("Before:\n\n| Day | Litres |\n")
    assert answer.open_html() == ""
    assert "<table>" in GrowingAnswer("Before:\n\n| Day | Litres |\n|---|--:|\n").open_html()
