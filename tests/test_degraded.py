"""Without the vector store or with memory disabled, the chat continues, reports it and catches up."""

from __future__ import annotations

import socket
import uuid

import pytest

from tests.server import running, start_chroma, wait_for
from tests.topology import free_port


@pytest.fixture
def cato_without_an_index(tmp_path_factory, endpoint):
    """Start a Cato without a vector store; yield it and the port where the store would be."""
    port = free_port()
    home = tmp_path_factory.mktemp("no-index")
    endpoint.script("no-index", answer="All right.")
    with running(
        home, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="no-index", CHROMA_URL=f"http://127.0.0.1:{port}"
    ) as cato:
        yield cato, port, home


def test_without_the_vector_store_the_chat_continues_and_indexes_later(cato_without_an_index):
    cato, port, home = cato_without_an_index
    ada = cato.set_up()
    thread = ada.send_message("The greenhouse key hangs behind the clock.")
    page = wait_for(
        lambda: (p := ada.thread_page(thread)) and "All right." in p and "Waiting for the search index" in p and p, "it"
    )
    assert "The search index is down." in page
    second = ada.send_message("Where is the key of the greenhouse?")
    wait_for(lambda: "recalled by keyword only" in ada.thread_page(second), "the note on the turn")
    assert "behind the clock" in ada.thread_page(second), "what shares its words is recalled"
    found = ada.search_page("key")
    assert "behind the clock" in found
    assert "found by keywords only" in found
    response = ada.post(
        f"/t/{second}/messages", {"message": '/vquery "key"', "client_key": str(uuid.uuid4())}, htmx=True
    )
    assert "found by keywords only" in response.text

    chroma = start_chroma(home, "late-chroma", home / "late", port)
    try:
        wait_for(lambda: "Remembered</span>" in ada.thread_page(thread), "it to be remembered by itself", seconds=40)
        assert "behind the clock" in ada.search_page("where is the key")
        wait_for(lambda: "The search index is down." not in ada.get("/").text, "the banner to go")
    finally:
        chroma.end()


def test_a_hanging_vector_store_does_not_delay_answers(tmp_path, endpoint):
    endpoint.script("hanging", answer="All right.")
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with running(tmp_path, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="hanging", CHROMA_URL=url) as cato:
            ada = cato.set_up()
            first = ada.send_message("Does anybody hear me?")
            wait_for(lambda: "All right." in ada.thread_page(first), "the answer")
            wait_for(lambda: cato.sql("SELECT id FROM memory_collection"), "the worker to have tried")
            second = ada.send_message("Does anybody hear me now?")
            wait_for(lambda: "All right." in ada.thread_page(second), "the answer without recall")
            assert "Recall timed out; answered without memory" in ada.thread_page(second)


def test_with_memory_disabled_nothing_is_stored_and_pages_and_commands_report_it(tmp_path, endpoint):
    endpoint.script("off", answer="All right.")
    with running(
        tmp_path, OPENAI_BASE_URL=endpoint.openai_url, OPENAI_API_KEY="off", CATO_VECTOR_STORE_ENABLED="false"
    ) as cato:
        ada = cato.set_up()
        thread = ada.send_message("Nothing of this is kept")
        page = wait_for(lambda: (p := ada.thread_page(thread)) and "All right." in p and p, "the answer")
        response = ada.post(
            f"/t/{thread}/messages", {"message": '/vquery "kept"', "client_key": str(uuid.uuid4())}, htmx=True
        )
        assert "Memory is disabled." in page
        new = ada.get("/").text
        assert "nothing is saved to memory or recalled" in new
        for html in (page, new):
            assert "Remembered" not in html
            assert "recall it" not in html
            assert "Continue thread" not in html
        assert "disabled" in response.text
        assert cato.sql("SELECT count(*) FROM memory_exchange") == [(0,)]


def test_logs_contain_no_messages_and_no_keys(cato, alice, endpoint):
    endpoint.script("cato", answer="A perfectly private answer.")
    thread = alice.send_message("A perfectly private question")
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "it to be remembered")
    endpoint.script("cato", mode="error-500")
    failing = alice.send_message("A perfectly private failure")
    wait_for(lambda: "HTTP 500" in alice.thread_page(failing), "the failure")

    assert "perfectly private" not in cato.logs()
    assert "Bearer" not in cato.logs()
