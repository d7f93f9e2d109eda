"""What the command line asks for, what it gets back, and how it fails. Without Django, and the same beside `serve`."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SUCCESS, FAILURE, USAGE, CONFIGURATION = 0, 1, 2, 3
MAX_AGE = 30.0  # seconds for which a running Cato accepts a signed request


@dataclass(frozen=True)
class CommandRequest:
    """One action with its arguments; `user` is a name or an email address, None for the only account."""

    action: str
    user: str | None = None
    text: str = ""
    space: str | None = None
    thread: str | None = None
    model: str | None = None
    count: int = 5


@dataclass(frozen=True)
class CommandResult:
    """The result of an action: plain values for JSON, text for people, metadata, and partial errors."""

    result: Any
    text: str
    meta: Mapping[str, str | None] = field(default_factory=dict)
    error: str | None = None


class CommandFailedError(Exception):
    """An action failed."""


class UsageError(Exception):
    """The arguments are invalid."""


def sign(body: bytes, key: str, at: float | None = None) -> str:
    """Return a signature of a request, made at this time (of `time.time()`, default: now) with the secret key."""
    made_at = str(int(time.time() if at is None else at))
    digest = hmac.new(key.encode(), b"cato.cli\n" + made_at.encode() + b"\n" + body, hashlib.sha256)
    return f"{made_at}.{digest.hexdigest()}"


def is_signed(body: bytes, key: str, signature: str) -> bool:
    """Return whether the signature is that of this request and at most `MAX_AGE` old."""
    made_at, _dot, _digest = signature.partition(".")
    if not (made_at.isascii() and made_at.isdecimal() and len(made_at) < 12 and signature.isascii()):
        return False
    is_recent = abs(time.time() - int(made_at)) <= MAX_AGE
    return hmac.compare_digest(sign(body, key, int(made_at)), signature) and is_recent
