"""Claude: a list `chat_messages`, which is a tree if messages refer to their parents."""

from __future__ import annotations

from chat.imports.formats.branches import all_branches, current_leaf
from chat.imports.formats.conversation import SYSTEM, Conversation, Notes, Role, TextFile
from chat.imports.formats.made_texts import MadeTexts, claude_text
from chat.imports.formats.values import Fields, moment_in, name_in, rows_in, text_in

PROVIDER = "Claude"

PASTED = "pasted text"  # of a paste, which has no name
_ROLES: dict[str, Role] = {"human": "user", "assistant": "assistant"}


def knows(item: Fields) -> bool:
    """Return whether the object is a Claude conversation."""
    return isinstance(item.get("chat_messages"), list)


def read(item: Fields) -> Conversation:
    """Parse all branches; the active one is that of the current leaf, or else the latest."""
    rows, model = rows_in(item["chat_messages"]), text_in(item.get("model"))
    notes, made, current = Notes(), MadeTexts(), -1
    if any(row.get("parent_message_uuid") for row in rows):
        by_id = {name_in(row.get("uuid")): row for row in rows}
        parents = {id: name_in(row.get("parent_message_uuid")) for id, row in by_id.items()}
        times = {id: moment_in(row.get("created_at")) for id, row in by_id.items()}
        leaf = current_leaf(parents, times, name_in(item.get("current_leaf_message_uuid")))
        said: dict[str, tuple[int, int]] = {}  # the index of the last message, and the mark of the made texts
        for id, parent in all_branches(parents, times, leaf):
            before, mark = said.get(parent, (-1, 0))
            made.go_back(mark)
            said[id] = _note(notes, made, by_id[id], model, before), made.mark
        current = said[leaf][0] if leaf in said else -1
    else:
        for row in rows:
            current = _note(notes, made, row, model, current)
    return Conversation(
        provider=PROVIDER,
        id=name_in(item.get("uuid")),
        title=text_in(item.get("name")),
        created_at=moment_in(item.get("created_at")),
        messages=tuple(notes.said),
        left_out=notes.left_out,
        current=current,
        is_pinned=item.get("is_starred") is True,
    )


def _note(notes: Notes, made: MadeTexts, row: Fields, model: str, parent: int) -> int:
    role = _ROLES.get(text_in(row.get("sender")))
    if role is None:
        notes.left_out[SYSTEM] += 1
        return parent
    blocks = rows_in(row.get("content"))
    texts, media = [], 0
    for block in blocks:
        # The plain `text` also contains reasoning, tool calls and tool results, so use the text blocks.
        text = text_in(block.get("text")) if block.get("type") == "text" else claude_text(block, made)
        texts.append(text)
        is_media = block.get("type") in ("image", "document")
        media += is_media
        notes.left_out[SYSTEM] += not (text or is_media or block.get("type") == "text")
    attachments = rows_in(row.get("attachments"))
    files = [
        TextFile(text_in(each.get("file_name")) or PASTED, text)
        for each in attachments
        if (text := text_in(each.get("extracted_content"))).strip()
    ]
    without_text = [each for each in attachments if not text_in(each.get("extracted_content")).strip()]
    missing = [*rows_in(row.get("files")), *without_text]
    return notes.say(
        name_in(row.get("uuid")),
        role,
        "\n\n".join(filter(None, texts)) if blocks else text_in(row.get("text")),
        moment_in(row.get("created_at")),
        model=model if role == "assistant" else "",
        media=media + len(missing),
        names=[text_in(each.get("file_name")) for each in missing],
        files=files,
        parent=parent,
    )
