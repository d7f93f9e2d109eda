"""German texts and right-to-left layout fit on every page."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import server
from tests.e2e.conftest import begin_thread, turn, wait_for_answer
from tests.e2e.test_accessibility import overflowing, violations
from tests.fake_endpoint import FakeEndpoint
from tests.server import wait_for

PAGES = [
    "/", "/search?q=Leiter", "/documents", "/threads", "/import", "/stats", "/settings", "/settings/digest",
    "/settings/password",
    "/instructions", "/prompts", "/settings/delete-account", "/settings/model", "/admin/people", "/admin/groups", "/admin/exchanges", "/admin/jobs",
]  # fmt: skip
# Names and reasons as long as they can be, without blanks, where pages show them beside something else.
_LONGEST_NAMES = """
from datetime import timedelta
from django.utils import timezone
from cato_web.accounts import projects
from cato_web.accounts.models import User
from chat.models import Mention, ToolServer
from memory.models import Membership, Reveal
from memory.spaces import access
from tests.factories import PersonFactory, exchange, statement, thread, turn
word = "Donaudampfschifffahrtsgesellschaft" * 9
administrator = User.objects.get(email={email!r})
captain, team, now = PersonFactory(name=word[:80]), access.team_space(), timezone.now()
note = exchange(captain, "The harbour opens at eight.", "", space=team, source="vadd_command")
statement(note, text=word[:280])
print("path", f"/m/{{note.pk}}")
print("path", "/search?q=harbour")
title = thread(captain, space=team, title=word[:80])
Mention.objects.create(turn=turn(title, "@Admin"), person=administrator)
project = projects.create(word[5:85], "", by=captain)
Membership.objects.create(space=project, person=administrator)
ToolServer.objects.create(name=word[:40], error=word[:300])
Reveal.objects.create(
    space=access.personal_space(captain.pk), by=administrator, reason=word[:300], at=now, ends_at=now + timedelta(hours=1)
)
"""
_DISABLED_WEBHOOK = """
from django.utils import timezone
from cato_web.accounts.models import ApiToken, User
from cato_web.accounts.tokens import create_token
from cato_web.webhooks.models import Webhook
person = User.objects.get(email={email!r})
create_token(person, name="Programm", scopes=["read"], days=30)
Webhook.objects.create(
    api_token=ApiToken.objects.get(person=person), address="https://programs.example/hook", encrypted_secret=b"x",
    position=0, due_at=timezone.now(), state="failed", error="500",
)
"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
RIGHT_EDGE = "document.querySelector('.sidebar').getBoundingClientRect().right"


@pytest.fixture(scope="module")
def german(home: Path, endpoint: FakeEndpoint) -> Iterator[server.Cato]:
    """Start a Cato in German whose model endpoint has the key `german`."""
    endpoint.script(
        "german", answer="Alles klar.\n\n- Sie steht im Schuppen.\n\n| Was | Wo |\n| --- | --- |\n| Leiter | Schuppen |"
    )
    with server.running(
        # Pages show the folder's path, and unlike `tmp_path_factory` its name contains no English words.
        Path(tempfile.mkdtemp(prefix="german-", dir=home)),
        CATO_SERVER_LANGUAGE="de",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY="german",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def ada(german: server.Cato) -> server.Client:
    person = german.set_up("Ada Admin")
    person.post("/admin/groups", {"name": "Donaudampfschifffahrtsgesellschaftskapitän" * 2})
    return person


def begin_german_thread(page: Page) -> str:
    """Start a thread with a complete answer on a German page."""
    box = page.get_by_label("Nachricht", exact=True)
    box.fill("Wo steht die Leiter?")
    box.press("Enter")
    page.wait_for_url("**/t/*")
    expect(turn(page).get_by_text("Gemerkt", exact=True)).to_be_visible()
    return page.url


@pytest.mark.parametrize("width", [320, 640, 1280])
def test_no_german_page_scrolls_sideways(ada, visit, width):
    page = visit(ada, "/", viewport={"width": width, "height": 800})
    thread = begin_german_thread(page)
    for path in [thread, *PAGES]:
        page.goto(path)
        assert page.evaluate(SIDEWAYS) <= 0, path


def test_the_longest_names_fit_on_every_german_page(german, ada, visit):
    output = german.manage("shell", "--verbosity", "0", "-c", _LONGEST_NAMES.format(email=ada.email)).stdout
    paths = [line.removeprefix("path ") for line in output.splitlines() if line.startswith("path ")]
    paths += ["/stats", "/knowledge", "/mentions", "/admin/groups", "/admin/exchanges", "/settings/tools"]
    page = visit(ada, "/")
    for width in (390, 1000, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        for path in paths:
            page.goto(path)
            assert page.evaluate(SIDEWAYS) <= 0, (path, width)


def test_the_german_buttons_of_a_disabled_webhook_are_large_enough(german, ada, visit):
    german.manage("shell", "--verbosity", "0", "-c", _DISABLED_WEBHOOK.format(email=ada.email))
    page = visit(ada, "/settings", viewport={"width": 1280, "height": 800})
    expect(page.get_by_role("button", name="Einschalten: https://programs.example/hook")).to_be_visible()
    assert violations(page) == []


def test_all_german_tabs_of_the_administration_are_in_view_in_a_wide_window(ada, visit):
    page = visit(ada, "/admin/audit", viewport={"width": 1280, "height": 800})
    for tab in page.locator(".tabs a").all():
        expect(tab).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_german_page_has_violations_on_a_narrow_screen(ada, visit, theme):
    size = {"width": 320, "height": 640}
    page = visit(ada, "/", viewport=size, color_scheme=theme, reduced_motion="reduce")
    begin_german_thread(page)
    found = violations(page)
    for opener, opened in (
        (turn(page).locator(".menu > summary"), turn(page).locator(".menu__list")),
        (page.locator("button[popovertarget='model-picker']"), page.locator("#model-list")),
        (page.locator(".topbar .menu > summary"), page.locator(".topbar .menu__list")),
    ):
        opener.click()
        expect(opened).to_be_visible()
        # A button that the list covers in part would be too small.
        found += [each for each in violations(page) if " target-size:" not in each] + overflowing(page)
        page.keyboard.press("Escape")
    turn(page).locator(".menu > summary").click()
    turn(page).locator(".menu__danger").click()
    expect(page.locator("#dialog .button--danger:enabled")).to_be_visible()
    found += violations(page, is_covered=True) + overflowing(page)
    for path in PAGES:
        page.goto(path)
        found += violations(page) + overflowing(page)
    assert not found, "\n".join(found)


def test_times_are_localised_in_german_and_english(ada, administrator, visit):
    german = visit(ada, "/", locale="en-US", timezone_id="Europe/Berlin")
    begin_german_thread(german)
    # A past day, so that the date is shown too.
    drawn = """() => {
      const time = document.createElement("time");
      time.dateTime = "2025-12-03T13:40:00Z";
      document.body.append(time);
      htmx.process(time);
      htmx.trigger(time, "htmx:load");
      return time.textContent;
    }"""
    assert german.evaluate(drawn) == "3. Dez. 2025, 14:40"
    english = visit(administrator, "/", locale="de-DE", timezone_id="Europe/Berlin")
    assert english.evaluate(drawn) == "3 Dec 2025 14:40"


@pytest.mark.parametrize("width", [320, 1280])
def test_a_right_to_left_page_has_its_sidebar_on_the_right_and_fits(administrator, visit, width):
    page = visit(administrator, "/", viewport={"width": width, "height": 800})
    # Set before rendering, on every following page.
    page.add_init_script("new MutationObserver(() => document.documentElement?.setAttribute('dir', 'rtl'))"
                         ".observe(document, { childList: true })")  # fmt: skip
    thread = begin_thread(page, "Where is the ladder?")
    wait_for_answer(page)
    for path in [thread, "/search?q=ladder", "/documents", "/settings", "/admin/exchanges"]:
        page.goto(path)
        expect(page.locator("html[dir=rtl]")).to_have_count(1)
        assert page.evaluate(SIDEWAYS) <= 0, path
        if width < 800:
            page.get_by_role("button", name="Open the menu").click()
        # A drawer is animated.
        wait_for(lambda: round(page.evaluate(RIGHT_EDGE)) == width, f"the sidebar at the right of {path}")
        if width < 800:
            page.keyboard.press("Escape")


def test_the_arrow_to_the_previous_version_points_to_the_start_of_the_line(administrator, visit):
    page = visit(administrator, "/", viewport={"width": 1280, "height": 800})
    begin_thread(page, "Twice, please")
    turn(page).get_by_role("button", name="Regenerate").click()
    before = page.get_by_role("button", name="Show previous version")
    expect(before).to_be_visible()
    expect(before.locator("svg")).to_have_css("scale", "none")
    page.evaluate("document.documentElement.dir = 'rtl'")
    expect(before.locator("svg")).to_have_css("scale", "-1 1")
    expect(page.get_by_role("button", name="Show next version").locator("svg")).to_have_css("scale", "none")
