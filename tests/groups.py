"""Create groups and threads in them on the pages of a running Cato."""

from __future__ import annotations

import uuid

from tests.server import Cato, Client


def person_id(cato: Cato, person: Client) -> str:
    """Return the id of this person's account."""
    (found,) = cato.sql("SELECT id FROM people_user WHERE email = ?", person.email)
    return str(uuid.UUID(str(found[0])))


def make_group(cato: Cato, administrator: Client, *people: Client) -> str:
    """Create a group with these people and the administrator, who manages it; return its id."""
    name = f"Crew {uuid.uuid4().hex[:6]}"
    administrator.post("/admin/groups", {"name": name})
    (found,) = cato.sql("SELECT id FROM memory_space WHERE name = ?", name)
    group = str(uuid.UUID(str(found[0])))
    for person in people:
        administrator.post(f"/spaces/{group}/members", {"person": person_id(cato, person), "change": "add"})
    return group


def remove_from_group(cato: Cato, administrator: Client, group: str, person: Client) -> None:
    administrator.post(f"/spaces/{group}/members", {"person": person_id(cato, person), "change": "remove"})


def start_thread(person: Client, space: str, message: str) -> str:
    """Start a thread in this space; return its id."""
    sent = {"message": message, "client_key": str(uuid.uuid4()), "space": space}
    return person.post("/", sent).headers["location"].split("/")[-1].split("#")[0]
