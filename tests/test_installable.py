"""The app manifest and the page for times without a connection."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.utils import translation

from tests.factories import PersonFactory, exchange, signed_in, thread, turn

pytestmark = pytest.mark.django_db


def test_the_manifest_names_pages_and_icons_that_exist(client: Client):
    page = signed_in(PersonFactory()).get("/")
    link = re.search(r'<link rel="manifest" href="([^"]+)">', page.content.decode())
    assert link
    response = client.get(link[1])
    assert response.headers["Content-Type"] == "application/manifest+json"
    manifest = response.json()
    member = signed_in(PersonFactory())
    for address in (manifest["start_url"], *(shortcut["url"] for shortcut in manifest["shortcuts"])):
        assert member.get(address).status_code == 200

    for icon in manifest["icons"]:
        path = finders.find(icon["src"].removeprefix("/static/"))
        assert isinstance(path, str)
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", Path(path).read_bytes()[16:24])  # the header of a PNG
            assert icon["sizes"] == f"{width}x{height}"


def test_the_address_at_which_browsers_look_for_an_icon_leads_to_one(client: Client):
    response = client.get("/favicon.ico")
    assert response.status_code == 302
    assert finders.find(response.url.removeprefix("/static/"))


def test_what_the_browser_keeps_is_the_same_for_everybody(client: Client):
    member = signed_in(PersonFactory())
    assert member.get("/offline").content == client.get("/offline").content
    assert member.get("/service-worker.js").content == client.get("/service-worker.js").content


def test_the_service_worker_changes_with_the_page_that_it_keeps(client: Client):
    english = client.get("/service-worker.js")
    with translation.override("de"):
        german = client.get("/service-worker.js")
    assert english.content != german.content
    assert "no-store" in english.headers["Cache-Control"]


@pytest.mark.parametrize("kind", ["t", "m", "turns"])
def test_the_preview_of_a_link_shows_nothing_to_people_without_access(client: Client, kind):
    author = PersonFactory()
    secret = thread(author, title="Merger with Bergmann")
    ids = {
        "t": secret.id,
        "turns": turn(secret, "Bergmann buys us").id,
        "m": exchange(author, "Bergmann buys us").id,
    }
    for visitor in (client, signed_in(PersonFactory())):
        response = visitor.get(f"/{kind}/{ids[kind]}", follow=True)
        assert "Bergmann" not in response.content.decode()
