"""Who may see something: a person, a group, the team."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Space(models.Model):
    """Who may see something: one person, a group, or the team."""

    class Kind(models.TextChoices):
        OWN = "own", _("Only you")
        GROUP = "group", _("Group")
        TEAM = "team", _("Everyone")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=5, choices=Kind.choices)
    name = models.CharField(max_length=80, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    members: models.ManyToManyField[models.Model, Membership] = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="+"
    )

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
    def shown_name(self) -> str:
        """What people call it: a group by its name, the others by who reads them."""
        return self.name if self.kind == self.Kind.GROUP else self.get_kind_display()


class Membership(models.Model):
    """A person in a group, as a member or as one of its managers."""

    class Role(models.TextChoices):
        MEMBER = "member", _("Member")
        MANAGER = "manager", _("Manager")

    space = models.ForeignKey(Space, on_delete=models.CASCADE)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["space", "person"], name="in_a_group_once")]


class MembershipChange(models.Model):
    """A change of who is in a group, shown to its members; rows are only added, and removed with the group."""

    class Kind(models.TextChoices):
        CREATED = "created"
        ADDED = "added"
        REMOVED = "removed"
        MADE_MANAGER = "made_manager"
        MADE_MEMBER = "made_member"

    space = models.ForeignKey(Space, on_delete=models.CASCADE, related_name="membership_changes")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    at = models.DateTimeField(auto_now_add=True)
