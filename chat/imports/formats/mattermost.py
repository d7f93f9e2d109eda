"""Mattermost: the lines of a bulk export, as a file or in a zip, each an object with its type.

Only public channels are read. Private channels and direct messages are for fewer people than the space of an import.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO

from django.utils.translation import gettext as _

from chat.imports.formats.conversation import FILE, SYSTEM, Conversation, Unread
from chat.imports.formats.pieces import MAX_PIECE_BYTES, pieces
from chat.imports.formats.shared_channels import NameOfAccount, channel_or_reason, private
from chat.imports.formats.sources import ExportFiles
from chat.imports.formats.transcripts import Post, transcript
from chat.imports.formats.values import Fields, fields_in, moment_in, rows_in, text_in
from memory.api import ExtractionError, content_hash

PROVIDER = "Mattermost"

_MAX_EXPORT_BYTES = 2_000_000_000
_MAX_FIRST_LINE = 10_000
_PUBLIC = "O"


@dataclass(slots=True)
class _Export:
    """The lines of an export, by their types; `posts` are by team and channel, `direct` counts direct channels."""

    names: dict[str, str] = field(default_factory=dict)
    channels: dict[tuple[str, str], Fields] = field(default_factory=dict)
    posts: dict[tuple[str, str], list[Fields]] = field(default_factory=dict)
    direct: int = 0


def knows(files: ExportFiles) -> bool:
    """Return whether these are the files of an export of Mattermost, whose first line is its version."""
    if _path(files) is None:
        return False
    with _lines(files) as stream:
        first = stream.readline(_MAX_FIRST_LINE)
    try:
        return fields_in(json.loads(first)).get("type") == "version"
    except (ValueError, RecursionError):
        return False


def count(files: ExportFiles) -> int:
    """Return the number of items that `read` yields. Raises ExtractionError."""
    export = _load(files, lambda email: "")
    return len(export.channels) + export.direct


def read(files: ExportFiles, name_of_account: NameOfAccount) -> Iterator[Conversation | Unread]:
    """Yield each channel, or an `Unread` with the reason. Raises ExtractionError for a damaged export."""
    export = _load(files, name_of_account)
    for key, channel in export.channels.items():
        name = text_in(channel.get("display_name")) or key[1]
        if channel.get("type") == _PUBLIC:
            yield channel_or_reason(name, lambda: _channel(key, name, export))  # noqa: B023
        else:
            yield private(f"#{name}")
    for _number in range(export.direct):
        yield private(_("Direct messages"))


def _path(files: ExportFiles) -> str | None:
    """Return the path of the lines: the only such file at the top of the export."""
    found = [name for name in files.names() if "/" not in name and name.endswith(".jsonl")]
    return found[0] if len(found) == 1 else None


def _lines(files: ExportFiles) -> AbstractContextManager[IO[bytes]]:
    return files.open(_path(files) or "", max_bytes=_MAX_EXPORT_BYTES)


def _load(files: ExportFiles, name_of_account: NameOfAccount) -> _Export:
    export = _Export()
    files.ensure_safe([_path(files) or ""])
    with _lines(files) as stream:
        for piece in pieces(stream, largest=MAX_PIECE_BYTES):
            try:
                line = fields_in(json.loads(piece))
            except (ValueError, RecursionError) as error:
                raise ExtractionError(_("It is damaged: it is not valid JSON.")) from error
            _add(export, line, name_of_account)
    return export


def _add(export: _Export, line: Fields, name_of_account: NameOfAccount) -> None:
    kind = text_in(line.get("type"))
    item = fields_in(line.get(kind))
    if kind == "user":
        own = " ".join(filter(None, (text_in(item.get("first_name")), text_in(item.get("last_name")))))
        username = text_in(item.get("username"))
        export.names[username] = name_of_account(text_in(item.get("email"))) or own or username
    elif kind == "channel":
        export.channels[text_in(item.get("team")), text_in(item.get("name"))] = item
    elif kind == "post":
        export.posts.setdefault((text_in(item.get("team")), text_in(item.get("channel"))), []).append(item)
    elif kind == "direct_channel":
        export.direct += 1


def _channel(key: tuple[str, str], name: str, export: _Export) -> Conversation:
    left_out: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    posts = []
    for row in export.posts.get(key, ()):
        rows = [row, *rows_in(row.get("replies"))]
        ids = [_id(item, seen) for item in rows]
        thread_id = ids[0] if len(ids) > 1 else ""
        for id, item in zip(ids, rows, strict=True):
            if (post := _post(item, id, thread_id, export)) is None:
                left_out[SYSTEM] += 1
            else:
                posts.append(post)
    channel = export.channels[key]
    is_archived = bool(channel.get("deleted_at"))
    return transcript(PROVIDER, "/".join(key), name, posts, is_archived=is_archived, left_out=left_out)


def _post(row: Fields, id: str, thread_id: str, export: _Export) -> Post | None:
    """Return the message of a row; None for one of Mattermost itself, and for one without text and files."""
    at = moment_in(row.get("create_at"))
    text = text_in(row.get("message")).strip()
    paths = [text_in(file.get("path")) for file in rows_in(row.get("attachments"))]
    names = tuple(PurePosixPath(path).name or FILE for path in paths)
    if at is None or text_in(row.get("type")).startswith("system_") or not (text or names):
        return None
    username = text_in(row.get("user"))
    who = export.names.get(username) or username or PROVIDER
    # The time of the last edit, or 0.
    edited_at = (moment_in(row["edit_at"]) or at) if row.get("edit_at") else None
    return Post(id, who, at, text, thread_id, names, edited_at)


def _id(row: Fields, seen: Counter[str]) -> str:
    """Return an id of the message, since the export names none: its author and time, and its number among those of both.

    `seen` counts the messages of the channel with the same author and time.
    """
    id = content_hash(text_in(row.get("user")), str(row.get("create_at")))[:32]
    seen[id] += 1
    return id if seen[id] == 1 else f"{id}-{seen[id]}"
