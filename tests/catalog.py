"""Collect the texts that are marked for translation and read a .po file, without gettext's tools."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
GERMAN = ROOT / "locale" / "de" / "LC_MESSAGES" / "django.po"
# Number of leading arguments that are texts, and whether the first of them is the context.
CALLS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), (1, False)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (2, False)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), (2, True)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), (3, True)),
}
_IN_TEMPLATE = re.compile(r"""\b(_|n?gettext|pgettext)\(((?:\s*u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\s*,?)+)""")
_LINE = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[\d\])?) (".*")')
TextKey = tuple[str, str, str]


@dataclass
class Entry:
    """One text of a catalog; context and plural may be empty. `translations` has one text for each plural form."""

    context: str = ""
    text: str = ""
    plural: str = ""
    translations: dict[int, str] = field(default_factory=dict)
    is_fuzzy: bool = False

    @property
    def key(self) -> TextKey:
        return self.context, self.text, self.plural


def marked_texts() -> dict[TextKey, str]:
    """Return every marked text of code and templates, with a file that uses it."""
    found: dict[TextKey, str] = {}
    for package in ("cato_web", "chat", "memory"):
        for path in (ROOT / package).rglob("*.py"):
            found |= dict.fromkeys(_in_python(path.read_text()), str(path.relative_to(ROOT)))
    for path in (ROOT / "templates").rglob("*.html"):
        found |= dict.fromkeys(_in_template(path.read_text()), str(path.relative_to(ROOT)))
    return found


def entries() -> list[Entry]:
    """Return the entries of the German .po file, without its header."""
    found: list[Entry] = []
    for block in re.split(r"\n\s*\n", GERMAN.read_text(encoding="utf-8")):
        entry, last = Entry(), ""
        for line in block.splitlines():
            if line.startswith("#"):
                entry.is_fuzzy |= line.startswith("#,") and "fuzzy" in line
                continue
            start = _LINE.fullmatch(line)
            last, text = (start[1], start[2]) if start else (last, line)
            _append(entry, last, ast.literal_eval(text))
        if entry.text:
            found.append(entry)
    return found


def _append(entry: Entry, field_name: str, text: str) -> None:
    if field_name == "msgctxt":
        entry.context += text
    elif field_name == "msgid":
        entry.text += text
    elif field_name == "msgid_plural":
        entry.plural += text
    else:
        number = int(field_name[7]) if field_name.endswith("]") else 0
        entry.translations[number] = entry.translations.get(number, "") + text


def _in_python(source: str) -> Iterator[TextKey]:
    for node in ast.walk(ast.parse(source)):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if name in CALLS:
            count, has_context = CALLS[name]
            texts = [a.value for a in node.args[:count] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            # Texts of constants are marked where the constant is defined, so a call may get only names.
            assert len(texts) in (0, count), ast.unparse(node)
            if texts:
                yield _text_key(texts, has_context)


def _in_template(source: str) -> Iterator[TextKey]:
    for found in _IN_TEMPLATE.finditer(templatize(source)):
        texts = list(ast.literal_eval(f"[{found[2]}]"))
        yield _text_key(texts, found[1] == "pgettext")


def _text_key(texts: list[str], has_context: bool) -> TextKey:
    context = texts.pop(0) if has_context else ""
    return context, texts[0], texts[1] if len(texts) > 1 else ""
