"""A person in very many spaces: each page works, and takes as many statements as with few."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.db import connection, reset_queries
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, reverse

from cato_web.accounts.models import User
from cato_web.api.urls import api
from chat.models import Thread
from memory.api import readable_space_ids, recall
from memory.models import Membership, Space
from tests.factories import AdministratorFactory, api_client, exchange, signed_in, thread
from tests.test_route_access import ROUTES

pytestmark = pytest.mark.django_db
MANY = 1_100  # SQLite combines at most 500 parts of a statement, and nests conditions at most 1,000 deep
SEARCHES = ("/search?q=lamp", "/search?q=in:xyz", "/search?q=from:me", "/search?since=2020-01-01", "/find?q=lamp")


def administrator_in(count: int) -> User:
    """Return an administrator who manages this many groups, with a thread and an exchange in the last two."""
    person = AdministratorFactory()
    groups = Space.objects.bulk_create(Space(kind=Space.Kind.GROUP, name=f"Group {n:04}") for n in range(count))
    role = Membership.Role.MANAGER
    Membership.objects.bulk_create(Membership(space=space, person=person, role=role) for space in groups)
    for space in groups[-2:]:
        thread(person, space=space, title=f"The lamp of {space.name}")
        exchange(person, f"The lamp of {space.name} is green.", space=space)
    return person


@pytest.fixture
def people(memory):
    many, few = administrator_in(MANY), administrator_in(4)
    memory.index_pending()
    return many, few


def statements(act: Callable[[], object]) -> int:
    """Act twice; return the number of statements of the second time."""
    for _time in range(2):
        reset_queries()
        with CaptureQueriesContext(connection) as captured:
            act()
    return len(captured)


def pages_of(person: User) -> list[str]:
    """Return the addresses of all pages that name nothing, or a thread or space of this person."""
    own = Thread.objects.filter(owner=person).order_by("-last_message_at")[0]
    ids = {(): {}, ("thread_id",): {"thread_id": own.pk}, ("space_id",): {"space_id": own.space_id}}
    pages = list(SEARCHES)
    for name, route in ROUTES.items():
        if route.names in ids and "get" in route.methods and route.entry in ("member", "administrator"):
            with suppress(NoReverseMatch):  # it names something else, too
                pages.append(reverse(name, kwargs=ids[route.names]))
    return pages


def grown(browsers: tuple[Client, Client], addresses: tuple[list[str], list[str]]) -> dict[str, tuple[int, int]]:
    """Return the addresses that take more statements in the first browser, with the numbers of both."""

    def read(browser: Client, address: str) -> HttpResponse:
        response = browser.get(address, headers={"HX-Request": str("/find" in address).lower()})
        assert response.status_code < 500, address
        assert response.status_code not in (401, 403, 429), address
        return response

    found = {}
    for many, few in zip(*addresses, strict=True):
        counts = [
            statements(lambda browser=browser, address=address: read(browser, address))
            for browser, address in zip(browsers, (many, few), strict=True)
        ]
        if counts[0] > counts[1]:
            found[many] = (counts[0], counts[1])
    return found


def test_pages_of_a_person_in_very_many_spaces(people):
    browsers = signed_in(people[0]), signed_in(people[1])
    pages = pages_of(people[0]), pages_of(people[1])
    assert len(pages[0]) > 50
    assert grown(browsers, pages) == {}


def test_the_api_for_a_person_in_very_many_spaces(people):
    browsers = api_client(people[0]), api_client(people[1])
    paths = [
        path for path, methods in api.get_openapi_schema()["paths"].items() if "get" in methods and "{" not in path
    ]
    addresses = [f"{path}?q=lamp" if path in ("/api/search", "/api/context") else path for path in paths]
    assert len(addresses) > 10
    assert grown(browsers, (addresses, addresses)) == {}


def test_a_message_and_its_recall_in_very_many_spaces(people):
    def ask(person: User) -> None:
        fields = {"message": "Which lamp is green?", "client_key": str(uuid.uuid4())}
        assert signed_in(person).post("/", fields).status_code == 302
        assert recall(["Which lamp is green?"], spaces=readable_space_ids(person.pk)).results

    assert statements(lambda: ask(people[0])) <= statements(lambda: ask(people[1]))
