"""ChatGPT: a tree of nodes under `mapping`, in which `current_node` is the leaf of the active branch."""

from __future__ import annotations

import re

from chat.imports.formats.branches import all_branches, current_leaf
from chat.imports.formats.conversation import SYSTEM, Conversation, Notes, Picture, Role
from chat.imports.formats.made_texts import MadeTexts, canvas_text
from chat.imports.formats.values import Fields, fields_in, moment_in, name_in, rows_in, text_in

PROVIDER = "ChatGPT"

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_SPOKEN = ("text", "multimodal_text")
_PICTURE = "image_asset_pointer"
# References and entities, between characters of the private use area.
_NAME = re.compile('\ue200entity\ue202\\["[^"]{0,100}", ?"([^"]{0,300})"[^\ue200\ue201]*\ue201')
_MARK = re.compile(" ?\ue200[^\ue200\ue201]*\ue201")


def knows(item: Fields) -> bool:
    """Return whether the object is a ChatGPT conversation."""
    return isinstance(item.get("mapping"), dict)


def read(item: Fields) -> Conversation:
    """Parse all branches; the active one is that of `current_node`, or else the latest.

    Messages hidden in ChatGPT are left out, except for the person's custom instructions.
    """
    nodes = {text_in(id): fields_in(node) for id, node in item["mapping"].items()}
    messages = {id: fields_in(node.get("message")) for id, node in nodes.items()}
    parents = {id: name_in(node.get("parent")) for id, node in nodes.items()}
    times = {id: moment_in(messages[id].get("create_time")) for id in nodes}
    leaf = current_leaf(parents, times, name_in(item.get("current_node")))
    notes, made = Notes(), MadeTexts()
    said: dict[str, tuple[int, int]] = {}  # the index of the last message, and the mark of the made texts
    for id, parent in all_branches(parents, times, leaf):
        before, mark = said.get(parent, (-1, 0))
        made.go_back(mark)
        said[id] = _note(notes, made, id, messages[id], before) if messages[id] else before, made.mark
    return Conversation(
        provider=PROVIDER,
        id=name_in(item.get("conversation_id")) or name_in(item.get("id")),
        title=text_in(item.get("title")),
        created_at=moment_in(item.get("create_time")),
        messages=tuple(notes.said),
        left_out=notes.left_out,
        is_remembered=item.get("is_do_not_remember") is not True,
        current=said[leaf][0] if leaf in said else -1,
        is_pinned=item.get("is_starred") is True or moment_in(item.get("pinned_time")) is not None,
        is_archived=item.get("is_archived") is True,
        instructions=next(filter(None, map(_custom_instructions, messages.values())), ""),
    )


def _custom_instructions(message: Fields) -> str:
    """Return what the person told ChatGPT about themselves and about its answers."""
    content = fields_in(message.get("content"))
    if content.get("content_type") != "user_editable_context":
        return ""
    texts = (text_in(content.get(name)).strip() for name in ("user_profile", "user_instructions"))
    return "\n\n".join(filter(None, texts))


def _note(notes: Notes, made: MadeTexts, id: str, message: Fields, parent: int) -> int:
    content, about = fields_in(message.get("content")), fields_in(message.get("metadata"))
    role = _ROLES.get(text_in(fields_in(message.get("author")).get("role")))
    recipient = text_in(message.get("recipient"))
    found = content.get("parts")
    parts = found if isinstance(found, list) else [content]
    # A part is a text or an object: speech has a transcript in it, images and other audio have no text.
    texts = [text_in(part) or text_in(fields_in(part).get("text")) for part in parts]
    at, model = moment_in(message.get("create_time")), text_in(about.get("model_slug"))
    if role == "assistant" and (written := canvas_text(recipient, "".join(texts), made)):
        return notes.say(id, role, written, at, model=model, parent=parent)
    is_hidden = about.get("is_visually_hidden_from_conversation") is True
    if _custom_instructions(message):
        return parent
    if role is None or is_hidden or recipient not in ("", "all") or content.get("content_type") not in _SPOKEN:
        notes.left_out[SYSTEM] += 1
        return parent
    media = sum(isinstance(part, dict) and not text for part, text in zip(parts, texts, strict=True))
    attached = rows_in(about.get("attachments"))
    said = _MARK.sub("", _NAME.sub(r"\1", "\n\n".join(filter(None, texts))))
    names = [text_in(file.get("name")) for file in attached]
    media = max(media, len(attached))  # a picture is a part of the message and an attachment as well
    pictures = _pictures(id, parts, attached) if role == "user" else []
    return notes.say(id, role, said, at, model=model, media=media, names=names, parent=parent, pictures=pictures)


def _pictures(id: str, parts: list[object], attached: list[Fields]) -> list[Picture]:
    """Return the pictures of a message; a pointer is "file-service://file-…" or "sediment://file_…"."""
    names = {text_in(file.get("id")): text_in(file.get("name")) for file in attached}
    fields = (fields_in(part) for part in parts)
    pointers = (text_in(part.get("asset_pointer")) for part in fields if part.get("content_type") == _PICTURE)
    ids = dict.fromkeys(pointer.partition("://")[2] for pointer in pointers)
    return [Picture(each, names.get(each, ""), id) for each in ids if each]
