"""Groups of an identity provider, mapped to groups and the role of an account at each sign-in.

What the mapping gave is taken back once the provider no longer names the group. Members that somebody added, and
administrators that somebody named, stay.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from django.conf import settings
from django.db import transaction

from cato_web.accounts import roles, services
from cato_web.accounts.models import AuditEntry, User
from chat.realtime.notifications import notify_after_commit
from memory import api as memory
from memory.api import Space

log = logging.getLogger(__name__)


@transaction.atomic
def apply_mapping(person: User, provider_groups: Collection[str] | None) -> None:
    """Give this person the groups and the role of their groups at the provider; None: these are not known."""
    conf = settings.CATO.openid
    if not conf.groups_claim or provider_groups is None:
        return
    if conf.groups:
        _synchronise_groups(person, {conf.groups[name] for name in provider_groups if name in conf.groups})
    if conf.administrators:
        roles.synchronise_role(person, is_administrator=not set(conf.administrators).isdisjoint(provider_groups))


def _synchronise_groups(person: User, names: Collection[str]) -> None:
    groups = Space.objects.filter(kind=Space.Kind.GROUP, name__in=names)
    for missing in set(names) - {group.name for group in groups}:
        log.warning("openid.groups names the group %r, which does not exist", missing)
    added, removed = memory.synchronise_memberships(person.pk, groups)
    for group_id in added:
        services.record_audit(None, AuditEntry.Action.GROUP_MEMBER_ADDED, f"{person.pk} {group_id}")
    for group_id in removed:
        services.record_audit(None, AuditEntry.Action.GROUP_MEMBER_REMOVED, f"{person.pk} {group_id}")
    if added or removed:
        notify_after_commit([person.pk])
