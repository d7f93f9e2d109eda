"""Signing out deletes everything that was typed from the browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import begin_thread, wait_for_answer

DRAFTS = "Object.entries(localStorage).filter(([key]) => key.startsWith('draft ')).map(([, text]) => text)"
SIGN_IN = re.compile("/sign-in")
UNSENT = "A secret that was never sent"


@pytest.fixture
def page(alice, visit) -> Page:
    """Open a thread with a draft in its composer."""
    page = visit(alice, "/")
    begin_thread(page, "Hello")
    wait_for_answer(page)
    page.get_by_label("Message", exact=True).fill(UNSENT)
    assert page.evaluate(DRAFTS) == [UNSENT]
    page.reload()
    expect(page.get_by_label("Message", exact=True)).to_have_value(UNSENT)
    return page


def test_a_draft_is_deleted_by_signing_out(page):
    page.goto("/settings")
    assert page.evaluate(DRAFTS) == [UNSENT]
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url(SIGN_IN)
    page.wait_for_load_state()
    assert page.evaluate(DRAFTS) == []


def test_an_open_page_and_its_draft_close_when_the_session_is_ended_elsewhere(page, alice, cato):
    elsewhere = cato.sign_in(alice)
    elsewhere.post("/settings/sessions", {"login_session": "others"})
    page.wait_for_url(SIGN_IN)
    page.wait_for_load_state()
    assert page.evaluate(DRAFTS) == []


def test_a_draft_is_deleted_when_another_person_signs_in_with_the_same_browser(page, cato, administrator, visit):
    bob = cato.join(administrator, "Bob Team")
    page.context.clear_cookies()
    page.context.add_cookies([{"name": c.name, "value": c.value, "url": cato.url} for c in bob.http.cookies.jar])
    page.goto("/")
    page.wait_for_load_state()
    assert page.evaluate(DRAFTS) == []
