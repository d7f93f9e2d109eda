"""Describe the audience of a space."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.models import Space
from memory.spaces import access


def audience_text(space: Space) -> str:
    """Return a sentence with the number of people who can read the space now."""
    if space.kind == Space.Kind.PERSONAL:
        return _("Only you can read it.")
    people = get_user_model().objects.filter(is_active=True)
    count = access.readers(space, people).count()
    return ngettext("%(count)s person can read it.", "%(count)s people can read it.", count) % {"count": count}
