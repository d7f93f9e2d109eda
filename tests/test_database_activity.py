"""While nothing is written to the database, the worker sweeps every 30 instead of every five seconds."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection

from cato_web import celery, database_activity
from cato_web.database_activity import DatabaseActivity
from memory.models import Space

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clock(monkeypatch):
    """Return the seconds of the clock that the worker reads."""
    now = SimpleNamespace(seconds=1000.0)
    for module in (celery, database_activity):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


@pytest.fixture
def database(monkeypatch):
    """Return the state of the database, which is another one after each write."""
    current = SimpleNamespace(state=1)
    monkeypatch.setattr(database_activity, "_write_state", lambda: current.state)
    return current


def sweeps_until(seconds, clock, monkeypatch, write=lambda second: None):
    """Return the seconds after its start at which a worker sweeps; `write` is called once a second."""
    began, swept = clock.seconds, []

    def wait(interval):
        for _ in range(round(interval)):
            clock.seconds += 1
            write(clock.seconds - began)
        return clock.seconds - began > seconds

    monkeypatch.setattr(celery, "_stopping", SimpleNamespace(wait=wait))
    monkeypatch.setattr(celery, "sweep", lambda: swept.append(round(clock.seconds - began)))
    monkeypatch.setattr(celery, "cleanup", lambda: None)
    celery._sweep_loop()
    return swept


def test_the_worker_sweeps_every_five_seconds_until_a_minute_after_the_last_write(clock, database, monkeypatch):
    def write(second):
        if second == 22:
            database.state += 1

    assert sweeps_until(200, clock, monkeypatch, write) == [*range(5, 85, 5), 110, 140, 170, 200]


def test_the_first_write_after_a_long_rest_is_noticed_within_five_seconds(clock, database, monkeypatch):
    def write(second):
        if second == 162:
            database.state += 1

    assert sweeps_until(180, clock, monkeypatch, write)[-6:] == [120, 150, 165, 170, 175, 180]


def test_what_an_upgrade_adds_is_tried_again_until_it_succeeds(clock, database, monkeypatch):
    attempts = []

    def run_startup_backfills():
        attempts.append(clock.seconds)
        if len(attempts) < 3:
            raise OperationalError

    monkeypatch.setattr(celery, "run_startup_backfills", run_startup_backfills)
    sweeps_until(60, clock, monkeypatch)
    assert [second - attempts[0] for second in attempts] == [0, 5, 10]


@pytest.mark.parametrize("error", [OperationalError, FileNotFoundError])
def test_a_database_that_does_not_respond_counts_as_active(clock, database, monkeypatch, error):
    activity = DatabaseActivity()
    clock.seconds += 3600
    assert activity.is_recent()  # its first state
    clock.seconds += 3600
    assert not activity.is_recent()

    def fail():
        raise error

    monkeypatch.setattr(database_activity, "_write_state", fail)
    assert activity.is_recent()


def test_a_write_changes_the_state_and_reading_does_not():
    states = []

    def is_same_after(step):
        states[:] = [database_activity._write_state()]
        step()
        states.append(database_activity._write_state())
        return states[0] == states[1]

    assert not is_same_after(lambda: Space.objects.create(kind=Space.Kind.GROUP, name="Garden"))
    # Other databases of the server count as well, and other tests write to theirs.
    assert any(is_same_after(Space.objects.first) for _ in range(200))


def test_connections_are_not_kept_between_two_questions(clock):
    DatabaseActivity().is_recent()

    assert connection.connection is None
