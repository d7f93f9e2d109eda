"""Posts the digests that are due, and answers their messages as those of their people.

The row of a digest is due until its message is answered: the next worker continues what a killed one has left. After a time
without workers one digest tells of the whole time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta, tzinfo

from django.conf import settings
from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.answers import runner
from chat.digests.schedule import Schedule, find_zone
from chat.errors import ConflictError, UsageLimitError
from chat.llm import client
from chat.llm import endpoint as endpoints
from chat.models import Digest, Thread, Turn
from chat.realtime import frames
from chat.realtime.hub import publish
from chat.threads.lifecycle import create_thread
from chat.threads.locks import lock_person
from chat.turns.digest_scope import DigestScope, parse_space_ids
from chat.turns.posting import post_message
from chat.turns.restarting import retry_turn
from memory import api as memory
from memory.api import (
    CatoError,
    DateRange,
    Lease,
    LeaseLostError,
    Space,
    SpaceIds,
    format_list,
    format_moment,
    jobs,
)

log = logging.getLogger(__name__)

_AT_ONCE = 4  # answers of one worker
_RENEWAL_INTERVAL = 10.0  # seconds, within a lease
_LOOK_AGAIN = timedelta(seconds=10)  # after an answer that runs elsewhere or waits
_MAX_RESTARTS = 3  # of an answer whose process died
# What is older is not told: a digest can be without a model, or above a limit, for months.
_MAX_PERIOD = timedelta(days=31)
# For an answer or a document that is still in progress; the next digest tells of it.
_MAX_HELD_BACK = timedelta(hours=1)
# One per process: answers would take the threads of other tasks.
_lock = threading.Lock()


def due_digests() -> QuerySet[Digest]:
    """Return the digests in the order in which they are due."""
    return Digest.objects.select_related("person", "turn").order_by("due_at", "pk")


def resume_digests() -> None:
    """Wake a worker for the digests that are due."""
    if jobs.has_due(Digest.objects.all()):
        # In another task: answers take minutes, which would delay the rest of the sweep.
        memory.wake_worker_on_commit("post_digests", module="chat.tasks")


def run_digests() -> int:
    """Post and answer the digests that are due; return the number of messages that were answered here."""
    if not _lock.acquire(blocking=False):
        return 0
    try:
        count = 0
        while claimed := jobs.claim(due_digests(), _AT_ONCE):
            started = {turn_id: run for run in map(DigestRun, claimed) if (turn_id := run.start()) is not None}
            if started:
                _answer(started)
            count += len(started)
        return count
    finally:
        _lock.release()


def _answer(started: Mapping[uuid.UUID, DigestRun]) -> None:
    """Answer the turns, renew the leases meanwhile, and plan the next digests."""
    with ThreadPoolExecutor(1, thread_name_prefix="digests") as threads:
        answers = threads.submit(lambda: client.run(_run_answers(started)))
        while not wait([answers], _RENEWAL_INTERVAL).done:
            for run in started.values():
                run.lease.is_held()
    answers.result()
    for turn_id, run in started.items():
        run.end(turn_id)


async def _run_answers(turn_ids: Iterable[uuid.UUID]) -> None:
    await asyncio.gather(*map(runner.run_answer, turn_ids))


class DigestRun:
    """One claim of a digest: its message is posted, or the answer to the one before is continued."""

    def __init__(self, digest: Digest) -> None:
        self._digest = digest
        self.lease = Lease(digest)

    def start(self) -> uuid.UUID | None:
        """Return the turn that is to be answered now; None if there is none, with the reason on the row."""
        try:
            return self._start()
        except LeaseLostError:
            log.info("a digest was changed or taken over while it was posted")
        except CatoError as error:
            self._skip(str(error))
        except Exception:
            # Any error: nothing was posted, and the next digest tells of this time, too.
            log.exception("a digest could not be posted")
            self._skip(_("Something went wrong in Cato itself. See the worker log."))
        return None

    def end(self, turn_id: uuid.UUID) -> None:
        """Plan the next digest; look again soon if the answer to this one has not ended."""
        try:
            if Turn.objects.unfinished().filter(id=turn_id).exists():
                self.lease.release(due_at=timezone.now() + _LOOK_AGAIN)
            else:
                self._plan_next()
        except LeaseLostError:
            log.info("a digest was changed while it was answered")

    def _start(self) -> uuid.UUID | None:
        turn = self._digest.turn
        if turn is None:
            return self._post()
        if turn.state in (*Turn.RUNNING_STATES, Turn.State.QUEUED):
            self.lease.release(due_at=timezone.now() + _LOOK_AGAIN)
        elif turn.state == Turn.State.INTERRUPTED and self._digest.failures < _MAX_RESTARTS:
            return self._restart(turn)
        else:
            self._plan_next()
        return None

    def _restart(self, turn: Turn) -> uuid.UUID | None:
        """Answer the turn again whose process died; while its person has other answers, look again soon."""
        try:
            with transaction.atomic():
                self.lease.update(failures=self._digest.failures + 1)
                retry_turn(turn)
        except ConflictError:
            self.lease.release(due_at=timezone.now() + _LOOK_AGAIN)
            return None
        publish(frames.turn(turn.id))
        return turn.id

    def _post(self) -> uuid.UUID | None:
        """Post the message, with its turn on the row in the same transaction; None if there is nothing to tell."""
        digest, now = self._digest, timezone.now()
        readable = memory.readable_space_ids(digest.person_id) if digest.person.is_active else frozenset()
        start = max(digest.covered_until, now - _MAX_PERIOD)
        period = DateRange(start, max(start, _complete_until(readable, now)))
        scope = DigestScope(period, parse_space_ids(digest.space_ids))
        spaces = scope.limit(readable)
        if reason := _obstacle(spaces):
            self._skip(reason)
            return None
        if not memory.has_happened(period, spaces=spaces, except_thread=digest.thread_id):
            self._plan_next(covered_until=period.end)
            return None
        try:
            with transaction.atomic():
                posted = post_message(
                    self._thread().id,
                    author_id=digest.person_id,
                    message=_message_of(period, find_zone(digest.time_zone), _names(spaces) if scope.space_ids else []),
                    client_key=uuid.uuid4(),
                    digest_scope=scope.as_json(),
                )
                turn = posted.turn
                self.lease.renew(
                    thread=turn.thread_id, turn=turn.id, covered_until=period.end, posted_at=now, failures=0
                )
        except UsageLimitError as error:
            self._skip(str(error))
            return None
        publish(frames.new_turn(turn.id))
        if turn.state == Turn.State.RECALLING:
            return turn.id
        # A web process answers it after what its person asked before.
        self.lease.release(due_at=timezone.now() + _LOOK_AGAIN)
        return None

    def _thread(self) -> Thread:
        """Return the thread of the digests; a new one if it was deleted or others may read it now."""
        digest = self._digest
        # Locked, person first as in post_message, so that it cannot be moved to others before the message is posted.
        lock_person(digest.person_id)
        rows = Thread.objects.select_for_update(of=("self",)).filter(deleted_at=None, space__owner_id=digest.person_id)
        if digest.thread_id is not None and (thread := rows.filter(pk=digest.thread_id).first()):
            return thread
        # A digest repeats what is remembered, so it is not remembered again.
        return create_thread(digest.person_id, title=_("Digest"), is_remembered=False)

    def _skip(self, reason: str) -> None:
        """Store why there is no digest this time; the next one tells of this time, too."""
        try:
            self._plan_next(error=reason[:300])
        except LeaseLostError:
            log.info("a digest was changed or taken over while it was posted")

    def _plan_next(self, **fields: object) -> None:
        digest = self._digest
        schedule = Schedule(digest.at, digest.time_zone, digest.weekday)
        self.lease.release(due_at=schedule.next_after(timezone.now()), turn=None, failures=0, **fields)


def _complete_until(spaces: SpaceIds, now: datetime) -> datetime:
    """Return the time until which all that was asked or uploaded in these spaces has been answered and read.

    What is in progress is remembered later under the time when it began.
    """
    since = now - _MAX_HELD_BACK
    unanswered = Turn.objects.unfinished().filter(thread__space_id__in=spaces, created_at__gte=since)
    asked_at: datetime | None = unanswered.aggregate(first=Min("created_at"))["first"]
    return min(filter(None, (asked_at, memory.first_unread_upload(spaces, since=since), now)))


def _obstacle(spaces: SpaceIds) -> str:
    """Return why there can be no digest now, or an empty text."""
    if not spaces:
        return _("You can no longer read any of the chosen spaces. Choose others.")
    if endpoints.current() is None:
        return _("No model is connected, so it could not be written. An administrator can connect one in Settings.")
    if not settings.CATO.vector_store.enabled:
        return _("Memory is switched off on this Cato, so there was nothing to summarise.")
    return ""


def _names(spaces: SpaceIds) -> list[str]:
    rows = Space.objects.filter(id__in=spaces).order_by("kind", "name")
    return [space.display_name for space in rows]


def _message_of(period: DateRange, zone: tzinfo, space_names: Sequence[str]) -> str:
    """Return the text of the message, with the period as clocks show it in this time zone."""
    times = {name: format_moment(at.astimezone(zone)) for name, at in (("start", period.start), ("end", period.end))}
    question = _(
        "What happened from %(start)s to %(end)s? Tell me by subject what is new, what was decided and what is still open."
    )
    text = question % times
    if space_names:
        text += " " + _("Only in: %(spaces)s.") % {"spaces": format_list(space_names)}
    return text
