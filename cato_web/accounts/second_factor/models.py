"""What a person can sign in with besides the password: an authenticator app, passkeys and recovery codes."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models


class AuthenticatorApp(models.Model):
    """The app of a person that shows codes (TOTP, RFC 6238); its secret is encrypted."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="authenticator_app"
    )
    secret = models.BinaryField()
    last_step = models.BigIntegerField(
        default=0, help_text="the time step of the last accepted code; no code of it or of an earlier one is accepted"
    )
    added_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True)


class Passkey(models.Model):
    """A passkey (WebAuthn credential); only the public key is stored."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=80)
    credential_id = models.BinaryField(unique=True)
    credential = models.BinaryField(help_text="attested credential data: id and public key")
    sign_count = models.BigIntegerField(default=0, help_text="signatures so far, if the authenticator counts them")
    added_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["added_at", "id"]


class RecoveryCode(models.Model):
    """A code that replaces the second factor once; only its hash is stored."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes")
    code_hash = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["person", "code_hash"], name="one_recovery_code_per_hash")
        ]
