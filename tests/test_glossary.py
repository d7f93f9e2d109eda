"""Identifiers that docs/glossary.md retires are not used in the code."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = [
    path
    for package in ("memory", "chat", "cato_web", "tests", "benchmarks")
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts
]


def retired() -> set[str]:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    return set(re.findall(r"`(\w+)`", glossary.partition("## Retired identifiers")[2]))


def names_in(path: Path) -> set[str]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME} | {path.stem}


def test_retired_identifiers_are_not_used():
    assert len(retired()) > 50
    used = {str(path.relative_to(ROOT)): names_in(path) & retired() for path in FILES}
    assert {path: names for path, names in used.items() if names} == {}
