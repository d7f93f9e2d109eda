"""Style sheets, templates and scripts: design tokens, one file per component, short lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHEETS = sorted(ROOT.glob("static/css/*.css"))
SCRIPTS = sorted(ROOT.glob("static/js/*.js"))
TEMPLATES = sorted(ROOT.glob("templates/**/*.html"))
EXPORT = ROOT / "templates" / "chat" / "export.css"
# print.css adapts components to paper; states of the whole page may precede any component.
NO_COMPONENT = {"print"}
PAGE_STATES = {"app--with-sidebar", "app--dropping"}
# Classes written by Pygments, and classes used only by scripts and tests.
PYGMENTS = re.compile(r"[a-z]{1,3}[0-9]?")
HOOKS = {"sidebar__toggle", "thread__load-more--later"}
# Classes whose last part is a value: memory-icon--{{ kind }}.
VALUES = (
    "memory-icon--",
    "line-chart__line--",
    "quick-search__group--",
    "answer__cell--",
    "statement--",
    "turn__memory--",
)

NAMED = set(
    [
        "aqua",
        "azure",
        "beige",
        "black",
        "blue",
        "brown",
        "coral",
        "crimson",
        "cyan",
        "fuchsia",
        "gold",
        "gray",
        "green",
        "grey",
        "indigo",
        "ivory",
        "khaki",
        "lavender",
        "lime",
        "linen",
        "magenta",
        "maroon",
        "navy",
        "olive",
        "orange",
        "orchid",
        "pink",
        "plum",
        "purple",
        "red",
        "salmon",
        "silver",
        "snow",
        "tan",
        "teal",
        "tomato",
        "turquoise",
        "violet",
        "wheat",
        "white",
        "yellow",
        "darkgray",
        "darkgreen",
        "darkred",
        "dimgray",
        "lightgray",
        "slategray",
        "whitesmoke",
    ]
)
COLOUR = re.compile(
    rf"#[0-9a-f]{{3,8}}\b|\b(?:rgb|rgba|hsl|hsla|hwb|lab|lch|oklab|oklch|color)\(|(?<![\w-])(?:{'|'.join(sorted(NAMED))})(?![\w-])",
    re.IGNORECASE,
)


def rules(text: str) -> Iterator[tuple[str, str]]:
    """Yield each selector of a style sheet with its declarations."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for prelude, body in re.findall(r"([^{};]+)\{([^{}]*)\}", text):
        if not prelude.strip().startswith("@") and not re.fullmatch(r"\s*(from|to|[\d.]+%)\s*", prelude):
            for selector in split_list(prelude):
                yield selector, body


def split_list(prelude: str) -> list[str]:
    """Split a selector list at its commas, but not inside parentheses."""
    parts, depth = [""], 0
    for character in prelude:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def without_conditions(selector: str) -> str:
    """Drop the arguments of :has() and :not(), which name other components as conditions."""
    while match := re.search(r":(?:has|not|nth-last-child)\(", selector):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(selector[end], 0)
            end += 1
        selector = selector[: match.start()] + selector[end:]
    return selector


def classes_of(selector: str) -> list[str]:
    return re.findall(r"\.([a-zA-Z][\w-]*)", selector)


def block_of(name: str) -> str:
    return re.split(r"__|--", name)[0]


def used_classes() -> set[str]:
    """Return every class in a template; a variable becomes a star."""
    used = set()
    attribute = re.compile(r"\b(?:class|classes|secondary)=\"((?:[^\"{]|\{\{.*?\}\}|\{%.*?%\})*)\"", re.DOTALL)
    for path in TEMPLATES:
        text = path.read_text()
        values = attribute.findall(text) + re.findall(r"block size %\}(.*?)\{% end", text)
        for value in values:
            used |= set(re.sub(r"\{%.*?%\}", " ", re.sub(r"\{\{.*?\}\}", "*", value)).split())
    return used


@pytest.mark.parametrize("path", [*SHEETS, EXPORT], ids=lambda path: path.name)
def test_style_sheets_use_colour_tokens_only(path):
    found = {COLOUR.search(body)[0] for _, body in rules(path.read_text()) if COLOUR.search(body)}

    assert bool(found) == (path.name == "colors.css")


def test_each_component_is_defined_in_one_file():
    files = defaultdict(set)
    for path in SHEETS:
        if path.stem in NO_COMPONENT:
            continue
        for selector, _ in rules(path.read_text()):
            names = [name for name in classes_of(without_conditions(selector)) if name not in PAGE_STATES]
            if names:
                files[block_of(names[0])].add(path.name)

    assert {block: names for block, names in files.items() if len(names) > 1} == {}


def test_every_class_in_a_template_is_defined_and_every_defined_class_is_used():
    defined = {name for path in SHEETS for selector, _ in rules(path.read_text()) for name in classes_of(selector)}
    used = used_classes()
    exact = {name for name in used if "*" not in name}
    code = "".join(path.read_text() for path in [*SCRIPTS, *ROOT.glob("chat/**/*.py")])

    assert exact - defined - HOOKS == set()
    unused = {name for name in defined - exact if not name.startswith(VALUES) and not PYGMENTS.fullmatch(name)}
    assert {name for name in unused if not re.search(rf"(?<![\w-]){name}(?![\w-])", code)} == set()


@pytest.mark.parametrize("kind", ["html", "css", "js"])
def test_lines_have_at_most_119_characters(kind):
    paths = {"html": TEMPLATES, "css": [*SHEETS, EXPORT], "js": SCRIPTS}[kind]
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > 119
    ]

    assert long == []


def test_no_template_tag_is_broken_across_lines():
    """Django shows such a tag as text."""
    pairs = (("{{", "}}"), ("{%", "%}"), ("{#", "#}"))
    broken = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in TEMPLATES
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if any(line.count(start) != line.count(end) for start, end in pairs)
    ]
    assert broken == []


def test_scripts_are_short_and_build_no_html():
    for path in SCRIPTS:
        text = path.read_text()
        assert len(text.splitlines()) <= 80, path.name
        assert not re.search(r"innerHTML\s*=|insertAdjacentHTML|outerHTML\s*=|document\.write", text), path.name
