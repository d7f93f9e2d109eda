"""Rate limits, counted in the cache that all processes share."""

from __future__ import annotations

import hashlib
import time
import uuid

from django.conf import settings
from django.core.cache import cache
from django.utils.translation import gettext as _

from memory.errors import RateLimit, RateLimitedError
from memory.utils.formatting import format_number


def count_search(person_id: uuid.UUID) -> None:
    """Count a person's search on a page. Raises RateLimitedError above `searches_per_minute`."""
    if not is_within_limit(f"search:{person_id}", settings.CATO.vector_store.searches_per_minute, 60):
        raise RateLimitedError(_("Too many searches. Try again in a minute."))


def count_message(person_id: uuid.UUID) -> None:
    """Count a person's message. Raises RateLimitedError above `messages_per_minute`."""
    if not is_within_limit(f"say:{person_id}", settings.CATO.chat.messages_per_minute, 60):
        raise RateLimitedError(_("Too many messages. Try again in a minute."))


def count_web_search(person_id: uuid.UUID) -> None:
    """Count a search of the web for a person's message. Raises RateLimitedError above `searches_per_hour`."""
    most = settings.CATO.web_search.searches_per_hour
    if not is_within_limit(f"web:{person_id}", most, 3600):
        sentence = _("the limit of %(count)s searches in an hour is reached. Try again later.")
        raise RateLimitedError(sentence % {"count": format_number(most)})


def count_api_request(token_id: uuid.UUID) -> RateLimit:
    """Count a request with this API token. Raises RateLimitedError above `requests_per_minute`."""
    most = settings.CATO.api.requests_per_minute
    count = _count(f"api:{token_id}", 60)
    limit = RateLimit(most, max(0, most - count), _seconds_left(f"limit:end:{token_id}", 60, is_first=count == 1))
    if count > most:
        raise RateLimitedError(_("Rate limit exceeded for this token. Try again in a minute."), limit)
    return limit


def is_within_limit(name: str, limit: int, seconds: int) -> bool:
    """Count one event called `name`; return True if it is among the first `limit` within `seconds`.

    Without a cache server nothing is limited.
    """
    return _count(name, seconds) <= limit


def _count(name: str, seconds: int) -> int:
    """Count one event called `name`; return the number within `seconds`, or 0 if it is unknown."""
    from redis.exceptions import RedisError

    # Hash the key, because it may contain form input. Caches show their keys, and log warnings about unusual ones.
    key = f"limit:{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()}"
    try:
        if cache.add(key, 1, timeout=seconds):
            return 1
        count = int(cache.incr(key))
        if count == 1:  # the key expired meanwhile, and Redis began another one without an end
            cache.touch(key, seconds)
        return count
    except ValueError:  # the key expired between the two calls
        cache.set(key, 1, timeout=seconds)
        return 1
    except (RedisError, OSError):
        return 0


def _seconds_left(key: str, seconds: int, *, is_first: bool) -> int:
    """Return the seconds until counting begins again; `is_first`: the event that has just been counted began it."""
    from redis.exceptions import RedisError

    now = int(time.time())
    try:
        if is_first:
            cache.set(key, now + seconds, timeout=seconds)
            return seconds
        return min(seconds, max(1, int(cache.get(key, now + seconds)) - now))
    except (RedisError, OSError):
        return seconds
