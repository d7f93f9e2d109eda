"""ChatGPT: a tree of nodes under `mapping`, in which `current_node` is the leaf of the active branch."""

from __future__ import annotations

import re

from chat.imports.formats.branches import branch, latest_leaf
from chat.imports.formats.conversation import SYSTEM, Conversation, Notes, Role
from chat.imports.formats.values import Fields, fields_in, moment_in, name_in, text_in

PROVIDER = "ChatGPT"

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_SPOKEN = {"text", "multimodal_text"}
# References and entities, between characters of the private use area.
_NAME = re.compile('\ue200entity\ue202\\["[^"]{0,100}", ?"([^"]{0,300})"[^\ue200\ue201]*\ue201')
_MARK = re.compile(" ?\ue200[^\ue200\ue201]*\ue201")


def knows(item: Fields) -> bool:
    """Return whether the object is a ChatGPT conversation."""
    return isinstance(item.get("mapping"), dict)


def read(item: Fields) -> Conversation:
    """Parse the branch of `current_node`, or else the latest; messages hidden in ChatGPT are left out."""
    nodes = {text_in(id): fields_in(node) for id, node in item["mapping"].items()}
    messages = {id: fields_in(node.get("message")) for id, node in nodes.items()}
    parents = {id: name_in(node.get("parent")) for id, node in nodes.items()}
    leaf = name_in(item.get("current_node"))
    if leaf not in nodes:
        leaf = latest_leaf(parents, {id: moment_in(messages[id].get("create_time")) for id in nodes})
    notes = Notes()
    for id in branch(parents, leaf):
        if messages[id]:
            _note(notes, id, messages[id])
    return Conversation(
        provider=PROVIDER,
        id=name_in(item.get("conversation_id")) or name_in(item.get("id")),
        title=text_in(item.get("title")),
        created_at=moment_in(item.get("create_time")),
        messages=tuple(notes.said),
        left_out=notes.left_out,
        is_remembered=item.get("is_do_not_remember") is not True,
    )


def _note(notes: Notes, id: str, message: Fields) -> None:
    content, about = fields_in(message.get("content")), fields_in(message.get("metadata"))
    role = _ROLES.get(text_in(fields_in(message.get("author")).get("role")))
    is_hidden = about.get("is_visually_hidden_from_conversation") is True
    is_for_a_tool = text_in(message.get("recipient")) not in ("", "all")
    if role is None or is_hidden or is_for_a_tool or text_in(content.get("content_type")) not in _SPOKEN:
        notes.left_out[SYSTEM] += 1
        return
    found = content.get("parts")
    parts = found if isinstance(found, list) else []
    # A part is a text or an object: speech has a transcript in it, images and other audio have no text.
    texts = [text_in(part) or text_in(fields_in(part).get("text")) for part in parts]
    media = sum(isinstance(part, dict) and not text for part, text in zip(parts, texts, strict=True))
    said = _MARK.sub("", _NAME.sub(r"\1", "\n\n".join(filter(None, texts))))
    model = text_in(about.get("model_slug"))
    notes.say(id, role, said, moment_in(message.get("create_time")), model=model, media=media)
