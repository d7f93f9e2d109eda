"""Client ID metadata documents: an app connects with the address of its description as its ID."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from django.core.cache import cache
from django.utils import timezone

from cato_web.oauth import client_documents
from cato_web.oauth.client_documents import is_document_address
from cato_web.oauth.models import OAuthClient
from tests.factories import PersonFactory, signed_in
from tests.test_oauth import CALLBACK, ask, decide, exchange, principal, refresh

APP = "https://compass.example/app.json"


class Web:
    """What the addresses of apps answer, and which were fetched."""

    def __init__(self) -> None:
        self.documents: dict[str, httpx2.Response] = {}
        self.fetched: list[str] = []

    def describe(self, address: str = APP, **changes: Any) -> None:
        document = {
            "client_id": address,
            "client_name": "Compass",
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": "none",
        } | changes
        fields = {name: value for name, value in document.items() if value is not None}
        self.documents[address] = httpx2.Response(200, json=fields)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.fetched.append(str(request.url))
        return self.documents.get(str(request.url)) or httpx2.Response(404)


@pytest.fixture
def web(db, monkeypatch) -> Web:
    """Answer instead of the web; without this fixture, the guarded client is the real one."""
    cache.clear()
    web = Web()
    transport = httpx2.MockTransport(web.answer)
    monkeypatch.setattr(client_documents, "new_client", lambda *args, **kwargs: httpx2.AsyncClient(transport=transport))
    return web


@pytest.fixture
def alice(db):
    return PersonFactory(name="Alice Owner")


@pytest.fixture
def browser(alice):
    return signed_in(alice)


def test_an_app_connects_with_the_address_of_its_description(web, browser, alice):
    web.describe()
    page = ask(browser, APP).content.decode()
    assert "Compass" in page
    assert '<bdi dir="ltr">compass.example</bdi>' in page

    issued = exchange(APP, decide(browser, APP)["code"]).json()
    assert principal(issued["access_token"]).person == alice
    assert refresh(APP, issued["refresh_token"]).status_code == 200
    assert web.fetched == [APP], "the description is fetched for the consent page, not for tokens"


def test_an_app_with_a_description_stays_connected_on_each_machine(web, browser, alice):
    web.describe()
    laptop = exchange(APP, decide(browser, APP)["code"]).json()
    phone = exchange(APP, decide(browser, APP)["code"]).json()

    assert principal(laptop["access_token"]).person == principal(phone["access_token"]).person == alice
    assert refresh(APP, laptop["refresh_token"]).status_code == 200


def test_a_description_is_read_again_after_an_hour(web, browser):
    web.describe()
    ask(browser, APP)
    web.describe(client_name="Sextant", redirect_uris=["https://sextant.example/back"])
    assert "Compass" in ask(browser, APP).content.decode()

    OAuthClient.objects.update(read_at=timezone.now() - timedelta(minutes=61))
    assert ask(browser, APP).status_code == 400, "the address is not its redirect address any more"
    answer = ask(browser, APP, redirect_uri="https://sextant.example/back")
    assert "Sextant" in answer.content.decode()
    assert OAuthClient.objects.count() == 1

    OAuthClient.objects.update(read_at=timezone.now() - timedelta(minutes=61))
    web.documents.clear()
    assert "HTTP 404" in ask(browser, APP, redirect_uri="https://sextant.example/back").content.decode()


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://compass.example/other.json"},
        {"client_id": None},
        {"client_secret": "shared"},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"redirect_uris": []},
        {"redirect_uris": ["http://compass.example/back"]},
        {"grant_types": ["client_credentials"]},
    ],
)
def test_an_unusable_description_is_refused(web, browser, changes):
    web.describe(**changes)
    answer = ask(browser, APP)
    assert answer.status_code == 400
    assert "description at compass.example cannot be used" in answer.content.decode()
    assert not OAuthClient.objects.exists()


@pytest.mark.parametrize(
    "response",
    [
        httpx2.Response(302, headers={"location": "https://compass.example/elsewhere.json"}),
        httpx2.Response(500),
        httpx2.Response(200, text=json.dumps({"client_id": APP, "redirect_uris": [CALLBACK]})),
        httpx2.Response(200, headers={"content-type": "application/json"}, content=b"[" * 10_000),
        httpx2.Response(200, headers={"content-type": "application/json"}, content=b"\xff"),
        httpx2.Response(200, json={"client_id": APP, "redirect_uris": [CALLBACK], "more": "x" * 20_000}),
    ],
    ids=["redirect", "error", "text", "deep", "bytes", "long"],
)
def test_another_answer_is_no_description(web, browser, response):
    web.documents[APP] = response
    assert ask(browser, APP).status_code == 400
    assert web.fetched == [APP]


def test_nothing_is_fetched_for_somebody_who_is_not_signed_in(web, client):
    web.describe()
    assert ask(client, APP).status_code == 302
    assert exchange(APP, "code").status_code in (400, 401)
    assert web.fetched == []


def test_descriptions_are_limited_by_person(web, browser, monkeypatch):
    monkeypatch.setattr(client_documents, "_PER_HOUR", 1)
    for address in (APP, "https://compass.example/second.json"):
        web.describe(address)
    assert ask(browser, APP).status_code == 200
    assert ask(browser, "https://compass.example/second.json").status_code == 429
    assert len(web.fetched) == 1


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "10.1.2.3", "[::1]", "169.254.169.254", "compass.example:8443"]
)
def test_addresses_inside_the_network_are_not_fetched(db, browser, host):
    cache.clear()
    answer = ask(browser, f"https://{host}/app.json")
    assert answer.status_code == 400
    page = answer.content.decode()
    assert "is inside the network" in page or "is not at the usual port" in page
    assert not OAuthClient.objects.exists()


@pytest.mark.parametrize(
    ("client_id", "is_one"),
    [
        (APP, True),
        ("https://compass.example/apps/7", True),
        ("http://compass.example/app.json", False),
        ("https://compass.example", False),
        ("https://compass.example/", False),
        ("https://compass.example/../app.json", False),
        ("https://compass.example/%2e%2e/app.json", False),
        ("https://compass.example/app.json?x=1", False),
        ("https://compass.example/app.json#x", False),
        ("https://me:pw@compass.example/app.json", False),
        ("https://compass.example/" + "x" * 500, False),
        ("https://[compass/app.json", False),
        ("cato-app", False),
    ],
)
def test_an_address_of_a_document_is_recognised(client_id, is_one):
    assert is_document_address(client_id) == is_one
