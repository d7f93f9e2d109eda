"""The page on which a person allows an app to use Cato, in a browser that enforces the Content Security Policy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

VERIFIER = "v" * 64
CHALLENGE = "w1TpKUdYE9hUAcNSeeSRFioHDxfUxuHho_JHAfZ_vDM"  # of the verifier, by S256


class _Callback(BaseHTTPRequestHandler):
    """The part of an app to which the browser is sent back."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"You can close this page.")

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def callback() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Callback)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/callback"
    server.shutdown()


@pytest.fixture
def address(cato, callback) -> str:
    """Register an app, and return the address to which it sends the browser."""
    metadata = {"redirect_uris": [callback], "client_name": "Compass", "token_endpoint_auth_method": "none"}
    client_id = httpx.post(f"{cato.url}/oauth/register", json=metadata).json()["client_id"]
    fields = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": callback,
        "state": "seven",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": f"{cato.url}/mcp",
    }
    return f"/oauth/authorize?{urlencode(fields)}"


def returned(page) -> dict[str, list[str]]:
    page.wait_for_url("**/callback?*")
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.parametrize("options", [{}, {"java_script_enabled": False}, {"viewport": {"width": 360, "height": 720}}])
def test_a_person_allows_an_app_part_of_what_it_asks_for(cato, alice, visit, address, callback, options):
    page = visit(alice, address, **options)
    expect(page.get_by_text("Compass", exact=True)).to_be_visible()
    expect(page.get_by_text("127.0.0.1", exact=True)).to_be_visible()
    page.get_by_label("Ask: send messages").uncheck()
    page.get_by_role("button", name="Allow access").click()
    code = returned(page)["code"][0]

    form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER, "redirect_uri": callback}
    client_id = parse_qs(urlsplit(address).query)["client_id"][0]
    tokens = httpx.post(f"{cato.url}/oauth/token", data=form | {"client_id": client_id}).json()
    assert tokens["scope"] == "read write"

    settings = visit(alice, "/settings")
    expect(settings.get_by_text("Connected app: 127.0.0.1")).to_be_visible()
    settings.get_by_role("button", name="Revoke: Compass").click()
    expect(settings.get_by_text("Connected app")).to_have_count(0)


def test_the_return_key_refuses(cato, alice, visit, address):
    page = visit(alice, address)
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    assert returned(page)["error"] == ["access_denied"]


@pytest.mark.parametrize("width", [320, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_fits(alice, visit, address, width, scheme):
    page = visit(alice, address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert not page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    found = Axe().run(page, options={"runOnly": rules}).response["violations"]
    assert not [violation["id"] for violation in found]
