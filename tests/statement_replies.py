"""Replies of the fake endpoint to requests for statements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

DECIDES = "From now on"  # begins each source that states something
STATES = "They agreed:"  # begins each statement


def write_statements(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return a reply with one statement for each source that begins with `DECIDES`, quoting its first line."""
    prompt = "\n".join(str(message.get("content") or "") for message in messages)
    sources = re.findall(r'<passage-\w+ source="(\d+)"[^>]*>\n([^\n]+)', prompt)
    statements = [
        {
            "text": f"{STATES} {text}", "kind": "decision", "topic": "Buoys", "updates": [], "contradicts": [],
            "sources": [{"number": int(number), "quote": text}],
        }
        for number, text in sources
        if text.startswith(DECIDES)
    ]  # fmt: skip
    return json.dumps({"statements": statements, "repeated": []})
