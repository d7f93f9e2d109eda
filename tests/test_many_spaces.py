"""A person in very many spaces: each page works, and takes as many statements as with few."""

from __future__ import annotations

import pytest
from django.db import connection, reset_queries
from django.test.utils import CaptureQueriesContext

from memory.models import Membership, Space
from tests.factories import AdministratorFactory, exchange, signed_in, thread

pytestmark = pytest.mark.django_db
MANY = 1_100  # SQLite combines at most 500 parts of a statement, and nests conditions at most 1,000 deep


def administrator_in(count: int):
    """Return an administrator in this many groups, with a thread and a note in the last two."""
    person = AdministratorFactory()
    groups = Space.objects.bulk_create(Space(kind=Space.Kind.GROUP, name=f"Group {n:04}") for n in range(count))
    Membership.objects.bulk_create(Membership(space=space, person=person) for space in groups)
    for space in groups[-2:]:
        thread(person, space=space, title=f"The lamp of {space.name}")
        exchange(person, f"The lamp of {space.name} is green.", space=space)
    return person


def statements(person, address: str) -> int:
    """Open the page twice; return the number of statements of the second time."""
    browser = signed_in(person)
    for _time in range(2):
        reset_queries()
        with CaptureQueriesContext(connection) as captured:
            response = browser.get(address, headers={"HX-Request": str("find" in address).lower()})
        assert response.status_code == 200
    return len(captured)


@pytest.mark.parametrize(
    "address",
    [
        "/", "/threads", "/search", "/search?q=lamp", "/search?since=2020-01-01", "/search?q=in:xyz", "/find?q=lamp",
        "/mentions", "/mentions/people", "/documents", "/notes", "/knowledge", "/import", "/instructions", "/prompts",
        "/settings", "/settings/export", "/projects", "/stats", "/admin/exchanges", "/admin/documents",
        "/admin/people", "/admin/groups",
    ],
)  # fmt: skip
def test_pages_of_a_person_in_very_many_spaces(chroma, address):
    assert statements(administrator_in(MANY), address) <= statements(administrator_in(4), address)
