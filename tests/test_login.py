"""Password login: nothing typed is logged or cached, attempts are limited, and redirects stay on this site."""

from __future__ import annotations

import json
from datetime import timedelta

import httpx
import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cato_web.accounts import services
from cato_web.accounts.models import LoginSession, User
from tests.factories import AdministratorFactory, PersonFactory, signed_in
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
def test_typed_values_are_not_used_as_cache_keys(alice, typed):
    assert post_login(typed, PASSWORD).status_code == 422
    assert post_login("somebody@halden.example", PASSWORD).status_code == 422
    keys = " ".join(cache._cache)
    for part in (*typed.split(), "somebody"):
        assert part not in keys


def test_typed_values_are_not_logged(cato):
    browser = httpx.Client(base_url=cato.url)
    browser.get("/sign-in")
    headers = {"X-CSRFToken": browser.cookies["cato_csrf"], "Referer": cato.url}
    for typed in [*TYPED, "hunter2-typed@halden.example"]:
        form = {"email": typed, "password": "hunter3-typed and more"}
        assert browser.post("/sign-in", data=form, headers=headers).status_code == 422
    log = cato.logs().casefold()
    for part in ("passphrase", "hunter2-typed", "hunter3-typed"):
        assert part not in log


def test_the_eleventh_attempt_for_an_account_is_rate_limited(alice):
    answers = [post_login(alice.email, "wrong").status_code for _ in range(10)]
    refused = post_login(alice.email.upper(), PASSWORD)
    assert set(answers) == {422}
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) == 300


def test_attempts_from_elsewhere_do_not_lock_the_account(alice):
    for _ in range(11):
        post_login(alice.email, "wrong", address="192.0.2.66")
    assert post_login(alice.email, PASSWORD, address="192.0.2.66").status_code == 429
    assert post_login(alice.email, PASSWORD, address="192.0.2.1").status_code == 302


def test_many_addresses_do_not_allow_more_attempts_for_an_account(alice):
    for number in range(100):
        post_login(alice.email, "wrong", address=f"192.0.2.{number}")
    assert post_login(alice.email, PASSWORD, address="198.51.100.1").status_code == 429


@pytest.mark.parametrize(
    "target", ["word", "admin_people", "https://evil.example/", "//evil.example", "javascript:alert(1)"]
)
def test_login_redirects_only_within_this_site(alice, target):
    answer = post_login(alice.email, PASSWORD, next=target)
    assert (answer.status_code, answer["Location"]) == (302, "/")


def test_login_redirects_to_the_requested_page(alice):
    assert post_login(alice.email, PASSWORD, next="/stats?days=7")["Location"] == "/stats?days=7"


# Names


@pytest.mark.parametrize("name", ["\u200b\u200d", "\u2066\u2069", "\u3164", "\u00a0"])
def test_a_person_needs_a_visible_name(alice, name):
    token = services.create_invitation(by=AdministratorFactory())
    form = {"name": name, "email": "new@halden.example", "password": PASSWORD}
    joining = Client().post(reverse("join", args=[token]), form)
    assert joining.status_code == 422
    assert "Type the name the others know you by." in joining.content.decode()

    page = signed_in(alice)
    assert page.post(reverse("settings"), {"name": name}).status_code == 422
    alice.refresh_from_db()
    assert alice.name == "Alice Owner"


@pytest.mark.django_db
def test_commands_find_an_account_by_its_name_in_upper_or_lower_case():
    person = PersonFactory(name="Jürgen Weiß", email="juergen@halden.example")
    assert services.get_user_by_name("JÜRGEN WEISS") == person
    assert services.get_user_by_name("Juergen@Halden.example") == person
    PersonFactory(name="jürgen weiß")
    with pytest.raises(services.UserLookupError, match="Several accounts"):
        services.get_user_by_name("Jürgen Weiß")


def test_characters_that_reorder_surrounding_text_are_removed_from_a_name(alice):
    token = services.create_invitation(by=AdministratorFactory())
    form = {"name": "Eve \u202enimda\u202c", "email": "eve@halden.example", "password": PASSWORD}
    assert Client().post(reverse("join", args=[token]), form).status_code == 302
    assert User.objects.get(email="eve@halden.example").name == "Eve nimda"


# Caches


def test_pages_fragments_exports_and_api_responses_are_not_cached(cato, alice_online):
    thread = alice_online.send_message("Nobody keeps a copy of this")
    api_client = alice_online.api_client()
    responses = [
        *(alice_online.get(path) for path in ("/", f"/t/{thread}", "/settings", "/search", "/threads", "/stats")),
        *(alice_online.get(f"/t/{thread}/export/{kind}") for kind in ("md", "json", "html")),
        alice_online.get("/find", params={"q": "copy"}, headers={"HX-Request": "true"}),
        alice_online.get("/nothing-here"),
        alice_online.get("/settings/export"),
        *(api_client.get(path) for path in ("/api/me", "/api/threads", "/api/nothing", "/v1/models")),
        api_client.post("/mcp", content=json.dumps({})),
        httpx.get(f"{cato.url}/sign-in"),
        httpx.get(f"{cato.url}/mcp"),
    ]
    for answer in responses:
        assert "no-store" in answer.headers["Cache-Control"], answer.url


def test_static_files_are_cached(cato):
    page = httpx.get(f"{cato.url}/sign-in").text
    sheet = page.partition('<link rel="stylesheet" href="')[2].partition('"')[0]
    assert "no-store" not in httpx.get(f"{cato.url}{sheet}").headers["Cache-Control"]


@pytest.fixture
def alice_online(cato, administrator):
    return cato.join(administrator, "Alice Owner")


@pytest.mark.parametrize(("unseen", "is_renewed"), [(timedelta(days=1), True), (timedelta(), False)])
def test_the_first_visit_of_a_day_renews_the_login(alice, unseen, is_renewed):
    browser = signed_in(alice)
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    LoginSession.objects.update(last_seen_at=today - unseen)

    response = browser.get("/search")

    assert ("cato_session" in response.cookies) is is_renewed
