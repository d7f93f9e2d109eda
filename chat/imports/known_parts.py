"""Recognise parts of a transcript that were imported under another id.

A part has its id from its first message. If this was deleted since, or has become the beginning of a thread of the channel,
the other messages are a part with another id in the next export.
"""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db.models import F

from chat.imports.formats.transcripts import MAX_PAUSE, lines_of, merge_texts
from chat.imports.turns import DatedPair
from chat.models import Turn
from memory.api import Exchange


def with_known_ids(thread_id: uuid.UUID, dated: Sequence[DatedPair]) -> list[DatedPair]:
    """Return the parts; one that was imported under another id has that id, together with what else has it."""
    known = dict(Turn.objects.filter(thread_id=thread_id, client_key=F("id")).values_list("id", "message"))
    tombstones = Exchange.objects.exclude(forgotten_at=None).filter(
        thread_id=thread_id, source=Exchange.Source.IMPORT, turn_id__isnull=False
    )
    forgotten = dict(tombstones.values_list("turn_id", "timestamp"))
    new = [item for item in dated if item.id not in known and item.id not in forgotten]
    if not new or not (known or forgotten):
        return list(dated)
    former_ids = _ids_by_text(new, known, dated)
    # Of what was forgotten everywhere, only the time is left.
    without_text = {id: at for id, at in forgotten.items() if id and not known.get(id)}
    former_ids = _ids_by_time(new, without_text) | former_ids
    return _join(dated, former_ids)


def _ids_by_text(
    new: Sequence[DatedPair], known: Mapping[uuid.UUID, str], dated: Sequence[DatedPair]
) -> dict[uuid.UUID, uuid.UUID]:
    """Return for each new part the known one that it shares most lines with, of those that this export no longer has there."""
    exported = {item.id: item.pair.message for item in dated}
    moved: dict[tuple[str, str], list[uuid.UUID]] = defaultdict(list)
    for id, message in known.items():
        for line in lines_of(message) - lines_of(exported.get(id, "")):
            moved[line].append(id)
    found = {}
    for item in new:
        shared = Counter(id for line in lines_of(item.pair.message) for id in moved.get(line, ()))
        for id, _count in shared.most_common(1):
            found[item.id] = id
    return found


def _ids_by_time(new: Sequence[DatedPair], forgotten: Mapping[uuid.UUID, datetime]) -> dict[uuid.UUID, uuid.UUID]:
    """Return for each new part the forgotten one that began so shortly before that both were one part."""
    return {
        item.id: id
        for item in new
        for id, begun_at in forgotten.items()
        if begun_at <= item.sent_at <= begun_at + MAX_PAUSE
    }


def _join(dated: Collection[DatedPair], former_ids: Mapping[uuid.UUID, uuid.UUID]) -> list[DatedPair]:
    joined: dict[uuid.UUID, DatedPair] = {}
    for item in dated:
        id = former_ids.get(item.id, item.id)
        parent_id = former_ids.get(item.parent_id, item.parent_id) if item.parent_id else None
        if (first := joined.get(id)) is None:
            joined[id] = replace(item, id=id, parent_id=parent_id)
            continue
        message = merge_texts(item.pair.message, first.pair.message, is_edited=False)
        edited_at = max(filter(None, (first.pair.edited_at, item.pair.edited_at)), default=None)
        pair = replace(first.pair, message=message, edited_at=edited_at)
        joined[id] = replace(first, pair=pair, answered_at=max(first.answered_at, item.answered_at))
    return list(joined.values())
