"""Dictation with Chromium's artificial microphone, and an answer that is read aloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect

from tests import server
from tests.e2e.conftest import FLAGS, NAMES, Visit, find_browser, open_pages, send_message
from tests.fake_endpoint import FakeEndpoint

KEY = "voice"
MICROPHONE = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]


@pytest.fixture(scope="module")
def voice_cato(home: Path, endpoint: FakeEndpoint) -> Iterator[server.Cato]:
    """Start a Cato with models for dictation and reading aloud."""
    with server.running(
        home / "voice",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY=KEY,
        CATO_LLM_TRANSCRIPTION_MODEL="whisper-1",
        CATO_LLM_SPEECH_MODEL="tts-1",
        CATO_LLM_SPEECH_VOICE="alloy",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def ada(voice_cato: server.Cato) -> server.Client:
    return voice_cato.set_up("Ada Admin")


@pytest.fixture(scope="module")
def with_microphone(driver: Playwright) -> Iterator[Browser]:
    """Start a browser whose microphone beeps, and which asks nobody for it."""
    path = find_browser(*NAMES)
    browser = driver.chromium.launch(executable_path=path, headless=True, args=[*FLAGS, *MICROPHONE])
    yield browser
    browser.close()


@pytest.fixture
def visit_speaking(with_microphone: Browser) -> Iterator[Visit]:
    yield from open_pages(with_microphone)


@pytest.fixture(autouse=True)
def said(endpoint: FakeEndpoint) -> None:
    endpoint.script(KEY, answer="It is **red**, as you said.", transcript="the boat is red")
    endpoint.clear(KEY)


def message(page: Page) -> Any:
    return page.get_by_label("Message", exact=True)


def dictation(page: Page) -> Any:
    return page.get_by_role("button", name="Dictate")


def test_what_is_said_is_inserted_at_the_cursor_and_can_be_edited(ada, visit_speaking, endpoint):
    page = visit_speaking(ada, "/")
    message(page).fill("Note: !")
    message(page).press("ArrowLeft")
    dictation(page).click()
    expect(page.get_by_text("Recording…")).to_be_visible()
    expect(page.get_by_role("timer")).to_have_text("0:01")
    page.get_by_role("button", name="Insert").click()
    expect(message(page)).to_have_value("Note: the boat is red!")
    expect(page.locator("#dictation [role=status]")).to_have_text("Inserted. You can edit it before you send it.")
    expect(message(page)).to_be_focused()
    (request,) = endpoint.requests(KEY, "/v1/audio/transcriptions")
    assert request["file"]["type"] == "audio/webm"
    assert request["file"]["bytes"] > 1000
    page.reload()
    expect(message(page)).to_have_value("Note: the boat is red!")


def test_escape_cancels_it_and_nothing_is_sent(ada, visit_speaking, endpoint):
    page = visit_speaking(ada, "/")
    message(page).fill("Kept")
    dictation(page).focus()
    page.keyboard.press("Enter")
    expect(dictation(page)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Cancelled; nothing was kept.")).to_be_visible()
    expect(message(page)).to_have_value("Kept")
    assert endpoint.requests(KEY, "/v1/audio/transcriptions") == []


def test_sending_meanwhile_inserts_first(ada, visit_speaking):
    page = visit_speaking(ada, "/")
    message(page).fill("I say:")
    dictation(page).click()
    expect(page.get_by_role("timer")).to_have_text("0:01")
    message(page).press("Enter")
    expect(message(page)).to_have_value("I say: the boat is red")


def test_nothing_is_recorded_while_the_recording_before_is_transcribed(ada, visit_speaking, endpoint):
    page = visit_speaking(ada, "/")
    endpoint.script(KEY, first_delay=3.0, transcript="the boat is red")
    dictation(page).click()
    expect(page.get_by_role("timer")).to_have_text("0:01")
    dictation(page).click()
    expect(page.get_by_text("Writing down what you said…")).to_be_visible()

    dictation(page).click()

    expect(page.get_by_text("Writing down what you said…")).to_be_visible()
    expect(dictation(page)).to_have_attribute("aria-pressed", "false")
    expect(message(page)).to_have_value("the boat is red")
    dictation(page).click()
    expect(dictation(page)).to_have_attribute("aria-pressed", "true")


def test_a_recording_that_could_not_be_transcribed_is_kept_and_tried_again(ada, visit_speaking, endpoint):
    page = visit_speaking(ada, "/")
    message(page).fill("Kept")
    endpoint.script(KEY, mode="error-500", fail_times=1, transcript="at last")
    dictation(page).click()
    expect(page.get_by_role("timer")).to_have_text("0:01")
    page.get_by_role("button", name="Insert").click()
    expect(page.get_by_text("The model's server failed (HTTP 500).")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    expect(message(page)).to_have_value("Kept")
    page.get_by_role("button", name="Try again").click()
    expect(message(page)).to_have_value("Kept at last")


def test_a_kept_recording_is_sent_again_until_it_is_cancelled(ada, visit_speaking, endpoint):
    page = visit_speaking(ada, "/")
    endpoint.script(KEY, mode="error-500", fail_times=2)
    dictation(page).click()
    expect(page.get_by_role("timer")).to_have_text("0:01")
    page.get_by_role("button", name="Insert").click()
    expect(page.get_by_text("The model's server failed (HTTP 500).")).to_be_visible()

    dictation(page).click()

    sent = "/v1/audio/transcriptions"
    server.wait_for(lambda: len(endpoint.requests(KEY, sent)) == 2, "the same recording")
    first, second = endpoint.requests(KEY, sent)
    assert first["file"] == second["file"]
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    dictation(page).click()
    expect(dictation(page)).to_have_attribute("aria-pressed", "true")


def test_without_permission_it_says_what_to_do(ada, visit):
    page = visit(ada, "/")
    dictation(page).click()
    expect(page.get_by_text("The browser does not allow the microphone.").or_(
        page.get_by_text("No microphone was found.")
    )).to_be_visible()  # fmt: skip


def test_an_answer_is_read_aloud_and_stopped(ada, visit_speaking, endpoint):
    endpoint.script(KEY, answer="It is **red** [1]. " + "And so on. " * 60)
    page = visit_speaking(ada, "/")
    send_message(page, "What color is the boat?")
    button = page.get_by_role("button", name="Read aloud")
    button.click()
    stop = page.get_by_role("button", name="Stop reading")
    expect(stop).to_have_attribute("aria-pressed", "true")
    server.wait_for(lambda: page.evaluate("document.getElementById('read-aloud').currentTime > 0.2"), "the sound")
    stop.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("document.getElementById('read-aloud').paused")
    first, second = endpoint.requests(KEY, "/v1/audio/speech")
    assert first["input"].startswith("It is red. And so on.")
    assert len(first["input"]) <= 400 < len(first["input"]) + len(second["input"])


def test_an_answer_is_read_to_its_end(ada, visit_speaking):
    page = visit_speaking(ada, "/")
    send_message(page, "What color is the boat?")
    page.get_by_role("button", name="Read aloud").click()
    expect(page.locator("#read-aloud-status")).to_have_text("Reading ended")
    expect(page.get_by_role("button", name="Read aloud")).to_be_visible()


def test_a_failure_to_read_aloud_is_shown(ada, visit_speaking, endpoint):
    page = visit_speaking(ada, "/")
    send_message(page, "What color is the boat?")
    expect(page.get_by_role("button", name="Read aloud")).to_be_visible()
    endpoint.script(KEY, mode="error-401")
    # The browser logs the status of the response.
    page.get_by_role("button", name="Read aloud").click()
    expect(page.locator("#toasts")).to_contain_text("refuses the API key")
    expect(page.get_by_role("button", name="Read aloud")).to_be_visible()
