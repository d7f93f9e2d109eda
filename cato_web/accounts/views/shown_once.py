"""Values that a page shows once, such as a new token; until it is opened, the login session has them, encrypted.

The response to the form is a redirect to that page: loading the response itself again would create another token.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest

from chat.encryption import decrypt, encrypt


def keep(request: HttpRequest, name: str, shown: Any) -> None:
    """Keep a value that can be written as JSON under this name, for the page to which the response redirects."""
    request.session[name] = encrypt(json.dumps(shown)).decode()


def take(request: HttpRequest, name: str) -> Any:
    """Return the value kept under this name and remove it; None if there is none, or the secret key has changed."""
    text = decrypt(request.session.pop(name, "").encode())
    return json.loads(text) if text else None
