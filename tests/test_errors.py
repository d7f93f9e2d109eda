"""The table from errors to responses of pages, REST API, OpenAI API and MCP."""

from __future__ import annotations

import re

import pytest
from django.template.loader import render_to_string
from django.test import Client

from cato_web.api_auth import InvalidTokenError, MissingScopeError
from cato_web.errors import ERROR_TABLE, status_of
from chat import errors as chat_errors
from memory import errors as memory_errors
from memory.errors import CatoError, VectorStoreUnavailableError
from tests.factories import PersonFactory, api_client, signed_in

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/t/1?from=3"}
SENTENCE = 'Token is missing the scope "ask".'


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


def subclasses(kind: type) -> set[type]:
    return {kind}.union(*(subclasses(below) for below in kind.__subclasses__()))


def test_every_public_error_has_a_status_and_a_code():
    for kind in subclasses(CatoError):
        error = kind.__new__(kind)
        status, code = status_of(error)
        assert 400 <= status < 600, kind
        assert code != "broken", kind
    assert status_of(ZeroDivisionError()) == (500, "broken")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidTokenError(), (401, "no_token")),
        (MissingScopeError(), (403, "scope_missing")),
        (chat_errors.PermissionDeniedError(), (403, "forbidden")),
        (memory_errors.NotFoundError(), (404, "not_found")),
        (chat_errors.ThreadBusyError(), (409, "refused")),
        (chat_errors.InvalidMessageError("empty"), (422, "invalid")),
        (memory_errors.RateLimitedError(), (429, "too_fast")),
        (memory_errors.VectorStoreRequestError("refused"), (503, "unavailable")),
    ],
)
def test_the_most_specific_class_decides(error, expected):
    assert status_of(error) == expected
    assert set(ERROR_TABLE) >= {memory_errors.CatoError, memory_errors.NotFoundError}


@pytest.mark.parametrize("name", ["400", "403", "404", "500", "offline"])
def test_the_title_of_an_error_page_says_what_its_heading_says(alice, name):
    request = signed_in(alice).get("/settings").wsgi_request
    page = render_to_string(f"{name}.html", {"error": "", "heading": "Not possible."}, request)
    (title,) = re.findall(r"<title>\s*(.*?)\s*· Cato\s*</title>", page, re.DOTALL)
    (heading,) = re.findall(r"<h1>\s*(.*?)\s*</h1>", page, re.DOTALL)
    assert title == heading


@pytest.mark.parametrize(
    ("error", "heading"),
    [
        (memory_errors.InvalidInputError("wrong"), "Bad request."),
        (memory_errors.RateLimitedError("often"), "Too many requests."),
        (chat_errors.ConflictError("busy"), "This is not possible at the moment."),
        (VectorStoreUnavailableError("away"), "This is not possible at the moment."),
    ],
)
def test_an_error_page_says_what_kind_of_error_it_is(alice, monkeypatch, error, heading):
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr("memory.api.build_recall_filter", fail)
    page = signed_in(alice).get("/search").content.decode()
    assert f"<h1>{heading}</h1>" in page
    assert f"<title>{heading} · Cato</title>" in page
    assert str(error) in page


def test_a_page_without_vector_store_answers_503_with_retry_after(alice, monkeypatch):
    browser = signed_in(alice)
    assert browser.get("/search").status_code == 200

    def fail(*args: object, **kwargs: object) -> None:
        raise VectorStoreUnavailableError

    monkeypatch.setattr("memory.api.build_recall_filter", fail)
    answer = browser.get("/search")

    assert answer.status_code == 503
    assert answer["Retry-After"] == "60"
    assert "cannot be reached" in answer.content.decode()


def test_a_part_of_a_page_stays_as_it_is_and_the_error_is_a_toast(alice):
    missing = "/d/00000000-0000-4000-8000-000000000000/row"

    answer = signed_in(alice).get(missing, headers=HTMX)

    assert (answer.status_code, answer["HX-Reswap"]) == (404, "none")
    assert '<div hx-swap-oob="innerHTML:#toasts"><p class="toast">' in answer.content.decode()
    assert "<main" in signed_in(alice).get(missing).content.decode()


def test_an_outdated_form_of_a_part_of_a_page_is_a_toast(alice):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)

    answer = browser.post("/attachments", headers=HTMX)

    assert (answer.status_code, answer["HX-Reswap"]) == (403, "none")
    assert "out of date" in answer.content.decode()


def test_scripts_without_a_login_get_401_with_the_way_back(alice):
    answer = Client().get("/search", headers=HTMX)

    assert (answer.status_code, answer["HX-Redirect"]) == (401, "/sign-in?next=/t/1%3Ffrom%3D3")
    assert Client().get("/search").status_code == 302


@pytest.mark.parametrize(
    ("referer", "back"),
    [("http://testserver/t/1?from=3", "/t/1%3Ffrom%3D3"), ("https://elsewhere.example/t/1", "/"), (None, "/")],
)
def test_the_sign_in_after_a_form_leads_back_to_its_page(db, referer, back):
    answer = Client().post("/instructions/detection", headers={"Referer": referer} if referer else {})

    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in?next={back}")


@pytest.mark.django_db(transaction=True)
def test_both_apis_report_a_missing_scope_with_the_same_message(alice):
    reading = api_client(alice, "read")

    rest_answer = reading.post("/api/ask", {"message": "Who has the key?"}, content_type="application/json")
    compatible = reading.post("/v1/chat/completions", {"messages": []}, content_type="application/json")

    assert rest_answer.json()["error"] == {"code": "scope_missing", "message": SENTENCE}
    assert compatible.status_code == 403
    assert compatible.json()["error"] | {"param": None} == {
        "message": SENTENCE,
        "type": "permission_error",
        "param": None,
        "code": "missing_scope",
    }


@pytest.mark.django_db(transaction=True)
def test_both_apis_report_rate_limits_with_retry_after(alice, settings):
    client = api_client(alice, "read")
    conf = settings.CATO
    settings.CATO = conf.model_copy(update={"api": conf.api.model_copy(update={"requests_per_minute": 1})})
    allowed = client.get("/v1/models")
    assert (allowed.status_code, allowed["X-RateLimit-Remaining"], allowed["X-RateLimit-Reset"]) == (200, "0", "60")

    for path in ("/v1/models", "/api/me"):
        answer = client.get(path)
        assert (answer.status_code, answer["X-RateLimit-Remaining"]) == (429, "0"), path
        assert 1 <= int(answer["Retry-After"]) <= 60, path
