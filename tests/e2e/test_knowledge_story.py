"""A fact from its first mention to its last forgotten source: extracted, recalled, updated, disputed, corrected, erased."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import KEY, begin_thread, turn, wait_for_answer
from tests.groups import make_group, start_thread
from tests.server import Client, wait_for

# Let the space have been quiet for some minutes.
_QUIET = """
from datetime import timedelta
from django.utils import timezone
from memory.models import Exchange, SpaceKnowledge
Exchange.objects.filter(space={space!r}).update(created_at=timezone.now() - timedelta(minutes=10))
SpaceKnowledge.objects.filter(space={space!r}).update(due_at=timezone.now(), failures=0)
"""
_INDEXED = """
SELECT e.id FROM memory_exchange e JOIN memory_embeddingjob j ON j.exchange_id = e.id
WHERE e.thread_id = ? AND j.state = 'done'
"""

SAID = (
    "From now on a buoy makes 28 retries a day.",
    "We agreed on 28 retries a day for each buoy.",
    "So it is 28 retries a day for a buoy.",
)
FACT, UPDATE, OTHER = (f"A buoy makes {count} retries a day." for count in (28, 40, 35))
CORRECTION = "A buoy makes 41 retries a day."


def reply(text: str, *quotes: str, **relations: list[str]) -> str:
    """Return the model's reply with one statement that the sources, in order, support with these words."""
    sources = [{"number": number, "quote": quote} for number, quote in enumerate(quotes, 1)]
    statement = {"text": text, "kind": "fact", "topic": "Uplink", "sources": sources}
    relations = {"updates": [], "contradicts": []} | relations
    return json.dumps({"statements": [statement | relations], "repeated": []})


@pytest.fixture
def space(cato, administrator, alice, bob, visit) -> str:
    """Create a group in which the administrator switches extraction on."""
    id = make_group(cato, administrator, alice, bob)
    page = visit(administrator, "/knowledge/extraction")
    page.locator(f"section[aria-labelledby=of-{id}]").get_by_role("button", name="Switch on").click()
    expect(page.locator(f"section[aria-labelledby=of-{id}]")).to_contain_text("Up to date")
    return id


@pytest.fixture
def tell(cato, space) -> Callable[[Client, str], str]:
    """Return a function that posts a message in a new thread of the space, and returns the id of its exchange."""

    def post(person: Client, message: str) -> str:
        of_thread = uuid.UUID(start_thread(person, space, message)).hex
        found = wait_for(lambda: cato.sql(_INDEXED, of_thread), "the message to be remembered")
        return str(uuid.UUID(str(found[0][0])))

    return post


@pytest.fixture
def extract(cato, space, endpoint) -> Callable[[str], None]:
    """Return a function that has the unread exchanges of the space read, with this reply of the model."""
    unread = "SELECT count(*) FROM memory_exchange WHERE space_id = ? AND NOT is_extracted AND forgotten_at IS NULL"

    def run(answer: str) -> None:
        endpoint.script(KEY, answer=answer)
        cato.manage("shell", "--verbosity", "0", "-c", _QUIET.format(space=space))
        wait_for(lambda: not int(cato.sql(unread, uuid.UUID(space).hex)[0][0]), "everything to be read", seconds=90)
        pending = "SELECT count(*) FROM memory_embeddingjob WHERE state = 'pending'"
        wait_for(lambda: not int(cato.sql(pending)[0][0]), "the statements to be indexed")
        endpoint.script(KEY, answer="It is so [1].")

    return run


def statement(page: Page, text: str) -> Locator:
    return page.locator(".statement").filter(has=page.locator(".statement__text", has_text=text))


def test_a_fact_from_its_first_mention_to_its_last_forgotten_source(visit, alice, bob, tell, extract):
    exchanges = [tell(person, text) for person, text in zip((alice, alice, bob), SAID, strict=True)]
    extract(reply(FACT, *["28 retries a day"] * 3))

    page = visit(bob, "/knowledge")
    expect(statement(page, FACT)).to_contain_text("3 sources")
    expect(statement(page, FACT)).to_contain_text("Current")

    page.goto("/")
    begin_thread(page, "How many retries does a buoy make a day?")
    wait_for_answer(page)
    turn(page).locator(".recall__panel > summary").click()
    (item,) = turn(page).locator(".recall-item").all()
    item.locator("summary").first.click()
    expect(item).to_contain_text(FACT)
    expect(item.get_by_text("Based on").get_by_role("link")).to_have_count(3)

    tell(bob, "From today on a buoy makes 40 retries a day.")
    extract(reply(UPDATE, "40 retries a day", updates=["A"]))
    page.goto("/knowledge")
    expect(statement(page, FACT)).to_contain_text("Superseded")
    expect(statement(page, UPDATE)).to_contain_text("Unconfirmed")

    tell(alice, "No, a buoy makes 35 retries a day, I have counted them.")
    extract(reply(OTHER, "35 retries a day", contradicts=["A"]))
    page.goto("/knowledge")
    for text in (UPDATE, OTHER):
        expect(statement(page, text)).to_contain_text("Conflicting")
    statement(page, UPDATE).get_by_role("button", name="Keep this one").click()
    expect(statement(page, UPDATE)).to_contain_text("confirmed by Bob Team")
    expect(statement(page, OTHER)).to_contain_text("Superseded")

    hers = visit(alice, "/knowledge")
    statement(hers, UPDATE).locator(".statement__summary").click()
    statement(hers, UPDATE).get_by_text("Correct…").click()
    statement(hers, UPDATE).get_by_label("The statement as it should be").fill(CORRECTION)
    statement(hers, UPDATE).get_by_role("button", name="Save").click()
    expect(statement(hers, CORRECTION)).to_contain_text("confirmed by Alice Owner")
    expect(statement(hers, UPDATE)).to_contain_text("Superseded")

    forget(alice, exchanges[0])
    page.goto("/knowledge")
    expect(statement(page, CORRECTION)).to_be_visible()
    expect(statement(page, FACT)).to_have_count(0)
    # What remains was said before the correction, so the later statement stays the current one.
    extract(reply(FACT, *["28 retries a day"] * 2, updates=["A"]))
    page.reload()
    expect(statement(page, FACT)).to_contain_text("2 sources")
    expect(statement(page, FACT)).to_contain_text("Superseded")

    forget(alice, exchanges[1])
    forget(bob, exchanges[2])
    page.reload()
    expect(statement(page, CORRECTION)).to_be_visible()
    expect(statement(page, FACT)).to_have_count(0)


def forget(person: Client, exchange: str) -> None:
    answer = person.api_client("read", "write").delete(f"/api/exchanges/{exchange}")
    assert answer.json()["exchanges"] == 1
