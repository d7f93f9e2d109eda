"""Conversations between people in channels, as transcripts: each message of the thread is a part of a channel.

A part is a thread of the channel, or messages of one day that follow each other within half an hour. Long ones are split,
because a model reads about a page at once.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from chat.imports.formats.conversation import MEDIA, Conversation, Said

MAX_PAUSE = timedelta(minutes=30)
_MAX_CHARACTERS = 1_200
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
# What is in a line beside its words: who wrote it, and all from the first person that it mentions on.
_NAMES = re.compile(r"^[^:]*: |@.*")


@dataclass(frozen=True, slots=True)
class Post:
    """A message in a channel; `thread_id` is the id of the message that it replies to, or its own if it has replies.

    `files` are the names of its files. `edited_at`: when its text was changed last, if it had another one before.
    """

    id: str
    who: str
    at: datetime
    text: str
    thread_id: str = ""
    files: tuple[str, ...] = ()
    edited_at: datetime | None = None

    def lines(self) -> str:
        """Return the message as a line of a transcript, or as several."""
        names = " ".join(f"[{name}]" for name in self.files)
        return f"{self.who}: {' '.join(filter(None, (self.text, names)))}"


def transcript(
    provider: str, channel_id: str, name: str, posts: Iterable[Post], *, is_archived: bool, left_out: Counter[str]
) -> Conversation:
    """Return the public channel as a conversation without answers; `left_out` counts what is missing already."""
    messages: list[Said] = []
    for part in sorted(_parts(posts), key=lambda part: part[0].at):
        for number, piece in enumerate(_split(part)):
            own = part[0].thread_id or part[0].id
            messages.append(
                Said(
                    f"{own}/{number}" if number else own,
                    "user",
                    _text(f"#{name}", piece),
                    piece[0].at,
                    parent=len(messages) - 1,
                    edited_at=max((post.edited_at for post in piece if post.edited_at), default=None),
                )
            )
            left_out[MEDIA] += sum(len(post.files) for post in piece)
    return Conversation(
        provider=provider,
        id=channel_id,
        title=f"#{name}",
        created_at=messages[0].at if messages else None,
        messages=tuple(messages),
        left_out=left_out,
        is_archived=is_archived,
        is_transcript=True,
    )


def merge_texts(known: str, new: str, *, is_edited: bool) -> str:
    """Return the lines of two texts of one part by their days; of lines that differ in names only, the new one.

    An export can be of other days than the one before, and people and channels can have other names since.

    `is_edited`: the new text has edited messages, so the known lines in whose place it has others are left out as their
    former texts. What is only missing in the new text stays.
    """
    channel = new.partition("\n")[0].rpartition(", ")[0]
    known_days, new_days = _lines_by_day(known), _lines_by_day(new)
    merged: list[str] = []
    for day in sorted(known_days | new_days):
        merged += [f"{channel}, {day}", *_merge_day(known_days[day], new_days[day], is_edited=is_edited)]
    return "\n".join(merged)


def lines_of(text: str) -> set[tuple[str, str]]:
    """Return the lines of a part, names aside, each with its day."""
    return {(day, _NAMES.sub("", line)) for day, lines in _lines_by_day(text).items() for line in lines}


def without_lines(text: str, lines: Collection[tuple[str, str]]) -> str:
    """Return the text of a part without these of its lines, which are given as by `lines_of`."""
    channel = text.partition("\n")[0].rpartition(", ")[0]
    left: list[str] = []
    for day, all_lines in _lines_by_day(text).items():
        if kept := [line for line in all_lines if (day, _NAMES.sub("", line)) not in lines]:
            left += [f"{channel}, {day}", *kept]
    return "\n".join(left)


def part_of(message_id: str) -> str:
    """Return the id of the part that a message of a transcript is from: a long part is split into several messages."""
    return message_id.partition("/")[0]


def _merge_day(known: list[str], new: list[str], *, is_edited: bool) -> list[str]:
    changed = {place for place, lines in _missing_lines(new, known) if lines} if is_edited else set()
    return new + [line for place, lines in _missing_lines(known, new) if place not in changed for line in lines]


def _missing_lines(lines: list[str], others: list[str]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield the lines that `others` lacks, names aside: those between two others together, with these two as place."""
    present = {_NAMES.sub("", line) for line in others}
    before = ""
    missing: list[str] = []
    for line in lines:
        words = _NAMES.sub("", line)
        if words not in present:
            missing.append(line)
            continue
        yield (before, words), missing
        before, missing = words, []
    yield (before, ""), missing


def _lines_by_day(text: str) -> defaultdict[str, list[str]]:
    """Return the lines of a part by their days, each of which stands in a line of its own after the channel."""
    days: defaultdict[str, list[str]] = defaultdict(list)
    first, *lines = text.split("\n")
    channel, _separator, day = first.rpartition(", ")
    for line in lines:
        name, _separator, date = line.rpartition(", ")
        if name == channel and _DATE.fullmatch(date):
            day = date
        else:
            days[day].append(line)
    return days


def _parts(posts: Iterable[Post]) -> Iterator[list[Post]]:
    """Yield the posts of each thread, and those outside threads that follow each other, by time."""
    threads: dict[str, list[Post]] = defaultdict(list)
    others: list[Post] = []
    for post in sorted({post.id: post for post in posts}.values(), key=lambda post: (post.at, post.id)):
        (threads[post.thread_id] if post.thread_id else others).append(post)
    yield from threads.values()
    part = others[:1]
    for before, post in pairwise(others):
        # A day begins a part, so that an export of other days has the same parts.
        if post.at - before.at > MAX_PAUSE or _day(post) != _day(before):
            yield part
            part = []
        part.append(post)
    if part:
        yield part


def _split(part: list[Post]) -> Iterator[list[Post]]:
    piece: list[Post] = []
    length = 0
    for post in part:
        if piece and length + len(post.text) > _MAX_CHARACTERS:
            yield piece
            piece, length = [], 0
        piece.append(post)
        length += len(post.text)
    yield piece


def _text(channel: str, piece: list[Post]) -> str:
    """Return the lines of a transcript, each day after its date."""
    lines: list[str] = []
    day = ""
    for post in piece:
        if _day(post) != day:
            day = _day(post)
            lines.append(f"{channel}, {day}")
        lines.append(post.lines())
    return "\n".join(lines)


def _day(post: Post) -> str:
    return post.at.astimezone(UTC).date().isoformat()
