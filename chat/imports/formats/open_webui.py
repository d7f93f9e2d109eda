"""Open WebUI: `chat.history` is a tree, in which `currentId` is the active leaf; older chats have only a list."""

from __future__ import annotations

import re

from chat.imports.formats.branches import branch, latest_leaf
from chat.imports.formats.conversation import SYSTEM, Conversation, Notes, Role
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
    """Parse the branch of `currentId`, or else the latest branch, or else the list."""
    chat = fields_in(item.get("chat"))
    notes = Notes()
    for row in _active_branch(chat):
        _note(notes, row)
    return Conversation(
        provider=PROVIDER,
        id=name_in(item.get("id")) or name_in(chat.get("id")),
        title=text_in(item.get("title")) or text_in(chat.get("title")),
        created_at=moment_in(item.get("created_at")) or moment_in(chat.get("timestamp")),
        messages=tuple(notes.said),
        left_out=notes.left_out,
    )


def _active_branch(chat: Fields) -> list[Fields]:
    history = fields_in(chat.get("history"))
    found = fields_in(history.get("messages"))
    nodes = {text_in(id): {"id": id, **fields_in(node)} for id, node in found.items()}
    if not nodes:
        return rows_in(chat.get("messages"))
    parents = {id: name_in(node.get("parentId")) for id, node in nodes.items()}
    leaf = name_in(history.get("currentId"))
    if leaf not in nodes:
        leaf = latest_leaf(parents, {id: moment_in(node.get("timestamp")) for id, node in nodes.items()})
    return [nodes[id] for id in branch(parents, leaf)]


def _note(notes: Notes, row: Fields) -> None:
    role = _ROLES.get(text_in(row.get("role")))
    if role is None:
        notes.left_out[SYSTEM] += 1
        return
    content = row.get("content")
    parts = rows_in(content)
    said = "\n\n".join(filter(None, (text_in(part.get("text")) for part in parts))) or text_in(content)
    media = len(rows_in(row.get("files"))) + sum(not text_in(part.get("text")) for part in parts)
    if role == "assistant":
        said, folded = _without_folds(said)
        notes.left_out[SYSTEM] += folded
    at = moment_in(row.get("timestamp"))
    notes.say(name_in(row.get("id")), role, said, at, model=text_in(row.get("model")), media=media)


def _without_folds(text: str) -> tuple[str, int]:
    """Remove complete `<details>` folds from the text; return it and the number of folds."""
    kept, at = [], 0
    while (fold := _FOLD.search(text, at)) and (end := text.find(_END, fold.end())) >= 0:
        kept.append(text[at : fold.start()])
        at = end + len(_END)
    return "".join([*kept, text[at:]]), len(kept)
