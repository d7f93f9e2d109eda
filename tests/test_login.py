"""Signing in: what was typed stays out of logs and caches, tries are limited, and it leads to paths of this Cato only."""

from __future__ import annotations

import json

import httpx
import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from cato_web.accounts import services
from cato_web.accounts.models import User
from tests.factories import AdministratorFactory, PersonFactory
from tests.server import PASSWORD

TYPED = ["My Secret Passphrase Nine", "alice@halden.example hunter2-typed", "tab\thunter2-typed@halden.example"]


@pytest.fixture
def alice(db):
    cache.clear()
    yield PersonFactory(name="Alice Owner", email="alice@halden.example")
    cache.clear()


def post_login(email: str, password: str, address: str = "192.0.2.1", **query: str):
    return Client(REMOTE_ADDR=address).post(
        reverse("sign_in", query=query) if query else reverse("sign_in"),
        {"email": email, "password": password},
    )


@pytest.mark.parametrize("typed", TYPED)
def test_what_is_typed_into_the_form_is_no_cache_key(alice, typed):
    assert post_login(typed, PASSWORD).status_code == 422
    assert post_login("somebody@halden.example", PASSWORD).status_code == 422
    keys = " ".join(cache._cache)
    for part in (*typed.split(), "somebody"):
        assert part not in keys


def test_what_is_typed_into_the_form_is_not_logged(cato):
    browser = httpx.Client(base_url=cato.url)
    browser.get("/sign-in")
    headers = {"X-CSRFToken": browser.cookies["cato_csrf"], "Referer": cato.url}
    for typed in [*TYPED, "hunter2-typed@halden.example"]:
        form = {"email": typed, "password": "hunter3-typed and more"}
        assert browser.post("/sign-in", data=form, headers=headers).status_code == 422
    log = cato.logs().casefold()
    for part in ("passphrase", "hunter2-typed", "hunter3-typed"):
        assert part not in log


def test_the_eleventh_try_for_an_account_waits_and_says_how_long(alice):
    answers = [post_login(alice.email, "wrong").status_code for _ in range(10)]
    refused = post_login(alice.email.upper(), PASSWORD)
    assert set(answers) == {422}
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) == 300


def test_who_guesses_elsewhere_does_not_lock_the_account_for_its_person(alice):
    for _ in range(11):
        post_login(alice.email, "wrong", address="192.0.2.66")
    assert post_login(alice.email, PASSWORD, address="192.0.2.66").status_code == 429
    assert post_login(alice.email, PASSWORD, address="192.0.2.1").status_code == 302


def test_an_account_is_not_guessed_from_ever_more_addresses(alice):
    for number in range(100):
        post_login(alice.email, "wrong", address=f"192.0.2.{number}")
    assert post_login(alice.email, PASSWORD, address="198.51.100.1").status_code == 429


@pytest.mark.parametrize(
    "target", ["word", "admin_people", "https://evil.example/", "//evil.example", "javascript:alert(1)"]
)
def test_signing_in_leads_to_paths_of_this_cato_only(alice, target):
    answer = post_login(alice.email, PASSWORD, next=target)
    assert (answer.status_code, answer["Location"]) == (302, "/")


def test_signing_in_leads_to_the_page_that_was_asked_for(alice):
    assert post_login(alice.email, PASSWORD, next="/stats?days=7")["Location"] == "/stats?days=7"


# Names


@pytest.mark.parametrize("name", ["\u200b\u200d", "\u2066\u2069", "\u3164", "\u00a0"])
def test_a_person_needs_a_name_that_can_be_seen(alice, name):
    token = services.create_invitation(by=AdministratorFactory())
    form = {"name": name, "email": "new@halden.example", "password": PASSWORD}
    joining = Client().post(reverse("join", args=[token]), form)
    assert joining.status_code == 422
    assert "Type the name the others know you by." in joining.content.decode()

    page = Client()
    page.force_login(alice)
    assert page.post(reverse("settings"), {"name": name}).status_code == 422
    alice.refresh_from_db()
    assert alice.name == "Alice Owner"


def test_a_name_loses_what_would_reorder_the_text_beside_it(alice):
    token = services.create_invitation(by=AdministratorFactory())
    form = {"name": "Eve \u202enimda\u202c", "email": "eve@halden.example", "password": PASSWORD}
    assert Client().post(reverse("join", args=[token]), form).status_code == 302
    assert User.objects.get(email="eve@halden.example").name == "Eve nimda"


# Caches


def test_pages_fragments_exports_and_api_answers_are_stored_in_no_cache(cato, alice_online):
    thread = alice_online.send_message("Nobody keeps a copy of this")
    api_client = alice_online.api_client()
    asked = [
        *(alice_online.get(path) for path in ("/", f"/t/{thread}", "/settings", "/search", "/threads", "/stats")),
        *(alice_online.get(f"/t/{thread}/export/{kind}") for kind in ("md", "json", "html")),
        alice_online.get("/find", params={"q": "copy"}, headers={"HX-Request": "true"}),
        alice_online.get("/nothing-here"),
        alice_online.post("/settings/export"),
        *(api_client.get(path) for path in ("/api/me", "/api/threads", "/api/nothing", "/v1/models")),
        api_client.post("/mcp", content=json.dumps({})),
        httpx.get(f"{cato.url}/sign-in"),
        httpx.get(f"{cato.url}/mcp"),
    ]
    for answer in asked:
        assert "no-store" in answer.headers["Cache-Control"], answer.url


def test_static_files_stay_cached(cato):
    page = httpx.get(f"{cato.url}/sign-in").text
    sheet = page.partition('<link rel="stylesheet" href="')[2].partition('"')[0]
    assert "no-store" not in httpx.get(f"{cato.url}{sheet}").headers["Cache-Control"]


@pytest.fixture
def alice_online(cato, administrator):
    return cato.join(administrator, "Alice Owner")
