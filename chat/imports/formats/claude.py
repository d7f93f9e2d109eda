"""Claude: a list `chat_messages`, which is a tree if messages refer to their parents."""

from __future__ import annotations

from chat.imports.formats.branches import branch, latest_leaf
from chat.imports.formats.conversation import SYSTEM, Conversation, Notes, Role
from chat.imports.formats.values import Fields, moment_in, name_in, rows_in, text_in

PROVIDER = "Claude"

_ROLES: dict[str, Role] = {"human": "user", "assistant": "assistant"}


def knows(item: Fields) -> bool:
    """Return whether the object is a Claude conversation."""
    return isinstance(item.get("chat_messages"), list)


def read(item: Fields) -> Conversation:
    """Parse the branch of the current leaf, or else the latest; without parents, all messages."""
    rows = rows_in(item["chat_messages"])
    notes = Notes()
    for row in _active_branch(item, rows):
        _note(notes, row, text_in(item.get("model")))
    return Conversation(
        provider=PROVIDER,
        id=name_in(item.get("uuid")),
        title=text_in(item.get("name")),
        created_at=moment_in(item.get("created_at")),
        messages=tuple(notes.said),
        left_out=notes.left_out,
    )


def _active_branch(item: Fields, rows: list[Fields]) -> list[Fields]:
    if not any(row.get("parent_message_uuid") for row in rows):
        return rows
    by_id = {name_in(row.get("uuid")): row for row in rows}
    parents = {id: name_in(row.get("parent_message_uuid")) for id, row in by_id.items()}
    leaf = name_in(item.get("current_leaf_message_uuid"))
    if leaf not in by_id:
        leaf = latest_leaf(parents, {id: moment_in(row.get("created_at")) for id, row in by_id.items()})
    return [by_id[id] for id in branch(parents, leaf)]


def _note(notes: Notes, row: Fields, model: str) -> None:
    role = _ROLES.get(text_in(row.get("sender")))
    if role is None:
        notes.left_out[SYSTEM] += 1
        return
    blocks = rows_in(row.get("content"))
    # The plain `text` also contains reasoning, tool calls and tool results, so use the text blocks.
    texts = [text_in(block.get("text")) for block in blocks if block.get("type") == "text"]
    notes.left_out[SYSTEM] += sum(block.get("type") not in ("text", "image", "document") for block in blocks)
    media = sum(block.get("type") in ("image", "document") for block in blocks)
    media += len(rows_in(row.get("attachments"))) + len(rows_in(row.get("files")))
    said = "\n\n".join(filter(None, texts)) if blocks else text_in(row.get("text"))
    at = moment_in(row.get("created_at"))
    notes.say(name_in(row.get("uuid")), role, said, at, model=model if role == "assistant" else "", media=media)
