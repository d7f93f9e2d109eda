"""Cato's own format, as `chat.export.to_json` writes it."""

from __future__ import annotations

from chat.imports.formats.conversation import Conversation, Said
from chat.imports.formats.values import Fields, fields_in, moment_in, name_in, rows_in, text_in

PROVIDER = "Cato"
FORMAT = "cato-thread"


def knows(item: Fields) -> bool:
    """Return whether the object is a Cato export."""
    return item.get("format") == FORMAT


def read(item: Fields) -> Conversation:
    """Parse the thread; placeholder answers are left out."""
    thread = fields_in(item.get("thread"))
    said: list[Said] = []
    for turn in rows_in(item.get("turns")):
        id, message = name_in(turn.get("id")), text_in(turn.get("message"))
        is_forgotten = turn.get("is_forgotten") is True
        if not message:  # a forgotten turn without its text
            continue
        said.append(Said(id, "user", message, moment_in(turn.get("said_at")), "", is_forgotten))
        answer = text_in(turn.get("answer"))
        if answer and turn.get("is_dummy") is not True:
            answered_at = moment_in(turn.get("answered_at"))
            said.append(Said(id, "assistant", answer, answered_at, text_in(turn.get("model")), is_forgotten))
    return Conversation(
        provider=PROVIDER,
        id=name_in(thread.get("id")),
        title=text_in(thread.get("title")),
        created_at=moment_in(thread.get("created_at")),
        messages=tuple(said),
        left_out={},
        is_remembered=thread.get("is_remembered") is not False,
    )
