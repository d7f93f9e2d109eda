"""Encryption of keys and secrets that are needed in clear again, with a key derived from the installation's secret key."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


def encrypt(text: str) -> bytes:
    """Return the encrypted text; b"" for an empty one."""
    return _cipher(settings.SECRET_KEY).encrypt(text.encode()) if text else b""


def decrypt(data: bytes | memoryview) -> str:
    """Return the text; "" for an empty one, and if the secret key has changed, after which it has to be entered again."""
    if not data:
        return ""
    try:
        return _cipher(settings.SECRET_KEY).decrypt(bytes(data)).decode()
    except InvalidToken:
        return ""


@lru_cache(maxsize=2)
def _cipher(secret_key: str) -> Fernet:
    """Return the cipher of this key, which takes some 10 ms to derive and is used for every answer."""
    derived = hashlib.scrypt(secret_key.encode(), salt=b"cato.endpoint", n=2**12, r=8, p=1, dklen=32)
    return Fernet(base64.urlsafe_b64encode(derived))
