"""The settings page in the browser: density, model, notifications, export and account deletion."""

from __future__ import annotations

import json
import re
import zipfile

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import KEY, begin_thread, row_count, send_message, turn, wait_for_answer
from tests.groups import make_group
from tests.server import PASSWORD, wait_for

# Replaces the browser's notifications, which are outside the page: records them and answers with `permission`.
NOTED = """
window.shown = []; window.asked = 0; window.elsewhere = false;
window.Notification = class extends EventTarget {
  constructor(title, options) { super(); shown.push({ title, ...options }); }
  close() {}
  static get permission() { return sessionStorage.getItem("permission") ?? "default"; }
  static async requestPermission() {
    asked += 1;
    sessionStorage.setItem("permission", "%s");
    return "%s";
  }
};
Object.defineProperty(document, "hidden", { get: () => elsewhere });
"""
LEAVE = "() => { elsewhere = true; document.dispatchEvent(new Event('visibilitychange')); }"
DRAFTS = "Object.keys(localStorage).filter((key) => key.startsWith('draft'))"
COME_BACK = "() => { elsewhere = false; document.dispatchEvent(new Event('visibilitychange')); }"


def with_notifications(page, answer: str) -> None:
    page.context.add_init_script(NOTED.replace("%s", answer))
    page.reload()


def choose_density(page, name: str) -> None:
    page.goto("/settings")
    page.get_by_label("Density").select_option(name)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()


def test_compact_density_takes_less_space_and_stays_legible(alice, visit):
    page = visit(alice, "/")
    thread = begin_thread(page, "Hello")
    wait_for_answer(page)
    measured = {}
    for density in ("Comfortable", "Compact"):
        choose_density(page, density)
        page.goto(thread)
        measured[density] = [
            page.locator("article.turn").bounding_box()["height"],
            page.locator(".sidebar .sidebar__link").first.bounding_box()["height"],
        ]
        assert (
            float(page.locator(".turn__message-text").evaluate("node => parseFloat(getComputedStyle(node).fontSize)"))
            >= 15
        )
        smallest = page.evaluate(
            """() => Math.min(...[...document.querySelectorAll("body *")].filter((node) => node.checkVisibility() && !node.ariaHidden
                && [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
                .map((node) => parseFloat(getComputedStyle(node).fontSize)))"""
        )
        assert smallest >= 11
    assert all(small < large for small, large in zip(measured["Compact"], measured["Comfortable"], strict=True))


@pytest.mark.parametrize("width", [320, 390, 1000])
def test_compact_density_keeps_touch_targets_large_and_no_page_scrolls_sideways(alice, visit, width):
    page = visit(alice, "/settings", viewport={"width": width, "height": 800}, has_touch=True, is_mobile=width < 800)
    choose_density(page, "Compact")
    thread = alice.send_message("Hello")
    # Measured elements must not be replaced by a frame meanwhile.
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "the exchange to be remembered")
    for path in (f"/t/{thread}", "/settings", "/settings/delete-account", "/search", "/stats"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, path
        # A checkbox is pressed through its label.
        pressed = ".button, .icon-button, .field :is(input:not([type=checkbox]), select), .tick"
        low = (
            page.locator(pressed)
            .locator("visible=true")
            .evaluate_all(
                "nodes => nodes.filter((n) => n.getBoundingClientRect().height < 40).map((n) => n.outerHTML.slice(0, 200))"
            )
        )
        assert low == [], path
    touch = "getComputedStyle(document.documentElement).getPropertyValue('--touch')"
    assert page.evaluate(touch) == "44px"


def test_new_threads_use_the_model_chosen_from_the_endpoints_list(alice, visit, cato):
    page = visit(alice, "/settings")
    model = page.get_by_label("Model of new threads")
    expect(model.locator("option")).to_have_text(["Default", "fake", "fake-large"])
    model.select_option("fake-large")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Model of new threads")).to_have_value("fake-large")

    page.goto("/")
    thread = begin_thread(page, "Which one are you?")
    wait_for_answer(page)
    assert cato.sql("SELECT model FROM chat_thread WHERE id = ?", thread.removeprefix("/t/").replace("-", "")) == [
        ("fake-large",)
    ]


def test_a_finished_answer_on_a_hidden_page_notifies_with_the_threads_title_only(alice, visit, endpoint):
    page = visit(alice, "/settings")
    with_notifications(page, "granted")
    page.get_by_role("button", name="Switch on").click()
    expect(page.get_by_text("Notifications on.")).to_be_visible()
    expect(page.locator("#notification-settings")).to_contain_text("On.")
    page.goto("/")
    begin_thread(page, "When is the greenhouse painted?")
    wait_for_answer(page)
    title = page.title()
    assert page.evaluate("shown") == [], "who is here sees the answer"

    page.evaluate(LEAVE)
    send_message(page, "And the shed?")
    wait_for_answer(page)
    expect(page).to_have_title(f"● {title}")
    (notification,) = page.evaluate("shown")
    assert notification["title"] == page.locator(".topbar__title").inner_text()
    assert "All right" not in json.dumps(notification)

    page.evaluate(COME_BACK)
    expect(page).to_have_title(title)
    send_message(page, "And the house?")
    expect(page.locator("article.turn")).to_have_count(3)
    wait_for_answer(page)
    assert len(page.evaluate("shown")) == 1


def test_the_notification_of_a_failed_answer_says_why_it_failed(alice, visit, endpoint):
    page = visit(alice, "/settings")
    with_notifications(page, "granted")
    page.get_by_role("button", name="Switch on").click()
    expect(page.get_by_text("Notifications on.")).to_be_visible()
    page.goto("/")
    begin_thread(page, "When is the greenhouse painted?")
    wait_for_answer(page)
    endpoint.script(KEY, mode="error-500")
    page.evaluate(LEAVE)
    send_message(page, "And the shed?")

    reason = turn(page, 1).locator(".turn__status--failed .turn__status-text")
    expect(reason).to_be_visible()
    (notification,) = wait_for(lambda: page.evaluate("shown"), "the notification")
    assert notification["body"] == reason.text_content()


def test_without_notifications_only_the_page_title_is_marked(alice, visit):
    page = visit(alice, "/")
    with_notifications(page, "granted")
    page.evaluate("sessionStorage.setItem('permission', 'granted')")
    begin_thread(page, "Hello")
    wait_for_answer(page)
    title = page.title()

    page.evaluate(LEAVE)
    send_message(page, "Are you there?")
    expect(page).to_have_title(f"● {title}")
    assert page.evaluate("shown") == []


def test_without_permission_notifications_stay_off_and_the_page_explains_what_to_do(alice, visit):
    page = visit(alice, "/settings")
    with_notifications(page, "denied")
    page.get_by_role("button", name="Switch on").click()

    expect(page.locator("#notification-state")).to_contain_text("The browser does not allow it.")
    assert page.evaluate("asked") == 1
    page.reload()
    expect(page.locator("#notification-settings")).to_contain_text("Off.")


def test_enabled_elsewhere_notifications_can_be_allowed_in_this_browser_too(alice, visit):
    alice.post("/settings/notify", {"notify": "yes"})
    page = visit(alice, "/settings")
    with_notifications(page, "granted")
    expect(page.locator("#notification-state")).to_have_text("This browser has not been asked yet.")

    page.get_by_role("button", name="Allow it in this browser").click()

    expect(page.get_by_role("button", name="Allow it in this browser")).to_be_hidden()
    expect(page.locator("#notification-state")).to_be_empty()
    assert page.evaluate("asked") == 1


def test_a_browser_without_notifications_gets_an_explanation(alice, visit):
    page = visit(alice, "/settings")
    page.context.add_init_script("delete window.Notification;")
    page.reload()
    page.get_by_role("button", name="Switch on").click()
    expect(page.locator("#notification-state")).to_contain_text("https pages only")


def test_the_export_is_prepared_and_downloaded(alice, visit, tmp_path):
    page = visit(alice, "/")
    begin_thread(page, "The greenhouse is painted in May.")
    expect(turn(page).get_by_text("Remembered", exact=True)).to_be_visible()
    page.goto("/settings")
    page.get_by_role("link", name="Export", exact=True).click()
    page.get_by_role("button", name="Export everything").click()
    expect(page.locator("#export-announcement")).to_contain_text("Ready: ")
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download", exact=True).click()
    assert re.fullmatch(r"cato-\d{4}-\d\d-\d\d\.zip", coming.value.suggested_filename)
    coming.value.save_as(tmp_path / "all.zip")

    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.testzip() is None
        exported = [json.loads(line) for line in archive.read("exchanges.jsonl").decode().splitlines()]
    assert [line["user_message"] for line in exported] == ["The greenhouse is painted in May."]


def test_other_login_sessions_are_listed_and_ended(alice, visit, cato):
    elsewhere = cato.sign_in(alice)
    page = visit(alice, "/settings")
    rows = page.locator("[aria-labelledby=sign-ins] tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("this one")
    rows.last.get_by_role("button", name=re.compile("Sign out")).click()
    expect(page.get_by_text("Signed out.")).to_be_visible()
    expect(rows).to_have_count(1)
    assert elsewhere.get("/settings").status_code == 302


def test_account_deletion_ends_with_a_receipt_that_completes_on_its_own(cato, administrator, visit, endpoint):
    endpoint.script(KEY, answer="All right.")
    charlie = cato.join(administrator, "Charlie Gone")
    page = visit(charlie, "/")
    path = begin_thread(page, "The boat lies at pier 77-43.")
    expect(turn(page).get_by_text("Remembered", exact=True)).to_be_visible()
    threads = row_count(cato, "chat_thread")

    page.get_by_label("Message", exact=True).fill("Not sent yet")
    assert page.evaluate(DRAFTS) != []
    page.goto("/settings")
    page.get_by_role("link", name="Delete the account…").click()
    expect(page.get_by_text("1 thread in your own space")).to_be_visible()
    page.get_by_label("Confirm your email").fill(charlie.email)
    page.get_by_label("Your password").fill("not the right one")
    page.get_by_role("button", name="Delete permanently").click()
    expect(page.get_by_text("This is not your password.")).to_be_visible()
    expect(page.get_by_label("Confirm your email")).to_have_value(charlie.email)
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Delete permanently").click()

    expect(page.get_by_role("heading", name="Account deleted")).to_be_visible()
    assert page.evaluate(DRAFTS) == []
    expect(page.locator("#receipt")).to_contain_text("confirmed by the index")
    expect(page.get_by_role("status").filter(has_text="Complete")).to_be_visible()
    assert row_count(cato, "chat_thread") == threads - 1
    wait_for(
        lambda: cato.sql("SELECT count(*) FROM memory_exchange WHERE user_message LIKE ?", "%77-43%") == [(0,)], "it"
    )

    page.goto(path)
    page.wait_for_url(re.compile("/sign-in"))
    page.get_by_label("Email").fill(charlie.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Wrong email or password.")


def test_actions_in_rows_are_large_enough_for_a_finger(cato, alice, administrator, visit):
    make_group(cato, administrator, alice)
    thread = alice.send_message("Hello")
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "the exchange to be remembered")
    alice.create_token()
    text = b"".join(b"# Part %d\n\n%s\n\n" % (n, b"A sentence of the plan. " * 30) for n in range(3))
    administrator.post("/documents", files={"files": ("plan.md", text)})
    wait_for(lambda: "passages</span>" in administrator.get("/admin/exchanges").text, "the document to be listed")
    pressed = ".table td :is(a, button, summary), .member-list :is(a, button)"
    measured = 0
    for person, paths in (
        (administrator, ("/admin/people", "/admin/groups", "/admin/exchanges", "/admin/documents", "/admin/jobs")),
        (administrator, ("/admin/audit", "/admin/operations", "/documents", "/settings")),
        (alice, ("/settings",)),
    ):
        page = visit(person, "/", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
        for path in paths:
            page.goto(path)
            targets = page.locator(pressed).locator("visible=true")
            measured += targets.count()
            low = targets.evaluate_all(
                "nodes => nodes.filter((n) => n.getBoundingClientRect().height < 44).map((n) => n.outerHTML.slice(0, 200))"
            )
            assert low == [], path
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, (
                path
            )
    assert measured > 10
