"""Operations for administrators: statistics of all spaces, and the accounts."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

from django.utils import timezone
from django.utils.translation import gettext as _
from ninja import Query, Router

from cato_web.accounts.models import User
from cato_web.api import administration_schemas
from cato_web.api.auth import READ, ApiRequest, current_user
from cato_web.api.errors import responses
from cato_web.api.paging import Cursor, Limit, paginate
from chat import stats
from chat.errors import PermissionDeniedError
from memory import api as memory

router = Router(tags=["administration"])
_PERIOD = timedelta(days=30)


@router.get("/admin/stats", auth=READ, response=responses(administration_schemas.Stats))
def get_stats(request: ApiRequest) -> administration_schemas.Stats:
    """Count what is stored in all spaces, and the answers of the last 30 days. For administrators."""
    require_administrator(request)
    since = timezone.now() - _PERIOD
    latency = stats.recall_latency(None)
    return administration_schemas.Stats(
        **asdict(memory.memory_counts(None)),
        failed_answers=stats.count_failures(None, since=since),
        answers_without_recall=stats.count_skipped_recalls(None, since=since),
        recall_latency=None if latency is None else administration_schemas.RecallLatency.model_validate(latency),
    )


@router.get("/admin/people", auth=READ, response=responses(administration_schemas.People))
def list_people(
    request: ApiRequest, limit: Limit = 50, cursor: Annotated[Cursor, Query()] = None
) -> administration_schemas.People:
    """List the accounts, without deleted ones, the newest first. For administrators."""
    require_administrator(request)
    page, after = paginate(User.objects.filter(left_at=None), "joined_at", cursor, limit)
    return administration_schemas.People(
        people=[administration_schemas.Person.model_validate(person) for person in page], next=after
    )


def require_administrator(request: ApiRequest) -> None:
    """Raise PermissionDeniedError unless the user is an administrator."""
    if not current_user(request).is_administrator:
        raise PermissionDeniedError(_("This is for administrators."))
