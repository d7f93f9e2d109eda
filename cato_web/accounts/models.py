"""Users, one-time links, login sessions, API tokens, account deletions, exports and the audit log."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar, NoReturn

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _

from cato_web.accounts.acting_token import current_token_id
from cato_web.accounts.second_factor.models import AuthenticatorApp as AuthenticatorApp
from cato_web.accounts.second_factor.models import Passkey as Passkey
from cato_web.accounts.second_factor.models import RecoveryCode as RecoveryCode
from memory.models import Job


class UserManager(BaseUserManager["User"]):
    """Manager that finds users by e-mail, ignoring case."""

    def get_by_natural_key(self, username: str | None) -> User:
        """Return the user with this e-mail address, ignoring case."""
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
        return initials_of(self.name)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Return the hash that a login session stores and that each request compares.

        A requirement of a second factor changes it: login sessions from before, which may be without one, end.
        """
        salt = "cato_web.accounts.models.User"
        value = f"{self.epoch} {self.password}{' second factor' if self.requires_second_factor else ''}"
        return str(salted_hmac(salt, value, secret=secret, algorithm="sha256").hexdigest())

    def __str__(self) -> str:
        return self.name


def initials_of(name: str) -> str:
    """Return two letters of `name`, or its first character in a script without letter case."""
    words = [word for word in name.split() if word[0].isalpha()] or [name or "?"]
    if words[0][0].lower() == words[0][0].upper():
        return words[0][0]
    return (words[0][0] + (words[-1][0] if len(words) > 1 else words[0][1:2])).upper()


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
            # A provider may reassign an e-mail address: its new owner must not get the previous owner's account.
            models.UniqueConstraint(fields=["person", "issuer"], name="one_identity_per_issuer"),
        ]


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """API tokens."""

    def valid(self) -> ApiTokenQuerySet:
        """Exclude expired tokens and those of inactive accounts."""
        not_expired = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        return self.filter(not_expired, person__is_active=True)


class ApiToken(models.Model):
    """A token that authenticates a client as its owner, within scopes; only its hash is stored.

    A revoked token is deleted.
    """

    class Scope(models.TextChoices):
        READ = "read", _("Read: search, recall, list and open")
        WRITE = "write", _("Write: add, change and forget")
        ASK = "ask", _("Ask: talk with the model")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80, help_text="purpose, entered by the owner")
    token_hash = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12, help_text="first characters, shown to the owner")
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True, help_text="accurate to a minute")

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]


class IdempotencyKey(models.Model):
    """A key that a client sent with a request, and what this request created; kept for a day.

    Only ids are stored, so that a repeated request returns nothing that was forgotten since.
    """

    api_token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="idempotency_keys")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of the path and the content of the request")
    object_ids = models.JSONField(default=list, help_text="ids of what the request created")
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["api_token", "key"], name="a_key_is_one_request")]


class AccountDeletion(Job):
    """An account deletion: what the account contained, and the job that removes it.

    Only the hash of the receipt's token is stored.
    """

    person = models.OneToOneField(User, on_delete=models.PROTECT, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    emptied_at = models.DateTimeField(null=True, help_text="when all contents had been removed")
    login_sessions = models.PositiveIntegerField()
    threads = models.PositiveIntegerField()
    exchanges = models.PositiveIntegerField()
    documents = models.PositiveIntegerField()


EXPORTS = "exports"  # the folder of archives


class ExportJob(Job):
    """The archive of a person's data: how far a worker is with it, and its file until it expires.

    The file contains nothing that was forgotten later: it is deleted once its rows have another `fingerprint`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.OneToOneField(User, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField()
    selected_at = models.DateTimeField(null=True, help_text="the archive has the rows that existed at this time")
    finished_at = models.DateTimeField(null=True)
    total = models.PositiveIntegerField(null=True, help_text="number of entries, once counted")
    read = models.PositiveIntegerField(default=0, help_text="number of entries in the archive until now")
    file = models.FileField(upload_to=EXPORTS, max_length=120, blank=True)
    size = models.PositiveBigIntegerField(default=0, help_text="bytes")
    fingerprint = models.CharField(max_length=64, blank=True, help_text="of the rows of the archive")
    is_outdated = models.BooleanField(default=False, help_text="its file was deleted because rows were forgotten")
    is_check_due = models.BooleanField(default=False, help_text="something was forgotten since the last check")

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=models.Q(state="pending"), name="export_due")]


class AuditEntryQuerySet(models.QuerySet["AuditEntry"]):
    """Audit entries, which can only be added."""

    def update(self, **kwargs: object) -> NoReturn:
        """Refuse: entries are only added."""
        raise TypeError("The audit log is only ever added to.")

    def delete(self) -> NoReturn:
        """Refuse: entries are only added."""
        raise TypeError("The audit log is only ever added to.")


class AuditEntry(models.Model):
    """One action: actor, target and time, without any text of exchanges. Entries can only be added."""

    class Action(models.TextChoices):
        """The stored code of an action, with the label that pages show."""

        PERSON_ACTIVATED = "person.activated", _("activated")
        GROUP_MEMBER_ADDED = "group.member_added", _("added to a group or project")
        OPERATION_STARTED = "operation.started", _("began an operation")
        PASSWORD_CHANGED = "password.changed", _("changed password")
        SETTINGS_CHANGED = "settings.changed", _("changed settings")
        PERSON_DEACTIVATED = "person.deactivated", _("deactivated")
        DOCUMENT_DELETED = "document.deleted", _("deleted a document")
        ACCOUNT_DELETED = "account.deleted", _("deleted own account")
        GROUP_DELETED = "group.deleted", _("deleted a group or project")
        SESSION_ENDED = "session.ended", _("ended a sign-in")
        PERSON_EXPORTED = "person.exported", _("exported a person")
        THREAD_EXPORTED = "thread.exported", _("exported a thread")
        EXCHANGES_EXPORTED = "exchanges.exported", _("exported exchanges")
        ACCOUNT_EXPORTED = "account.exported", _("exported own data")
        EXCHANGE_FORGOTTEN = "exchange.forgotten", _("forgot an exchange")
        SPACE_REVEAL_ENDED = "space.reveal_ended", _("hid a space again")
        INVITATION_CREATED = "invitation.created", _("invited")
        PERSON_JOINED = "person.joined", _("joined")
        GROUP_LEFT = "group.left", _("left a group or project")
        GROUP_CREATED = "group.created", _("made a group")
        PROJECT_CREATED = "project.created", _("made a project")
        PROJECT_CHANGED = "project.changed", _("changed a project")
        PROJECT_ARCHIVED = "project.archived", _("archived a project")
        PROJECT_REOPENED = "project.reopened", _("reopened a project")
        PASSWORD_LINK_CREATED = "password_link.created", _("made a password link")
        TOKEN_AUTHORIZED = "token.authorized", _("connected an app")
        TOKEN_CREATED = "token.created", _("made a token")
        PERSON_MADE_ADMINISTRATOR = "person.made_administrator", _("made administrator")
        GROUP_MADE_MANAGER = "group.made_manager", _("made manager of a group or project")
        GROUP_MADE_MEMBER = "group.made_member", _("made member of a group or project")
        PERSON_MADE_MEMBER = "person.made_member", _("made member")
        DOCUMENT_MOVED = "document.moved", _("moved a document")
        THREAD_MOVED = "thread.moved", _("moved a thread")
        GROUP_RENAMED = "group.renamed", _("renamed a group")
        AUTHENTICATOR_APP_ADDED = "authenticator_app.added", _("added an authenticator app")
        AUTHENTICATOR_APP_REMOVED = "authenticator_app.removed", _("removed an authenticator app")
        PASSKEY_ADDED = "passkey.added", _("added a passkey")
        PASSKEY_DELETED = "passkey.deleted", _("deleted a passkey")
        RECOVERY_CODES_CREATED = "recovery_codes.created", _("made recovery codes")
        RECOVERY_CODE_USED = "recovery_code.used", _("used a recovery code")
        SECOND_FACTOR_REMOVED = "second_factor.removed", _("removed a second factor")
        SPACE_REVEALED = "space.revealed", _("revealed a space")
        LINK_REVOKED = "link.revoked", _("revoked a link")
        LINK_ALL_REVOKED = "link.all_revoked", _("revoked links made by")
        RETENTION_CHANGED = "retention.changed", _("set retention")
        SESSION_STARTED_BY_OPENID = "session.started_by_openid", _("signed in by OpenID Connect")
        SESSION_STARTED_BY_LDAP = "session.started_by_ldap", _("signed in by the directory")
        SESSION_OTHERS_ENDED = "session.others_ended", _("signed out elsewhere")
        GROUP_MEMBER_REMOVED = "group.member_removed", _("took out of a group or project")
        TOKEN_REVOKED = "token.revoked", _("withdrew a token")
        WEBHOOK_CREATED = "webhook.created", _("made a webhook")
        WEBHOOK_DELETED = "webhook.deleted", _("deleted a webhook")
        WEBHOOK_ENABLED = "webhook.enabled", _("enabled a webhook again")
        # Only written by earlier versions.
        INVITATION_REVOKED = "invitation.revoked", _("withdrew an invitation")

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    action = models.CharField(max_length=40, choices=Action.choices)
    target = models.CharField(max_length=200)
    # No foreign key: entries do not change when a token is revoked.
    token_id = models.UUIDField(
        null=True,
        default=current_token_id,
        help_text="the API token through which a program acted; it may have been revoked",
    )

    objects = AuditEntryQuerySet.as_manager()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the entry; refuse changes."""
        if not self._state.adding:
            raise TypeError("The audit log is only ever added to.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: entries are only added."""
        raise TypeError("The audit log is only ever added to.")
