"""The remaining time of a queue follows from how fast it became shorter."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.utils import translation

from memory.utils import remaining_time
from memory.utils.formatting import format_remaining
from memory.utils.remaining_time import estimate_remaining


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that sets the clock."""
    return lambda seconds: monkeypatch.setattr(remaining_time.time, "monotonic", lambda: seconds)


def test_the_estimate_needs_progress_and_ten_seconds(at: Callable[[float], None]) -> None:
    queue = uuid4()
    at(0)
    assert estimate_remaining(queue, 100) is None
    at(5)
    assert estimate_remaining(queue, 95) is None
    at(20)
    assert estimate_remaining(queue, 80) == 80
    assert estimate_remaining(uuid4(), 80) is None, "queues are independent"


def test_the_estimate_follows_the_last_ten_minutes_and_starts_again_when_the_queue_grows(
    at: Callable[[float], None],
) -> None:
    queue = uuid4()
    for seconds, waiting in ((0, 1000), (600, 990), (1200, 390)):
        at(seconds)
        estimate = estimate_remaining(queue, waiting)
    assert estimate == 390
    at(1210)
    assert estimate_remaining(queue, 5000) is None
    at(1230)
    assert estimate_remaining(queue, 4980) == 4980


@pytest.mark.parametrize(
    ("seconds", "english", "german"),
    [
        (None, "", ""),
        (20, "about a minute left", "noch etwa eine Minute"),
        (130, "about 3 minutes left", "noch etwa 3 Minuten"),
        (10_000, "about 3 hours left", "noch etwa 3 Stunden"),
    ],
)
def test_the_remaining_time_is_rounded_up_in_words(seconds: float | None, english: str, german: str) -> None:
    assert format_remaining(seconds) == english
    with translation.override("de"):
        assert format_remaining(seconds) == german
