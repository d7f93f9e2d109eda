"""The names of the people, spaces, tokens and models to which usage and limits belong."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from cato_web.accounts.models import ApiToken, User
from chat.models import UsageDay, UsageLimit
from memory import api as memory
from memory.api import Space


def names_of(dimension: str, keys: Iterable[Any], *, reader_id: uuid.UUID | None = None) -> dict[Any, str]:
    """Return the names of the keys of a dimension of usage; None is what belongs to none.

    `reader_id` is the person to whom they are shown, who learns no names of spaces that they cannot read; None for
    administrators.
    """
    keys = list(keys)
    if dimension == "model":
        return {key: key for key in keys}
    if dimension == "purpose":
        return {key: str(UsageDay.Purpose(key).label) for key in keys}
    ids = [key for key in keys if key is not None]
    known, missing, none = _READERS[dimension](ids)
    if dimension == "space" and reader_id is not None:
        known = {id: known[id] for id in known.keys() & memory.readable_space_ids(reader_id)}
        missing = _("A space that is deleted, or that you no longer read")
    return {key: none if key is None else known.get(key, missing) for key in keys}


def limit_name(limit: UsageLimit) -> str:
    """Return the name of what a limit applies to."""
    if limit.target_id is None:
        return str(UsageLimit.Target.EVERYONE.label)
    return names_of(limit.target, [limit.target_id])[limit.target_id]


def _people(ids: list[uuid.UUID]) -> tuple[dict[uuid.UUID, str], str, str]:
    names = dict(User.objects.filter(pk__in=ids).values_list("pk", "name"))
    return names, _("Deleted person"), _("Nobody, or deleted people")


def _spaces(ids: list[uuid.UUID]) -> tuple[dict[uuid.UUID, str], str, str]:
    spaces = Space.objects.filter(pk__in=ids).select_related("owner")
    names = {
        space.pk: _("Personal: %(name)s") % {"name": space.owner} if space.owner_id else space.display_name
        for space in spaces
    }
    return names, _("Deleted space"), _("No space, or deleted people")


def _tokens(ids: list[uuid.UUID]) -> tuple[dict[uuid.UUID, str], str, str]:
    tokens = ApiToken.objects.filter(pk__in=ids).select_related("person")
    names = {token.pk: f"{token.name} ({token.person.name})" for token in tokens}
    return names, _("Revoked token"), _("No token")


_READERS = {"person": _people, "space": _spaces, "token": _tokens}
