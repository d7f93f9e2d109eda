"""At least one active administrator remains, even with concurrent changes; a command creates one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Barrier

import httpx
import pytest

from tests import server
from tests.server import PASSWORD, Cato, Client

ROUNDS = 4
ACTIVE = "SELECT count(*) FROM people_user WHERE role = 'administrator' AND is_active"


@pytest.fixture(scope="module")
def small_cato(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cato]:
    """Start a separate Cato, since every administrator counts here."""
    with server.running(tmp_path_factory.mktemp("administrators")) as running:
        yield running


@pytest.fixture(scope="module")
def ada(small_cato: Cato) -> Client:
    return small_cato.set_up("Ada Admin")


@pytest.fixture(scope="module")
def bystander(small_cato: Cato, ada: Client) -> Client:
    return small_cato.join(ada, "Bea Bystander")


def run_concurrently(*acts: Callable[[], httpx.Response]) -> list[int]:
    """Run all actions at once; return the statuses."""
    ready = Barrier(len(acts))

    def run(act: Callable[[], httpx.Response]) -> int:
        ready.wait()
        return act().status_code

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def person_id(cato: Cato, person: Client) -> str:
    ((found,),) = cato.sql("SELECT id FROM people_user WHERE email = ?", person.email)
    return re.sub(r"(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", found)


def change(cato: Cato, by: Client, of: Client, address: str, **data: str) -> Callable[[], httpx.Response]:
    return partial(by.post, f"/admin/people/{person_id(cato, of)}/{address}", data)


@contextmanager
def two_administrators(cato: Cato, ada: Client) -> Iterator[tuple[Client, Client]]:
    """Yield the only two administrators, each at another web process; afterwards one gives Ada her role back."""
    one, other = (cato.join(ada, name, role="administrator") for name in ("Ines One", "Otto Other"))
    other.url, other.http.base_url = cato.other_url, httpx.URL(cato.other_url)
    change(cato, one, ada, "role", role="member")()
    assert cato.sql(ACTIVE) == [(2,)]
    yield one, other
    assert cato.sql(ACTIVE) == [(1,)]
    ((email,),) = cato.sql("SELECT email FROM people_user WHERE role = 'administrator' AND is_active")
    remaining = one if one.email == email else other
    change(cato, remaining, ada, "role", role="administrator")()
    change(cato, ada, remaining, "role", role="member")()


@pytest.mark.parametrize(
    ("address", "data"), [("role", {"role": "member"}), ("active", {"active": "no"})], ids=["demote", "deactivate"]
)
def test_two_administrators_cannot_remove_each_other_at_the_same_time(small_cato, ada, bystander, address, data):
    for _ in range(ROUNDS):
        with two_administrators(small_cato, ada) as (one, other):
            run_concurrently(
                change(small_cato, one, other, address, **data), change(small_cato, other, one, address, **data)
            )


def test_one_administrator_cannot_leave_while_the_other_is_demoted(small_cato, ada, bystander):
    for _ in range(ROUNDS):
        with two_administrators(small_cato, ada) as (one, other):
            typed = {"email": other.email, "password": PASSWORD}
            leave = partial(other.post, "/settings/delete-account", typed)
            run_concurrently(change(small_cato, other, one, "role", role="member"), leave)


def test_the_command_creates_an_administrator_with_a_one_time_link(small_cato, ada):
    printed = small_cato.manage("create_administrator", "New.Person@halden.example", "--name", "Nora New").stdout
    path = re.search(r"/reset/[\w-]+", printed)[0]
    browser = httpx.Client(base_url=small_cato.url, timeout=30)
    browser.get(path)
    headers = {"X-CSRFToken": browser.cookies["cato_csrf"], "Referer": small_cato.url}
    assert browser.post(path, data={"password": PASSWORD}, headers=headers).status_code == 302
    assert browser.get("/admin/people").status_code == 200
    assert httpx.get(f"{small_cato.url}{path}").status_code == 404


def test_the_command_promotes_and_reactivates_an_account(small_cato, ada):
    carl = small_cato.join(ada, "Carl Closed")
    change(small_cato, ada, carl, "active", active="no")()
    small_cato.manage("create_administrator", carl.email.upper())
    assert small_cato.sign_in(carl).get("/admin/people").status_code == 200


@pytest.mark.parametrize("arguments", [["nobody"], ["a@b.example", "--name", "\u200b"]])
def test_the_command_refuses_an_invalid_address_or_name(small_cato, arguments):
    failed = small_cato.manage("create_administrator", *arguments, check=False)
    assert failed.returncode == 1
    assert not failed.stdout
