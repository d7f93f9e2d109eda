"""Recall filters: the documents or metadata to which a search or a thread's recall is limited."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from memory.documents.metadata import DOCUMENT
from memory.documents.queries import active_documents
from memory.errors import InvalidInputError
from memory.exchanges.metadata import Checked, validate_metadata
from memory.filters import Filter, parse_filter
from memory.spaces.access import SpaceIds
from memory.text import parse_uuid

MAX_DOCUMENTS = 50


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """Limits recall to these documents and to this metadata; an empty filter admits everything."""

    documents: tuple[uuid.UUID, ...] = ()
    metadata: Checked = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Return True if the filter has no conditions, so that everything is recalled."""
        return not self.documents and not self.metadata

    def filter(self) -> Filter | None:
        """Return the condition on exchanges, or None for an empty filter."""
        conditions: dict[str, object] = {
            f"metadata.{key}": {"$in": value} if isinstance(value, list) else value
            for key, value in self.metadata.items()
        }
        if self.documents:
            conditions[f"metadata.{DOCUMENT}"] = {"$in": [str(id) for id in self.documents]}
        return parse_filter(conditions) if conditions else None

    def as_json(self) -> dict[str, Any]:
        """Return the filter as stored in a thread."""
        return {"documents": [str(id) for id in self.documents], "metadata": self.metadata}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RecallFilter:
        """Restore a filter from the result of `as_json`; an empty mapping gives an empty filter."""
        return cls(tuple(uuid.UUID(id) for id in data.get("documents", ())), data.get("metadata", {}))


NO_FILTER = RecallFilter()


def build_recall_filter(ids: Iterable[str], metadata: Mapping[str, Any], *, spaces: SpaceIds) -> RecallFilter:
    """Return a recall filter with those documents that are in `spaces`; other ids are dropped.

    Raises InvalidInputError for more than MAX_DOCUMENTS documents, for ids of which none is left, and for invalid
    metadata.
    """
    sent = [id for id in ids if id]
    document_ids = [id for id in map(parse_uuid, sent) if id is not None]
    if len(document_ids) > MAX_DOCUMENTS:
        raise InvalidInputError(_("Choose at most %(most)s documents.") % {"most": MAX_DOCUMENTS})
    existing = set(active_documents(spaces).filter(pk__in=document_ids).values_list("pk", flat=True))
    if sent and not existing:
        # Without this condition, everything would be recalled or found.
        raise InvalidInputError(_("The chosen documents were deleted or cannot be read here. Choose other documents."))
    return RecallFilter(tuple(id for id in dict.fromkeys(document_ids) if id in existing), validate_metadata(metadata))


def describe_recall_filter(recall_filter: RecallFilter, *, spaces: SpaceIds) -> list[str]:
    """Return one text per document and per metadata key.

    A document outside `spaces` or deleted is described as "a deleted document".
    """
    names = dict(active_documents(spaces).filter(pk__in=recall_filter.documents).values_list("pk", "name"))
    return [names.get(id, _("a deleted document")) for id in recall_filter.documents] + [
        f"{key}: {value}" for key, value in recall_filter.metadata.items()
    ]
