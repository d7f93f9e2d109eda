"""Texts that a model made beside its answer: artifacts of Claude and the canvas of ChatGPT, by their ids."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from chat.imports.formats.values import Fields, fields_in, rows_in, text_in

CANVAS = "canvas"  # a conversation has one
# Of longer texts, an update is imported as its own words: a file with many updates would grow without bound.
_MAX_WHOLE_CHARACTERS = 20_000
_PROSE = ("", "text/markdown", "document", "markdown")
_BACKTICKS = re.compile("`{3,}")


class MadeTexts:
    """The latest state of each made text of a conversation, so that an update is imported as the whole changed text."""

    def __init__(self, texts: Mapping[str, tuple[str, str, str]] | None = None) -> None:
        self._texts = dict(texts or {})

    def copy(self) -> MadeTexts:
        """Return a copy, for another branch of the conversation."""
        return MadeTexts(self._texts)

    def write(self, id: str, *, title: str, kind: str, text: str) -> str:
        """Store a new text; return it as Markdown, "" if it is empty. A title or kind that is "" stays as it was."""
        known_title, known_kind, _known_text = self._texts.get(id, ("", "", ""))
        self._texts[id] = title or known_title, kind or known_kind, text
        return _as_markdown(*self._texts[id])

    def replace(self, id: str, old: str, new: str) -> str:
        """Replace a part of a stored text; return the whole as Markdown, "" if there is no such part.

        If the whole is long, return the new part.
        """
        title, kind, text = self._texts.get(id, ("", "", ""))
        if not old or old not in text:
            return ""
        whole = self.write(id, title=title, kind=kind, text=text.replace(old, new, 1))
        return whole if len(whole) <= _MAX_WHOLE_CHARACTERS else _as_markdown(title, kind, new)


def claude_text(block: Fields, made: MadeTexts) -> str:
    """Return the text of a tool call that makes an artifact or a file; "" for any other block."""
    call = block.get("input")
    if block.get("type") != "tool_use" or not isinstance(call, dict):
        return ""
    if block.get("name") == "create_file":
        path = text_in(call.get("path"))
        return made.write(path, title=path.rpartition("/")[2], kind="file", text=text_in(call.get("file_text")))
    if block.get("name") != "artifacts":
        return ""
    id = text_in(call.get("id"))
    if call.get("command") == "update":
        return made.replace(id, text_in(call.get("old_str")), text_in(call.get("new_str")))
    kind = text_in(call.get("language")) or text_in(call.get("type"))
    return made.write(id, title=text_in(call.get("title")), kind=kind, text=text_in(call.get("content")))


def canvas_text(recipient: str, text: str, made: MadeTexts) -> str:
    """Return the text of a call that writes or rewrites the canvas of ChatGPT; "" for any other call."""
    try:
        call = fields_in(json.loads(text))
    except (ValueError, RecursionError):
        return ""
    if recipient == "canmore.create_textdoc":
        kind = text_in(call.get("type")).removeprefix("code/")
        return made.write(CANVAS, title=text_in(call.get("name")), kind=kind, text=text_in(call.get("content")))
    updates = rows_in(call.get("updates"))
    # Other patterns are regular expressions of the model, which are not safe to run.
    if recipient == "canmore.update_textdoc" and len(updates) == 1 and updates[0].get("pattern") == ".*":
        return made.write(CANVAS, title="", kind="", text=text_in(updates[0].get("replacement")))
    return ""


def _as_markdown(title: str, kind: str, text: str) -> str:
    """Return prose as it is and anything else as a code block, below the title."""
    if not text.strip():
        return ""
    if kind not in _PROSE:
        fence = "`" * max([3, *(len(found) + 1 for found in _BACKTICKS.findall(text))])
        language = kind.rpartition("/")[2] if re.fullmatch(r"[\w/+-]{1,40}", kind) and kind != "file" else ""
        text = f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"
    heading = " ".join(title.split())
    return f"**{heading}**\n\n{text}" if heading else text
