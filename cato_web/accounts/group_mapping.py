"""Groups of an identity provider or a directory, mapped to groups and the role of an account at each sign-in.

What the mapping gave is taken back once the person is no longer in the group. Members that somebody added, and
administrators that somebody named, stay.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from django.db import transaction

from cato_web.accounts import roles, services
from cato_web.accounts.models import AuditEntry, User
from chat.realtime.notifications import notify_after_commit
from memory import api as memory
from memory.api import Space

log = logging.getLogger(__name__)


@transaction.atomic
def apply_mapping(
    person: User, names: Collection[str], *, groups: Mapping[str, str], administrators: Collection[str]
) -> None:
    """Give this person the groups and the role that belong to the groups in which the other system has them.

    `groups` has the name of a group here for that of a group there. Members of `administrators` become administrators.
    """
    if groups:
        _synchronise_groups(person, {groups[name] for name in names if name in groups})
    if administrators:
        roles.synchronise_role(person, is_administrator=not set(administrators).isdisjoint(names))


def _synchronise_groups(person: User, names: Collection[str]) -> None:
    groups = Space.objects.filter(kind=Space.Kind.GROUP, name__in=names)
    for missing in set(names) - {group.name for group in groups}:
        log.warning("the configuration names the group %r, which does not exist", missing)
    added, removed = memory.synchronise_memberships(person.pk, groups)
    for group_id in added:
        services.record_audit(None, AuditEntry.Action.GROUP_MEMBER_ADDED, f"{person.pk} {group_id}")
    for group_id in removed:
        services.record_audit(None, AuditEntry.Action.GROUP_MEMBER_REMOVED, f"{person.pk} {group_id}")
    if added or removed:
        notify_after_commit([person.pk])
