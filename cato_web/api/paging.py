"""Cursor pagination, stable while rows are added."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext as _
from ninja import Query
from pydantic import Field

from memory.api import InvalidInputError

M = TypeVar("M", bound=Model)
Limit = Annotated[int, Query(ge=1, le=100, description="Maximum number of results.")]
_CURSOR = r"^[A-Za-z0-9_-]+$"
Cursor = Annotated[str, Field(max_length=200, pattern=_CURSOR, description="`next` of the previous page.")] | None


def paginate(rows: QuerySet[M], by: str, cursor: str | None, limit: int) -> tuple[Sequence[M], str | None]:
    """Return up to `limit` rows, newest first by the field `by`, and the cursor of the next page or None.

    Raises InvalidInputError for an invalid cursor.
    """
    if cursor is not None:
        at, id = _decode(cursor)
        rows = rows.filter(Q(**{f"{by}__lt": at}) | Q(**{by: at, "pk__lt": id}))
    page = list(rows.order_by(f"-{by}", "-pk")[: limit + 1])
    if len(page) <= limit:
        return page, None
    return page[:limit], _encode(getattr(page[limit - 1], by), page[limit - 1].pk)


def _encode(at: datetime, id: Any) -> str:
    return base64.urlsafe_b64encode(f"{at.astimezone(UTC).isoformat()} {id}".encode()).decode().rstrip("=")


def _decode(cursor: str) -> tuple[datetime, uuid.UUID]:
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii") + b"==").decode("ascii")
        at, _space, id = text.partition(" ")
        return datetime.fromisoformat(at).astimezone(UTC), uuid.UUID(id)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(_("Invalid cursor. Omit it for the first page, then pass `next`.")) from error
