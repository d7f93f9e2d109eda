"""OpenID Connect, with a real provider and with a fake one that misbehaves."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from joserfc import jws, jwt
from joserfc.jwk import KeySet, RSAKey

from cato_web.accounts import deletion, identities, openid, roles, services
from cato_web.accounts.export.archive import archive_files
from cato_web.accounts.export.selection import select_own
from cato_web.accounts.identities import SignInRejectedError, VerifiedIdentity
from cato_web.accounts.models import AuditEntry, Identity, LoginSession, OneTimeLink, User
from memory import api as memory
from tests import server
from tests.factories import AdministratorFactory, PersonFactory, group, signed_in
from tests.server import PASSWORD

BACK = "/sign-in/openid/back"
ALICE = {"sub": "a-1", "email": "alice@halden.example", "email_verified": True, "name": "Alice Owner"}
KEYS = [RSAKey.generate_key(2048, {"kid": "1"}) for _ in range(2)]  # the first one is published
NO_ACCOUNT = "You do not have an account here."


class FakeProvider:
    """A provider that returns what a test wants; a real one signs no wrong tokens."""

    def __init__(self) -> None:
        self.key, self.signs_with = KEYS[0], "RS256"
        self.claims: dict[str, Any] = {}
        self.metadata_changes: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.delay = 0.0
        self.seen: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def approve(self, address: str, **changed: str) -> str:
        """Approve the login at the provider; return the path back to Cato."""
        self.asked = dict(parse_qsl(urlsplit(address).query)) | changed
        return f"{BACK}?{urlencode({'code': 'c', 'state': self.asked['state']})}"

    def answer(self, path: str, form: dict[str, str]) -> dict[str, Any]:
        time.sleep(self.delay)
        match path:
            case "/.well-known/openid-configuration":
                endpoints = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
                metadata: dict[str, Any] = {end: f"{self.issuer}/{end}" for end in endpoints} | {"issuer": self.issuer}
                return metadata | {"id_token_signing_alg_values_supported": ["RS256", "none"]} | self.metadata_changes
            case "/jwks_uri":
                return dict(KeySet(KEYS[:1]).as_dict(private=False))
            case "/userinfo_endpoint":
                return self.userinfo
        self.seen = form
        return {"access_token": "t", "token_type": "Bearer", "expires_in": 60, "id_token": self._token()}

    def _token(self) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": "cato", "iat": now, "exp": now + 60, "nonce": self.asked["nonce"]}
        claims |= ALICE | self.claims
        present = {name: value for name, value in claims.items() if value is not None}
        if self.signs_with == "none":
            parts = ({"alg": "none", "kid": "1"}, present)
            return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "."
        registry = jws.JWSRegistry(algorithms=[self.signs_with])
        return jwt.encode({"alg": self.signs_with, "kid": "1"}, present, self.key, registry=registry)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                body = json.dumps(fake.answer(self.path, dict(parse_qsl(form)))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *args: object) -> None:
                pass

        return Handler


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    provider = FakeProvider()
    yield provider
    provider.close()


@pytest.fixture
def configure(settings):
    """Return a function that changes keys of the section `openid`."""

    def change(**keys: Any) -> None:
        section = settings.CATO.openid.model_copy(update=keys)
        settings.CATO = settings.CATO.model_copy(update={"openid": section})

    return change


@pytest.fixture
def configured(fake, configure, db):
    """Configure the fake provider and create an administrator."""
    cache.clear()  # rate limits are shared by all tests
    configure(issuer=fake.issuer, client_id="cato", name="Halden")
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def alice(configured):
    return PersonFactory(name="Alice Owner", email=ALICE["email"])


def start_login(browser: Client, **fields: str) -> str:
    answer = browser.post("/sign-in/openid", fields)
    assert answer.status_code == 302, answer.content.decode()
    return str(answer.headers["location"])


def complete_login(browser: Client, fake: FakeProvider, **fields: str):
    """Sign in through the provider; return Cato's response."""
    return browser.get(fake.approve(start_login(browser, **fields)))


def is_signed_in(browser: Client) -> bool:
    return browser.get("/settings").status_code == 200


def refusal_of(answer, status: int = 403) -> str:
    page = answer.content.decode()
    assert answer.status_code == status, page
    assert 'name="password"' in page, "the other way in is still there"
    return re.search(r'class="error-message" role="alert".*?<span>(.*?)</span>', page, re.DOTALL)[1]


# A real provider and a complete Cato


class Browser(httpx.Client):
    """A person without an account: follows redirects to the provider and back."""

    def __init__(self, cato: server.Cato) -> None:
        super().__init__(base_url=cato.url, follow_redirects=True, timeout=30)

    def press_button(self, **fields: str) -> httpx.Response:
        """Press the provider's button; return the provider's page."""
        token = self.cookies.get("cato_csrf") or ""
        return self.post("/sign-in/openid", data=fields | {"csrfmiddlewaretoken": token}, headers=self._from_cato())

    def approve(self, provider_page: httpx.Response, subject: str) -> httpx.Response:
        assert provider_page.url.path == "/oauth2/authorize", provider_page.text
        return self.post(provider_page.url, data={"sub": subject})

    def _from_cato(self) -> dict[str, str]:
        return {"Referer": str(self.base_url)}


def create_identity(provider: str, email: str, *, is_verified: bool = True, name: str = "Nora New") -> str:
    """Create a user at the provider; return the subject."""
    subject = f"s-{uuid.uuid4().hex[:8]}"
    about = {"email": email, "email_verified": is_verified, "name": name}
    httpx.put(f"{provider}/users/{subject}", json=about).raise_for_status()
    return subject


@pytest.fixture(scope="session")
def ada(openid_cato) -> server.Client:
    return openid_cato.set_up("Ada Admin")


def log_in(browser: Browser, subject: str, **fields: str) -> httpx.Response:
    browser.get("/sign-in")
    return browser.approve(browser.press_button(**fields), subject)


def test_an_account_is_linked_by_verified_email_and_then_found_by_subject(openid_cato, provider, ada):
    bob = openid_cato.join(ada, "Bob Team")
    subject, browser = create_identity(provider, bob.email.upper()), Browser(openid_cato)
    page = log_in(browser, subject, next="/settings")

    assert page.url.path == "/settings"
    assert "From now on you can sign in with Halden." in page.text
    assert "You sign in with your password or with Halden." in page.text
    # The email address at the provider belongs to somebody else now; the linked account stays.
    httpx.put(f"{provider}/users/{subject}", json={"email": ada.email, "email_verified": True})
    second = Browser(openid_cato)
    log_in(second, subject)
    assert bob.email in second.get("/settings").text
    identities = openid_cato.sql(
        "SELECT issuer, subject FROM people_identity JOIN people_user ON people_user.id = person_id WHERE email = ?",
        bob.email,
    )
    assert identities == [(provider, subject)]


def test_an_account_requires_an_invitation_which_works_once(openid_cato, provider, ada):
    email = f"nora-{uuid.uuid4().hex[:6]}@halden.example"
    subject, browser = create_identity(provider, email), Browser(openid_cato)
    refused = log_in(browser, subject)
    assert (refused.status_code, NO_ACCOUNT in refused.text) == (403, True)

    invited = ada.post("/admin/people", {"role": "member"}, follow_redirects=True)
    link = re.search(r"/join/([\w-]+)", invited.text)
    page = browser.get(link[0])
    assert "Join with Halden" in page.text
    arrived = browser.approve(browser.press_button(invitation=link[1]), subject)
    assert "Welcome, Nora New." in arrived.text
    assert email in browser.get("/settings").text
    assert Browser(openid_cato).get(link[0]).status_code == 404
    assert link[1] not in str(openid_cato.sql("SELECT session_data FROM django_session"))


def test_a_used_code_is_worthless_in_any_browser(openid_cato, provider, ada):
    email = openid_cato.join(ada, "Bob Team").email
    subject, browser = create_identity(provider, email), Browser(openid_cato)
    browser.get("/sign-in")
    page = browser.press_button()
    browser.follow_redirects = False
    back = browser.approve(page, subject).headers["location"]
    thief = Browser(openid_cato)
    assert thief.get(back).status_code == 403, "another browser did not begin it"
    assert browser.get(back).status_code == 302
    browser.post("/sign-out", headers={"Referer": str(browser.base_url), "X-CSRFToken": browser.cookies["cato_csrf"]})
    assert browser.get(back).status_code == 403


def test_form_action_allows_only_the_provider(openid_cato, provider, ada):
    policy = httpx.get(f"{openid_cato.url}/sign-in").headers["content-security-policy"]
    assert f"form-action 'self' {provider};" in f"{policy};"


def test_a_login_cannot_be_started_from_another_site(openid_cato, ada):
    browser = Browser(openid_cato)
    assert browser.get("/sign-in/openid").status_code == 405
    assert browser.post("/sign-in/openid").status_code == 403


# A fake provider


def test_the_request_contains_a_proof_key_for_this_login(alice, fake):
    browser = Client()
    address = start_login(browser)
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
    assert query["scope"] == "openid email profile"

    browser.get(fake.approve(address))
    digest = hashlib.sha256(fake.seen["code_verifier"].encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == query["code_challenge"]
    assert is_signed_in(browser)
    assert LoginSession.objects.filter(person=alice).count() == 1


def test_login_rotates_the_session_key(alice, fake):
    browser = Client()
    address = start_login(browser)
    before = browser.session.session_key
    browser.get(fake.approve(address))
    assert browser.session.session_key not in (before, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "another"},
        {"aud": "another", "azp": "cato"},
        {"aud": ["another", "a third"], "azp": "cato"},
        {"aud": None},
        {"iss": "http://127.0.0.1:1"},
        {"iss": None},
        {"exp": 1},
        {"nonce": "another"},
        {"nonce": None},
        {"sub": None},
    ],
)
def test_a_token_for_another_login_is_refused(alice, fake, wrong):
    fake.claims = wrong
    browser = Client()

    assert "Sign-in with Halden failed." in refusal_of(complete_login(browser, fake))
    assert not is_signed_in(browser)
    assert not Identity.objects.exists()


def test_a_token_without_a_valid_signature_is_refused(alice, fake):
    fake.signs_with = "none"
    assert "Sign-in with Halden failed." in refusal_of(complete_login(Client(), fake))
    fake.signs_with, fake.key = "RS256", KEYS[1]
    assert "Sign-in with Halden failed." in refusal_of(complete_login(Client(), fake))


def test_a_state_works_once_in_its_browser_for_ten_minutes(alice, fake, monkeypatch):
    browser = Client()
    back = fake.approve(start_login(browser))
    assert "has expired, was used already" in refusal_of(Client().get(back))
    assert "started in another browser" in refusal_of(browser.get(f"{BACK}?code=c"))
    assert browser.get(back).status_code == 302
    browser.post("/sign-out")
    assert "started in another browser" in refusal_of(browser.get(back))

    back, now = fake.approve(start_login(browser)), time.time()
    monkeypatch.setattr(openid.time, "time", lambda: now + openid.STATE_MAX_AGE + 1)
    assert "has expired" in refusal_of(browser.get(back))


def test_refusing_at_the_provider_returns_to_the_sign_in_page(alice, fake):
    browser = Client()
    fake.approve(start_login(browser))
    answer = browser.get(BACK, {"error": "access_denied", "error_description": "<b>", "state": fake.asked["state"]})
    assert refusal_of(answer) == "Halden refused the sign-in. Try again, or use your password."


def test_missing_claims_are_fetched_and_must_have_the_same_subject(alice, fake):
    fake.claims = {"email": None, "email_verified": None}
    fake.userinfo = ALICE | {"sub": "another"}
    assert "does not tell Cato your email" in refusal_of(complete_login(Client(), fake))
    fake.userinfo = ALICE
    assert complete_login(browser := Client(), fake).status_code == 302
    assert is_signed_in(browser)


@pytest.mark.parametrize("is_verified", [False, None, "true", 1])
def test_an_unverified_email_does_not_link_an_account(alice, fake, configure, is_verified):
    configure(joins=True)
    fake.claims = {"email_verified": is_verified}
    with_account = refusal_of(complete_login(Client(), fake))
    fake.claims |= {"email": "nobody@halden.example"}

    assert with_account == refusal_of(complete_login(Client(), fake)) != ""
    assert User.objects.count() == 2


def test_the_response_does_not_reveal_whether_an_address_has_an_account(alice, configured, fake):
    roles.set_active(alice.pk, False, by=configured)
    closed = refusal_of(complete_login(Client(), fake))
    fake.claims = {"sub": "n-1", "email": "nobody@halden.example"}

    assert closed == refusal_of(complete_login(Client(), fake))
    assert NO_ACCOUNT in closed


def test_a_closed_or_deleted_account_cannot_be_opened_by_its_identity(alice, configured, fake):
    complete_login(Client(), fake)
    roles.set_active(alice.pk, False, by=configured)
    assert NO_ACCOUNT in refusal_of(complete_login(Client(), fake))
    roles.set_active(alice.pk, True, by=configured)
    deletion.delete_account(alice)

    assert NO_ACCOUNT in refusal_of(complete_login(Client(), fake))
    assert not Identity.objects.exists()


def test_a_reassigned_email_does_not_open_the_account_of_its_previous_owner(alice, fake):
    complete_login(Client(), fake)
    fake.claims = {"sub": "a-2"}
    assert NO_ACCOUNT in refusal_of(complete_login(Client(), fake))


def test_with_open_registration_a_new_identity_becomes_a_member_once_there_is_an_administrator(
    configured, fake, configure
):
    configure(joins=True)
    deletion.delete_account(configured)
    assert NO_ACCOUNT in refusal_of(complete_login(Client(), fake))
    AdministratorFactory()
    page = complete_login(browser := Client(), fake, next="/stats")

    assert (page.status_code, page.headers["location"]) == (302, "/stats")
    alice = User.objects.get(email=ALICE["email"])
    assert (alice.name, alice.role, alice.has_usable_password()) == ("Alice Owner", "member", False)
    assert list(AuditEntry.objects.filter(actor=alice).order_by("id").values_list("action", flat=True)) == [
        "person.joined",
        "session.started_by_openid",
    ]
    assert is_signed_in(browser)
    complete_login(Client(), fake)
    assert AuditEntry.objects.filter(actor=alice).count() == 2, "the first time only"


def test_only_allowed_domains_may_register(alice, fake, configure):
    configure(joins=True, only_emails_of=["halden.example", "b.example"])
    for email in ("eve@elsewhere.example", "eve@evil.halden.example", "eve@halden.example.evil.example"):
        fake.claims = {"sub": email, "email": email}
        assert "Only email addresses of halden.example and b.example" in refusal_of(complete_login(Client(), fake))
    fake.claims = {}
    assert complete_login(Client(), fake).status_code == 302


def test_an_invitation_works_once_and_is_kept_if_the_person_already_has_an_account(alice, configured, fake):
    token = services.create_invitation(by=configured, role="administrator")
    assert complete_login(Client(), fake, invitation=token).status_code == 302
    assert OneTimeLink.objects.get(kind="invitation").used_at is None

    # Some providers verify no email address; an invitation is sufficient.
    fake.claims = {"sub": "b-1", "email": "bob@halden.example", "email_verified": None, "name": None}
    too_late = Client()
    address = start_login(too_late, invitation=token)
    assert complete_login(Client(), fake, invitation=token).status_code == 302
    bob = User.objects.get(email="bob@halden.example")
    assert (bob.name, bob.role) == ("bob", "administrator")
    assert OneTimeLink.objects.get(kind="invitation").used_by == bob
    fake.claims |= {"sub": "c-1", "email": "charlie@halden.example"}
    assert too_late.get(fake.approve(address)).status_code == 404
    assert Client().post("/sign-in/openid", {"invitation": token}).status_code == 404
    assert not User.objects.filter(email="charlie@halden.example").exists()


def test_an_invitation_expires_during_login_if_its_author_loses_the_role(configured, fake):
    author, browser = AdministratorFactory(name="Eve Admin"), Client()
    fake.claims = {"sub": "b-1", "email": "bob@halden.example", "email_verified": True}
    address = start_login(browser, invitation=services.create_invitation(by=author, role="administrator"))
    roles.set_role(author, User.Role.MEMBER, by=configured)
    assert browser.get(fake.approve(address)).status_code == 404
    assert not User.objects.filter(email="bob@halden.example").exists()


def test_only_one_of_two_simultaneous_uses_of_an_invitation_succeeds(configured, configure):
    configure(issuer="https://login.example")
    token = services.create_invitation(by=configured)
    invitation = services.validate_link(token, "invitation").pk
    identity = VerifiedIdentity("https://login.example", "1", "one@halden.example", False, "One")
    identities.sign_in(identity, openid.provider(), invitation)
    another = VerifiedIdentity("https://login.example", "2", "two@halden.example", False, "Two")
    with pytest.raises(services.InvalidLinkError):
        identities.sign_in(another, openid.provider(), invitation)
    assert not User.objects.filter(name="Two").exists()


def test_an_unverified_email_with_an_invitation_does_not_link_an_existing_account(alice, configured, configure):
    invitation = services.validate_link(services.create_invitation(by=configured), "invitation").pk
    mallory = VerifiedIdentity("https://login.example", "1", alice.email, False, "Mallory")
    with pytest.raises(SignInRejectedError, match=NO_ACCOUNT):
        identities.sign_in(mallory, openid.provider(), invitation)


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_login_redirects_only_within_this_site(alice, fake, target):
    assert complete_login(Client(), fake, next=target).headers["location"] == "/"


def test_the_redirect_uri_uses_the_public_address(alice, fake, settings):
    public = settings.CATO.server.model_copy(update={"public_url": "https://cato.example.org/"})
    settings.CATO = settings.CATO.model_copy(update={"server": public})
    query = dict(parse_qsl(urlsplit(start_login(Client())).query))
    assert query["redirect_uri"] == f"https://cato.example.org{BACK}"


def test_a_slow_or_unavailable_provider_leaves_password_login(configured, alice, fake, configure, monkeypatch):
    monkeypatch.setattr(openid, "TIMEOUT", 0.3)
    browser = Client()
    redirect = fake.approve(start_login(browser, next="/stats"))
    fake.delay = 0.6
    began = time.monotonic()
    sentence = refusal_of(browser.post("/sign-in/openid", {"next": "/stats"}), 503)
    assert time.monotonic() - began < 5
    assert sentence == "Halden does not answer at the moment. Try again in a while, or use your password."
    assert refusal_of(browser.get(redirect), 503) == sentence
    assert (
        refusal_of(browser.post("/sign-in/openid", {"invitation": services.create_invitation(by=configured)}), 503)
        == sentence
    )

    configure(issuer="http://127.0.0.1:1")
    page = browser.post("/sign-in/openid", {"next": "/stats"})
    assert refusal_of(page, 503) == sentence
    action = re.search(r'method="post"\s+action="(/sign-in\?[^"]*)"', page.content.decode())[1]
    answer = browser.post(action, {"email": alice.email, "password": PASSWORD})
    assert answer.headers["location"] == "/stats"


@pytest.mark.parametrize(
    "response", [{"issuer": "https://other.example"}, {"token_endpoint": "ftp://x"}, {"jwks_uri": ""}]
)
def test_incomplete_provider_metadata_is_refused(alice, fake, response):
    fake.metadata_changes = response
    assert "does not answer" in refusal_of(Client().post("/sign-in/openid"), 503)


def test_a_provider_with_several_hosts_is_used_without_redirects(alice, fake):
    fake.metadata_changes = {"authorization_endpoint": "https://pages.halden.example/authorize"}
    answer = Client().post("/sign-in/openid")
    assert answer.status_code == 200
    assert answer.headers["refresh"].startswith("0; url=https://pages.halden.example/authorize?")


def test_without_a_provider_there_is_no_openid_login(db, configure):
    AdministratorFactory()
    page = Client().get("/sign-in").content.decode()
    assert "Sign in with" not in page
    assert "form-action 'self';" in f"{Client().get('/sign-in').headers['content-security-policy']};"
    assert Client().post("/sign-in/openid").status_code == 404
    assert Client().get(BACK).status_code == 404


# Accounts without a password


@pytest.fixture
def nora(configured):
    """Return a person who can only sign in with the provider."""
    person = services.create_person(name="Nora New", email="nora@halden.example", password=None)
    Identity.objects.create(person=person, issuer="https://login.example", subject="n-1")
    return person


def test_the_settings_mention_it_and_an_administrators_link_sets_a_password(nora, configured):
    page = signed_in(nora)
    text = page.get("/settings").content.decode()
    assert "You sign in with Halden and have no password here." in text
    assert "Change password" not in text
    assert page.get("/settings/password").headers["location"] == "/settings"
    assert Client().post("/sign-in", {"email": nora.email, "password": ""}).status_code == 422

    Client().post(f"/reset/{services.reset_link(nora, by=configured)}", {"password": "four other plain words"})
    assert Client().post("/sign-in", {"email": nora.email, "password": "four other plain words"}).status_code == 302


def test_they_delete_their_account_by_typing_their_email(nora):
    page = signed_in(nora)
    assert "Your password" not in page.get("/settings/delete-account").content.decode()
    assert page.post("/settings/delete-account", {"email": "other@halden.example"}).status_code == 422
    assert page.post("/settings/delete-account", {"email": nora.email}).status_code == 302
    nora.refresh_from_db()
    assert nora.left_at is not None


def test_a_person_with_a_password_still_types_it(alice, fake):
    complete_login(browser := Client(), fake)
    assert browser.post("/settings/delete-account", {"email": alice.email}).status_code == 422


def test_the_export_contains_the_linked_identity(nora):
    account = next(
        member for member in archive_files(select_own(nora, timezone.now())) if member.path == "account.json"
    )
    (identity,) = json.loads(b"".join(account.chunks))["identities"]
    assert (identity["issuer"], identity["subject"]) == ("https://login.example", "n-1")


def confirm_at_provider(browser: Client, fake: FakeProvider):
    """Let the last confirmation be too old, ask for an export, and confirm at the provider."""
    session = browser.session
    session["confirmed_at"] = 0
    session.save()
    assert browser.post("/settings/export").url == "/confirm"
    assert "Confirm with Halden" in browser.get("/confirm").content.decode()
    address = browser.post("/sign-in/openid", {"confirm": "yes"}).url
    assert "prompt=login" in address
    return browser.get(fake.approve(address))


def test_who_signs_in_only_here_confirms_at_the_provider(alice, fake):
    browser = Client()
    complete_login(browser, fake)
    User.objects.filter(pk=alice.pk).update(password="!")
    browser.force_login(User.objects.get(pk=alice.pk))

    assert confirm_at_provider(browser, fake).url == "/confirm"
    assert "Nothing has happened yet." in browser.get("/confirm").content.decode()
    assert browser.post("/settings/export").url == "/settings/export"


def test_another_account_at_the_provider_confirms_nothing(alice, fake, configure):
    browser = Client()
    complete_login(browser, fake)
    User.objects.filter(pk=alice.pk).update(password="!")
    browser.force_login(User.objects.get(pk=alice.pk))
    configure(joins=True)
    fake.claims = {"sub": "b-2", "email": "bob@halden.example"}

    assert confirm_at_provider(browser, fake).url == "/confirm"
    assert "not the account at Halden" in browser.get("/confirm").content.decode()
    assert browser.post("/settings/export").url == "/confirm"
    assert not User.objects.filter(email="bob@halden.example").exists()


@pytest.mark.parametrize("place", ["claims", "userinfo"])
def test_groups_of_the_provider_are_mapped_at_each_sign_in(alice, fake, configure, place):
    engineering = group("Engineering")
    configure(groups_claim="groups", groups={"eng": "Engineering"})
    named = {"groups": ["eng"]}
    fake.claims = ALICE | (named if place == "claims" else {})
    fake.userinfo = {"sub": ALICE["sub"]} | (named if place == "userinfo" else {})
    complete_login(Client(), fake)
    assert engineering.id in memory.readable_space_ids(alice.pk)

    fake.claims, fake.userinfo = dict(ALICE), {"sub": ALICE["sub"]}
    complete_login(Client(), fake)
    assert engineering.id not in memory.readable_space_ids(alice.pk)
