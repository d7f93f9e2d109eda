"""Passkeys in Chromium with its virtual authenticator, and an authenticator app, from set-up to sign-in."""

from __future__ import annotations

import re
import time

import pyotp
from playwright.sync_api import expect

from tests.server import PASSWORD


def open_at_name(visit, cato, person, path):
    """Open a page at localhost: browsers have no passkeys at addresses without a name."""
    page = visit(None, "/sign-in", url=cato.url.replace("127.0.0.1", "localhost"))
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    enter_password(page, person)
    page.goto(path)
    return page


def enter_password(page, person):
    page.get_by_label("Email").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda url: "/sign-in" not in url or "second-factor" in url)


def test_a_passkey_is_added_used_after_the_password_and_instead_of_it(cato, administrator, visit):
    person = cato.join(administrator, "Paula Passkey")
    page = open_at_name(visit, cato, person, "/settings/security")
    page.get_by_label("Name of a new passkey").fill("This laptop")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_label("Your recovery codes")).to_have_value(re.compile(r"^(\w{4}-\w{4}-\w{4}\n){10}$"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert len(download.value.path().read_text().split()) == 10
    page.get_by_role("link", name="I have saved them").click()
    expect(page.get_by_text("This laptop").first).to_be_visible()

    page.goto("/settings")
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/sign-in")
    enter_password(page, person)
    page.goto("/settings")  # still signed out
    page.wait_for_url("**/sign-in?next=**")
    page.goto("/sign-in/second-factor")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)

    page.goto("/settings")
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.goto("/stats")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url("**/stats")


def test_the_code_of_an_app_signs_in(cato, administrator, visit):
    person = cato.join(administrator, "Carla Code")
    page = open_at_name(visit, cato, person, "/settings/security/app")
    secret = page.locator("code").inner_text().replace(" ", "")
    page.get_by_label("The code that the app shows").fill(pyotp.TOTP(secret).now())
    page.get_by_role("button", name="Add").click()
    page.get_by_role("link", name="I have saved them").click()

    page.goto("/settings")
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/sign-in")
    enter_password(page, person)
    page.get_by_label("Code").fill(pyotp.TOTP(secret).at(time.time() + 30))
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    page.goto("/settings")
    expect(page.get_by_text("Signing in with your password needs a second factor.")).to_be_visible()
