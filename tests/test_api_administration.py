"""The REST API for administrators: counts of all spaces and the accounts, without anything that people wrote."""

from __future__ import annotations

import pytest

from cato_web.accounts.models import User
from tests.factories import PersonFactory, api_client, exchange, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return PersonFactory(name="Ada Admin", role=User.Role.ADMINISTRATOR)


@pytest.fixture
def bob():
    return PersonFactory(name="Bob Team")


def test_an_administrator_gets_the_counts_of_all_spaces_without_texts(ada, bob, chroma):
    before = api_client(ada).get("/api/admin/stats").json()
    exchange(bob, "My secret is swordfish", "I keep it.")
    failed = turn(thread(bob, title="The secret of Bob"), "Another secret", state="failed")

    answer = api_client(ada, "read").get("/api/admin/stats")

    assert answer.status_code == 200
    counts = answer.json()
    assert counts["exchanges"] == before["exchanges"] + 1
    assert counts["failed_answers"] == before["failed_answers"] + 1
    assert "secret" not in answer.content.decode()
    assert str(failed.id) not in answer.content.decode()


def test_an_administrator_lists_the_accounts_page_by_page_without_deleted_ones(ada, bob):
    gone = PersonFactory(name="Gone")
    User.objects.filter(pk=gone.pk).update(left_at=gone.joined_at)
    people, cursor = [], ""
    while cursor is not None:
        page = api_client(ada).get("/api/admin/people", {"limit": 1} | ({"cursor": cursor} if cursor else {})).json()
        people += page["people"]
        cursor = page["next"]

    assert len(people) == User.objects.filter(left_at=None).count()
    assert {person["name"] for person in people} >= {"Ada Admin", "Bob Team"}
    assert "Gone" not in {person["name"] for person in people}
    assert set(people[0]) == {"id", "name", "email", "role", "is_active", "joined_at"}


@pytest.mark.parametrize("path", ["stats", "people"])
def test_only_administrators_may_call_them_at_the_time_of_the_request(path, ada, bob, chroma):
    client = api_client(ada)
    assert client.get(f"/api/admin/{path}").status_code == 200
    User.objects.filter(pk=ada.pk).update(role=User.Role.MEMBER)

    for one in (client, api_client(bob)):
        answer = one.get(f"/api/admin/{path}")
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "forbidden"
