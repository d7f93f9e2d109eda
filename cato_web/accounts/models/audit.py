"""The audit log."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models
from django.utils.translation import gettext_lazy as _

from cato_web.accounts.acting_token import current_token_id
from cato_web.accounts.models.users import User


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
        OPERATION_STARTED = "operation.started", _("started a maintenance task")
        PASSWORD_CHANGED = "password.changed", _("changed password")
        SETTINGS_CHANGED = "settings.changed", _("changed settings")
        PERSON_DEACTIVATED = "person.deactivated", _("deactivated")
        DOCUMENT_DELETED = "document.deleted", _("deleted a document")
        ACCOUNT_DELETED = "account.deleted", _("deleted own account")
        GROUP_DELETED = "group.deleted", _("deleted a group or project")
        SESSION_ENDED = "session.ended", _("ended a sign-in")
        PERSON_EXPORTED = "person.exported", _("exported a person's data")
        THREAD_EXPORTED = "thread.exported", _("exported a thread")
        EXCHANGES_EXPORTED = "exchanges.exported", _("exported exchanges")
        ACCOUNT_EXPORTED = "account.exported", _("exported own data")
        EXCHANGE_FORGOTTEN = "exchange.forgotten", _("forgot an exchange")
        SPACE_REVEAL_ENDED = "space.reveal_ended", _("ended access to a space")
        INVITATION_CREATED = "invitation.created", _("invited")
        PERSON_JOINED = "person.joined", _("joined")
        GROUP_LEFT = "group.left", _("left a group or project")
        GROUP_CREATED = "group.created", _("created a group")
        PROJECT_CREATED = "project.created", _("created a project")
        PROJECT_CHANGED = "project.changed", _("changed a project")
        PROJECT_ARCHIVED = "project.archived", _("archived a project")
        PROJECT_REOPENED = "project.reopened", _("reopened a project")
        PASSWORD_LINK_CREATED = "password_link.created", _("created a password link")
        TOKEN_AUTHORIZED = "token.authorized", _("connected an app")
        TOKEN_CREATED = "token.created", _("created a token")
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
        RECOVERY_CODES_CREATED = "recovery_codes.created", _("created recovery codes")
        RECOVERY_CODE_USED = "recovery_code.used", _("used a recovery code")
        SECOND_FACTOR_REMOVED = "second_factor.removed", _("removed a second factor")
        SPACE_REVEALED = "space.revealed", _("got access to a space")
        LINK_REVOKED = "link.revoked", _("revoked a link")
        LINK_ALL_REVOKED = "link.all_revoked", _("revoked links created by")
        RETENTION_CHANGED = "retention.changed", _("set retention")
        SESSION_STARTED_BY_OPENID = "session.started_by_openid", _("signed in with OpenID Connect")
        SESSION_STARTED_BY_LDAP = "session.started_by_ldap", _("signed in with the directory")
        SESSION_OTHERS_ENDED = "session.others_ended", _("signed out elsewhere")
        GROUP_MEMBER_REMOVED = "group.member_removed", _("removed from a group or project")
        TOKEN_REVOKED = "token.revoked", _("revoked a token")
        WEBHOOK_CREATED = "webhook.created", _("created a webhook")
        WEBHOOK_DELETED = "webhook.deleted", _("deleted a webhook")
        WEBHOOK_ENABLED = "webhook.enabled", _("enabled a webhook again")
        # Only written by earlier versions.
        INVITATION_REVOKED = "invitation.revoked", _("revoked an invitation")

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
