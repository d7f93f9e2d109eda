"""Data policies in the browser: an administrator limits an endpoint to a project, a member uses it there, others cannot."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests import server
from tests.e2e.conftest import KEY, begin_thread, send_message, turn, wait_for_answer
from tests.server import wait_for

CLOUD, EMBEDDINGS = "cloud-key", "embedding-key"  # API keys
SECRET = "The harbour office opens at seven."
QUESTION = "When does the harbour office open?"


@pytest.fixture(scope="module")
def cato(home: Path, endpoint):
    with server.running(
        home / "data-policy",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY=KEY,
        CATO_VECTOR_STORE_RETRIEVAL_TIMEOUT="20",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def administrator(cato):
    return cato.set_up("Ada Admin")


def choose_model(page: Page, name: str) -> None:
    page.get_by_role("button", name=re.compile("Chat model:")).click()
    page.get_by_role("option", name=name).click()


def test_what_an_endpoint_may_not_receive_stays_here(cato, visit, administrator, alice, bob, endpoint):
    endpoint.script(CLOUD, answer="I do not know.", models=["big"])
    project = alice.post("/projects", {"name": "Outer fjord", "description": ""}).headers["Location"]
    project_id = project.rsplit("/", 1)[1]
    (team_id,) = cato.sql("SELECT id FROM memory_space WHERE kind = 'team'")[0]
    alice.post("/notes", {"text": SECRET, "space": str(uuid.UUID(str(team_id)))})
    waiting = "SELECT count(*) FROM memory_embeddingjob WHERE state <> 'done'"
    wait_for(lambda: cato.sql(waiting)[0][0] == 0, "the note to be indexed")

    office = visit(administrator, "/settings/endpoints")
    office.get_by_label("Name", exact=True).fill("cloud")
    office.get_by_label("Address", exact=True).fill(endpoint.openai_url)
    office.get_by_label("API key", exact=True).fill(CLOUD)
    office.get_by_label("Where it runs").fill("United States")
    office.get_by_label("The spaces chosen below").check()
    office.get_by_label("Outer fjord").check()
    office.get_by_role("button", name="Add", exact=True).click()
    expect(office.get_by_text("Added.")).to_be_visible()
    assert CLOUD not in office.content()

    page = visit(alice, f"/?space={project_id}")
    choose_model(page, "big")
    begin_thread(page, QUESTION)
    wait_for_answer(page)
    expect(turn(page).locator(".recall")).to_contain_text(re.compile(r"1 source not sent to cloud"))
    sent = json.dumps(endpoint.requests(CLOUD))
    assert QUESTION in sent
    assert SECRET not in sent
    page.reload()
    expect(turn(page).locator(".recall")).to_contain_text(re.compile(r"1 source not sent to cloud"))

    # A person outside the project cannot use it anywhere, and reads why.
    bobs_page = visit(bob)
    bobs_page.get_by_role("button", name=re.compile("Chat model:")).click()
    picker = bobs_page.locator("#model-picker")
    expect(picker).to_contain_text("United States")
    expect(picker).to_contain_text("may not receive text of personal threads")
    expect(picker.get_by_role("option", name="big")).to_be_disabled()

    # The policy at the moment of the message counts.
    office.goto("/".join(office.url.split("/")[:3]) + "/settings/endpoints/named/cloud")
    office.get_by_label("No space; it is not used").check()
    office.get_by_role("button", name="Save", exact=True).click()
    send_message(page, "And on Sundays?")
    expect(page.locator("#composer-error")).to_contain_text("may not receive text of Outer fjord")
    expect(page.get_by_label("Message", exact=True)).to_have_value("And on Sundays?")
    assert "Sundays" not in json.dumps(endpoint.requests(CLOUD))
    choose_model(page, "fake default")
    page.get_by_label("Message", exact=True).press("Enter")
    wait_for_answer(page)
    expect(page.locator("article.turn")).to_have_count(2)
    expect(turn(page).locator(".recall")).not_to_contain_text("not sent")


@pytest.fixture(scope="module")
def remote_embeddings(home: Path, endpoint):
    """Start a Cato whose texts are embedded by a provider elsewhere."""
    endpoint.script(EMBEDDINGS)
    with server.running(
        home / "embedding-policy",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY=KEY,
        CATO_VECTOR_STORE_EMBEDDING_PROVIDER="openai",
        CATO_VECTOR_STORE_EMBEDDING_BASE_URL=endpoint.openai_url,
        CATO_VECTOR_STORE_EMBEDDING_API_KEY=EMBEDDINGS,
        CATO_VECTOR_STORE_EMBEDDING_DIMENSIONS="64",
        CATO_VECTOR_STORE_RETRIEVAL_TIMEOUT="20",
    ) as running:
        yield running


def test_the_embedding_provider_receives_text_of_the_chosen_spaces_only(remote_embeddings, visit, endpoint):
    cato = remote_embeddings
    administrator = cato.set_up("Ada Admin")
    member, outsider = cato.join(administrator, "Alice Owner"), cato.join(administrator, "Bob Team")
    project = member.post("/projects", {"name": "Outer fjord", "description": ""}).headers["Location"]
    project_id = project.rsplit("/", 1)[1]

    office = visit(administrator, "/settings/endpoints")
    expect(office.get_by_role("region", name="Embeddings")).to_contain_text("May receive text of all spaces.")
    office.get_by_role("link", name="Change Embeddings").click()
    office.get_by_label("The spaces chosen below").check()
    office.get_by_label("Outer fjord").check()
    office.get_by_role("button", name="Save").click()
    expect(office.get_by_role("region", name="Embeddings")).to_contain_text("May receive text of: Outer fjord.")

    page = visit(member, f"/?space={project_id}")
    begin_thread(page, "The lighthouse is painted in June.")
    wait_for_answer(page)
    expect(turn(page)).not_to_contain_text("may not receive this text")

    # The outsider's own thread stays here: its text is found by words, and the turn says so.
    page = visit(outsider)
    begin_thread(page, "The sextant hangs behind the clock.")
    wait_for_answer(page)
    page.goto(page.url.split("/t/")[0])
    # Slow enough for the page to be open when the answer ends.
    endpoint.script(KEY, answer="It hangs behind the clock, as you said some time ago [1].", token_delay=0.3)
    begin_thread(page, "Where does the sextant hang?")
    wait_for_answer(page)
    note = "The embedding provider may not receive this text; recalled by keyword only"
    expect(turn(page).locator(".recall")).to_contain_text(note)
    expect(turn(page).locator(".recall")).to_contain_text("Based on 1 source")
    page.set_viewport_size({"width": 390, "height": 800})
    expect(turn(page).get_by_text(note)).to_be_visible()
    assert outsider.get("/settings/endpoints/embeddings").status_code == 403

    sent = json.dumps(endpoint.requests(EMBEDDINGS, "/v1/embeddings"))
    assert "lighthouse" in sent
    assert "sextant" not in sent
