"""One-time links, login sessions, and accounts of people at identity providers."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from cato_web.accounts.models.users import User


class OneTimeLink(models.Model):
    """A one-time link for the first account, an invitation or a new password; only the hash of its token is stored."""

    class Kind(models.TextChoices):
        SETUP = "setup"
        INVITATION = "invitation"
        RESET = "reset"

    token_hash = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    role = models.CharField(max_length=16, choices=User.Role.choices, default=User.Role.MEMBER)
    person = models.ForeignKey(
        User, null=True, on_delete=models.CASCADE, related_name="+", help_text="the account of a reset link"
    )
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")


class LoginSession(models.Model):
    """A login session as the settings page lists it; deleted together with its Django session."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_sessions")
    session = models.OneToOneField("sessions.Session", on_delete=models.CASCADE, related_name="+")
    browser = models.CharField(max_length=80, help_text="name of browser and system")
    since = models.DateTimeField()
    last_seen_at = models.DateTimeField()


class Identity(models.Model):
    """The account of a user at an OpenID Connect provider, identified by issuer and subject, which never change."""

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_person_per_identity"),
            # A provider may reassign an email address: its new owner must not get the previous owner's account.
            models.UniqueConstraint(fields=["person", "issuer"], name="one_identity_per_issuer"),
        ]
