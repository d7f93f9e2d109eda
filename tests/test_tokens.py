"""API tokens: created in the settings, shown once, limited to their scopes, and revocable."""

from __future__ import annotations

import json
import re
import uuid

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from cato_web.accounts import deletion, roles, tokens
from cato_web.accounts.models import ApiToken, AuditEntry
from cato_web.config.schema import Config
from tests.factories import PersonFactory, ago, api_client, exported_archive, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


def token_form(**changes: object) -> dict[str, object]:
    return {"name": "backup script", "scopes": ["read", "write"], "lifetime": "90"} | changes


def created_token(page: str) -> str:
    found = re.search(r'id="token" value="(cato_[\w-]{43})"', page)
    assert found
    return found[1]


def with_token(token: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {token}"})


def with_api(configured: Config, **changes: object) -> Config:
    return configured.model_copy(update={"api": configured.api.model_copy(update=changes)})


def test_a_token_is_shown_once_and_authenticates_a_client(alice):
    browser = signed_in(alice)

    answer = browser.post("/settings/tokens", token_form(), follow=True)

    token = created_token(answer.content.decode())
    me = with_token(token).get("/api/me").json()
    assert (me["name"], me["token"]["scopes"]) == ("Alice Owner", ["read", "write"])
    later = browser.get("/settings").content.decode()
    assert token not in later
    assert f"{token[:10]}…" in later
    assert "backup script" in later
    assert "Read, Write" in later


def test_the_page_with_a_new_token_can_be_loaded_again(alice):
    browser = signed_in(alice)
    answer = browser.post("/settings/tokens", token_form())
    assert "cato_" not in browser.session["new_token"], "it is encrypted"

    token = created_token(browser.get(answer.url).content.decode())

    assert token not in browser.get(answer.url).content.decode()
    assert "new_token" not in browser.session
    assert browser.get("/settings/tokens").url == "/settings"
    assert ApiToken.objects.count() == 1


def test_only_its_hash_is_stored(alice):
    token = created_token(signed_in(alice).post("/settings/tokens", token_form(), follow=True).content.decode())

    row = ApiToken.objects.get()
    assert token not in json.dumps([row.name, row.token_hash, row.prefix, row.scopes])


def test_the_settings_show_last_use_and_expiry(alice):
    answer = signed_in(alice).post("/settings/tokens", token_form(lifetime="never"), follow=True)
    token = created_token(answer.content.decode())
    row = ApiToken.objects.get()
    assert (row.used_at, row.expires_at) == (None, None)

    with_token(token).get("/api/me")

    row.refresh_from_db()
    assert timezone.now() - row.used_at < timezone.timedelta(minutes=1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "   "}, "Give it a name"),
        ({"scopes": []}, "Select at least one permission."),
        ({"scopes": ["everything"]}, "everything"),
        ({"lifetime": "4000"}, "4000"),
    ],
)
def test_an_invalid_form_is_explained_and_creates_no_token(alice, changes, sentence):
    answer = signed_in(alice).post("/settings/tokens", token_form(**changes))

    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_a_revoked_token_is_refused_and_the_log_records_both(alice):
    browser = signed_in(alice)
    token = created_token(browser.post("/settings/tokens", token_form(), follow=True).content.decode())
    assert with_token(token).get("/api/me").status_code == 200

    browser.post("/settings/tokens/revoke", {"token": str(ApiToken.objects.get().pk)})

    assert with_token(token).get("/api/me").status_code == 401
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == [
        "token.created",
        "token.revoked",
    ]


def test_a_token_of_another_person_cannot_be_revoked(alice):
    one = api_client(alice)
    bob = signed_in(PersonFactory(name="Bob Team"))

    foreign = bob.post("/settings/tokens/revoke", {"token": str(ApiToken.objects.get().pk)}, follow=True)
    missing = bob.post("/settings/tokens/revoke", {"token": str(uuid.uuid4())}, follow=True)
    nonsense = bob.post("/settings/tokens/revoke", {"token": "x"}, follow=True)

    for answer in (foreign, missing, nonsense):
        assert "This token was already revoked." in answer.content.decode()
    assert one.get("/api/me").status_code == 200


def test_only_the_revoked_token_of_a_person_is_refused(alice):
    one, other = api_client(alice), api_client(alice)
    first = ApiToken.objects.order_by("created_at").first()

    assert tokens.revoke_token(alice, first.pk)
    assert not tokens.revoke_token(alice, first.pk)

    assert (one.get("/api/me").status_code, other.get("/api/me").status_code) == (401, 200)
    revoked = AuditEntry.objects.filter(action="token.revoked").values_list("actor", "target")
    assert list(revoked) == [(alice.pk, str(first.pk))]


def test_the_number_of_tokens_of_a_person_is_limited(alice, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_TOKENS", 2)
    api_client(PersonFactory())
    for _ in range(2):
        api_client(alice)

    with pytest.raises(tokens.TokenLimitError, match="You have 2 tokens"):
        api_client(alice)

    tokens.revoke_token(alice, alice.api_tokens.first().pk)
    assert api_client(alice).get("/api/me").status_code == 200


def test_a_token_expires_after_its_days_or_never(alice):
    tokens.create_token(alice, name="limited", scopes=["read", "read"], days=30)
    tokens.create_token(alice, name="unlimited", scopes=["write", "read"], days=None)

    limited, unlimited = (ApiToken.objects.get(name=name) for name in ("limited", "unlimited"))
    assert abs(limited.expires_at - ago(days=-30)) < timezone.timedelta(minutes=1)
    assert (unlimited.expires_at, limited.scopes, unlimited.scopes) == (None, ["read"], ["read", "write"])


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Bearer {}", 200),
        ("bearer   {} ", 200),
        ("Basic {}", 401),
        ("Token {}", 401),
        ("{}", 401),
        ("Bearer", 401),
        ("Bearer {}x", 401),
        ("", 401),
    ],
)
def test_a_token_is_accepted_as_a_bearer_token_only(alice, header, status):
    token = tokens.create_token(alice, name="a program", scopes=["read"], days=None)
    client = Client(headers={"Authorization": header.format(token)})
    assert client.get("/api/me").status_code == status


def test_a_token_without_the_scope_is_forbidden(alice):
    reader, writer = api_client(alice, "read"), api_client(alice, "write")

    assert reader.get("/api/spaces").status_code == 200
    refused = writer.get("/api/spaces")
    assert (refused.status_code, refused.json()["error"]["message"]) == (403, 'Token is missing the scope "read".')
    assert writer.get("/api/me").status_code == 200


def test_the_last_use_is_that_of_the_used_token_and_stored_once_a_minute(alice):
    client = api_client(alice)
    used = ApiToken.objects.get()
    api_client(alice)

    def last_use_after_a_request() -> object:
        client.get("/api/me")
        used.refresh_from_db()
        return used.used_at

    first = last_use_after_a_request()
    assert first is not None
    assert ApiToken.objects.exclude(pk=used.pk).get().used_at is None
    assert last_use_after_a_request() == first
    earlier = ago(minutes=2)
    ApiToken.objects.filter(pk=used.pk).update(used_at=earlier)
    assert last_use_after_a_request() > earlier + timezone.timedelta(minutes=1)


def test_a_token_expires(alice):
    one = api_client(alice)
    ApiToken.objects.update(expires_at=ago(seconds=1))

    assert one.get("/api/me").status_code == 401
    assert "expired" in signed_in(alice).get("/settings").content.decode()


def test_tokens_of_a_deactivated_person_are_refused_until_reactivation(alice):
    one, administrator = api_client(alice), PersonFactory(name="Ada Admin", role="administrator")

    roles.set_active(alice.pk, False, by=administrator)
    assert one.get("/api/me").status_code == 401

    roles.set_active(alice.pk, True, by=administrator)
    assert one.get("/api/me").status_code == 200


def test_account_deletion_deletes_tokens(alice):
    PersonFactory(name="Ada Admin", role="administrator")
    one = api_client(alice)

    deletion.delete_account(alice)

    assert one.get("/api/me").status_code == 401
    assert not ApiToken.objects.exists()


def test_the_account_export_lists_tokens_without_secrets(alice):
    token = created_token(signed_in(alice).post("/settings/tokens", token_form(), follow=True).content.decode())

    archive = exported_archive(alice)

    account = archive.read("account.json").decode()
    assert [row["name"] for row in json.loads(account)["tokens"]] == ["backup script"]
    assert token not in account
    assert ApiToken.objects.get().token_hash not in account


def test_too_many_requests_are_rate_limited(alice, settings):
    one = api_client(alice)
    settings.CATO = with_api(settings.CATO, requests_per_minute=2)
    cache.clear()

    answers = [one.get("/api/me") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    left = [(answer["X-RateLimit-Limit"], answer["X-RateLimit-Remaining"]) for answer in answers]
    assert left == [("2", "1"), ("2", "0"), ("2", "0")]
    assert 1 <= int(answers[-1]["X-RateLimit-Reset"]) <= 60
    assert answers[-1]["Retry-After"] == answers[-1]["X-RateLimit-Reset"]
    assert answers[-1].json()["error"]["code"] == "too_fast"


def test_without_the_api_there_are_no_tokens(alice, settings):
    settings.CATO = with_api(settings.CATO, enabled=False)
    browser = signed_in(alice)

    assert "API tokens" not in browser.get("/settings").content.decode()
    assert browser.post("/settings/tokens", token_form()).status_code == 404
    assert browser.get("/api/me").status_code == 404
    assert browser.get("/api/openapi.json").status_code == 404
