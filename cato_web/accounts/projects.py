"""Create, change, archive and delete projects; every change is recorded in the audit log."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Max, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from cato_web.accounts.models import AuditEntry, User
from cato_web.accounts.services import record_audit
from chat.models import Thread
from chat.realtime.notifications import active_readers, notify_after_commit
from memory import api as memory
from memory.api import Membership, NotFoundError, Space


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project of a list; `last_message_at` is None for one without threads."""

    id: uuid.UUID
    name: str
    description: str
    member_count: int
    thread_count: int
    last_message_at: datetime | None
    is_archived: bool


def list_projects(person: User) -> list[ProjectRow]:
    """Return the projects of which the user is a member, by name."""
    rows = memory.readable_spaces(person.pk).filter(kind=Space.Kind.PROJECT)
    return [_row(space) for space in sorted(_with_counts(rows), key=lambda space: space.name.casefold())]


def project_to_change(person: User, project_id: uuid.UUID) -> Space:
    """Return a project that the user manages. Raises NotFoundError, and PermissionDenied for its other members."""
    project = memory.get_space(person.pk, project_id)
    if not project.is_project:
        raise NotFoundError(_("Not found."))
    if not memory.manages_space(person.pk, project):
        raise PermissionDenied(_("Only managers of this project change it. Ask one of them."))
    return project


@transaction.atomic
def create(name: str, description: str, *, by: User) -> Space:
    """Create a project, managed by its creator. Raises InvalidInputError."""
    return memory.create_project(name, description=description, by=by.pk)


@transaction.atomic
def change(project: Space, *, name: str, description: str, recall_mode: str, by: User) -> None:
    """Change the name, the description and the recall mode. Raises InvalidInputError."""
    memory.change_project(project, name=name, description=description, recall_mode=recall_mode)
    record_audit(by, AuditEntry.Action.PROJECT_CHANGED, str(project.id))
    notify_after_commit(active_readers(project))


@transaction.atomic
def archive(project: Space, *, by: User) -> None:
    """Close the project for new contents."""
    memory.archive_project(project)
    record_audit(by, AuditEntry.Action.PROJECT_ARCHIVED, str(project.id))
    notify_after_commit(active_readers(project))


@transaction.atomic
def reopen(project: Space, *, by: User) -> None:
    """Open an archived project again."""
    memory.reopen_project(project)
    record_audit(by, AuditEntry.Action.PROJECT_REOPENED, str(project.id))
    notify_after_commit(active_readers(project))


def _with_counts(projects: QuerySet[Space]) -> QuerySet[Any]:
    members = Membership.objects.filter(space=OuterRef("pk"), person__is_active=True).order_by().values("space")
    threads = Thread.objects.filter(space=OuterRef("pk"), deleted_at=None).order_by().values("space")
    counted: QuerySet[Any] = projects.annotate(
        member_count=Subquery(members.annotate(count=Count("pk")).values("count")),
        thread_count=Subquery(threads.annotate(count=Count("pk")).values("count")),
        last_message_at=Subquery(threads.annotate(last=Max("last_message_at")).values("last")),
    )
    return counted


def _row(project: Any) -> ProjectRow:
    return ProjectRow(
        id=project.pk,
        name=project.name,
        description=project.description,
        member_count=project.member_count or 0,
        thread_count=project.thread_count or 0,
        last_message_at=project.last_message_at,
        is_archived=project.archived_at is not None,
    )
