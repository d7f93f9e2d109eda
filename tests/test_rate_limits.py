"""Events are counted within a window, in the cache that all processes share."""

from __future__ import annotations

from django.core.cache import cache

from memory.utils import rate_limits
from memory.utils.rate_limits import is_within_limit


def test_the_first_events_are_within_the_limit():
    name = "a test of the limit"

    assert [is_within_limit(name, 2, 60) for _ in range(4)] == [True, True, False, False]
    assert is_within_limit("another name", 2, 60)


def test_a_counter_that_redis_begins_between_two_calls_ends_too(monkeypatch):
    """Django's client asks Redis whether a key exists before it increases it; the key can expire in between."""
    lifetimes = {}

    class ExpiringCache:
        def add(self, key, value, timeout):
            return False

        def incr(self, key):
            lifetimes[key] = None
            return 1

        def touch(self, key, timeout):
            lifetimes[key] = timeout

    monkeypatch.setattr(rate_limits, "cache", ExpiringCache())

    assert is_within_limit("messages", 1, 60)
    assert list(lifetimes.values()) == [60]


def test_a_counter_that_expired_begins_again(monkeypatch):
    monkeypatch.setattr(cache, "incr", _raise_value_error)
    name = "an expired counter"

    assert is_within_limit(name, 1, 60)
    assert is_within_limit(name, 1, 60), "the cache had no counter any more"


def _raise_value_error(key):
    raise ValueError(key)
