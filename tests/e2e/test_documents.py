"""From a dropped file to a cited answer in the browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import KEY, begin_thread, turn, wait_for_answer
from tests.groups import make_group

BUOYS = """# Uplink backoff

The buoy waits between zero and ten seconds before it dials again, never longer than nine hundred.

## Giving up

After forty attempts in one day the buoy stays silent until midnight and stores its readings on the card.

## Power

Above 3.6 volts the radio may stay on between attempts; below that it is switched off.
"""


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "Uplink backoff.md"
    path.write_text(BUOYS * 3)
    return path


def drop(page: Page, *paths: Path) -> None:
    """Drop files onto the page."""
    moved = page.evaluate_handle(
        "files => { const moved = new DataTransfer();"
        " for (const [name, text] of files) moved.items.add(new File([text], name)); return moved; }",
        [[path.name, path.read_text()] for path in paths],
    )
    page.dispatch_event("body", "dragenter", {"dataTransfer": moved})
    page.dispatch_event("body", "drop", {"dataTransfer": moved})


def chip(page: Page, name: str):
    return page.locator(".chip").filter(has_text=name)


def test_a_dropped_file_is_read_recalled_and_cited_and_its_source_leads_to_the_passage(visit, alice, endpoint, file):
    page = visit(alice, "/documents")
    drop(page, file)
    expect(chip(page, file.name)).to_contain_text("Remembered")
    page.goto("/")

    endpoint.script(KEY, answer="It stays silent until midnight [1]. That is final [8].")
    begin_thread(page, "When does the buoy give up dialling for the day?")
    wait_for_answer(page)
    prompt = endpoint.requests(KEY)[-1]["messages"][-1]["content"]
    assert 'source="Uplink backoff.md"' in prompt
    assert "After forty attempts" in prompt
    expect(turn(page).locator(".citation--unknown")).to_have_text("[8]")

    turn(page).locator("a.citation").click()
    expect(turn(page).locator(".source-card .recall-item__text")).to_contain_text("silent until midnight")
    turn(page).locator(".source-card").get_by_role("link", name="Open document").click()
    page.wait_for_url(re.compile(r"/d/[0-9a-f-]{36}\?at=\d+#passage-\d+"))
    expect(page.locator(".passage--cited")).to_contain_text("silent until midnight")
    expect(page.locator(".passage--cited")).to_be_in_viewport()


def test_the_list_shows_the_progress_of_each_file_and_survives_a_reload(visit, alice, file, tmp_path):
    broken = tmp_path / "broken.pdf"
    broken.write_text("%PDF-1.7 and nothing more")
    page = visit(alice, "/documents")
    page.set_input_files("#files", [file, broken])

    rows = page.locator(".document-row")
    expect(rows).to_have_count(2)
    page.reload()
    expect(rows.filter(has_text=file.name).locator(".memory-icon--remembered")).to_be_visible()
    expect(rows.filter(has_text="broken.pdf").locator(".table__error")).to_contain_text("damaged")
    expect(rows.filter(has_text="broken.pdf").get_by_role("button", name="Retry")).to_be_visible()


def test_the_progress_of_a_file_keeps_the_focus_and_the_choice(visit, alice, file):
    page = visit(alice, "/documents")
    page.set_input_files("#files", [file])
    row = page.locator(".document-row").filter(has_text=file.name)
    expect(row.locator(".memory-icon--remembered")).to_be_visible()
    page.reload()
    file.write_text("".join(f"# Buoy {n}\n\n{BUOYS}" for n in range(600)))
    page.set_input_files("#files", [file])

    cancel = row.get_by_role("button", name="Cancel")
    expect(cancel).to_be_visible()
    row.get_by_role("checkbox").check()
    dismiss = chip(page, file.name).get_by_role("button", name="Dismiss")
    for control, polled in ((cancel, "**/row"), (dismiss, "**/row?as=chip")):
        control.focus()
        for _ in range(2):
            with page.expect_response(polled):
                pass
        expect(control).to_be_focused()
    expect(row.get_by_role("checkbox")).to_be_checked()
    cancel.press("Enter")


def test_the_list_is_complete_if_a_file_is_added_while_it_is_loaded(visit, alice, file):
    page = visit(alice, "/documents")
    held = []

    def hold_first(route) -> None:
        if route.request.method == "GET" and not held:
            held.append((route, route.fetch()))  # the list before the file
        else:
            route.continue_()

    page.route("**/documents", hold_first)
    page.evaluate("htmx.trigger(document.body, 'documents-changed')")
    drop(page, file)
    expect(chip(page, file.name)).to_contain_text("Remembered")
    route, before = held[0]
    route.fulfill(response=before)

    expect(page.locator("#documents").get_by_role("link", name=file.name)).to_be_visible()


def test_files_that_are_dropped_during_an_upload_are_sent_after_it(visit, alice, tmp_path):
    page = visit(alice, "/documents")
    held = []

    def hold_first(route) -> None:
        if route.request.method == "POST" and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/documents", hold_first)
    names = [f"{name} {tmp_path.name}.txt" for name in ("ferry", "oar", "anchor")]
    for name in names:
        (tmp_path / name).write_text(f"About the {name} there is little to say. " * 9)
        drop(page, tmp_path / name)
    expect(chip(page, names[0])).to_contain_text("Sending")
    held[0].continue_()

    for name in names:
        expect(page.locator("#documents").get_by_role("link", name=name)).to_be_visible()


def test_an_unsupported_file_is_reported_before_it_is_sent(visit, alice, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    page = visit(alice, "/documents")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)

    page.set_input_files("#files", [empty])

    refused = chip(page, "empty.txt is empty")
    expect(refused).to_be_visible()
    assert sent == []

    refused.get_by_role("button", name="Dismiss").click()
    expect(refused).to_have_count(0)


def test_dismissing_a_chip_moves_the_focus_to_the_next_one_and_at_last_to_the_file_field(visit, alice, tmp_path):
    page = visit(alice, "/documents")
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("")
    page.set_input_files("#files", [tmp_path / "one.txt", tmp_path / "two.txt"])

    buttons = page.locator("#chips").get_by_role("button", name="Dismiss")
    buttons.first.press("Enter")
    expect(chip(page, "one.txt")).to_have_count(0)
    expect(buttons).to_be_focused()
    buttons.press("Enter")
    expect(page.locator("#files")).to_be_focused()


def test_on_a_phone_the_name_of_an_added_file_is_shortened_before_its_state_is_wrapped(visit, alice, tmp_path):
    path = tmp_path / f"The offer for the antenna mast, final version {tmp_path.name}.txt"
    path.write_text("The mast has eight bolts. " * 9)
    page = visit(alice, "/documents", viewport={"width": 375, "height": 740}, has_touch=True, is_mobile=True)
    # The chip keeps its first state.
    page.route("**/row?as=chip", lambda route: route.abort())

    page.set_input_files("#files", [path])

    state = chip(page, path.name).locator(".muted")
    expect(state).to_have_text("Waiting to be read")
    lines = "state => { const range = document.createRange(); range.selectNodeContents(state);"
    assert state.evaluate(f"{lines} return range.getClientRects().length; }}") == 1


def test_on_a_phone_the_tint_of_a_chosen_document_is_wider_than_its_row(visit, alice, file):
    page = visit(alice, "/documents", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.set_input_files("#files", [file])
    row = page.locator(".document-row tr").filter(has_text=file.name)
    expect(row.locator(".memory-icon--remembered")).to_be_visible()
    assert row.evaluate("row => getComputedStyle(row).boxShadow") == "none"

    row.get_by_role("checkbox").check()

    assert "8px 0px" in row.evaluate("row => getComputedStyle(row).boxShadow")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_on_a_phone_the_name_of_a_document_stands_beside_its_icon_and_is_easy_to_touch(visit, alice, file):
    page = visit(alice, "/documents", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.set_input_files("#files", [file])
    row = page.locator(".document-row").filter(has_text=file.name)
    expect(row.locator(".memory-icon--remembered")).to_be_visible()

    middle = """node => {
      const range = document.createRange();
      range.selectNodeContents(node);
      const box = node.matches("svg") ? node.getBoundingClientRect() : range.getClientRects()[0];
      return box.y + box.height / 2;
    }"""
    icon = row.locator(".table__main > .icon").evaluate(middle)
    assert abs(row.locator(".table__name").evaluate(middle) - icon) <= 1.5
    assert row.locator(".table__name").bounding_box()["height"] >= 43.9


@pytest.mark.parametrize("width", [390, 820, 1120, 1280])
def test_the_lists_of_documents_fit_beside_the_sidebar_and_wrap_a_long_space(
    visit, cato, administrator, tmp_path, width
):
    (path := tmp_path / f"A report with a rather long name {width}.txt").write_text("The harbour opens at eight.")
    group = make_group(cato, administrator)
    administrator.post(
        f"/admin/groups/{group}", {"name": f"Arbeitsgruppe der Donaudampfschifffahrtsgesellschaft {width}"}
    )
    page = visit(administrator, f"/documents?space={group}", viewport={"width": width, "height": 1000})
    page.locator("#space").select_option(group)
    page.set_input_files("#files", [path])
    expect(page.locator(".document-row .memory-icon--remembered").first).to_be_visible()
    for address in (f"/documents?space={group}", f"/admin/documents?space={group}"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        name = page.locator("a.table__name").first.bounding_box()
        space = page.locator(".table .space-badge").first.bounding_box()
        assert name["width"] >= 120, address
        assert space["height"] <= 92, address
        box = page.locator(".table td label").first.bounding_box()
        assert box["x"] + box["width"] / 2 + 9 <= page.locator(".table__main").first.bounding_box()["x"], address
    if width < 1024:
        page.goto(f"/documents?space={group}")
        left = {page.locator(f".document-row {part}").first.bounding_box()["x"] for part in
                (".table__name", ".space-badge")}  # fmt: skip
        assert max(left) - min(left) <= 0.5
        expect(page.get_by_text("Version 1")).to_be_visible()


def test_a_long_name_is_whole_in_a_dialog_and_among_the_documents_to_recall_from(visit, alice, tmp_path):
    path = tmp_path / f"{'Donaudampfschifffahrtsgesellschaft' * 3}.txt"
    path.write_text("The steamer leaves at nine. " * 9)
    page = visit(alice, "/documents", viewport={"width": 390, "height": 800})
    page.set_input_files("#files", [path])
    expect(chip(page, path.name)).to_contain_text("Remembered")

    page.get_by_role("link", name=path.name).first.click()
    page.get_by_role("link", name="Delete this document…").click()
    dialog = page.get_by_role("dialog", name=f"Delete {path.name}?")
    expect(dialog).to_be_visible()
    assert dialog.evaluate("dialog => dialog.scrollWidth - dialog.clientWidth") == 0

    page.goto(f"/t/{alice.send_message('Hello')}/recall-filter")
    expect(page.get_by_label(path.name)).to_be_visible()
    assert page.locator(".recall-filter-list").evaluate("list => list.scrollWidth - list.clientWidth") == 0


def test_a_document_that_is_added_twice_has_one_chip(visit, alice, file):
    page = visit(alice, "/documents")
    chips = page.locator("#chips > .chip")
    page.set_input_files("#files", [file])
    expect(chips.locator(".memory-icon--remembered")).to_have_count(1)
    file.write_text(BUOYS * 2)
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        page.set_input_files("#files", [file])
    expect(chips).to_have_count(1)

    chips.get_by_role("link").click()
    page.wait_for_url("**/d/*")
    page.wait_for_load_state()
    page.get_by_label("Metadata").fill("zone: north")
    for version in (3, 4):
        file.write_text(BUOYS * version)
        page.set_input_files("#files", [file])
        expect(page.get_by_text(f"Version {version}", exact=True)).to_be_visible()
        expect(page.locator("#chips > .chip[id]")).to_have_count(1)
    expect(page.get_by_label("Metadata")).to_have_value("zone: north")


def test_without_scripts_the_chosen_file_is_named_until_it_is_sent(visit, alice, file):
    page = visit(alice, "/documents", java_script_enabled=False)
    page.set_input_files("#files", [file])
    page.mouse.click(0, 0)
    field = page.locator("#files")
    expect(field).to_have_css("clip-path", "none")
    assert field.bounding_box()["width"] > 150
    page.get_by_role("button", name="Upload").click()
    expect(page.locator(".document-row").filter(has_text=file.name)).to_be_visible()


def test_a_refused_file_does_not_keep_the_others_from_being_added(visit, alice, tmp_path):
    names = [f"{name} {tmp_path.name}.txt" for name in ("ferry", "blank", "void", "oar")]
    for name, words in zip(names, ("About the ferry. ", "", "", "About the oar. "), strict=True):
        (tmp_path / name).write_text(words * 40)
    page = visit(alice, "/documents")

    page.set_input_files("#files", [tmp_path / name for name in names])

    for name in (names[0], names[3]):
        expect(page.locator("#documents").get_by_role("link", name=name)).to_be_visible()
    for name in names[1:3]:
        expect(chip(page, f"{name} is empty")).to_be_visible()


def test_a_new_version_replaces_the_old_one_and_a_deleted_document_disappears(visit, alice, file):
    page = visit(alice, "/documents")
    page.set_input_files("#files", [file])
    expect(page.locator(".document-row .memory-icon--remembered")).to_be_visible()
    page.locator(".document-row a.table__name").click()
    file.write_text(BUOYS.replace("forty", "sixty") * 3)
    page.set_input_files("#files", [file])
    expect(page.locator(".document-page__details")).to_contain_text("Version 2")
    expect(page.get_by_role("article", name="Text")).to_contain_text("After sixty attempts")

    page.get_by_role("link", name="Delete this document…").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("heading", name="Receipt")).to_be_visible()
    page.goto("/search?q=forty attempts")
    expect(page.locator(".search-hit")).to_have_count(0)


def test_the_original_is_downloaded_and_never_displayed(visit, alice, file):
    page = visit(alice, "/documents")
    page.set_input_files("#files", [file])
    expect(page.locator(".document-row .memory-icon--remembered")).to_be_visible()
    page.locator(".document-row a.table__name").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == file.name
    assert Path(download.value.path()).read_text() == file.read_text()
