"""Slack: a zip with the lists of users and channels, and a folder for each channel with a file for each day.

Only public channels are read. Private channels and direct messages are for fewer people than the space of an import.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from html import unescape

from django.utils.translation import gettext as _

from chat.imports.formats.conversation import FILE, SYSTEM, Conversation, Unread
from chat.imports.formats.pieces import MAX_PIECE_BYTES, pieces
from chat.imports.formats.shared_channels import NameOfAccount, channel_or_reason, private
from chat.imports.formats.sources import ExportFiles
from chat.imports.formats.transcripts import Post, transcript
from chat.imports.formats.values import Fields, fields_in, moment_in, rows_in, text_in
from memory.api import ExtractionError

PROVIDER = "Slack"

_USERS, _CHANNELS = "users.json", "channels.json"
_PRIVATE = ("groups.json", "dms.json", "mpims.json")
_DAY_FILE = re.compile(r"(?P<channel>[^/]+)/\d{4}-\d\d-\d\d\.json")
# Who joined, renamed a channel and the like, apart from messages of programs and of threads.
_MESSAGES = {"", "bot_message", "file_share", "me_message", "thread_broadcast"}
_LINK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


def knows(files: ExportFiles) -> bool:
    """Return whether these are the files of an export of Slack."""
    return {_USERS, _CHANNELS} <= set(files.names())


def count(files: ExportFiles) -> int:
    """Return the number of items that `read` yields. Raises ExtractionError."""
    return sum(len(_rows(files, name)) for name in (_CHANNELS, *_PRIVATE) if name in files.names())


def read(files: ExportFiles, name_of_account: NameOfAccount) -> Iterator[Conversation | Unread]:
    """Yield each channel, or an `Unread` with the reason. Raises ExtractionError for damaged lists and unsafe zips."""
    files.ensure_safe(files.names())
    people = {text_in(user.get("id")): _name(user, name_of_account) for user in _rows(files, _USERS)}
    days: dict[str, list[str]] = defaultdict(list)
    for path in sorted(files.names()):
        if day := _DAY_FILE.fullmatch(path):
            days[day["channel"]].append(path)
    for channel in _rows(files, _CHANNELS):
        name = text_in(channel.get("name"))
        yield channel_or_reason(name, lambda: _channel(channel, files, days[name], people))  # noqa: B023
    for listed in _PRIVATE:
        for channel in _rows(files, listed) if listed in files.names() else ():
            yield private(text_in(channel.get("name")) or text_in(channel.get("id")))


def _channel(channel: Fields, files: ExportFiles, paths: list[str], people: Mapping[str, str]) -> Conversation:
    left_out: Counter[str] = Counter()
    posts = []
    for path in paths:
        for row in _rows(files, path):
            if (post := _post(row, people)) is None:
                left_out[SYSTEM] += 1
            else:
                posts.append(post)
    return transcript(
        PROVIDER,
        text_in(channel.get("id")),
        text_in(channel.get("name")),
        posts,
        is_archived=channel.get("is_archived") is True,
        left_out=left_out,
    )


def _post(row: Fields, people: Mapping[str, str]) -> Post | None:
    """Return the message of a row; None for one of Slack itself, and for one without text and files."""
    at = _time_in(row.get("ts"))
    text = _plain(text_in(row.get("text")), people)
    names = tuple(text_in(file.get("name")) or FILE for file in rows_in(row.get("files")))
    if at is None or text_in(row.get("subtype")) not in _MESSAGES or not (text or names):
        return None
    user = text_in(row.get("user"))
    who = people.get(user) or _profile_name(fields_in(row.get("user_profile"))) or text_in(row.get("username")) or user
    id, thread_id = text_in(row.get("ts")), text_in(row.get("thread_ts"))
    edited_at = (_time_in(fields_in(row["edited"]).get("ts")) or at) if row.get("edited") else None
    return Post(id, who or PROVIDER, at, text, thread_id, names, edited_at)


def _time_in(ts: object) -> datetime | None:
    """Return the time of a message: seconds since 1970 as text, which are also its id."""
    try:
        return moment_in(float(text_in(ts)))
    except ValueError:
        return None


def _plain(text: str, people: Mapping[str, str]) -> str:
    """Return the text with the names of people, channels and links instead of Slack's codes for them."""

    def named(found: re.Match[str]) -> str:
        target, label = found[1], found[2] or ""
        if target.startswith("@"):
            return f"@{people.get(target[1:]) or label or target[1:]}"
        if target.startswith("#"):
            return f"#{label or target[1:]}"
        if target.startswith("!"):
            return label or f"@{target[1:].partition('^')[0]}"
        address = target.removeprefix("mailto:")
        return address if not label or label == address else f"{label} ({address})"

    return unescape(_LINK.sub(named, text)).strip()


def _name(user: Fields, name_of_account: NameOfAccount) -> str:
    profile = fields_in(user.get("profile"))
    own = _profile_name(profile) or text_in(user.get("real_name")) or text_in(user.get("name"))
    return name_of_account(text_in(profile.get("email"))) or own


def _profile_name(profile: Fields) -> str:
    return text_in(profile.get("real_name")) or text_in(profile.get("display_name"))


def _rows(files: ExportFiles, path: str) -> list[Fields]:
    with files.open(path, max_bytes=MAX_PIECE_BYTES) as stream:
        try:
            return [fields_in(json.loads(piece)) for piece in pieces(stream)]
        except (ValueError, RecursionError) as error:
            raise ExtractionError(_("It is damaged: it is not valid JSON.")) from error
