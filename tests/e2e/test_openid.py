"""Signing in through the provider's own page, with a browser that holds Cato's pages to their policy."""

from __future__ import annotations

import re
import uuid

import httpx
import pytest
from playwright.sync_api import expect


@pytest.fixture(scope="session")
def openid_ada(openid_cato):
    return openid_cato.set_up("Ada Admin")


def test_somebody_joins_by_an_invitation_and_comes_back_through_the_providers_page(
    openid_cato, provider, openid_ada, visit
):
    subject, email = f"nora-{uuid.uuid4().hex[:6]}", f"nora-{uuid.uuid4().hex[:6]}@halden.example"
    about = {"email": email, "email_verified": True, "name": "Nora New"}
    httpx.put(f"{provider}/users/{subject}", json=about).raise_for_status()
    link = re.search(r"/join/[\w-]+", openid_ada.post("/admin/people", {"role": "member"}).text)[0]

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


def test_who_says_no_there_can_still_use_the_password(openid_cato, openid_ada, visit):
    page = visit(None, "/sign-in", url=openid_cato.url)
    page.get_by_role("button", name="Sign in with Halden").click()
    page.get_by_role("button", name="Deny").click()
    # This provider sends no state along when somebody says no; what comes back without one counts as nobody's.
    expect(page.get_by_role("alert")).to_contain_text("Begin again.")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
