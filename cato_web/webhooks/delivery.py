"""Sends the events of due webhooks in batches, in the order of the feed, and repeats what was not accepted.

A batch is what the owner can read when it is sent. Its end is stored before the first attempt, and its id depends on
nothing else: a receiver recognises a batch that it has already by its id, also after a worker was killed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import httpx2
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from ninja.responses import NinjaJSONEncoder

from cato_web.api.events import Event
from cato_web.webhooks.models import Webhook
from cato_web.webhooks.queue import deliverable_webhooks
from cato_web.webhooks.registration import check_address
from cato_web.webhooks.signing import signed_headers
from chat.encryption import decrypt
from chat.errors import ToolServerError
from chat.tools.guarded_http import new_client
from memory import api as memory
from memory.api import EventPage, EventsExpiredError, InvalidInputError, Job, Lease, LeaseLostError, jobs

log = logging.getLogger(__name__)

TIMEOUT = 10.0  # seconds for one attempt, with connecting
BATCH_SIZE = 100  # events
# Webhooks that are sent to at the same time. Together with the timeout, well within a lease.
_AT_ONCE = 20
RETRY_AFTER = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 360))
DISABLED_AFTER = timedelta(days=5)
_GONE = 410
# One round per process: it occupies one of few threads.
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Batch:
    """A request, and what is done on the row when it is accepted."""

    lease: Lease[Webhook]
    end: int
    has_more: bool
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a batch was not accepted. `is_final`: the receiver wants no more."""

    reason: str
    is_final: bool = False


def deliver_due() -> None:
    """Send one batch for each due webhook until none is due; failures are saved on their rows."""
    if not _lock.acquire(blocking=False):
        return
    try:
        while claimed := jobs.claim(deliverable_webhooks(), _AT_ONCE):
            async_to_sync(_deliver_all)(claimed)
    finally:
        _lock.release()


async def _deliver_all(webhooks: Sequence[Webhook]) -> None:
    await asyncio.gather(*map(_deliver, webhooks))


async def _deliver(webhook: Webhook) -> None:
    """Prepare and send the next batch of a webhook. Its rights are checked right before, not before those of all others."""
    batch = await sync_to_async(_prepare)(Lease(webhook))
    if batch is not None:
        await sync_to_async(_save)(batch, await _send(batch))


def _prepare(lease: Lease[Webhook]) -> _Batch | None:
    """Return the next batch of a webhook; None if nothing can be sent, which is saved on its row."""
    webhook = lease.job
    try:
        if not deliverable_webhooks().filter(pk=webhook.pk).exists():
            lease.release()
            return None
        try:
            check_address(webhook.address)
            page = _read_feed(lease)
        except (InvalidInputError, EventsExpiredError) as error:
            _save_failure(lease, _Failure(str(error)))
            return None
        secret = decrypt(webhook.encrypted_secret)
        if not secret:
            sentence = _("The secret key of this installation has changed. Delete the webhook and create another one.")
            _save_failure(lease, _Failure(sentence, is_final=True))
            return None
        if not page.events:
            _release_sent(lease, page.next, has_more=page.has_more)
            return None
        lease.renew(batch_end=page.next)
    except LeaseLostError:
        return None
    body = _body_of(page)
    headers = signed_headers(secret, id=f"msg_{webhook.pk.hex}_{page.next}", timestamp=int(time.time()), body=body)
    return _Batch(lease, page.next, page.has_more, headers, body)


def _read_feed(lease: Lease[Webhook]) -> EventPage:
    """Return the events of the next batch, or of the same one again, that the owner can read now.

    If the feed does not go back so far, continue with the oldest event that is kept. Raises EventsExpiredError if that one
    expires meanwhile, and LeaseLostError.
    """
    webhook = lease.job
    start, end = memory.feed_range()
    if not start <= webhook.position <= end:
        webhook.position, webhook.batch_end = start, None
        lease.update(position=start, batch_end=None, skipped_at=timezone.now())
    return memory.list_events(
        spaces=memory.readable_space_ids(webhook.api_token.person_id),
        after=webhook.position,
        through=webhook.batch_end,
        limit=BATCH_SIZE,
        kinds=webhook.kinds,
    )


def _body_of(page: EventPage) -> bytes:
    """Return the events as the API lists them."""
    events = [Event.model_validate(event) for event in page.events]
    message = {
        "type": "memory.events",
        "timestamp": events[-1].created_at,
        "data": {"events": events, "next": page.next},
    }
    return json.dumps(message, cls=NinjaJSONEncoder, separators=(",", ":")).encode()


async def _send(batch: _Batch) -> _Failure | None:
    """Send a batch, without following redirects or reading the body of the response; return why it failed, if it did."""
    headers = batch.headers | {"Content-Type": "application/json", "User-Agent": "Cato"}
    hosts = settings.CATO.tools.internal_hosts
    try:
        async with (
            asyncio.timeout(TIMEOUT),
            new_client("", timeout=TIMEOUT, internal_hosts=hosts) as client,
            client.stream("POST", batch.lease.job.address, content=batch.body, headers=headers) as response,
        ):
            status = response.status_code
    except TimeoutError:
        return _Failure(_("The receiver did not answer within %(seconds)s seconds.") % {"seconds": int(TIMEOUT)})
    except ToolServerError as error:
        return _Failure(str(error))
    except httpx2.HTTPError as error:
        return _unreachable(error)
    # Any other error, such as one of the resolver about a name: the other receivers get their events.
    except Exception as error:
        log.exception("a webhook could not be sent")
        return _unreachable(error)
    if 200 <= status < 300:
        return None
    return _Failure(_("The receiver answered with the status %(status)s.") % {"status": status}, status == _GONE)


def _unreachable(error: Exception) -> _Failure:
    return _Failure(_("The receiver cannot be reached (%(error)s).") % {"error": type(error).__name__})


def _save(batch: _Batch, failure: _Failure | None) -> None:
    try:
        if failure is not None:
            _save_failure(batch.lease, failure)
            return
        _release_sent(batch.lease, batch.end, has_more=batch.has_more, delivered_at=timezone.now())
    except LeaseLostError:
        log.info("a webhook was deleted, or another worker has taken it over")


def _release_sent(lease: Lease[Webhook], end: int, *, has_more: bool, **fields: object) -> None:
    """Save that everything up to `end` was sent, also if nothing of it could be read. Raises LeaseLostError."""
    lease.release(
        position=end,
        batch_end=None,
        failures=0,
        failing_since=None,
        error="",
        state=Job.State.PENDING if has_more else Job.State.DONE,
        due_at=timezone.now(),
        **fields,
    )


def _save_failure(lease: Lease[Webhook], failure: _Failure) -> None:
    """Schedule another attempt, or disable the webhook. Raises LeaseLostError."""
    webhook, now = lease.job, timezone.now()
    since = webhook.failing_since or now
    if failure.is_final or now - since >= DISABLED_AFTER:
        lease.fail(failure.reason, failing_since=since)
        return
    pause = RETRY_AFTER[min(webhook.failures, len(RETRY_AFTER) - 1)]
    lease.release(failures=webhook.failures + 1, failing_since=since, error=failure.reason[:300], due_at=now + pause)
