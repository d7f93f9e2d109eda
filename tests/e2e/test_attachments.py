"""Attachments in the composer: chips with progress, removal, rejected files, and messages that wait for an upload."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.e2e.test_documents import chip, drop
from tests.factories import PNG
from tests.files import pdf

# Pastes an image into the page, with texts by their type; returns whether the browser pastes, too.
PASTE = """([hex, texts]) => {
  const bytes = new Uint8Array(hex.match(/../g).map((byte) => parseInt(byte, 16)));
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File([bytes], "key.png", { type: "image/png" }));
  for (const [type, text] of Object.entries(texts)) clipboardData.setData(type, text);
  const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
  return document.activeElement.dispatchEvent(event);
}"""
VALVE = "# Valve\n\nThe valve of the press opens at 4.2 bar.\n"


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "Valve.md"
    path.write_text(VALVE)
    return path


def composer(page: Page):
    return page.get_by_label("Message", exact=True)


def choose(page: Page, *paths: Path) -> None:
    page.locator("#files").set_input_files(list(paths))


def test_a_chosen_file_is_part_of_the_turn_after_a_reload_and_in_the_prompt(visit, alice, endpoint, file):
    page = visit(alice)
    choose(page, file)
    expect(page.locator(".chip--attached")).to_have_text("Valve.md", use_inner_text=True)
    begin_thread(page, "At what pressure does it open?")

    expect(turn(page).get_by_role("link", name="Valve.md")).to_be_visible()
    expect(page.locator("#chips .chip")).to_have_count(0)
    wait_for_answer(page)
    assert any("opens at 4.2 bar" in request["messages"][-1]["content"] for request in endpoint.requests(KEY))
    page.reload()
    with page.expect_download() as download:
        turn(page).get_by_role("link", name="Valve.md").click()
    assert download.value.path().read_text() == VALVE


def test_the_chip_of_a_sent_document_shows_its_progress_in_place(visit, alice, tmp_path):
    path = tmp_path / "Gate.pdf"
    path.write_bytes(pdf(["The valve opens at 4.2 bar.", "It closes at 3.9 bar."]))
    page = visit(alice)
    begin_thread(page, "First")
    wait_for_answer(page)
    page.route("**/attachments/*/progress", lambda route: route.abort())
    choose(page, path)
    expect(page.locator(".chip--attached")).to_contain_text("2 pages")
    send_message(page, "At what pressure does it open?")

    link = turn(page).get_by_role("link", name="Gate.pdf")
    expect(link).to_contain_text(re.compile("Waiting to be read|Reading|Splitting|passages"))
    page.unroute("**/attachments/*/progress")
    expect(link).to_contain_text("2 pages")
    expect(link.locator("[hx-get]")).to_have_count(0)


def test_a_dropped_file_goes_with_the_next_message_of_a_thread(visit, alice, file):
    page = visit(alice)
    begin_thread(page, "First")
    drop(page, file)
    expect(page.locator("#attachment-status")).to_have_text("Attached Valve.md")
    send_message(page, "At what pressure?")

    expect(turn(page).get_by_role("link", name="Valve.md")).to_be_visible()
    expect(page.locator("#chips .chip")).to_have_count(0)


def test_a_pasted_image_is_shown_to_another_reader(visit, alice, bob):
    page = visit(alice)
    page.get_by_label("Visible to").select_option(index=1)
    # Other tests share the team's memory.
    page.get_by_role("switch").uncheck(force=True)
    assert not page.evaluate(PASTE, [PNG.hex(), {}])
    expect(page.locator(".chip--attached img")).to_be_visible()
    path = begin_thread(page, "What is this?")
    page_of_bob = visit(bob, path)
    image = turn(page_of_bob).get_by_role("img", name="key.png")

    expect(image).to_be_visible()
    assert image.evaluate("image => image.complete && image.naturalWidth > 0")


def test_cells_of_a_table_are_pasted_as_text_and_a_copied_file_is_attached(visit, alice):
    page = visit(alice)
    assert page.evaluate(PASTE, [PNG.hex(), {"text/plain": "4.2\t3.9", "text/html": "<table><tr><td>4.2"}])
    expect(page.locator("#chips .chip")).to_have_count(0)

    assert not page.evaluate(PASTE, [PNG.hex(), {"text/plain": "key.png"}])
    expect(page.locator(".chip--attached img")).to_have_count(1)


def test_backspace_in_an_empty_box_removes_the_last_chip_and_announces_it(visit, alice, file, tmp_path):
    other = tmp_path / "Seal.md"
    other.write_text("The seal is made of copper.")
    page = visit(alice)
    choose(page, file)
    expect(page.locator("#attachment-status")).to_have_text("Attached Valve.md")
    choose(page, other)
    expect(page.locator("#attachment-status")).to_have_text("Attached Seal.md")
    composer(page).fill("x")
    composer(page).press("Backspace")
    expect(page.locator(".chip--attached")).to_have_count(2)
    composer(page).press("Backspace")

    expect(page.locator("#attachment-status")).to_have_text("Removed Seal.md")
    expect(chip(page, "Valve.md")).to_be_visible()
    page.get_by_role("button", name="Remove Valve.md").click()
    expect(page.locator("#chips .chip")).to_have_count(0)
    expect(composer(page)).to_be_focused()


def test_a_rejected_file_does_not_prevent_sending(visit, alice, file, tmp_path):
    archive = tmp_path / "raw.zip"
    archive.write_bytes(b"PK\x03\x04" + bytes(60))
    page = visit(alice)
    choose(page, archive, file)
    expect(page.locator(".chip--attached")).to_be_visible()
    expect(page.locator("#chips .chip--failed")).to_contain_text("raw.zip")
    begin_thread(page, "At what pressure?")

    expect(turn(page).get_by_role("link", name="Valve.md")).to_be_visible()
    expect(turn(page).get_by_text("raw.zip")).to_have_count(0)


def test_a_message_waits_for_its_upload_and_escape_withdraws_it(visit, alice, file):
    page = visit(alice)
    begin_thread(page, "First")
    held: list[Route] = []
    page.route("**/attachments", lambda route: held.append(route))
    choose(page, file)
    send_message(page, "At what pressure?")
    waiting = page.get_by_text("Will be sent when Valve.md is uploaded.")
    expect(waiting).to_be_visible()
    composer(page).press("Escape")
    expect(waiting).to_have_count(0)
    expect(composer(page)).to_have_value("At what pressure?")

    composer(page).press("Enter")
    expect(waiting).to_be_visible()
    expect(page.locator("article.turn")).to_have_count(1)
    held[0].continue_()
    expect(page.locator("article.turn")).to_have_count(2)
    expect(turn(page).get_by_role("link", name="Valve.md")).to_be_visible()


def test_a_message_that_waits_for_a_file_is_not_sent_without_it(visit, alice, file):
    page = visit(alice)
    begin_thread(page, "First")
    held: list[Route] = []
    page.route("**/attachments", lambda route: held.append(route))
    choose(page, file)
    send_message(page, "At what pressure?")
    expect(page.get_by_text("Will be sent when Valve.md is uploaded.")).to_be_visible()
    held[0].fulfill(status=413)

    expect(page.locator("#chips .chip--failed")).to_contain_text("Valve.md")
    expect(composer(page)).to_have_value("At what pressure?")
    expect(page.locator("article.turn")).to_have_count(1)
    composer(page).press("Enter")
    expect(page.locator("article.turn")).to_have_count(2)


def test_a_held_backspace_removes_no_file(visit, alice, file):
    page = visit(alice)
    choose(page, file)
    expect(page.locator(".chip--attached")).to_be_visible()
    composer(page).fill("x")
    page.keyboard.down("Backspace")
    page.keyboard.down("Backspace")
    page.keyboard.up("Backspace")

    expect(composer(page)).to_have_value("")
    expect(page.locator(".chip--attached")).to_be_visible()


def test_the_page_says_where_a_dropped_file_goes(visit, alice):
    page = visit(alice)
    page.evaluate("document.body.classList.add('app--dropping')")
    expect(page.get_by_text("Drop to add to this message")).to_be_visible()
    page.get_by_role("switch").uncheck(force=True)
    expect(page.get_by_text("Drop to use once")).to_be_visible()
    expect(page.get_by_text("Drop to add to this message")).to_be_hidden()


def test_on_a_phone_the_chips_are_one_row_with_rejected_files_first(visit, alice, file, tmp_path):
    archive = tmp_path / "raw.zip"
    archive.write_bytes(b"PK\x03\x04" + bytes(60))
    page = visit(alice, viewport={"width": 390, "height": 844})
    choose(page, file)
    expect(page.locator(".chip--attached")).to_be_visible()
    choose(page, archive)
    expect(page.locator("#chips .chip").first).to_contain_text("raw.zip")
    boxes = [chip.bounding_box() for chip in page.locator("#chips .chip").all()]
    assert {(box["y"], box["height"]) for box in boxes} == {(boxes[0]["y"], 36)}
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_script_a_refused_message_keeps_its_files(visit, alice, file):
    page = visit(alice, java_script_enabled=False)
    page.locator("#files").set_input_files(file)
    composer(page).fill(" ")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#chips .chip")).to_contain_text("Valve.md")
    composer(page).fill("At what pressure?")
    page.get_by_role("button", name="Send").click()

    expect(page.locator("article.turn").get_by_role("link", name="Valve.md")).to_be_visible()


def test_without_script_the_form_sends_the_files_with_its_message(visit, alice, file):
    page = visit(alice, java_script_enabled=False)
    page.locator("#files").set_input_files(file)
    composer(page).fill("At what pressure?")
    page.get_by_role("button", name="Send").click()

    expect(page.locator("article.turn").get_by_role("link", name="Valve.md")).to_be_visible()


def test_a_long_name_keeps_its_beginning_and_its_extension(visit, alice, tmp_path):
    path = tmp_path / "Bergmann offer for the second prototype.txt"
    path.write_text("Two boats.")
    page = visit(alice)
    page.set_input_files("#files", path)
    chip = page.locator("#chips .chip--attached")
    expect(chip).to_contain_text(path.name)
    name = chip.locator(".chip__name")
    expect(name).to_have_attribute("data-end", "otype.txt")
    width = "(element, part) => parseFloat(getComputedStyle(element, part).width)"
    assert name.evaluate(width, "::before") + name.evaluate(width, "::after") <= 192
    assert name.evaluate(width, "::after") > 40
    assert f"text: {path.name}\n" in page.locator("#chips").aria_snapshot()
