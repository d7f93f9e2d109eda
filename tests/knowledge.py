"""Statements in a running Cato, in each of their states, created by command."""

from __future__ import annotations

from tests.server import Cato, Client

_MAKE = """
from cato_web.accounts.models import User
from memory.knowledge import decisions
from memory.models import Space
from tests.factories import exchange, statement, thread
person, space = User.objects.get(email={email!r}), Space.objects.get(pk={space!r})
where = thread(person, title="Winter power review", space=space)
def said(text):
    return exchange(person, text, space=space, thread_id=where.id)
retries = said("From now on 28 retries a day.")
current = statement(retries, said("28 retries for each buoy."), text="A buoy makes at most 28 retries a day.")
former = statement(said("40 retries."), text="A buoy makes at most 40 retries a day.")
decisions.supersede(former, by_statement=current, by=person.pk)
unconfirmed = statement(said("All six called in step."), text="Fixed intervals made all six buoys call in step.")
lid = statement(said("The lid is 3 mm thinner."), text="The lid is 3 mm thinner.", topic="Housing")
other = statement(said("The lid keeps its 8 mm."), text="The lid keeps its 8 mm.", topic="Housing")
decisions.contradict(lid, other)
word = "Donaudampfschifffahrtsgesellschaft" * 4
statement(said(word), text=word, topic=word[:60])
for name, one in dict(current=current, unconfirmed=unconfirmed, lid=lid, other=other).items():
    print("statement", name, one.pk)
"""


def create_statements(cato: Cato, person: Client, space: str) -> dict[str, str]:
    """Create statements of this person in the space: current, superseded, unconfirmed, conflicting, and a long word.

    Returns the ids of those that tests decide about: "current", "unconfirmed", and "lid" and "other", which conflict.
    """
    code = _MAKE.format(email=person.email, space=space)
    output = cato.manage("shell", "--verbosity", "0", "-c", code).stdout
    return dict(line.split()[1:] for line in output.splitlines() if line.startswith("statement "))
