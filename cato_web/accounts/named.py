"""The account that somebody names on a command line."""

from __future__ import annotations

from cato_web.accounts.models import User


class UserLookupError(Exception):
    """No account, or more than one, goes by the name; the message says which."""


def get_user_by_name(name: str) -> User:
    """The active account with this e-mail or name, whatever its case. Raises UserLookupError."""
    people = User.objects.filter(is_active=True)
    found = list((people.filter(email__iexact=name) or people.filter(name__iexact=name))[:2])
    if not found:
        raise UserLookupError(f"There is no account {name}.")
    if len(found) > 1:
        raise UserLookupError(f"Several are called {name}; give the e-mail.")
    return found[0]
