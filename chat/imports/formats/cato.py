"""Cato's own format: threads as `chat.export.to_json` writes them, and notes and prompts of the export of an account."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from chat.imports.formats.conversation import MEDIA, Conversation, Said
from chat.imports.formats.extras import Memories, Project
from chat.imports.formats.sources import ExportFiles
from chat.imports.formats.values import Fields, fields_in, moment_in, name_in, rows_in, text_in
from memory.api import CatoError, excerpt

PROVIDER = "Cato"
FORMAT = "cato-thread"

_ACCOUNT = "account.json"
_MAX_ACCOUNT_BYTES = 5_000_000


def knows(item: Fields) -> bool:
    """Return whether the object is a Cato export."""
    return item.get("format") == FORMAT


def read(item: Fields) -> Conversation:
    """Parse the thread with all versions; placeholder answers are left out.

    A turn whose parent is not in the file follows the active turn before it. If several people wrote in the thread, each
    message begins with the name of its author, because all of them are imported as those of one person.
    """
    thread, turns = fields_in(item.get("thread")), rows_in(item.get("turns"))
    authors = {name_in(turn.get("author")) for turn in turns}
    said: list[Said] = []
    last_of: dict[str, int] = {}  # the index of the last message of each turn
    current, attached = -1, 0
    for turn in turns:
        id, message = name_in(turn.get("id")), text_in(turn.get("message"))
        is_forgotten = turn.get("is_forgotten") is True
        if not message:  # a forgotten turn without its text
            continue
        if len(authors) > 1:
            message = f"{name_in(turn.get('author'))}: {message}"
        attached += sum(len(names) for key in ("pictures", "files") if isinstance(names := turn.get(key), list))
        is_first = "parent_id" in turn and turn["parent_id"] is None
        parent = -1 if is_first else last_of.get(name_in(turn.get("parent_id")), current)
        said.append(Said(id, "user", message, moment_in(turn.get("said_at")), "", is_forgotten, parent=parent))
        answer = text_in(turn.get("answer"))
        if answer and turn.get("is_dummy") is not True:
            at, model, parent = moment_in(turn.get("answered_at")), text_in(turn.get("model")), len(said) - 1
            said.append(Said(id, "assistant", answer, at, model, is_forgotten, parent=parent))
        last_of[id] = len(said) - 1
        if turn.get("is_on_active_branch") is not False:
            current = len(said) - 1
    return Conversation(
        provider=PROVIDER,
        id=name_in(thread.get("id")),
        title=text_in(thread.get("title")),
        created_at=moment_in(thread.get("created_at")),
        messages=tuple(said),
        left_out=Counter({MEDIA: attached}),
        current=current,
        is_remembered=thread.get("is_remembered") is not False,
        author=authors.pop() if len(authors) == 1 else "",
    )


def with_author(conversation: Conversation) -> Conversation:
    """Return the thread with the name of its author before each message."""
    messages = tuple(
        replace(said, text=f"{conversation.author}: {said.text}") if said.role == "user" else said
        for said in conversation.messages
    )
    return replace(conversation, messages=messages)


def account_name(files: ExportFiles) -> str:
    """Return the name of the person whose account was exported; "" if the files are no such export."""
    try:
        with files.open(_ACCOUNT, max_bytes=_MAX_ACCOUNT_BYTES) as stream:
            return text_in(fields_in(json.loads(stream.read(_MAX_ACCOUNT_BYTES))).get("name"))
    except (CatoError, ValueError, RecursionError):
        return ""


def is_note(item: Fields) -> bool:
    """Return whether the object is a note of the export of an account."""
    return isinstance(item.get("user_message"), str) and item.get("manual_entry") is True


def read_note(item: Fields) -> Memories:
    """Parse the note."""
    text = text_in(item.get("user_message"))
    return Memories(PROVIDER, excerpt(text, 80), {name_in(item.get("id")): text}, moment_in(item.get("timestamp")))


def is_prompt(item: Fields) -> bool:
    """Return whether the object is a saved prompt of the export of an account."""
    return isinstance(item.get("text"), str) and {"name", "space", "edited_at"} <= item.keys()


def read_prompt(item: Fields) -> Project:
    """Parse the saved prompt."""
    id, name, text = name_in(item.get("id")), text_in(item.get("name")), text_in(item.get("text")).strip()
    return Project(PROVIDER, id, name, text, documents=())
