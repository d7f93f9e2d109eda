"""Later and earlier messages on one subject.

A question about the present is answered by the latest of them, one about a former state by an earlier one. Two messages
are taken to be on one subject if their vectors are similar, clearly more than most others that were found for the same
query, and about as similar as any of these. That is enough to order by. Whether the later message supersedes the earlier
one, a person decides.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import Candidate
from memory.retrieval.levels import Level
from memory.retrieval.text_vectors import TextVectors
from memory.retrieval.types import Hit, SubjectOrder

# Both were chosen on pairs of messages in eleven languages and on conversations; docs/retrieval.md has the figures.
# A pair stands out if its cosine exceeds the lower quartile of both messages' cosines by this share of the distance from
# an unrelated to a relevant text. In conversations in one style, all messages are as similar as those on one subject.
_MIN_PROMINENCE = 0.8
# A message may have a neighbour that is nearer than the other of the pair by this cosine.
_MAX_DEFICIT = 0.01
# With fewer results than this, most of them may be on the subject, so that nothing can stand out.
_MIN_RESULTS = 7

Decisions = Mapping[tuple[uuid.UUID, uuid.UUID], bool]  # by later and earlier exchange: whether it is superseded


def related_messages(
    ranked: Sequence[Candidate], vectors: Mapping[str, TextVectors], level: Level
) -> dict[str, frozenset[uuid.UUID]]:
    """Return for each candidate (hexadecimal id) the others whose messages are on the same subject.

    Chunks of documents are no messages.
    """
    messages = [candidate for candidate in ranked if candidate.id in vectors and not candidate.document]
    if len(messages) < 2:
        return {}
    is_related = _is_related(np.stack([vectors[candidate.id].message for candidate in messages]), level)
    ids = [uuid.UUID(candidate.id) for candidate in messages]
    return {
        candidate.id: frozenset(ids[column] for column in np.flatnonzero(row))
        for candidate, row in zip(messages, is_related, strict=True)
        if row.any()
    }


def order_by_subject(hits: Sequence[Hit], order: SubjectOrder, decisions: Decisions) -> list[Hit]:
    """Order the hits on each subject by date, within the ranks that they have, and mark all but the latest of them.

    With `order` BY_SCORE they keep their ranks, and with CHRONOLOGICAL all hits are ordered by date. What a person decided
    about a pair takes precedence over similarity.
    """
    ordered = list(hits)
    for ranks in _groups(hits, decisions):
        group = sorted((hits[rank] for rank in ranks), key=lambda hit: (hit.exchange.timestamp, str(hit.exchange.id)))
        latest = group[-1].exchange
        marked = {
            hit.exchange.id: replace(
                hit,
                later=latest.id,
                is_superseded=any(decisions.get((other.exchange.id, hit.exchange.id), False) for other in group),
            )
            for hit in group[:-1]
        }
        if order is SubjectOrder.LATER_FIRST:
            group.reverse()
        elif order is SubjectOrder.BY_SCORE:
            group = [hits[rank] for rank in ranks]
        for rank, hit in zip(ranks, group, strict=True):
            ordered[rank] = marked.get(hit.exchange.id, hit)
    return sorted(ordered, key=_age) if order is SubjectOrder.CHRONOLOGICAL else ordered


def _age(hit: Hit) -> tuple[datetime, int, str]:
    """Return the sort key by date; chunks of a document version, which have one date, keep their order."""
    location = hit.exchange.location
    return hit.exchange.timestamp, location.index if location else 0, str(hit.exchange.id)


def _is_related(messages: NDArray[np.float32], level: Level) -> NDArray[np.bool_]:
    """Return which pairs of messages (n, dimension) are on one subject, shape (n, n)."""
    count = len(messages)
    cosines = messages @ messages.T
    is_self = np.eye(count, dtype=bool)
    nearest = np.where(is_self, -1.0, cosines).max(axis=1)
    floor = np.full(count, level.same_subject)
    if count >= _MIN_RESULTS:
        others = cosines[~is_self].reshape(count, count - 1)
        prominent = np.quantile(others, 0.25, axis=1) + _MIN_PROMINENCE * (level.similarity - level.unrelated)
        floor = np.maximum(floor, prominent)
    floor = np.maximum(floor, nearest - _MAX_DEFICIT)
    result: NDArray[np.bool_] = (cosines >= np.maximum(floor[:, None], floor[None, :])) & ~is_self
    return result


def _groups(hits: Sequence[Hit], decisions: Decisions) -> list[list[int]]:
    """Return the ranks, from 0 and ascending, of the hits on each subject that has more than one of them."""
    rank_of = {hit.exchange.id: rank for rank, hit in enumerate(hits)}
    groups: list[list[int]] = []
    seen: set[int] = set()
    for start in range(len(hits)):
        group: list[int] = []
        waiting = [start]
        while waiting:
            rank = waiting.pop()
            if rank in seen:
                continue
            seen.add(rank)
            group.append(rank)
            waiting += [rank_of[other] for other in rank_of if _are_related(hits[rank], other, decisions)]
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


def _are_related(hit: Hit, other: uuid.UUID, decisions: Decisions) -> bool:
    decision = decisions.get((hit.exchange.id, other), decisions.get((other, hit.exchange.id)))
    return other in hit.related if decision is None else decision
