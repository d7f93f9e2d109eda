"""Answers are safe, and what streams in pieces ends as the same page."""

from __future__ import annotations

import random

import pytest

from chat.markup import GrowingAnswer, blocks_of

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
def test_however_it_is_cut_the_stream_ends_as_the_page(seed):
    pieces = random.Random(seed)
    growing, shown, at = GrowingAnswer(), [], 0
    while at < len(RICH):
        size = pieces.randint(1, 12)
        shown += growing.feed(RICH[at : at + size])
        growing.open_html()
        at += size
    assert shown + growing.close() == blocks_of(RICH)


def test_a_page_that_comes_midway_shows_the_same_finished_blocks():
    for length in range(0, len(RICH), 7):
        whole, late = GrowingAnswer(), GrowingAnswer()
        shown = [block for char in RICH[:length] for block in whole.feed(char)]
        assert late.feed(RICH[:length]) == shown
        assert late.open_html() == whole.open_html()


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
def test_nothing_in_an_answer_acts_or_loads(text, never):
    assert never not in "".join(blocks_of(text))
    growing = GrowingAnswer()
    growing.feed(text)
    assert never not in growing.open_html()


def test_code_is_highlighted_and_named_and_an_open_fence_is_shown_as_code():
    growing = GrowingAnswer()
    growing.feed("```python\ndef f():\n    return '<b>'")
    assert "<pre>" in growing.open_html()
    assert "&lt;b&gt;" in growing.open_html()
    assert "Python" in growing.open_html()
    growing.feed("\n```\n")
    assert '<span class="k">def</span>' in growing.open_html()


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
def test_a_hostile_answer_ends(text):
    """Bounded by count, not by clock: the test runner's own time-out is the judge."""
    assert blocks_of(text)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("the root $x_1$ of it", "<msub><mi>x</mi><mn>1</mn></msub>"),
        (r"so \(a < b\) holds", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        ("Thus:\n$$\na\n+ b\n$$", '<div class="math"><math display="block"><mrow><mi>a</mi><mo>+</mo><mi>b</mi>'),
        ("\\[\n\\frac{1}{2}\n\\]", "<mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac>"),
        (r"$x^$", '<code class="formula">x^</code>'),
        ("- [x] done\n- [ ] open", '<input type="checkbox" disabled="" aria-label="Done" checked="">done'),
        ("- [ ] **now**", '<input type="checkbox" disabled="" aria-label="To do"><strong>now</strong>'),
    ],
)
def test_formulas_and_task_lists_are_drawn(text, drawn):
    assert drawn in "".join(blocks_of(text))


@pytest.mark.parametrize("text", ["It costs $5, or $10 with a frame.", "Use `$HOME` and $PATH.", "A [ ] b", "[ ] c"])
def test_what_only_looks_like_a_formula_or_a_task_stays_text(text):
    html = "".join(blocks_of(text))
    assert "<math" not in html
    assert "<input" not in html


def test_a_formula_that_is_still_written_is_plain_text_until_it_closes():
    growing = GrowingAnswer()
    assert growing.feed("$$\n\\frac{a}{b}\n+ c\n") == []
    assert growing.open_html() == '<div class="block"><p class="typing">$$\n\\frac{a}{b}\n+ c</p></div>'
    growing.feed("$$\n")
    assert "<mfrac>" in growing.open_html()


def test_no_formula_leads_anywhere():
    assert "javascript" not in "".join(
        blocks_of(r"$\href{javascript:alert(1)}{x}$ $\style{x:url(http://a.example)}{y}$")
    )
