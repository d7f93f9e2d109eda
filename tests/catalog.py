"""What the code asks to have said in another language, and what a catalog says, read without gettext's own tools."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
GERMAN = ROOT / "locale" / "de" / "LC_MESSAGES" / "django.po"
# How many of a call's first arguments are texts, and whether the first says in which context.
CALLS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), (1, False)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (2, False)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), (2, True)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), (3, True)),
}
_IN_TEMPLATE = re.compile(r"""\b(_|n?gettext|pgettext)\(((?:\s*u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*,?)+)""")
_LINE = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[\d\])?) (".*")')
Asked = tuple[str, str, str]


@dataclass
class Entry:
    """One text of a catalog: its context and plural are "" where it has none; `said` has one text, or one a number."""

    context: str = ""
    text: str = ""
    plural: str = ""
    said: dict[int, str] = field(default_factory=dict)
    is_guess: bool = False

    @property
    def asked(self) -> Asked:
        return self.context, self.text, self.plural


def asked() -> dict[Asked, str]:
    """Every text that is marked in the code and the templates, with a file that asks for it."""
    found: dict[Asked, str] = {}
    for package in ("cato_web", "chat", "memory"):
        for path in (ROOT / package).rglob("*.py"):
            found |= dict.fromkeys(_in_python(path.read_text()), str(path.relative_to(ROOT)))
    for path in (ROOT / "templates").rglob("*.html"):
        found |= dict.fromkeys(_in_template(path.read_text()), str(path.relative_to(ROOT)))
    return found


def entries(catalog: Path = GERMAN) -> list[Entry]:
    """What a .po file says, without its head."""
    found: list[Entry] = []
    for block in re.split(r"\n\s*\n", catalog.read_text(encoding="utf-8")):
        entry, last = Entry(), ""
        for line in block.splitlines():
            if line.startswith("#"):
                entry.is_guess |= line.startswith("#,") and "fuzzy" in line
                continue
            start = _LINE.fullmatch(line)
            last, text = (start[1], start[2]) if start else (last, line)
            _add(entry, last, ast.literal_eval(text))
        if entry.text:
            found.append(entry)
    return found


def _add(entry: Entry, to: str, text: str) -> None:
    if to == "msgctxt":
        entry.context += text
    elif to == "msgid":
        entry.text += text
    elif to == "msgid_plural":
        entry.plural += text
    else:
        number = int(to[7]) if to.endswith("]") else 0
        entry.said[number] = entry.said.get(number, "") + text


def _in_python(source: str) -> Iterator[Asked]:
    for node in ast.walk(ast.parse(source)):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if name in CALLS:
            count, has_context = CALLS[name]
            texts = [a.value for a in node.args[:count] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            # Names are looked up too, whose texts are marked where they stand.
            assert len(texts) in (0, count), ast.unparse(node)
            if texts:
                yield _asked(texts, has_context)


def _in_template(source: str) -> Iterator[Asked]:
    for found in _IN_TEMPLATE.finditer(templatize(source)):
        texts = list(ast.literal_eval(f"[{found[2]}]"))
        yield _asked(texts, found[1] == "pgettext")


def _asked(texts: list[str], has_context: bool) -> Asked:
    context = texts.pop(0) if has_context else ""
    return context, texts[0], texts[1] if len(texts) > 1 else ""
