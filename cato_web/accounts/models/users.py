"""User accounts and their preferences."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _


class UserManager(BaseUserManager["User"]):
    """Manager that finds users by email, ignoring case."""

    def get_by_natural_key(self, username: str | None) -> User:
        """Return the user with this email address, ignoring case."""
        return self.get(email__iexact=(username or "").strip())


class User(AbstractBaseUser):
    """A user account; raising `epoch` ends its login sessions and open pages.

    A deleted account keeps its row without a name, because turns in shared spaces and the audit log refer to it.
    """

    class Role(models.TextChoices):
        MEMBER = "member", _("Member")
        ADMINISTRATOR = "administrator", _("Administrator")

    class Theme(models.TextChoices):
        SYSTEM = "", _("System")
        LIGHT = "light", _("Light")
        DARK = "dark", _("Dark")

    class Density(models.TextChoices):
        COMFORTABLE = "", _("Comfortable")
        COMPACT = "compact", _("Compact")

    class ContextMode(models.TextChoices):
        SUMMARY = "summary", _("Collapsed")
        ON = "on", _("Expanded")
        OFF = "off", _("Nothing")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=80)
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.MEMBER)
    is_role_synchronised = models.BooleanField(
        default=False, help_text="administrator because of a group at the identity provider, which takes it back"
    )
    is_active = models.BooleanField(default=True)
    epoch = models.PositiveIntegerField(default=0)
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.SYSTEM, blank=True)
    density = models.CharField(max_length=8, choices=Density.choices, default=Density.COMFORTABLE, blank=True)
    context_mode = models.CharField(max_length=8, choices=ContextMode.choices, blank=True, default="")
    default_model = models.CharField(
        max_length=120, blank=True, default="", help_text="model of new threads; empty: the configured model"
    )
    is_notified = models.BooleanField(
        default=False, help_text="notify about answers that complete while the person is elsewhere"
    )
    detects_instructions = models.BooleanField(
        default=True, help_text="detect standing instructions in the person's messages"
    )
    shows_presence = models.BooleanField(
        default=True, help_text="show others when the person is viewing a thread, and the person the others"
    )
    joined_at = models.DateTimeField(auto_now_add=True)
    left_at = models.DateTimeField(null=True, help_text="when the account was deleted")

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["name"]
    objects: ClassVar[UserManager] = UserManager()

    @property
    def is_administrator(self) -> bool:
        """Return True for administrators."""
        return self.role == self.Role.ADMINISTRATOR

    @property
    def requires_second_factor(self) -> bool:
        """Return whether a person of this role can only sign in with a second factor."""
        required_of = settings.CATO.sign_in.require_second_factor
        return required_of == "everyone" or (required_of == "administrators" and self.is_administrator)

    @property
    def initials(self) -> str:
        """Return up to two letters for the avatar."""
        return _initials_of(self.name)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Return the hash that a login session stores and that each request compares.

        A requirement of a second factor changes it: login sessions from before, which may be without one, end.
        """
        salt = "cato_web.accounts.models.User"
        value = f"{self.epoch} {self.password}{' second factor' if self.requires_second_factor else ''}"
        return str(salted_hmac(salt, value, secret=secret, algorithm="sha256").hexdigest())

    def __str__(self) -> str:
        return self.name


def _initials_of(name: str) -> str:
    """Return two letters of `name`, or its first character in a script without letter case."""
    words = [word for word in name.split() if word[0].isalpha()] or [name or "?"]
    if words[0][0].lower() == words[0][0].upper():
        return words[0][0]
    return (words[0][0] + (words[-1][0] if len(words) > 1 else words[0][1:2])).upper()
