"""Spaces, the unit of access control, and the members of groups and projects."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Space(models.Model):
    """A space of one person, of a group, of a project, or of the team; it determines who can read its contents.

    Administrators create groups, and every person can create projects. The last three fields are those of projects:
    `archived_at` is when a project was closed for new contents.
    """

    class Kind(models.TextChoices):
        PERSONAL = "own", _("Only you")
        GROUP = "group", _("Group")
        PROJECT = "project", _("Project")
        TEAM = "team", _("Everyone")

    class RecallMode(models.TextChoices):
        PROJECT_ONLY = "only", _("This project only")
        PROJECT_FIRST = "first", _("This project first")
        SHARED = "shared", _("Everything its members share")

    WITH_MEMBERS = (Kind.GROUP, Kind.PROJECT)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=7, choices=Kind.choices)
    name = models.CharField(max_length=80, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    members: models.ManyToManyField[models.Model, Membership] = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="+"
    )
    description = models.CharField(max_length=500, blank=True)
    recall_mode = models.CharField(max_length=6, choices=RecallMode.choices, default=RecallMode.PROJECT_FIRST)
    archived_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner"], condition=Q(kind="own"), name="one_own_space_a_person"),
            models.UniqueConstraint(fields=["kind"], condition=Q(kind="team"), name="one_team_space"),
            models.CheckConstraint(
                condition=Q(kind="own", owner__isnull=False) | Q(owner__isnull=True) & ~Q(kind="own"),
                name="only_own_spaces_have_an_owner",
            ),
        ]

    @property
    def display_name(self) -> str:
        """Return the name of a group or project, or the label of the audience for other spaces."""
        return self.name if self.has_members else str(self.Kind(self.kind).label)

    @property
    def has_members(self) -> bool:
        """Return True for a group or project, whose readers are its members."""
        return self.kind in self.WITH_MEMBERS

    @property
    def is_project(self) -> bool:
        """Return True for a project."""
        return self.kind == self.Kind.PROJECT


class Membership(models.Model):
    """A person's membership of a group or project, with the role of member or manager."""

    class Role(models.TextChoices):
        MEMBER = "member", _("Member")
        MANAGER = "manager", _("Manager")

    space = models.ForeignKey(Space, on_delete=models.CASCADE)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.MEMBER)
    is_synchronised = models.BooleanField(
        default=False, help_text="from the identity provider, which takes it back; others decide about all others"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["space", "person"], name="in_a_group_once")]


class MembershipChange(models.Model):
    """A change of the members of a space, shown to them; rows are only added, and are deleted with the space."""

    class Kind(models.TextChoices):
        CREATED = "created"
        ADDED = "added"
        REMOVED = "removed"
        MADE_MANAGER = "made_manager"
        MADE_MEMBER = "made_member"
        SYNCHRONISED_IN = "sync_in"
        SYNCHRONISED_OUT = "sync_out"

    space = models.ForeignKey(Space, on_delete=models.CASCADE, related_name="membership_changes")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    at = models.DateTimeField(auto_now_add=True)
