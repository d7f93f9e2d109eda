"""API tokens of people in a running Cato, created by command."""

from __future__ import annotations

from tests.server import Cato, Client

_MAKE = """
from cato_web.accounts.models import User
from cato_web.accounts.tokens import create_token
person = User.objects.get(email={email!r})
for scopes in {scopes!r}:
    print("token", create_token(person, name="test", scopes=scopes, days=None))
"""


def create_tokens(cato: Cato, person: Client, *scopes: str) -> list[str]:
    """Create one token of this person for each item of `scopes`, whose words are separated by spaces."""
    code = _MAKE.format(email=person.email, scopes=[names.split() for names in scopes])
    output = cato.manage("shell", "--verbosity", "0", "-c", code).stdout
    return [line.split()[1] for line in output.splitlines() if line.startswith("token ")]
