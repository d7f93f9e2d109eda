"""The authorization server: an app registers, a person allows it in the browser, and it gets tokens for /mcp."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import httpx2
import pytest
from django.core.cache import cache
from django.test import Client
from mcp import Client as McpClient
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from cato_web import api_auth
from cato_web.accounts import deletion, tokens
from cato_web.accounts.models import ApiToken, AuditEntry
from cato_web.oauth import addresses, grants, registration
from cato_web.oauth.models import OAuthClient, OAuthGrant
from chat.models import UsageLimit
from chat.usage.limits import set_limit
from tests.factories import PersonFactory, ago, signed_in

HERE = "http://localhost"
CALLBACK = "http://127.0.0.1:3118/callback"
VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


@pytest.fixture(autouse=True)
def _no_limits_from_other_tests(request):
    if "db" in request.fixturenames:
        cache.clear()


@pytest.fixture
def alice(db):
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def browser(alice):
    return signed_in(alice)


def call(path: str, data: dict[str, Any], **headers: str) -> Any:
    """Post as an app does: without the cookies of a browser."""
    return Client(headers={"Host": "localhost", **headers}).post(path, data)


def register(**metadata: Any) -> Any:
    body = {"redirect_uris": [CALLBACK], "client_name": "Compass", "token_endpoint_auth_method": "none"} | metadata
    return Client(headers={"Host": "localhost"}).post("/oauth/register", body, content_type="application/json")


def authorization(client_id: str, /, **changes: str | None) -> dict[str, str]:
    fields: dict[str, str | None] = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": CALLBACK,
        "scope": "read write",
        "state": "seven",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": f"{HERE}/mcp",
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def ask(browser: Client, client_id: str, /, **changes: str | None) -> Any:
    """Open the consent page."""
    return browser.get("/oauth/authorize", authorization(client_id, **changes), headers={"Host": "localhost"})


def decide(
    browser: Client,
    client_id: str,
    /,
    *,
    decision: str = "allow",
    allowed: tuple[str, ...] = ("read", "write"),
    **changes: str | None,
) -> dict[str, str]:
    """Answer the consent page; return the parameters with which the person is sent back."""
    answer = browser.post(
        "/oauth/authorize",
        {"decision": decision, "allowed": allowed},
        headers={"Host": "localhost"},
        query_params=authorization(client_id, **changes),
    )
    assert answer.status_code == 302, answer.content.decode()
    assert answer["Location"].startswith(f"{changes.get('redirect_uri') or CALLBACK}?")
    return {name: values[0] for name, values in parse_qs(urlsplit(answer["Location"]).query).items()}


def exchange(client_id: str, code: str, /, **changes: str) -> Any:
    fields = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "resource": f"{HERE}/mcp",
    }
    return call("/oauth/token", fields | changes)


def refresh(client_id: str, refresh_token: str, /, **changes: str) -> Any:
    return call(
        "/oauth/token",
        {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": refresh_token} | changes,
    )


@pytest.fixture
def client_id(db) -> str:
    return register().json()["client_id"]


@pytest.fixture
def issued(browser, client_id) -> dict[str, str]:
    """Return the tokens of an app that Alice allowed to read and write."""
    return exchange(client_id, decide(browser, client_id)["code"]).json()


def principal(token: str) -> api_auth.Principal | None:
    """Return for whom /mcp takes a token."""
    try:
        return api_auth.authenticate_header(f"Bearer {token}", accepts_connected_apps=True)
    except api_auth.InvalidTokenError:
        return None


# Discovery


def test_the_metadata_lead_from_mcp_to_the_endpoints(db):
    client = Client(headers={"Host": "localhost"})
    resource = client.get("/.well-known/oauth-protected-resource/mcp").json()
    assert resource == client.get("/.well-known/oauth-protected-resource").json()
    assert (resource["resource"], resource["authorization_servers"]) == (f"{HERE}/mcp", [HERE])
    assert resource["scopes_supported"] == ["read", "write", "ask"]

    server = client.get("/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == HERE
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["authorization_response_iss_parameter_supported"] is True
    assert server["client_id_metadata_document_supported"] is True
    for endpoint in ("authorization", "token", "registration", "revocation"):
        assert server[f"{endpoint}_endpoint"].startswith(f"{HERE}/oauth/")


def test_apps_connect_by_https_or_on_this_machine_only(db, settings):
    settings.ALLOWED_HOSTS = ["*"]
    paths = ["/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"]
    for host, secure, status in (
        ("cato.example", False, 404),
        ("cato.example", True, 200),
        ("127.0.0.1:8000", False, 200),
    ):
        client = Client(headers={"Host": host})
        assert {client.get(path, secure=secure).status_code for path in paths} == {status}, host


def test_nothing_is_offered_without_the_api(browser, client_id, settings):
    settings.CATO = settings.CATO.model_copy(update={"api": settings.CATO.api.model_copy(update={"enabled": False})})
    assert ask(browser, client_id).status_code == 404
    assert register().status_code == 404


# Registration


def test_an_app_registers_with_or_without_a_secret(db):
    public = register()
    assert public.status_code == 201
    assert "client_secret" not in public.json()

    confidential = register(token_endpoint_auth_method="client_secret_post").json()
    row = OAuthClient.objects.get(client_id=confidential["client_id"])
    assert confidential["client_secret"] not in (row.secret_hash, row.client_id)
    assert row.check_client_secret(confidential["client_secret"])


@pytest.mark.parametrize(
    "uri",
    [
        "http://elsewhere.example/callback", "https://", "https://a.example/#x", "https://me@a.example/", "javascript:alert(1)",
        "data:text/html,x", "file:///etc/passwd", "/callback", "https://a.example/ b", "https://a.example;form-action", "https://ä.example/",
        "https://a.example:port/", "https://a.example/" + "x" * 1000,
    ],
)  # fmt: skip
def test_an_unsafe_redirect_address_is_refused(db, uri):
    answer = register(redirect_uris=["https://claude.ai/api/mcp/auth_callback", uri])
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_redirect_uri"
    assert not OAuthClient.objects.exists()


@pytest.mark.parametrize(
    "metadata",
    [
        {"redirect_uris": []}, {"redirect_uris": [CALLBACK] * 11}, {"redirect_uris": "x"}, {"token_endpoint_auth_method": "private_key_jwt"},
        {"grant_types": ["client_credentials"]}, {"response_types": ["token"]}, {"client_name": "x" * 1001},
    ],
)  # fmt: skip
def test_other_metadata_are_checked(db, metadata):
    answer = register(**metadata)
    assert (answer.status_code, OAuthClient.objects.count()) == (400, 0)
    assert answer.json()["error_description"]


def test_registrations_are_limited_by_address_and_number(db, monkeypatch):
    monkeypatch.setattr(registration, "_PER_HOUR", 2)
    assert [register().status_code for _ in range(3)] == [201, 201, 429]
    cache.clear()
    monkeypatch.setattr(registration, "_MAX_CLIENTS", 2)
    refused = register()
    assert (refused.status_code, OAuthClient.objects.count()) == (429, 2)
    assert "apps" in refused.json()["error_description"]


def test_registrations_that_nobody_uses_are_deleted(browser, client_id, issued):
    unused = register().json()["client_id"]
    recent = register().json()["client_id"]
    OAuthClient.objects.exclude(client_id=recent).update(created_at=ago(days=2))
    grants.delete_unused()
    assert set(OAuthClient.objects.values_list("client_id", flat=True)) == {client_id, recent}
    assert unused != recent


# Consent


def test_the_consent_page_says_who_wants_what(browser, client_id):
    page = ask(browser, client_id)
    text = page.content.decode()
    assert "Compass" in text
    assert "gave itself this name" in text
    assert "127.0.0.1" in text
    assert "Alice Owner" in text
    assert re.findall(r'name="allowed" value="(\w+)" checked', text) == ["read", "write"]
    # The safe choice is first, and has the focus.
    first, second = re.findall(r"<button[^>]*name=\"decision\"[^>]*>", text)
    assert 'value="refuse"' in first
    assert "autofocus" in first
    assert "autofocus" not in second
    assert f"form-action 'self' {CALLBACK.removesuffix('/callback')}" in page["Content-Security-Policy"]
    assert "data-signed-out" not in text


@pytest.mark.parametrize(
    ("uri", "host", "receiver"),
    [
        ("https://claude.ai/api/mcp/auth_callback", "claude.ai", "This site receives the access."),
        ("http://localhost/cb", "localhost", "An app on this computer receives the access."),
        ("cursor://anysphere.cursor/cb", "cursor:", "The app on this device"),
    ],
)
def test_the_consent_page_says_who_receives_the_access(browser, uri, host, receiver):
    id = register(redirect_uris=[uri]).json()["client_id"]
    page = ask(browser, id, redirect_uri=uri)
    assert f'<strong dir="ltr">{host}</strong>' in page.content.decode()
    assert receiver in page.content.decode()
    assert host in page["Content-Security-Policy"]
    assert decide(browser, id, redirect_uri=uri)["code"]


def test_the_name_of_an_app_is_text(browser):
    id = register(client_name="<b>Cato</b>\u202e\n team" + "x" * 100).json()["client_id"]
    text = ask(browser, id).content.decode()
    assert "&lt;b&gt;Cato&lt;/b&gt; team" in text
    assert "\u202e" not in text
    assert "x" * 80 not in text


def test_a_person_who_is_not_signed_in_signs_in_first(client_id, alice):
    answer = ask(Client(), client_id)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/sign-in?next=/oauth/authorize%3F")


def test_a_page_elsewhere_cannot_consent(client_id, alice):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    answer = browser.post(
        "/oauth/authorize", {"decision": "allow", "allowed": ["read"]}, query_params=authorization(client_id)
    )
    assert answer.status_code == 403
    assert not OAuthGrant.objects.exists()


@pytest.mark.parametrize("choice", [{"decision": "refuse"}, {"decision": ""}, {"allowed": ()}, {"allowed": ("ask",)}])
def test_a_refusal_gives_the_app_nothing(browser, client_id, choice):
    back = decide(browser, client_id, **choice)
    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "seven", HERE)
    assert "code" not in back
    assert not ApiToken.objects.exists()


def test_a_person_can_allow_less_than_the_app_asks_for(browser, client_id):
    back = decide(browser, client_id, allowed=("read",))
    assert (back["state"], back["iss"]) == ("seven", HERE)
    assert exchange(client_id, back["code"]).json()["scope"] == "read"


def test_an_app_without_a_scope_asks_for_all(browser, client_id):
    assert 'value="ask" checked' in ask(browser, client_id, scope=None).content.decode()
    assert 'value="ask"' not in ask(browser, client_id, scope="read offline_access").content.decode()


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "unknown"},
        {"client_id": None},
        {"client_id": "\x00"},
        {"redirect_uri": "https://elsewhere.example/"},
        {"redirect_uri": "ä"},
    ],
)
def test_nobody_is_sent_to_an_address_that_is_not_registered(browser, client_id, changes):
    answer = ask(browser, client_id, **changes)
    assert answer.status_code == 400
    assert "connect it again" in answer.content.decode()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
        ({"scope": "admin"}, "invalid_scope"),
    ],
)
def test_an_app_is_told_what_is_wrong_with_its_request(browser, client_id, changes, error):
    answer = ask(browser, client_id, **changes)
    back = parse_qs(urlsplit(answer["Location"]).query)
    assert answer["Location"].startswith(CALLBACK)
    assert (back["error"], back["state"], back["iss"]) == ([error], ["seven"], [HERE])


@pytest.mark.parametrize(
    ("registered", "used", "is_accepted"),
    [
        ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", True),
        ("http://localhost/cb", "http://localhost:2/cb", True),
        ("http://[::1]/cb", "http://[::1]:2/cb", True),
        ("http://127.0.0.1/cb", "http://127.0.0.1/other", False),
        ("http://127.0.0.1/cb", "http://localhost/cb", False),
        ("http://127.0.0.1/cb", "https://127.0.0.1:2/cb", False),
        ("https://a.example/cb", "https://a.example/cb", True),
        ("https://a.example/cb", "https://a.example:8443/cb", False),
        ("https://a.example/cb", "https://a.example/cb?x=1", False),
        ("https://a.example/cb", "https://a.example/cb/", False),
        ("cursor://anysphere.cursor/cb", "cursor://anysphere.cursor/cb", True),
        ("cursor://anysphere.cursor/cb", "cursor://anysphere.other/cb", False),
    ],
)
def test_redirect_addresses_match_exactly_but_for_local_ports(registered, used, is_accepted):
    assert addresses.is_registered(used, [registered]) is is_accepted


# Tokens


def test_a_code_is_exchanged_for_tokens_that_act_for_the_person(alice, client_id, issued):
    assert issued["token_type"] == "Bearer"
    assert issued["expires_in"] == 3600
    found = principal(issued["access_token"])
    assert (found.person, found.scopes) == (alice, frozenset({"read", "write"}))
    assert AuditEntry.objects.filter(action="token.authorized", actor=alice).count() == 1


def test_no_secret_is_stored(issued):
    stored = json.dumps([list(OAuthGrant.objects.values()), list(ApiToken.objects.values())], default=str)
    assert issued["access_token"] not in stored
    assert issued["refresh_token"] not in stored
    assert issued["refresh_token"][6:49] not in stored
    assert issued["refresh_token"][49:] not in stored


def test_the_tokens_are_for_mcp_alone(issued):
    client = Client(headers={"Authorization": f"Bearer {issued['access_token']}"})
    assert principal(issued["access_token"])
    assert client.get("/api/me").status_code == 401
    assert client.get("/v1/models").status_code == 401


def test_a_code_is_valid_once(browser, client_id):
    code = decide(browser, client_id)["code"]
    first = exchange(client_id, code).json()
    assert principal(first["access_token"])

    again = exchange(client_id, code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    # Somebody else has the code: what it was exchanged for is revoked.
    assert principal(first["access_token"]) is None
    assert refresh(client_id, first["refresh_token"]).status_code == 400
    assert AuditEntry.objects.filter(action="token.revoked", actor=None).exists()


def test_a_code_expires(browser, client_id):
    code = decide(browser, client_id)["code"]
    OAuthGrant.objects.update(code_expires_at=ago(seconds=1))
    assert exchange(client_id, code).json()["error"] == "invalid_grant"
    assert not ApiToken.objects.valid().exists()
    grants.delete_unused()
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 64}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_request"),
        ({"redirect_uri": "http://127.0.0.1:1/callback"}, "invalid_grant"),
        ({"code": "other"}, "invalid_grant"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
        ({"client_id": "other"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"client_id": "ä\x00"}, "invalid_client"),
    ],
)
def test_a_code_is_bound_to_the_request(browser, client_id, changes, error):
    code = decide(browser, client_id)["code"]
    answer = exchange(client_id, code, **changes)
    assert answer.json()["error"] == error
    assert not ApiToken.objects.valid().exists()


def test_an_address_that_the_authorization_did_not_name_is_not_repeated(browser, client_id):
    omitted, named = decide(browser, client_id, redirect_uri=None)["code"], decide(browser, client_id)["code"]

    assert exchange(client_id, named, redirect_uri="").json()["error"] == "invalid_grant"
    assert exchange(client_id, omitted, redirect_uri="").json()["scope"] == "read write"
    assert "Connected app: 127.0.0.1" in browser.get("/settings").content.decode()


def test_a_code_is_bound_to_its_client(browser, client_id):
    code = decide(browser, client_id)["code"]
    other = register().json()["client_id"]
    assert exchange(other, code).json()["error"] == "invalid_grant"
    assert exchange(client_id, code).status_code == 200


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
def test_a_client_with_a_secret_must_send_it(browser, method):
    registered = register(token_endpoint_auth_method=method).json()
    id, secret = registered["client_id"], registered["client_secret"]

    def send(secret: str) -> Any:
        code = decide(browser, id)["code"]
        if method == "client_secret_post":
            return exchange(id, code, client_secret=secret)
        basic = base64.b64encode(f"{id}:{secret}".encode()).decode()
        fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
        return call("/oauth/token", fields, Authorization=f"Basic {basic}")

    assert send("wrong").status_code == 401
    assert exchange(id, decide(browser, id)["code"]).status_code == 401
    assert send(secret).status_code == 200


def test_refreshing_replaces_both_tokens(alice, client_id, issued):
    later = refresh(client_id, issued["refresh_token"]).json()
    assert principal(issued["access_token"]) is None
    assert principal(later["access_token"]).person == alice
    assert later["scope"] == "read write"
    # The token of the answers in progress is the same row.
    assert ApiToken.objects.count() == 1
    assert principal(refresh(client_id, later["refresh_token"]).json()["access_token"])


def test_a_refresh_token_that_is_used_twice_ends_the_access(client_id, issued):
    later = refresh(client_id, issued["refresh_token"]).json()
    assert refresh(client_id, issued["refresh_token"]).json()["error"] == "invalid_grant"
    assert principal(later["access_token"]) is None
    assert refresh(client_id, later["refresh_token"]).status_code == 400


def test_a_refresh_token_is_bound_to_its_client_and_time(client_id, issued):
    other = register().json()["client_id"]
    assert refresh(other, issued["refresh_token"]).status_code == 400
    assert refresh(client_id, issued["refresh_token"], scope="read ask").json()["error"] == "invalid_scope"
    assert (
        refresh(client_id, issued["refresh_token"], resource="https://x.example/mcp").json()["error"]
        == "invalid_target"
    )
    assert refresh(client_id, "cator_" + "x" * 86).status_code == 400
    OAuthGrant.objects.update(refresh_expires_at=ago(seconds=1))
    assert refresh(client_id, issued["refresh_token"]).json()["error"] == "invalid_grant"
    assert ApiToken.objects.exists()
    grants.delete_unused()
    assert not ApiToken.objects.exists()


def test_an_access_token_expires(issued):
    ApiToken.objects.update(expires_at=ago(seconds=1))
    assert principal(issued["access_token"]) is None


def test_consenting_again_replaces_the_earlier_tokens_of_the_app(alice, browser, client_id, issued):
    again = exchange(client_id, decide(browser, client_id)["code"]).json()
    assert principal(issued["access_token"]) is None
    assert principal(again["access_token"])
    assert AuditEntry.objects.filter(action="token.revoked", actor=alice).exists()


# The end


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_an_app_revokes_its_access(alice, client_id, issued, kind):
    other = register().json()["client_id"]
    assert call("/oauth/revoke", {"client_id": other, "token": issued[kind]}).status_code == 400
    assert principal(issued["access_token"])

    assert call("/oauth/revoke", {"client_id": client_id, "token": issued[kind]}).status_code == 200
    assert principal(issued["access_token"]) is None
    assert refresh(client_id, issued["refresh_token"]).status_code == 400
    assert AuditEntry.objects.filter(action="token.revoked", actor=alice).exists()
    assert call("/oauth/revoke", {"client_id": client_id, "token": "unknown"}).status_code == 200


def test_a_hint_of_another_server_does_not_hinder_a_revocation(client_id, issued):
    token = {"client_id": client_id, "token": issued["access_token"], "token_type_hint": "id_token"}
    assert call("/oauth/revoke", token).status_code == 200
    assert principal(issued["access_token"]) is None
    assert call("/oauth/revoke", {"client_id": client_id}).json()["error"] == "invalid_request"


def test_a_person_sees_and_revokes_connected_apps_in_the_settings(browser, client_id, issued):
    decide(browser, register(client_name="Unfinished").json()["client_id"])
    page = browser.get("/settings").content.decode()
    assert "Compass" in page
    assert "Connected app: 127.0.0.1" in page
    assert "Unfinished" not in page
    (id,) = re.findall(r'name="token" value="([0-9a-f-]{36})"', page)

    browser.post("/settings/tokens/revoke", {"token": id})
    assert principal(issued["access_token"]) is None
    assert refresh(client_id, issued["refresh_token"]).status_code == 400


def test_a_removed_consent_is_no_longer_exchanged(browser, client_id, alice):
    code = decide(browser, client_id)["code"]
    tokens.revoke_token(alice, alice.api_tokens.get().pk)
    assert exchange(client_id, code).status_code == 400


def test_a_deactivated_account_gives_no_access(alice, browser, client_id, issued):
    code = decide(browser, register().json()["client_id"])["code"]
    alice.is_active = False
    alice.save()
    assert principal(issued["access_token"]) is None
    assert refresh(client_id, issued["refresh_token"]).status_code == 400
    assert exchange(OAuthClient.objects.last().client_id, code).status_code == 400


def test_a_deleted_account_gives_no_access(alice, client_id, issued):
    PersonFactory(role="administrator")
    deletion.delete_account(alice)
    assert principal(issued["access_token"]) is None
    assert not OAuthGrant.objects.exists()
    assert refresh(client_id, issued["refresh_token"]).status_code == 400


def test_a_person_with_too_many_tokens_is_told_so(browser, client_id, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_TOKENS", 0)
    answer = browser.post(
        "/oauth/authorize",
        {"decision": "allow", "allowed": ["read"]},
        headers={"Host": "localhost"},
        query_params=authorization(client_id),
    )
    assert answer.status_code == 409
    assert "Revoke one" in answer.content.decode()
    assert not OAuthGrant.objects.exists()


def test_consents_that_were_never_claimed_do_not_count(browser, client_id, issued, monkeypatch):
    unclaimed = register().json()["client_id"]
    decide(browser, unclaimed)
    monkeypatch.setattr(tokens, "MAX_TOKENS", 2)
    OAuthGrant.objects.filter(redeemed_at=None).update(code_expires_at=ago(seconds=1))

    assert exchange(unclaimed, decide(browser, unclaimed)["code"]).status_code == 200
    assert principal(issued["access_token"]), "a grant in use stays"


@pytest.mark.parametrize("end", ["revoked", "unused"])
def test_the_usage_limit_of_an_app_ends_with_its_access(alice, client_id, issued, end):
    set_limit("token", alice.api_tokens.get().pk, unit="tokens", soft=None, hard=Decimal(7))
    grants.delete_unused()
    assert UsageLimit.objects.exists(), "while the app has access"

    if end == "revoked":
        call("/oauth/revoke", {"client_id": client_id, "token": issued["access_token"]})
    else:
        OAuthGrant.objects.update(refresh_expires_at=ago(seconds=1))
        grants.delete_unused()
    assert not UsageLimit.objects.exists()


# With the protocol's own client


class _Storage:
    """What an app stores, in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_client_of_the_protocol_connects_and_refreshes(cato, alice_online, mode):
    storage = _Storage()
    back: dict[str, str] = {}

    async def open_browser(url: str) -> None:
        path = url.removeprefix(cato.url)
        page = await asyncio.to_thread(alice_online.get, path)
        assert "Compass" in page.text
        answer = await asyncio.to_thread(alice_online.post, path, {"decision": "allow", "allowed": ["read", "write"]})
        back.update({name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()})

    async def wait_for_callback() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=back["code"], state=back["state"], iss=back["iss"])

    provider = OAuthClientProvider(
        f"{cato.url}/mcp",
        OAuthClientMetadata(redirect_uris=["http://127.0.0.1:3118/callback"], client_name="Compass"),
        storage,
        redirect_handler=open_browser,
        callback_handler=wait_for_callback,
    )

    async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        async with (
            httpx2.AsyncClient(auth=provider, timeout=30) as http,
            McpClient(streamable_http_client(f"{cato.url}/mcp", http_client=http), mode=mode) as client,
        ):
            return await client.call_tool(name, arguments)

    async def run() -> None:
        added = await call_tool("add_memory", {"text": "The spare key hangs in the boat house."})
        assert added.structured_content["audience"] == "Only you can read it."
        assert storage.tokens.scope == "read write"
        first, state = storage.tokens, back["state"]

        # An expired token is refreshed without the person.
        provider.context.token_expiry_time = 1.0
        assert not (await call_tool("search_memory", {"query": "spare key"})).is_error
        refreshed = storage.tokens
        assert refreshed.refresh_token != first.refresh_token
        assert back["state"] == state

        # For a token that the server does not know any more, the client asks the person again.
        provider.context.current_tokens = refreshed.model_copy(update={"access_token": "cato_unknown"})
        assert not (await call_tool("search_memory", {"query": "spare key"})).is_error
        assert back["state"] != state

    asyncio.run(run())


@pytest.fixture
def alice_online(cato, administrator):
    return cato.join(administrator, "Alice Owner")


def test_a_request_without_a_token_learns_where_to_connect(cato):
    answer = httpx.post(f"{cato.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    url = f"{cato.url}/.well-known/oauth-protected-resource/mcp"
    assert answer.headers["www-authenticate"] == f'Bearer resource_metadata="{url}"'
    assert httpx.get(url).json()["resource"] == f"{cato.url}/mcp"
    wrong = httpx.post(f"{cato.url}/mcp", headers={"Authorization": "Bearer cato_x"})
    assert wrong.headers["www-authenticate"] == f'Bearer error="invalid_token", resource_metadata="{url}"'
