"""Signing in by OpenID Connect: who is let in and who is not, before a real provider and before one that says wrong things."""

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
from joserfc import jws, jwt
from joserfc.jwk import KeySet, RSAKey

from cato_web.accounts import deletion, openid, services
from cato_web.accounts.export.archive import archive_files
from cato_web.accounts.models import AuditEntry, Identity, LoginSession, OneTimeLink, User
from cato_web.accounts.openid import SignInRejectedError, VerifiedIdentity
from memory.spaces import access
from tests import server
from tests.factories import AdministratorFactory, PersonFactory
from tests.server import PASSWORD

BACK = "/sign-in/openid/back"
ALICE = {"sub": "a-1", "email": "alice@halden.example", "email_verified": True, "name": "Alice Owner"}
KEYS = [RSAKey.generate_key(2048, {"kid": "1"}) for _ in range(2)]  # the first one is published
NO_ACCOUNT = "You do not have an account here."


class FakeProvider:
    """A provider that says what a test wants: it lies outside, and a real one signs no wrong tokens."""

    def __init__(self) -> None:
        self.key, self.signs_with = KEYS[0], "RS256"
        self.claims: dict[str, Any] = {}
        self.says: dict[str, Any] = {}
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
        """What a person does on the provider's pages: come by `address` and agree. Returns the path back."""
        self.asked = dict(parse_qsl(urlsplit(address).query)) | changed
        return f"{BACK}?{urlencode({'code': 'c', 'state': self.asked['state']})}"

    def answer(self, path: str, form: dict[str, str]) -> dict[str, Any]:
        time.sleep(self.delay)
        match path:
            case "/.well-known/openid-configuration":
                ends = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
                told: dict[str, Any] = {end: f"{self.issuer}/{end}" for end in ends} | {"issuer": self.issuer}
                return told | {"id_token_signing_alg_values_supported": ["RS256", "none"]} | self.says
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
        kept = {name: value for name, value in claims.items() if value is not None}
        if self.signs_with == "none":
            parts = ({"alg": "none", "kid": "1"}, kept)
            return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "."
        registry = jws.JWSRegistry(algorithms=[self.signs_with])
        return jwt.encode({"alg": self.signs_with, "kid": "1"}, kept, self.key, registry=registry)

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
    """Change keys of the section `openid`."""

    def change(**keys: Any) -> None:
        section = settings.CATO.openid.model_copy(update=keys)
        settings.CATO = settings.CATO.model_copy(update={"openid": section})

    return change


@pytest.fixture
def on(fake, configure, db):
    """A Cato with the fake provider, and an administrator."""
    cache.clear()  # tries, which are counted over all tests
    configure(issuer=fake.issuer, client_id="cato", name="Halden")
    return AdministratorFactory(name="Ada Admin")


@pytest.fixture
def alice(on):
    return PersonFactory(name="Alice Owner", email=ALICE["email"])


def begin(browser: Client, **fields: str) -> str:
    answer = browser.post("/sign-in/openid", fields)
    assert answer.status_code == 302, answer.content.decode()
    return str(answer.headers["location"])


def arrive(browser: Client, fake: FakeProvider, **fields: str):
    """Through the provider and back; what Cato answers then."""
    return browser.get(fake.approve(begin(browser, **fields)))


def is_signed_in(browser: Client) -> bool:
    return browser.get("/settings").status_code == 200


def refusal(answer, status: int = 403) -> str:
    page = answer.content.decode()
    assert answer.status_code == status, page
    assert 'name="password"' in page, "the other way in is still there"
    return re.search(r'class="error-message" role="alert".*?<span>(.*?)</span>', page, re.DOTALL)[1]


# With a real provider and a whole Cato


class Browser(httpx.Client):
    """A person without an account at a browser without a browser: follows redirects to the provider and back."""

    def __init__(self, cato: server.Cato) -> None:
        super().__init__(base_url=cato.url, follow_redirects=True, timeout=30)

    def press(self, **fields: str) -> httpx.Response:
        """Press the button that leads to the provider; returns the provider's page."""
        token = self.cookies.get("cato_csrf") or ""
        return self.post("/sign-in/openid", data=fields | {"csrfmiddlewaretoken": token}, headers=self._from_here())

    def agree(self, provider_page: httpx.Response, subject: str) -> httpx.Response:
        assert provider_page.url.path == "/oauth2/authorize", provider_page.text
        return self.post(provider_page.url, data={"sub": subject})

    def _from_here(self) -> dict[str, str]:
        return {"Referer": str(self.base_url)}


def known_to(provider: str, email: str, *, is_verified: bool = True, name: str = "Nora New") -> str:
    """Somebody the provider knows; returns their subject."""
    subject = f"s-{uuid.uuid4().hex[:8]}"
    about = {"email": email, "email_verified": is_verified, "name": name}
    httpx.put(f"{provider}/users/{subject}", json=about).raise_for_status()
    return subject


@pytest.fixture(scope="session")
def ada(openid_cato) -> server.Client:
    return openid_cato.set_up("Ada Admin")


def through(browser: Browser, subject: str, **fields: str) -> httpx.Response:
    browser.get("/sign-in")
    return browser.agree(browser.press(**fields), subject)


def test_somebody_with_an_account_is_found_by_the_verified_email_and_from_then_on_by_the_subject(
    openid_cato, provider, ada
):
    bob = openid_cato.join(ada, "Bob Team")
    subject, browser = known_to(provider, bob.email.upper()), Browser(openid_cato)
    page = through(browser, subject, next="/settings")

    assert page.url.path == "/settings"
    assert "From now on you can sign in with Halden." in page.text
    assert "You sign in with your password or with Halden." in page.text
    # The provider's e-mail is another person's now: who signs in stays the same.
    httpx.put(f"{provider}/users/{subject}", json={"email": ada.email, "email_verified": True})
    again = Browser(openid_cato)
    through(again, subject)
    assert bob.email in again.get("/settings").text
    identities = openid_cato.sql(
        "SELECT issuer, subject FROM people_identity JOIN people_user ON people_user.id = person_id WHERE email = ?",
        bob.email,
    )
    assert identities == [(provider, subject)]


def test_who_is_not_invited_gets_no_account_and_who_is_joins_by_the_link_once(openid_cato, provider, ada):
    email = f"nora-{uuid.uuid4().hex[:6]}@halden.example"
    subject, browser = known_to(provider, email), Browser(openid_cato)
    refused = through(browser, subject)
    assert (refused.status_code, NO_ACCOUNT in refused.text) == (403, True)

    link = re.search(r"/join/([\w-]+)", ada.post("/admin/people", {"role": "member"}).text)
    page = browser.get(link[0])
    assert "Join with Halden" in page.text
    arrived = browser.agree(browser.press(invitation=link[1]), subject)
    assert "Welcome, Nora New." in arrived.text
    assert email in browser.get("/settings").text
    assert Browser(openid_cato).get(link[0]).status_code == 404
    assert link[1] not in str(openid_cato.sql("SELECT session_data FROM django_session"))


def test_a_code_that_was_used_is_worth_nothing_in_this_browser_or_another(openid_cato, provider, ada):
    email = openid_cato.join(ada, "Bob Team").email
    subject, browser = known_to(provider, email), Browser(openid_cato)
    browser.get("/sign-in")
    page = browser.press()
    browser.follow_redirects = False
    back = browser.agree(page, subject).headers["location"]
    thief = Browser(openid_cato)
    assert thief.get(back).status_code == 403, "another browser did not begin it"
    assert browser.get(back).status_code == 302
    browser.post("/sign-out", headers={"Referer": str(browser.base_url), "X-CSRFToken": browser.cookies["cato_csrf"]})
    assert browser.get(back).status_code == 403


def test_the_pages_let_their_form_lead_to_the_provider_and_to_nobody_else(openid_cato, provider, ada):
    policy = httpx.get(f"{openid_cato.url}/sign-in").headers["content-security-policy"]
    assert f"form-action 'self' {provider};" in f"{policy};"


def test_a_link_from_elsewhere_begins_nothing(openid_cato, ada):
    browser = Browser(openid_cato)
    assert browser.get("/sign-in/openid").status_code == 405
    assert browser.post("/sign-in/openid").status_code == 403


# Before a provider that says what the test wants


def test_the_provider_is_asked_with_a_proof_key_that_only_this_sign_in_can_show(alice, fake):
    browser = Client()
    address = begin(browser)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert asked["scope"] == "openid email profile"

    browser.get(fake.approve(address))
    digest = hashlib.sha256(fake.seen["code_verifier"].encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
    assert is_signed_in(browser)
    assert LoginSession.objects.filter(person=alice).count() == 1


def test_the_session_gets_a_new_key(alice, fake):
    browser = Client()
    address = begin(browser)
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
def test_a_token_that_is_not_for_this_sign_in_lets_nobody_in(alice, fake, wrong):
    fake.claims = wrong
    browser = Client()

    assert "Sign-in with Halden failed." in refusal(arrive(browser, fake))
    assert not is_signed_in(browser)
    assert not Identity.objects.exists()


def test_a_token_without_the_providers_signature_lets_nobody_in(alice, fake):
    fake.signs_with = "none"
    assert "Sign-in with Halden failed." in refusal(arrive(Client(), fake))
    fake.signs_with, fake.key = "RS256", KEYS[1]
    assert "Sign-in with Halden failed." in refusal(arrive(Client(), fake))


def test_a_state_serves_once_in_its_own_browser_and_for_ten_minutes(alice, fake, monkeypatch):
    browser = Client()
    back = fake.approve(begin(browser))
    assert "begun elsewhere or too long ago" in refusal(Client().get(back))
    assert "begun elsewhere" in refusal(browser.get(f"{BACK}?code=c"))
    assert browser.get(back).status_code == 302
    browser.post("/sign-out")
    assert "begun elsewhere" in refusal(browser.get(back))

    back, now = fake.approve(begin(browser)), time.time()
    monkeypatch.setattr(openid.time, "time", lambda: now + openid.STATE_MAX_AGE + 1)
    assert "too long ago" in refusal(browser.get(back))


def test_who_says_no_at_the_provider_comes_back_to_the_page_of_signing_in(alice, fake):
    browser = Client()
    fake.approve(begin(browser))
    answer = browser.get(BACK, {"error": "access_denied", "error_description": "<b>", "state": fake.asked["state"]})
    assert refusal(answer) == "Halden did not let you in. Try again, or use your password."


def test_what_the_token_leaves_out_is_asked_for_but_believed_of_the_same_person_only(alice, fake):
    fake.claims = {"email": None, "email_verified": None}
    fake.userinfo = ALICE | {"sub": "another"}
    assert "does not tell Cato your e-mail" in refusal(arrive(Client(), fake))
    fake.userinfo = ALICE
    assert arrive(browser := Client(), fake).status_code == 302
    assert is_signed_in(browser)


@pytest.mark.parametrize("is_verified", [False, None, "true", 1])
def test_an_email_that_the_provider_has_not_verified_leads_into_no_account(alice, fake, configure, is_verified):
    configure(joins=True)
    fake.claims = {"email_verified": is_verified}
    with_account = refusal(arrive(Client(), fake))
    fake.claims |= {"email": "nobody@halden.example"}

    assert with_account == refusal(arrive(Client(), fake)) != ""
    assert User.objects.count() == 2


def test_nothing_tells_whether_an_address_has_an_account(alice, on, fake):
    services.set_active(alice.pk, False, by=on)
    closed = refusal(arrive(Client(), fake))
    fake.claims = {"sub": "n-1", "email": "nobody@halden.example"}

    assert closed == refusal(arrive(Client(), fake))
    assert NO_ACCOUNT in closed


def test_a_closed_account_stays_closed_for_who_came_in_so_before_and_a_deleted_one_too(alice, on, fake):
    arrive(Client(), fake)
    services.set_active(alice.pk, False, by=on)
    assert NO_ACCOUNT in refusal(arrive(Client(), fake))
    services.set_active(alice.pk, True, by=on)
    deletion.delete_account(alice)

    assert NO_ACCOUNT in refusal(arrive(Client(), fake))
    assert not Identity.objects.exists()


def test_an_address_that_was_given_to_somebody_else_does_not_lead_into_the_account_of_who_had_it(alice, fake):
    arrive(Client(), fake)
    fake.claims = {"sub": "a-2"}
    assert NO_ACCOUNT in refusal(arrive(Client(), fake))


def test_where_everybody_may_join_who_is_let_in_becomes_a_member_once_there_is_an_administrator(on, fake, configure):
    configure(joins=True)
    deletion.delete_account(on)
    assert NO_ACCOUNT in refusal(arrive(Client(), fake))
    AdministratorFactory()
    page = arrive(browser := Client(), fake, next="/stats")

    assert (page.status_code, page.headers["location"]) == (302, "/stats")
    alice = User.objects.get(email=ALICE["email"])
    assert (alice.name, alice.role, alice.has_usable_password()) == ("Alice Owner", "member", False)
    assert list(AuditEntry.objects.filter(actor=alice).order_by("id").values_list("action", flat=True)) == [
        "person.joined",
        "session.started_by_openid",
    ]
    assert is_signed_in(browser)
    arrive(Client(), fake)
    assert AuditEntry.objects.filter(actor=alice).count() == 2, "the first time only"


def test_only_the_named_domains_are_let_in(alice, fake, configure):
    configure(joins=True, only_emails_of=["halden.example", "b.example"])
    for email in ("eve@elsewhere.example", "eve@evil.halden.example", "eve@halden.example.evil.example"):
        fake.claims = {"sub": email, "email": email}
        assert "Only e-mail addresses of halden.example and b.example" in refusal(arrive(Client(), fake))
    fake.claims = {}
    assert arrive(Client(), fake).status_code == 302


def test_an_invitation_serves_once_and_is_kept_for_who_had_an_account_already(alice, on, fake):
    token = services.create_invitation(by=on, role="administrator")
    assert arrive(Client(), fake, invitation=token).status_code == 302
    assert OneTimeLink.objects.get(kind="invitation").used_at is None

    # Some providers verify no e-mail; an invitation says who it is for by itself.
    fake.claims = {"sub": "b-1", "email": "bob@halden.example", "email_verified": None, "name": None}
    too_late = Client()
    address = begin(too_late, invitation=token)
    assert arrive(Client(), fake, invitation=token).status_code == 302
    bob = User.objects.get(email="bob@halden.example")
    assert (bob.name, bob.role) == ("bob", "administrator")
    assert OneTimeLink.objects.get(kind="invitation").used_by == bob
    fake.claims |= {"sub": "c-1", "email": "charlie@halden.example"}
    assert too_late.get(fake.approve(address)).status_code == 404
    assert Client().post("/sign-in/openid", {"invitation": token}).status_code == 404
    assert not User.objects.filter(email="charlie@halden.example").exists()


def test_an_invitation_ends_while_somebody_is_at_the_provider_if_its_author_loses_the_role(on, fake):
    author, browser = AdministratorFactory(name="Eve Admin"), Client()
    fake.claims = {"sub": "b-1", "email": "bob@halden.example", "email_verified": True}
    address = begin(browser, invitation=services.create_invitation(by=author, role="administrator"))
    services.set_role(author, User.Role.MEMBER, by=on)
    assert browser.get(fake.approve(address)).status_code == 404
    assert not User.objects.filter(email="bob@halden.example").exists()


def test_two_who_share_an_invitation_at_the_same_moment_are_one_too_many(on, configure):
    configure(issuer="https://login.example")
    token = services.create_invitation(by=on)
    invitation = services.validate_link(token, "invitation").pk
    openid.login_session(VerifiedIdentity("https://login.example", "1", "one@halden.example", False, "One"), invitation)
    with pytest.raises(services.InvalidLinkError):
        openid.login_session(
            VerifiedIdentity("https://login.example", "2", "two@halden.example", False, "Two"), invitation
        )
    assert not User.objects.filter(name="Two").exists()


def test_an_unverified_email_with_an_invitation_leads_into_no_account_that_is_there(alice, on, configure):
    invitation = services.validate_link(services.create_invitation(by=on), "invitation").pk
    with pytest.raises(SignInRejectedError, match=NO_ACCOUNT):
        openid.login_session(VerifiedIdentity("https://login.example", "1", alice.email, False, "Mallory"), invitation)


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_one_is_led_on_within_this_cato_only(alice, fake, target):
    assert arrive(Client(), fake, next=target).headers["location"] == "/"


def test_the_way_back_is_the_public_address(alice, fake, settings):
    public = settings.CATO.server.model_copy(update={"public_url": "https://cato.example.org/"})
    settings.CATO = settings.CATO.model_copy(update={"server": public})
    asked = dict(parse_qsl(urlsplit(begin(Client())).query))
    assert asked["redirect_uri"] == f"https://cato.example.org{BACK}"


def test_a_provider_that_is_slow_or_gone_leaves_the_password(on, alice, fake, configure, monkeypatch):
    monkeypatch.setattr(openid, "TIMEOUT", 0.3)
    browser = Client()
    way = fake.approve(begin(browser, next="/stats"))
    fake.delay = 0.6
    began = time.monotonic()
    sentence = refusal(browser.post("/sign-in/openid", {"next": "/stats"}), 503)
    assert time.monotonic() - began < 5
    assert sentence == "Halden does not answer at the moment. Try again in a while, or use your password."
    assert refusal(browser.get(way), 503) == sentence
    assert refusal(browser.post("/sign-in/openid", {"invitation": services.create_invitation(by=on)}), 503) == sentence

    configure(issuer="http://127.0.0.1:1")
    page = browser.post("/sign-in/openid", {"next": "/stats"})
    assert refusal(page, 503) == sentence
    action = re.search(r'method="post"\s+action="(/sign-in\?[^"]*)"', page.content.decode())[1]
    answer = browser.post(action, {"email": alice.email, "password": PASSWORD})
    assert answer.headers["location"] == "/stats"


@pytest.mark.parametrize("said", [{"issuer": "https://other.example"}, {"token_endpoint": "ftp://x"}, {"jwks_uri": ""}])
def test_a_provider_that_does_not_say_who_and_where_it_is_is_not_followed(alice, fake, said):
    fake.says = said
    assert "does not answer" in refusal(Client().post("/sign-in/openid"), 503)


def test_pages_of_the_provider_at_another_address_are_reached_without_a_redirect(alice, fake):
    fake.says = {"authorization_endpoint": "https://pages.halden.example/authorize"}
    answer = Client().post("/sign-in/openid")
    assert answer.status_code == 200
    assert answer.headers["refresh"].startswith("0; url=https://pages.halden.example/authorize?")


def test_without_a_provider_there_is_no_such_sign_in(db, configure):
    AdministratorFactory()
    page = Client().get("/sign-in").content.decode()
    assert "Sign in with" not in page
    assert "form-action 'self';" in f"{Client().get('/sign-in').headers['content-security-policy']};"
    assert Client().post("/sign-in/openid").status_code == 404
    assert Client().get(BACK).status_code == 404


# Who has no password


@pytest.fixture
def nora(on):
    """Somebody who signs in with the provider alone."""
    person = services.create_person(name="Nora New", email="nora@halden.example", password=None)
    Identity.objects.create(person=person, issuer="https://login.example", subject="n-1")
    return person


def page_of(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_the_settings_say_so_and_an_administrators_link_sets_a_password(nora, on):
    page = page_of(nora)
    text = page.get("/settings").content.decode()
    assert "You sign in with Halden and have no password here." in text
    assert "Change password" not in text
    assert page.get("/settings/password").headers["location"] == "/settings"
    assert Client().post("/sign-in", {"email": nora.email, "password": ""}).status_code == 422

    Client().post(f"/reset/{services.reset_link(nora, by=on)}", {"password": "four other plain words"})
    assert Client().post("/sign-in", {"email": nora.email, "password": "four other plain words"}).status_code == 302


def test_they_delete_their_account_by_typing_their_email(nora):
    page = page_of(nora)
    assert "Your password" not in page.get("/settings/leave").content.decode()
    assert page.post("/settings/leave", {"email": "other@halden.example"}).status_code == 422
    assert page.post("/settings/leave", {"email": nora.email}).status_code == 302
    nora.refresh_from_db()
    assert nora.left_at is not None


def test_who_has_a_password_still_types_it(alice, fake):
    arrive(browser := Client(), fake)
    assert browser.post("/settings/leave", {"email": alice.email}).status_code == 422


def test_ones_own_data_name_the_account_elsewhere(nora):
    account = next(
        member for member in archive_files(nora, access.readable_space_ids(nora.pk)) if member.path == "account.json"
    )
    (told,) = json.loads(b"".join(account.chunks))["identities"]
    assert (told["issuer"], told["subject"]) == ("https://login.example", "n-1")
