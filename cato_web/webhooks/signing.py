"""Signatures of requests, as the Standard Webhooks specification describes them (standardwebhooks.com)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

_PREFIX = "whsec_"


def new_secret() -> str:
    """Return a random signing secret, as receivers enter it."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(secret: str, *, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that identify a message and prove its origin. `timestamp`: seconds since 1970."""
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signature = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }
