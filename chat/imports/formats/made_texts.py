"""Texts that a model made beside its answer: artifacts of Claude and the canvas of ChatGPT, by their ids."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial

from chat.imports.formats.values import Fields, fields_in, rows_in, text_in

CANVAS = "canvas"  # a conversation has one
# Of longer texts, an update is imported as its own words: a file with many updates would grow without bound.
_MAX_WHOLE_CHARACTERS, _MAX_REPEATED_CHARACTERS = 20_000, 5_000_000  # of one text, and of all updates
_PROSE = ("", "text/markdown", "document", "markdown")
_BACKTICKS = re.compile("`{3,}")


class MadeTexts:
    """The latest state of each made text of a conversation, so that an update is imported as the whole changed text.

    Branches of the conversation are followed one after the other: `go_back` undoes what was made since a `mark`.
    """

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, str, str]] = {}
        self._undo: list[Callable[[], object]] = []
        self._repeated = 0

    @property
    def mark(self) -> int:
        """The present state, for `go_back`."""
        return len(self._undo)

    def go_back(self, mark: int) -> None:
        """Restore the state at this mark."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def write(self, id: str, *, title: str, kind: str, text: str) -> str:
        """Store a new text; return it as Markdown, "" if it is empty. A title or kind that is "" stays as it was."""
        known = self._texts.get(id)
        known_title, known_kind, _known_text = known or ("", "", "")
        self._texts[id] = title or known_title, kind or known_kind, text
        self._undo.append(partial(self._texts.pop, id) if known is None else partial(self._texts.update, {id: known}))
        return _as_markdown(*self._texts[id])

    def replace(self, id: str, old: str, new: str) -> str:
        """Replace a part of a stored text; return the whole as Markdown, "" if there is no such part.

        If the whole is long, or was returned often, return the new part.
        """
        title, kind, text = self._texts.get(id, ("", "", ""))
        at = text.find(old) if old else -1
        if at < 0:
            return ""
        self._patch(id, at, old, new)
        # Each state of a long text with many updates would be more than the file.
        self._undo.append(partial(self._patch, id, at, new, old))
        whole = _as_markdown(*self._texts[id])
        self._repeated += len(whole)
        is_short = len(whole) <= _MAX_WHOLE_CHARACTERS and self._repeated <= _MAX_REPEATED_CHARACTERS
        return whole if is_short else _as_markdown(title, kind, new)

    def _patch(self, id: str, at: int, old: str, new: str) -> None:
        title, kind, text = self._texts[id]
        self._texts[id] = title, kind, text[:at] + new + text[at + len(old) :]


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
