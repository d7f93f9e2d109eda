"""API tokens, and the keys that make repeated requests of a client one."""

from __future__ import annotations

import uuid

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from cato_web.accounts.models.users import User


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
