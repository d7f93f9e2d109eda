"""How many messages a person may send."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.utils.translation import gettext as _

from chat.errors import Refused
from memory.rate_limits import within


def may_say(person_id: uuid.UUID) -> None:
    """Count a message of this person. Raises Refused above `messages_per_minute`."""
    if not within(f"say:{person_id}", settings.CATO.chat.messages_per_minute, 60):
        raise Refused(_("Too many messages. Try again in a minute; your draft is saved."))
