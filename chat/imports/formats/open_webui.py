"""Open WebUI: `chat.history` is a tree, in which `currentId` is the active leaf; older chats have only a list."""

from __future__ import annotations

import re

from chat.imports.formats.branches import all_branches, current_leaf
from chat.imports.formats.conversation import FILE, LABELS, SYSTEM, Conversation, Notes, Role, TextFile
from chat.imports.formats.values import Fields, fields_in, moment_in, name_in, rows_in, text_in

PROVIDER = "Open WebUI"

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
# Reasoning and tool calls, embedded in the text of the answer.
_FOLD = re.compile('<details type="(?:reasoning|tool_calls|code_interpreter)"')
_END = "</details>"


def knows(item: Fields) -> bool:
    """Return whether the object is an Open WebUI chat."""
    chat = fields_in(item.get("chat"))
    return isinstance(chat.get("history"), dict) or isinstance(chat.get("messages"), list)


def read(item: Fields) -> Conversation:
    """Parse all branches, of which that of `currentId` or else the latest is active, or else the list."""
    chat = fields_in(item.get("chat"))
    history = fields_in(chat.get("history"))
    found = fields_in(history.get("messages"))
    nodes = {text_in(id): {"id": id, **fields_in(node)} for id, node in found.items()}
    notes, current = Notes(), -1
    if nodes:
        parents = {id: name_in(node.get("parentId")) for id, node in nodes.items()}
        times = {id: moment_in(node.get("timestamp")) for id, node in nodes.items()}
        leaf = current_leaf(parents, times, name_in(history.get("currentId")))
        said: dict[str, int] = {}
        for id, parent in all_branches(parents, times, leaf):
            said[id] = _note(notes, nodes[id], said.get(parent, -1))
        current = said.get(leaf, -1)
    else:
        for row in rows_in(chat.get("messages")):
            current = _note(notes, row, current)
    tags = item.get("tags") or fields_in(item.get("meta")).get("tags") or chat.get("tags")
    notes.left_out[LABELS] += (len(tags) if isinstance(tags, list) else 0) + bool(name_in(item.get("folder_id")))
    return Conversation(
        provider=PROVIDER,
        id=name_in(item.get("id")) or name_in(chat.get("id")),
        title=text_in(item.get("title")) or text_in(chat.get("title")),
        created_at=moment_in(item.get("created_at")) or moment_in(chat.get("timestamp")),
        messages=tuple(notes.said),
        left_out=notes.left_out,
        current=current,
        is_pinned=item.get("pinned") is True,
        is_archived=item.get("archived") is True,
    )


def _note(notes: Notes, row: Fields, parent: int) -> int:
    role = _ROLES.get(text_in(row.get("role")))
    if role is None:
        notes.left_out[SYSTEM] += 1
        return parent
    content = row.get("content")
    parts = rows_in(content)
    said = "\n\n".join(filter(None, (text_in(part.get("text")) for part in parts))) or text_in(content)
    attached = [(_file_name(file), _file_text(file)) for file in rows_in(row.get("files"))]
    files = [TextFile(name or FILE, text) for name, text in attached if text]
    if role == "assistant":
        said, folded = _without_folds(said)
        notes.left_out[SYSTEM] += folded
    return notes.say(
        name_in(row.get("id")),
        role,
        said,
        moment_in(row.get("timestamp")),
        model=text_in(row.get("model")),
        media=len(attached) - len(files) + sum(not text_in(part.get("text")) for part in parts),
        names=[name for name, text in attached if not text],
        files=files,
        parent=parent,
    )


def _file_name(file: Fields) -> str:
    return text_in(file.get("name")) or text_in(fields_in(file.get("file")).get("filename"))


def _file_text(file: Fields) -> str:
    """Return the text that Open WebUI extracted from the file; "" if the export does not have it."""
    text = text_in(fields_in(fields_in(file.get("file")).get("data")).get("content"))
    return text if text.strip() else ""


def _without_folds(text: str) -> tuple[str, int]:
    """Remove complete `<details>` folds from the text; return it and the number of folds."""
    kept, at = [], 0
    while (fold := _FOLD.search(text, at)) and (end := text.find(_END, fold.end())) >= 0:
        kept.append(text[at : fold.start()])
        at = end + len(_END)
    return "".join([*kept, text[at:]]), len(kept)
