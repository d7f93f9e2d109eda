"""Cross-origin requests: only to the APIs, only from the origins of the configuration, and never with cookies."""

from __future__ import annotations

import asyncio

import pytest

from cato_web.asgi import application
from cato_web.config.schema import Api

PAGE = "https://chat.example.org"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, x-stainless-os"}


@pytest.fixture(autouse=True)
def allowed(settings):
    api = settings.CATO.api.model_copy(update={"cors_origins": [PAGE]})
    settings.CATO = settings.CATO.model_copy(update={"api": api})


def request(method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    """Return status and headers of the response."""
    sent: list[dict] = []
    names = {name.encode().lower(): value.encode() for name, value in headers.items()}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "scheme": "http",
        "headers": [(b"host", b"localhost"), *names.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    body = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict:
        if body:
            return body.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict) -> None:
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    return sent[0]["status"], {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}


def test_a_preflight_of_a_named_origin_is_answered_without_a_token():
    status, headers = request("OPTIONS", "/v1/chat/completions", Origin=PAGE, **PREFLIGHT)
    assert status == 204
    assert headers["access-control-allow-origin"] == PAGE
    assert headers["access-control-allow-headers"] == PREFLIGHT["Access-Control-Request-Headers"]
    assert "POST" in headers["access-control-allow-methods"]
    assert headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in headers


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/v1/models", "/api/me"])
def test_a_page_of_a_named_origin_can_read_responses_and_errors(path):
    status, headers = request("GET", path, Origin=PAGE)
    assert status == 401, "a token is required as ever"
    assert headers["access-control-allow-origin"] == PAGE
    assert "X-Cato-Thread" in headers["access-control-expose-headers"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("/v1/models", "https://evil.example"),
        ("/v1/models", f"{PAGE}.evil.example"),
        ("/v1/models", "http://chat.example.org"),
        ("/v1/models", "null"),
        ("/login", PAGE),
    ],
)
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_other_origins_and_pages_get_no_headers(path, origin, method):
    _status, headers = request(method, path, Origin=origin, **PREFLIGHT)
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "https://chat.example.org/", "chat.example.org", "https://Chat.example.org", "ftp://a.example"],
)
def test_only_origins_can_be_configured(origin):
    with pytest.raises(ValueError, match="without a path"):
        Api(enabled=True, requests_per_minute=1, keep_events_days=30, cors_origins=[origin], webhook_origins=[])
    assert Api(
        enabled=True,
        requests_per_minute=1,
        keep_events_days=30,
        cors_origins=f"{PAGE}, http://localhost:3000",
        webhook_origins=[],
    ).cors_origins
