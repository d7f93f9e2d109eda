"""Far-reaching steps ask again who acts if the last confirmation is older than 15 minutes."""

from __future__ import annotations

import re
import time

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from cato_web.accounts.models import ApiToken, User
from cato_web.accounts.second_factor import confirmation
from memory.spaces import access
from tests.factories import AdministratorFactory, PersonFactory, signed_in
from tests.test_second_factor import add_app, code_of

pytestmark = pytest.mark.django_db
CONFIRM = "/confirm"
MAX_AGE = 900  # seconds, by default


@pytest.fixture(autouse=True)
def _no_earlier_attempts() -> None:
    cache.clear()


def signed_in_long_ago(person: User, seconds: int = MAX_AGE + 1) -> Client:
    client = signed_in(person)
    session = client.session
    session["confirmed_at"] = time.time() - seconds
    session.save()
    return client


def asks(client: Client, route: str, *arguments: object, method: str = "post") -> bool:
    answer = getattr(client, method)(reverse(route, args=arguments))
    return answer.status_code == 302 and answer.url == CONFIRM


def test_these_steps_ask_for_a_confirmation_only_after_15_minutes():
    ada, person = AdministratorFactory(), PersonFactory()
    space = access.personal_space(person.pk).pk
    steps = [
        ("reveal", (space,), "get"),
        ("reveal", (space,), "post"),
        ("set_role", (person.pk,), "post"),
        ("admin_people", (), "post"),
        ("create_reset_link", (person.pk,), "post"),
        ("remove_second_factor", (person.pk,), "post"),
        ("export_account", (), "post"),
        ("download_export", (), "get"),
        ("export_person", (person.pk,), "post"),
        ("admin_export", (), "post"),
        ("create_token", (), "post"),
        ("authenticator_app", (), "get"),
        ("authenticator_app", (), "post"),
        ("remove_authenticator_app", (), "post"),
        ("add_passkey", (), "post"),
        ("rename_passkey", (), "post"),
        ("delete_passkey", (), "post"),
        ("recovery_codes", (), "post"),
        ("oauth_authorize", (), "get"),
        ("oauth_authorize", (), "post"),
    ]
    assert {name for name, _arguments, _method in steps} == set(confirmation.CONFIRMED_ROUTES)
    for name, arguments, method in steps:
        assert asks(signed_in_long_ago(ada), name, *arguments, method=method), name
        recent = signed_in_long_ago(ada, MAX_AGE - 60)
        assert not asks(recent, name, *arguments, method=method), name


def test_reading_pages_asks_for_nothing(person):
    client = signed_in_long_ago(person)
    for name in ("settings", "security", "export_account", "stats"):
        assert client.get(reverse(name)).status_code == 200


def test_a_form_is_shown_again_after_the_password_and_sent_by_the_person(person):
    client = signed_in_long_ago(person)
    fields = {"name": "backup <script>", "scopes": ["read", "write"], "lifetime": "30"}
    assert client.post(reverse("create_token"), fields).url == CONFIRM
    wrong = client.post(CONFIRM, {"password": "not my password"})
    assert wrong.status_code == 422
    assert "This is not your password." in wrong.content.decode()
    assert client.post(reverse("create_token"), fields).url == CONFIRM

    assert client.post(CONFIRM, {"password": PersonFactory.password}).url == CONFIRM
    page = client.get(CONFIRM).content.decode()
    assert not ApiToken.objects.exists()
    form = re.search(r'<form method="post" action="/settings/tokens">.*?</form>', page, re.DOTALL)[0]
    assert 'name="name" value="backup &lt;script&gt;"' in form
    assert form.count('name="scopes"') == 2
    assert client.post(reverse("create_token"), fields).url != CONFIRM
    assert ApiToken.objects.get().name == "backup <script>"
    assert client.get(CONFIRM).url == "/settings"


def test_an_address_is_opened_after_the_confirmation():
    ada, person = AdministratorFactory(), PersonFactory()
    path = f"{reverse('reveal', args=[access.personal_space(person.pk).pk])}?next=/stats"
    client = signed_in_long_ago(ada)
    assert client.get(path).url == CONFIRM
    client.post(CONFIRM, {"password": PersonFactory.password})

    assert client.get(CONFIRM).url == path
    assert client.get(path).status_code == 200


def test_who_has_a_second_factor_confirms_with_it_and_not_with_the_password(person):
    secret = add_app(person)
    client = signed_in_long_ago(person)
    assert client.get(CONFIRM).status_code == 200
    assert client.post(CONFIRM, {"password": PersonFactory.password}).status_code == 422
    assert asks(client, "create_token")

    assert client.post(CONFIRM, {"code": code_of(secret)}).status_code == 302
    assert not asks(client, "create_token")


def test_attempts_are_limited(person):
    client = signed_in_long_ago(person)
    for _attempt in range(10):
        assert client.post(CONFIRM, {"password": "wrong"}).status_code == 422
    assert client.post(CONFIRM, {"password": PersonFactory.password}).status_code == 429


def test_a_page_that_htmx_loads_is_redirected_as_a_whole(person):
    answer = signed_in_long_ago(person).post(reverse("export_account"), headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == CONFIRM


def test_who_has_neither_password_nor_second_factor_is_told_what_to_do(person):
    person.set_unusable_password()
    person.save()
    page = signed_in_long_ago(person).get(CONFIRM).content.decode()
    assert "Ask an administrator for a password link." in page


def test_the_password_page_does_not_go_round_the_limit_of_the_confirmation(person):
    client = signed_in(person)
    wrong = {"old": "not my password", "new": "five plain words are better"}
    statuses = [client.post(reverse("password"), wrong).status_code for _ in range(12)]
    refused = client.post(reverse("password"), wrong | {"old": PersonFactory.password})

    assert statuses == [422] * 10 + [429] * 2
    assert (refused.status_code, "Too many attempts" in refused.content.decode()) == (429, True)
    assert signed_in_long_ago(person).post(CONFIRM, {"password": PersonFactory.password}).status_code == 429
