"""What can no longer be decrypted after a restore with another secret key, and what to do about it."""

from __future__ import annotations

from django.db.models import Model

from cato_web.accounts.second_factor.models import AuthenticatorApp
from cato_web.webhooks.models import Webhook
from chat.encryption import decrypt
from chat.models import Endpoint, ToolServer

# Models with the field that is encrypted, what they are called, and what to do.
_ENCRYPTED: tuple[tuple[type[Model], str, str, str], ...] = (
    (Endpoint, "encrypted_key", "model endpoints", "enter their API keys again on the settings page"),
    (ToolServer, "encrypted_token", "tool servers", "enter their tokens again"),
    (Webhook, "encrypted_secret", "webhooks", "delete and create them again"),
    (
        AuthenticatorApp,
        "secret",
        "authenticator apps",
        "run `python manage.py remove_second_factor EMAIL` for each person who has one; recovery codes are invalid, too",
    ),
)


def lost_secrets() -> list[str]:
    """Return a line for each kind of secret of which some cannot be decrypted: how many, and what to do."""
    lines = []
    for model, column, name, advice in _ENCRYPTED:
        stored = [bytes(value) for value in model._default_manager.values_list(column, flat=True)]
        count = sum(1 for value in stored if value and not decrypt(value))
        if count:
            lines.append(f"{name}: {count:,} ({advice})")
    return lines
