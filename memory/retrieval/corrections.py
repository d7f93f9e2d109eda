"""Corrections: which messages say that an answer is wrong or outdated, and what superseded a recalled source."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.utils.translation import gettext as _

from memory.retrieval import probes
from memory.retrieval.exchange_views import load_views
from memory.retrieval.sentence_vectors import MessageSentences
from memory.retrieval.subjects import Decisions
from memory.retrieval.types import Hit, listed_hit
from memory.spaces.access import SpaceIds

# Probability from which a message is taken for a correction; docs/decisions/0010-probes.md has the figures.
MIN_PROBABILITY = 0.2
# The strategy of hits that are recalled because a person decided that they supersede another one.
SUPERSESSION = "supersession"


def is_correction(sentences: MessageSentences) -> bool:
    """Return whether the message says that what was stated before is wrong or outdated."""
    values = sentences.read(probes.CORRECTION)
    return values is not None and values[0] >= MIN_PROBABILITY


def add_superseding(
    hits: Sequence[Hit], decisions: Decisions, *, spaces: SpaceIds, exclude: frozenset[uuid.UUID]
) -> list[Hit]:
    """Return the hits, each after the messages by which a person decided that it is superseded.

    A correction often names its subject no more clearly than "it is 28 now", so that no search finds it. Messages that
    cannot be found in `spaces`, and those in `exclude`, are not added.
    """
    superseding = {earlier: later for (later, earlier), is_confirmed in decisions.items() if is_confirmed}
    missing = set(superseding.values()) - {hit.exchange.id for hit in hits} - exclude
    views = load_views(missing) if missing else {}
    extended: list[Hit] = []
    for hit in hits:
        view = views.pop(superseding.get(hit.exchange.id, hit.exchange.id), None)
        if view is not None and view.space_id in spaces:
            extended.append(listed_hit(view, SUPERSESSION, _("A reader decided that it supersedes another source")))
        extended.append(hit)
    return extended
