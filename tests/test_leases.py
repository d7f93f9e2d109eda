"""Leases: one worker at a time owns a job, and an overtaken worker's writes are rejected."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memory import jobs
from memory.documents import chunks, extraction_runs
from memory.jobs import Lease, LeaseLostError
from memory.models import DocumentVersion, Job, Operation
from tests.factories import AdministratorFactory, PersonFactory, ago, upload

pytestmark = pytest.mark.django_db


def operation() -> Operation:
    now = timezone.now()
    created_by = AdministratorFactory()
    return Operation.objects.create(kind=Operation.Kind.BACKFILL, created_by=created_by, created_at=now, due_at=now)


@pytest.fixture
def job() -> Operation:
    return operation()


def claim() -> Lease[Operation] | None:
    claimed = jobs.claim(Operation.objects.order_by("id"), 1)
    return Lease(claimed[0]) if claimed else None


def claimed() -> Lease[Operation]:
    lease = claim()
    assert lease is not None
    return lease


def expire() -> None:
    Operation.objects.update(locked_until=ago(seconds=1))


def test_a_leased_job_cannot_be_claimed_until_the_lease_expires(job):
    claimed()
    assert claim() is None
    expire()
    assert claim() is not None


def test_after_a_takeover_the_first_worker_cannot_write(job):
    first = claimed()
    expire()
    second = claimed()

    for write in (
        lambda: first.update(processed=1),
        first.renew,
        first.check,
        first.release,
        first.finish,
        lambda: first.fail("late"),
    ):
        with pytest.raises(LeaseLostError):
            write()
    assert not first.is_held()
    job.refresh_from_db()
    assert (job.processed, job.state, job.error) == (0, Job.State.PENDING, "")

    second.finish(processed=5)
    job.refresh_from_db()
    assert (job.processed, job.state, job.locked_until) == (5, Job.State.DONE, None)


def test_a_cancelled_job_loses_its_lease_at_once(job):
    lease = claimed()
    assert lease.is_held()
    jobs.cancel(Operation.objects.all())
    assert not lease.is_held()
    with pytest.raises(LeaseLostError):
        lease.finish()
    job.refresh_from_db()
    assert (job.state, job.locked_until) == (Job.State.DONE, None)


def test_a_renewed_lease_cannot_be_taken_over(job, monkeypatch):
    lease = claimed()
    expire()
    monkeypatch.setattr(jobs, "_RENEWAL_INTERVAL", 0.0)
    lease.check()

    job.refresh_from_db()
    assert job.locked_until > timezone.now() + jobs.LEASE - timedelta(seconds=5)
    assert claim() is None


def test_a_long_error_is_truncated(job):
    claimed().fail("x" * 1000)
    job.refresh_from_db()
    assert (job.state, len(job.error), job.locked_until) == (Job.State.FAILED, 300, None)
    assert claim() is None


def test_a_released_job_can_be_claimed_when_it_is_due(job):
    claimed().release(due_at=timezone.now() + timedelta(minutes=1))
    assert claim() is None
    Operation.objects.update(due_at=ago(seconds=1))
    assert claim() is not None


def test_an_overtaken_worker_cannot_give_its_job_back(job):
    late = claimed().job
    expire()
    claimed()
    jobs.release_for_retry(late, "too late", counts=True)
    job.refresh_from_db()
    assert (job.failures, job.error) == (0, "")
    assert claim() is None


def test_a_failed_job_is_retried_after_growing_pauses_until_it_fails_permanently(job):
    pauses = []
    for number in range(1, jobs.MAX_FAILURES + 1):
        Operation.objects.update(due_at=ago(seconds=1))
        has_failed = jobs.release_for_retry(claimed().job, "refused", counts=True)
        job.refresh_from_db()
        assert (job.failures, job.error, job.locked_until) == (number, "refused", None)
        assert has_failed == (number == jobs.MAX_FAILURES)
        pauses.append(round((job.due_at - timezone.now()).total_seconds()))
    assert pauses == [2, 4, 8, 16, 32]
    assert job.state == Job.State.FAILED
    Operation.objects.update(due_at=ago(seconds=1))
    assert claim() is None


def test_retries_are_not_limited_while_a_dependency_is_down(job):
    for _ in range(jobs.MAX_FAILURES + 1):
        Operation.objects.update(due_at=ago(seconds=1))
        assert not jobs.release_for_retry(claimed().job, "unavailable", counts=False)
    job.refresh_from_db()
    assert (job.failures, job.state) == (0, Job.State.PENDING)
    assert 10 < (job.due_at - timezone.now()).total_seconds() <= 15


def test_a_final_failure_is_not_retried_and_a_requested_pause_is_kept(job):
    assert not jobs.release_for_retry(claimed().job, "slow down", counts=True, after=60.0)
    job.refresh_from_db()
    assert 55 < (job.due_at - timezone.now()).total_seconds() <= 60

    Operation.objects.update(due_at=ago(seconds=1))
    assert jobs.release_for_retry(claimed().job, "impossible", counts=True, final=True)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED


def test_a_requeued_job_is_due_at_once_and_voids_the_present_lease(job):
    lease = claimed()
    Operation.objects.update(failures=3, error="refused", due_at=timezone.now() + timedelta(hours=1))
    jobs.requeue(Operation.objects.all())
    assert not lease.is_held()
    again = claimed().job
    assert (again.failures, again.error, again.state) == (0, "", Job.State.PENDING)


def test_queue_statistics_count_pending_and_failed_jobs_and_the_oldest_due_one(job):
    def stats() -> tuple[int, int, bool]:
        (found,) = (stats for stats in jobs.queue_stats() if stats.kind == "operation")
        return found.pending, found.failed, found.oldest_due_at is not None

    assert stats() == (1, 0, True)
    lease = claimed()
    assert stats() == (1, 0, False)
    lease.fail("impossible")
    assert stats() == (0, 1, False)
    jobs.requeue(Operation.objects.all())
    jobs.cancel(Operation.objects.all())
    assert stats() == (0, 0, False)


def fields_of(job: Operation) -> dict[str, object]:
    job.refresh_from_db()
    return {name: getattr(job, name) for name in ("state", "attempt", "locked_until", "due_at", "failures", "error")}


def test_a_worker_changes_only_its_own_job(job):
    other = operation()
    lease, of_other = (Lease(row) for row in jobs.claim(Operation.objects.order_by("created_at"), 2))
    assert (lease.job.pk, of_other.job.pk) == (job.pk, other.pk)
    before = fields_of(other)
    assert before["attempt"] == lease.job.attempt

    lease.renew(processed=1)
    jobs.release_for_retry(lease.job, "refused", counts=True)
    lease.release(due_at=ago(seconds=1))
    again = claimed()
    assert again.job.pk == job.pk
    again.finish()
    assert not again.is_held()

    assert fields_of(other) == before
    assert of_other.is_held()


def test_a_claim_takes_as_many_due_jobs_as_allowed_and_leaves_the_others(job):
    first, second = operation(), operation()
    Operation.objects.filter(pk=job.pk).update(due_at=timezone.now() + timedelta(minutes=1))

    taken = jobs.claim(Operation.objects.order_by("-created_at"), 1)

    assert [(row.pk, row.attempt) for row in taken] == [(second.pk, 1)]
    assert taken[0].locked_until > timezone.now() + jobs.LEASE - timedelta(seconds=5)
    first.refresh_from_db()
    job.refresh_from_db()
    assert [(row.attempt, row.locked_until) for row in (first, job)] == [(0, None)] * 2


def test_the_error_of_an_earlier_attempt_is_cleared_by_a_claim(job):
    Operation.objects.update(error="refused", failures=2)
    lease = claimed()
    assert (lease.job.error, lease.job.failures) == ("", 2)


def test_jobs_can_be_claimed_that_are_pending_due_and_without_a_lease(job):
    assert jobs.has_due(Operation.objects.all())
    for change in (
        {"state": Job.State.DONE},
        {"state": Job.State.FAILED},
        {"due_at": timezone.now() + timedelta(minutes=1)},
        {"locked_until": timezone.now() + timedelta(minutes=1)},
    ):
        before = {name: getattr(job, name) for name in change}
        Operation.objects.update(**change)
        assert not jobs.has_due(Operation.objects.all()), change
        assert claim() is None, change
        Operation.objects.update(**before)
    assert claim() is not None


def test_a_failing_worker_does_not_retry_a_cancelled_job(job):
    lease = claimed()
    jobs.cancel(Operation.objects.all())
    jobs.release_for_retry(lease.job, "refused", counts=True)
    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.DONE, "")


def test_a_worker_is_woken_after_the_commit_and_a_lost_message_does_no_harm(
    job, settings, monkeypatch, django_capture_on_commit_callbacks
):
    from celery import current_app
    from kombu.exceptions import OperationalError

    sent: list[str] = []

    def send(name: str) -> None:
        sent.append(name)
        raise OperationalError

    monkeypatch.setattr(current_app, "send_task", send)
    for address, expected in ((None, []), ("redis://localhost", ["memory.tasks.index_pending"])):
        settings.REDIS_URL = address
        with django_capture_on_commit_callbacks(execute=True):
            jobs.wake_worker_on_commit("index_pending")
            assert sent == []
        assert sent == expected


def test_an_overtaken_extraction_leaves_the_document_to_the_other_worker(memory, monkeypatch):
    version = upload(PersonFactory(), "notes.txt", "The buoys lie at anchor. " * 40).version
    write = chunks._write

    def overtake(*args: object, **kwargs: object) -> object:
        DocumentVersion.objects.update(locked_until=ago(seconds=1))
        assert jobs.claim(DocumentVersion.objects.filter(pk=version.pk), 1)
        return write(*args, **kwargs)

    monkeypatch.setattr(chunks, "_write", overtake)
    assert extraction_runs.read_documents(limit=1) == 0
    version.refresh_from_db()
    assert (version.stage, version.state, version.attempt) == ("chunking", Job.State.PENDING, 2)

    monkeypatch.undo()
    DocumentVersion.objects.update(locked_until=ago(seconds=1))
    assert extraction_runs.read_documents(limit=1) == 1
    version.refresh_from_db()
    assert (version.stage, version.state) == ("embedding", Job.State.DONE)


@pytest.mark.parametrize("end", [jobs.cancel, jobs.requeue])
def test_a_job_that_is_requeued_after_its_end_belongs_to_the_next_worker_only(job, end):
    first = claimed()
    end(Operation.objects.all())
    Operation.objects.update(state=Job.State.FAILED, error="refused")
    jobs.requeue(Operation.objects.all())
    job.refresh_from_db()
    assert (job.state, job.error) == (Job.State.PENDING, "")
    second = claimed()
    assert (first.is_held(), second.is_held()) == (False, True)
