"""Pages while the vector store is unavailable."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import begin_thread, send_message, turn
from tests.server import running, start_chroma, wait_for
from tests.topology import free_port


def test_without_the_index_chat_continues_reports_it_and_remembers_afterwards(tmp_path, visit, endpoint):
    endpoint.script("no-index", answer="All right.")
    port = free_port()
    with running(
        tmp_path, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="no-index", CHROMA_URL=f"http://127.0.0.1:{port}"
    ) as cato:
        page = visit(cato.set_up())
        expect(page.locator("#banner")).to_contain_text("The search index is down.")
        begin_thread(page, "The greenhouse key hangs behind the clock.")
        expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")
        expect(turn(page).locator(".turn__memory-text")).to_have_text("Waiting for the search index")
        send_message(page, "Where does it hang?")
        expect(turn(page).locator(".recall__status")).to_contain_text("recalled by keyword only")
        expect(turn(page).locator(".answer__blocks")).to_have_text("All right.")

        chroma = start_chroma(tmp_path, "late-chroma", tmp_path / "late", port)
        try:
            for number in (0, 1):
                word = turn(page, number).locator(".turn__memory-text")
                expect(word).to_have_text("Remembered", timeout=40_000)
            # Pages poll the state of the store every few seconds.
            wait_for(lambda: page.reload() and not page.locator("#banner p").count(), "the banner to go", every=0.5)
        finally:
            chroma.end()
