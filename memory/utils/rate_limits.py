"""Rate limits, counted in the cache that all processes share."""

from __future__ import annotations

import hashlib
import uuid

from django.conf import settings
from django.core.cache import cache
from django.utils.translation import gettext as _

from memory.errors import RateLimitedError


def count_search(person_id: uuid.UUID) -> None:
    """Count a person's search on a page. Raises RateLimitedError above `searches_per_minute`."""
    if not is_within_limit(f"search:{person_id}", settings.CATO.vector_store.searches_per_minute, 60):
        raise RateLimitedError(_("Too many searches. Try again in a minute."))


def count_message(person_id: uuid.UUID) -> None:
    """Count a person's message. Raises RateLimitedError above `messages_per_minute`."""
    if not is_within_limit(f"say:{person_id}", settings.CATO.chat.messages_per_minute, 60):
        raise RateLimitedError(_("Too many messages. Try again in a minute; your draft is saved."))


def count_api_request(token_id: uuid.UUID) -> None:
    """Count a request with this API token. Raises RateLimitedError above `requests_per_minute`."""
    if not is_within_limit(f"api:{token_id}", settings.CATO.api.requests_per_minute, 60):
        raise RateLimitedError(_("Rate limit exceeded for this token. Try again in a minute."))


def is_within_limit(name: str, limit: int, seconds: int) -> bool:
    """Count one event called `name`; return True if it is among the first `limit` within `seconds`.

    Without a cache server nothing is limited.
    """
    from redis.exceptions import RedisError

    # Hash the key, because it may contain form input. Caches show their keys, and log warnings about unusual ones.
    key = f"limit:{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()}"
    try:
        cache.add(key, 0, timeout=seconds)
        return cache.incr(key) <= limit
    except ValueError:  # the key expired between the two calls
        cache.set(key, 1, timeout=seconds)
        return True
    except (RedisError, OSError):
        return True
