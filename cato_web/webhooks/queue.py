"""Which webhooks may be sent to, and which of them have something to send."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone

from cato_web.webhooks.models import Webhook
from memory import api as memory
from memory.api import Job, jobs


def deliverable_webhooks() -> QuerySet[Webhook]:
    """Return the webhooks that may be sent to now, in the order in which they are due."""
    return Webhook.workable().select_related("api_token").order_by("due_at", "id")


def queue_deliveries() -> None:
    """Queue the webhooks that have not reached the end of the feed, and wake a worker for those that are due."""
    rows = deliverable_webhooks()
    if not rows.exists():
        return
    _start, end = memory.feed_range()
    rows.filter(state=Job.State.DONE, position__lt=end).update(state=Job.State.PENDING, due_at=timezone.now())
    if jobs.has_due(rows):
        # Receivers can take longer than the sweep has.
        memory.wake_worker_on_commit("deliver_webhooks", module="cato_web.webhooks.tasks")
