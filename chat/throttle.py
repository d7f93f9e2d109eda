"""How fast somebody may do something, counted in the cache that all processes share."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.core.cache import cache
from django.utils.translation import gettext as _

from chat.errors import Refused


def may_say(person_id: uuid.UUID) -> None:
    """Count a message of this person. Raises Refused above `messages_per_minute`."""
    if not within(f"say:{person_id}", settings.CATO.chat.messages_per_minute, 60):
        raise Refused(_("That is a lot of messages at once. Wait a minute and send it again; your text stays here."))


def within(what: str, most: int, seconds: int) -> bool:
    """Count one `what`; whether it is among the first `most` of its `seconds`. A cache that is away limits nothing."""
    from redis.exceptions import RedisError

    key = f"limit:{what}"
    try:
        cache.add(key, 0, timeout=seconds)
        return cache.incr(key) <= most
    except ValueError:  # it ran out between the two calls
        cache.set(key, 1, timeout=seconds)
        return True
    except (RedisError, OSError):
        return True
