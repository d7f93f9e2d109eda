"""Runs extraction: one request at a time, within the daily budget of tokens of each space, after answers of people."""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import ModelError
from chat.knowledge.extraction import extract
from chat.knowledge.prompt import SCHEMA
from chat.knowledge.reply import UnusableReplyError
from chat.llm import client, failures
from chat.llm import endpoint as endpoints
from chat.llm.client import Message
from chat.llm.policy_texts import refusal_text
from chat.llm.structured import Completion, complete_json
from chat.llm.usage_counts import UsageMeter
from chat.models import Turn
from chat.usage.counting import Purpose, count_usage
from chat.usage.limits import is_limit_reached, next_reset
from memory import api as memory
from memory.api import CatoError, Exchange, Lease, LeaseLostError, SpaceKnowledge, jobs, may_receive

log = logging.getLogger(__name__)

_INTERVAL = timedelta(minutes=1)  # between two looks at a space
_AFTER_ANSWERS, _AFTER_LIMIT = timedelta(seconds=10), timedelta(hours=1)
_MAX_RUN = 240.0  # seconds, after which other spaces get their turn
_RENEWAL_INTERVAL = 5.0  # seconds, within a request
# Replies that cannot be used until a run ends: a model may be unable to write them.
_MAX_UNUSABLE = 3
# A failed request costs nothing, an unusable reply costs tokens.
_MAX_DELAY, _MAX_DELAY_UNUSABLE = timedelta(minutes=15), timedelta(hours=6)
# One per process: requests would compete for the endpoint, and for the threads of other tasks.
_lock = threading.Lock()


def spaces_to_read() -> QuerySet[SpaceKnowledge]:
    """Return the spaces whose extraction is on, in the order of their turns."""
    return SpaceKnowledge.objects.filter(is_on=True, is_paused=False).order_by("due_at", "pk")


def run_extractions() -> int:
    """Extract statements from the spaces that are due, one after the other; return the number of statements."""
    if not _lock.acquire(blocking=False):
        return 0
    try:
        count = 0
        while claimed := jobs.claim(spaces_to_read().select_related("space"), 1):
            count += ExtractionRun(claimed[0]).run()
        return count
    finally:
        _lock.release()


def join_small(clusters: Sequence[Sequence[Exchange]]) -> list[list[uuid.UUID]]:
    """Return the ids of the exchanges for each request: one cluster, or several small ones.

    The instructions are most of a request about one exchange.
    """
    requests: list[list[uuid.UUID]] = []
    for cluster in clusters:
        ids = [exchange.pk for exchange in cluster]
        if requests and len(requests[-1]) + len(ids) <= settings.CATO.knowledge.max_cluster:
            requests[-1] += ids
        else:
            requests.append(ids)
    return requests


class ExtractionRun:
    """One claim of a space: clusters are extracted until the time, the budget or the clusters end."""

    def __init__(self, knowledge: SpaceKnowledge) -> None:
        self._knowledge = knowledge
        self._lease = Lease(knowledge)
        self._started_at = time.monotonic()
        self._added = self._read = self._unusable = 0

    def run(self) -> int:
        """Extract statements, and return their number; an error is stored on the row, and the rest is left for later."""
        try:
            self._run()
        except LeaseLostError:
            log.info("extraction was switched off, changed or taken over while it ran")
        return self._added

    def _run(self) -> None:
        try:
            chosen = endpoints.find(self._knowledge.model)
            if chosen is None or not settings.CATO.vector_store.enabled or not self._is_due():
                self._lease.release(due_at=timezone.now() + _INTERVAL, failures=0, backlog=self._backlog())
                return
            self._lease.update(backlog=self._backlog())
            due_at = self._extract_clusters()
            if self._unusable:
                reason = _("The model's reply for some messages could not be used. They are read again later.")
                self._retry_later(reason, _MAX_DELAY_UNUSABLE)
            else:
                self._lease.release(due_at=due_at, failures=0 if self._read else self._knowledge.failures)
        except ModelError as error:
            # Its own sentence is for a person who waits for an answer.
            is_silent = error.code in failures.NOT_RESPONDING
            reason = _("The model endpoint does not respond. It is asked again later.") if is_silent else str(error)
            self._retry_later(reason, _MAX_DELAY)
        except CatoError as error:
            self._retry_later(str(error), _MAX_DELAY)
        except LeaseLostError:
            raise
        except Exception as error:
            # Any error: nothing of the cluster is stored, and another attempt reads it again.
            log.exception("an extraction failed")
            reason = _("Something went wrong in Cato itself (%(error)s). See the worker log.")
            self._retry_later(reason % {"error": type(error).__name__}, _MAX_DELAY)

    def _is_due(self) -> bool:
        return memory.has_unread_exchanges(self._knowledge.space_id, timezone.now())

    def _backlog(self) -> int:
        unread = memory.unread_exchanges(self._knowledge.space_id).count()
        return max(unread, self._knowledge.backlog) if unread else 0

    def _extract_clusters(self) -> datetime:
        """Extract one batch of clusters; return when the space is to be looked at again.

        Raises EmbeddingError if the embedding model, which checks the statements, may not receive the space's text.
        """
        if (later := self._later()) is not None:
            return later
        memory.ensure_embeddable(self._knowledge.space)
        batch = memory.next_batch(self._knowledge.space_id)
        memory.mark_as_read(self._knowledge.space, batch.uninformative)
        if self._knowledge.failures:
            # Those that failed must not be the first ones again and again.
            random.shuffle(batch.clusters)
        for ids in join_small(batch.clusters):
            if (later := self._later()) is not None:
                return later
            try:
                self._added += extract(self._knowledge.space, ids, ask=self._ask, hold=self._lease.renew)
                self._read += 1
            except UnusableReplyError:
                self._unusable += 1
                if self._unusable == _MAX_UNUSABLE:
                    break
        return timezone.now()

    def _later(self) -> datetime | None:
        """Return when to continue if not now: on the next day, after answers of people, or after other spaces.

        Above the monthly limit of the space or its owner, look again in an hour: it can be raised.
        """
        now, space = timezone.now(), self._knowledge.space
        if is_limit_reached(person_id=space.owner_id, space=space):
            return min(next_reset(), now + _AFTER_LIMIT)
        if self._used_today() >= self._knowledge.daily_tokens:
            return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), datetime.min.time(), UTC)
        if Turn.objects.running().exclude(state=Turn.State.WAITING).exists():
            return now + _AFTER_ANSWERS
        return now if time.monotonic() - self._started_at > _MAX_RUN else None

    def _ask(self, messages: Sequence[Message]) -> str:
        """Return the model's reply, and count its tokens; the lease is renewed meanwhile.

        Raises ModelError, also if the endpoint may not receive the space's text now, and LeaseLostError.
        """
        stopped = threading.Event()
        chosen = endpoints.find(self._knowledge.model)
        if chosen is None:
            raise ModelError(_("No model is connected."), "refused")
        endpoint, model = chosen.endpoint, chosen.model
        if not may_receive(endpoint.policy, self._knowledge.space):
            text = refusal_text(endpoint.label, self._knowledge.space, is_removed=endpoint.is_removed)
            raise ModelError(text, "data_policy")
        meter = UsageMeter()

        def request() -> Completion:
            return client.run(
                complete_json(endpoint, messages, schema=SCHEMA, model=model, is_stopped=stopped.is_set, meter=meter)
            )

        self._lease.check()
        try:
            completion = self._wait_for(request, stopped)
        finally:
            space = self._knowledge.space
            count_usage(meter.total(), purpose=Purpose.EXTRACTION, person_id=space.owner_id, space_id=space.id)
        self._count(completion.tokens)
        return completion.text

    def _wait_for(self, request: Callable[[], Completion], stopped: threading.Event) -> Completion:
        """Return the result of the request; set `stopped` if the lease is lost. Raises ModelError and LeaseLostError."""
        with ThreadPoolExecutor(1, thread_name_prefix="extraction") as threads:
            reply = threads.submit(request)
            try:
                while not wait([reply], _RENEWAL_INTERVAL).done:
                    self._lease.check()
            except LeaseLostError:
                stopped.set()
                raise
        return reply.result()

    def _used_today(self) -> int:
        is_today = self._knowledge.tokens_used_on == timezone.now().astimezone(UTC).date()
        return self._knowledge.tokens_used if is_today else 0

    def _count(self, tokens: int) -> None:
        """Save the tokens at once: they are spent whatever the reply is worth. Raises LeaseLostError."""
        used, today = self._used_today() + tokens, timezone.now().astimezone(UTC).date()
        self._knowledge.tokens_used, self._knowledge.tokens_used_on = used, today
        self._lease.update(tokens_used=used, tokens_used_on=today)

    def _retry_later(self, error: str, max_delay: timedelta) -> None:
        """Store the error; the delay doubles with each run that read nothing. Raises LeaseLostError."""
        failures = 1 if self._read else min(self._knowledge.failures + 1, 30)
        delay = min(_INTERVAL * 2 ** (failures - 1), max_delay)
        now = timezone.now()
        self._lease.release(due_at=now + delay, failures=failures, error=error[:300], failed_at=now)
