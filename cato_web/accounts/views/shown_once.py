"""What the page after a redirect shows once, such as a new token; until then it is in the login session, encrypted.

A page that answers a form would create another one when it is loaded again.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest

from chat.encryption import decrypt, encrypt


def keep(request: HttpRequest, name: str, shown: Any) -> None:
    """Keep what can be written as JSON under this name, for the page that the browser opens next."""
    request.session[name] = encrypt(json.dumps(shown)).decode()


def take(request: HttpRequest, name: str) -> Any:
    """Return what was kept under this name and remove it; None if nothing is kept, or the secret key has changed."""
    text = decrypt(request.session.pop(name, "").encode())
    return json.loads(text) if text else None
