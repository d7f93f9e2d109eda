"""OpenID Connect in a browser that enforces Cato's Content Security Policy."""

from __future__ import annotations

import re
import uuid

import httpx
import pytest
from playwright.sync_api import expect


@pytest.fixture(scope="session")
def openid_ada(openid_cato):
    return openid_cato.set_up("Ada Admin")


def test_a_person_joins_by_invitation_and_signs_in_again_through_the_provider(openid_cato, provider, openid_ada, visit):
    subject, email = f"nora-{uuid.uuid4().hex[:6]}", f"nora-{uuid.uuid4().hex[:6]}@halden.example"
    about = {"email": email, "email_verified": True, "name": "Nora New"}
    httpx.put(f"{provider}/users/{subject}", json=about).raise_for_status()
    invited = openid_ada.post("/admin/people", {"role": "member"}, follow_redirects=True)
    link = re.search(r"/join/[\w-]+", invited.text)[0]

    page = visit(None, link, url=openid_cato.url)
    page.get_by_role("button", name="Join with Halden").click()
    page.get_by_placeholder("sub").fill(subject)
    page.get_by_role("button", name="Authorize").click()
    expect(page.get_by_text("Welcome, Nora New.")).to_be_visible()

    page.goto("/settings")
    expect(page.get_by_text("You sign in with Halden and have no password here.")).to_be_visible()
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.goto("/stats")
    page.wait_for_url(re.compile("/sign-in"))
    page.get_by_role("button", name="Sign in with Halden").click()
    page.get_by_placeholder("sub").fill(subject)
    page.get_by_role("button", name="Authorize").click()
    page.wait_for_url("**/stats")


def test_after_refusing_at_the_provider_the_password_still_works(openid_cato, openid_ada, visit):
    page = visit(None, "/sign-in", url=openid_cato.url)
    page.get_by_role("button", name="Sign in with Halden").click()
    page.get_by_role("button", name="Deny").click()
    # This provider returns no state after a refusal; a response without a state belongs to no login.
    expect(page.get_by_role("alert")).to_contain_text("Start again.")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
