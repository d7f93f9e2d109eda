"""Mentions: people who are named in a message with @, and who can read it."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, QuerySet

from chat.models import Mention, ReaderMarks, Thread, Turn
from chat.realtime.messages import ListChange
from chat.realtime.notifications import notify_after_commit
from memory import api as memory
from memory.api import Space

SIGNS = "@\uff20"  # the second one is typed on Chinese and Japanese keyboards
_MAX_MENTIONS, _MAX_SIGNS = 50, 200  # in one message
# Thai and Lao; hiragana, katakana and Chinese characters.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")


def people_seen_by(person_id: uuid.UUID) -> QuerySet[Any]:
    """Return the active people, other than this one, who read a shared space that this person reads."""
    active = get_user_model().objects.filter(is_active=True).exclude(id=person_id)
    readable = memory.readable_spaces(person_id)
    if readable.filter(kind=Space.Kind.TEAM).exists():
        return active
    return active.filter(id__in=memory.Membership.objects.filter(space__in=readable).values("person_id"))


def find_mentions(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Return the spans of the text that are an @ and one of these names as a whole, in any case; the longest name wins."""
    ordered = sorted({name for name in names if name}, key=len, reverse=True)
    if not ordered:
        return []
    # Neither within an email address nor within a longer name; some scripts put no space between words.
    alternatives = "|".join(re.escape(name) + ("" if _UNSPACED.match(name[-1]) else r"(?!\w)") for name in ordered)
    pattern = rf"(?<![A-Za-z0-9_.+-])[{SIGNS}](?:{alternatives})"
    # Each sign is compared with every name.
    end = next((sign.start() for sign in islice(re.finditer(f"[{SIGNS}]", text), _MAX_SIGNS, None)), len(text))
    return [found.span() for found in re.finditer(pattern, text[:end], re.IGNORECASE)]


def create_mentions(turn: Turn, *, is_news: bool) -> None:
    """Record whom the message of this turn (with its thread and space) mentions; `is_news`: notify them after the commit.

    People who cannot read the thread are not mentioned. A muted thread notifies nobody.
    """
    space = turn.thread.space
    if space.kind == Space.Kind.PERSONAL or not any(sign in turn.message for sign in SIGNS):
        return
    readers = memory.readers(space, get_user_model().objects.filter(is_active=True)).exclude(id=turn.author_id)
    rows = list(readers.values_list("id", "name"))
    by_name: dict[str, list[uuid.UUID]] = defaultdict(list)
    for id, name in rows:
        by_name[name.lower()].append(id)
    # Names as they are: the lower case of "İ" is two characters, which "İ" in the message does not match.
    spans = find_mentions(turn.message, (name for _id, name in rows))[:_MAX_MENTIONS]
    people = {id for start, end in spans for id in by_name[turn.message[start + 1 : end].lower()]}
    Mention.objects.bulk_create([Mention(turn=turn, person_id=id) for id in people])
    if not is_news:
        # Who has read the message has seen them. `auto_now_add` sets the time of saving.
        Mention.objects.filter(turn=turn).update(created_at=turn.created_at)
    elif people:
        muted = ReaderMarks.objects.filter(thread=turn.thread, muted_at__isnull=False).values_list(
            "person_id", flat=True
        )
        notify_after_commit(people - set(muted), ListChange(turn.thread_id, is_mention=True))


def mentioned_names(turns: Sequence[Turn]) -> dict[uuid.UUID, list[str]]:
    """Return the names that these turns mention, by turn; without a query if none of them has an @."""
    ids = [turn.id for turn in turns if any(sign in turn.message for sign in SIGNS)]
    names: dict[uuid.UUID, list[str]] = defaultdict(list)
    if ids:
        for turn_id, name in Mention.objects.filter(turn__in=ids).values_list("turn_id", "person__name"):
            names[turn_id].append(name)
    return names


def mentions_of(person_id: uuid.UUID) -> QuerySet[Any]:
    """Return the mentions of this person in threads that they may read, newest first, each with `is_seen`.

    A mention is seen once its thread was read after it.
    """
    return (
        Mention.objects.filter(
            person_id=person_id,
            turn__is_on_active_branch=True,
            turn__thread__deleted_at=None,
            turn__thread__space__in=memory.readable_spaces(person_id),
        )
        .annotate(is_seen=_is_seen(person_id))
        .order_by("-created_at")
    )


def unseen_in_thread(person_id: uuid.UUID) -> QuerySet[Any]:
    """Return the mentions of this person, in the thread of the outer query, that they have not seen."""
    return Mention.objects.filter(~_is_seen(person_id), person_id=person_id, turn__thread=OuterRef("pk"))


def _is_seen(person_id: uuid.UUID) -> Exists:
    return Exists(
        ReaderMarks.objects.filter(
            person_id=person_id, thread=OuterRef("turn__thread"), last_read_at__gte=OuterRef("created_at")
        )
    )


def count_unseen(person_id: uuid.UUID) -> int:
    """Return how many mentions this person has not seen."""
    return mentions_of(person_id).filter(is_seen=False).count()


def delete_mentions(turns: Iterable[Turn]) -> None:
    """Delete the mentions in these turns, whose text is deleted."""
    Mention.objects.filter(turn__in=[turn.id for turn in turns]).delete()


def latest_unseen(person_id: uuid.UUID, thread_id: uuid.UUID) -> Turn | None:
    """Return the latest turn in the thread that mentions this person and that they have not seen."""
    unseen = mentions_of(person_id).filter(is_seen=False, turn__thread_id=thread_id)
    mention = unseen.select_related("turn__author", "turn__thread").first()
    return mention.turn if mention else None


def candidates(person_id: uuid.UUID, thread: Thread | None, space: Space | None) -> list[tuple[str, bool]]:
    """Return the names that this person can mention, readers first, each with whether they read the thread.

    None: a new thread in `space`, or in the personal space.
    """
    place = thread.space if thread is not None else space
    seen = people_seen_by(person_id)
    readers = set(memory.readers(place, seen).values_list("id", flat=True)) if place is not None else set()
    rows = [(name, id in readers) for id, name in seen.order_by("name").values_list("id", "name")]
    return sorted(rows, key=lambda row: not row[1])
