"""Whoever starts the newest Cato on what an older one left finds everything again, and nothing that was forgotten."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests import server
from tests.fake_endpoint import FakeEndpoint
from tests.fixtures.upgrade.fill import ADA, BOB, PNG
from tests.topology import TOPOLOGY

pytestmark = pytest.mark.skipif(TOPOLOGY == "services", reason="it is about the data directory of `serve`")

LEFT = sorted((Path(__file__).parent / "fixtures" / "upgrade").glob("*.zip"))


@pytest.fixture(scope="module", params=LEFT, ids=lambda path: path.stem)
def upgraded(
    tmp_path_factory: pytest.TempPathFactory, endpoint: FakeEndpoint, request: pytest.FixtureRequest
) -> Iterator[server.Cato]:
    """The newest Cato on what an older one left."""
    data = tmp_path_factory.mktemp("upgraded") / "data"
    with zipfile.ZipFile(request.param) as left:
        left.extractall(data)
    endpoint.script("upgraded", answer="Good to know.")
    # Everything that was forgotten is overdue, so the worker erases it. A command that did the same at the same time
    # could stop the vector store under the worker, and what that had begun would wait until it counts as abandoned.
    with server.running(
        data.parent,
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY="upgraded",
        CATO_VECTOR_STORE_ERASE_WITHIN_HOURS="0.001",
    ) as cato:
        unpurged, note = "SELECT 1 FROM memory_collection WHERE purge_needed_since IS NOT NULL", data / "vectordb.clean"
        server.wait_for(lambda: not cato.sql(unpurged) and not note.exists(), "what was forgotten to be erased", 120)
        server.wait_for(lambda: httpx.get(f"{cato.url}/readyz").json()["state"] == "ok", "the vector store to be back")
        yield cato


@pytest.fixture(scope="module")
def ada(upgraded) -> server.Client:
    return signed_in(upgraded, *ADA)


@pytest.fixture(scope="module")
def bob(upgraded) -> server.Client:
    return signed_in(upgraded, *BOB)


def signed_in(cato: server.Cato, name: str, email: str) -> server.Client:
    return cato.sign_in(server.Client(cato.url, name, email, httpx.Client()))


def hits(person: server.Client, query: str) -> list[str]:
    """What the page of search shows, as HTML, best first."""
    return person.get("/search", params={"q": query}).text.split('class="search-hit')[1:]


def threads(person: server.Client) -> list[str]:
    return sorted(set(re.findall(r'href="/t/([0-9a-f-]{36})', person.get("/threads").text)))


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("what can I open the glasshouse with", "Behind the kitchen clock."),
        ("Ingrid", "on Tuesdays."),
        ("paint of the ship", "Signal red, two coats."),
        ("team meeting", "Mondays at nine in the library."),
        ("how far down does the pond go", "Four metres and a half."),
        ("who repairs the grand piano", "Halvorsen"),
        ("2310", "The boathouse code is 2310."),
        ("where do we anchor", "in seven fathoms of water"),
    ],
)
def test_everything_is_found_by_meaning_and_by_word(ada, query, says):
    found = hits(ada, query)

    assert any(says in re.sub(r"</?mark>", "", hit) for hit in found), found


@pytest.mark.parametrize("query", ["zarquon-4711", "the combination of the safe", "Eleven metres", "three fathoms"])
def test_what_was_forgotten_replaced_or_left_aside_is_not(ada, upgraded, query):
    assert upgraded.sql("SELECT count(*) FROM memory_exchange WHERE forgotten_at IS NOT NULL") == [(2,)]
    assert not any(word in hit for hit in hits(ada, query) for word in ("zarquon", "Eleven metres", "in three fathoms"))


def test_others_see_what_is_theirs_and_shared_alone(bob):
    assert any("Signal red" in hit for hit in hits(bob, "colour of the hull"))
    assert not any("kitchen clock" in hit for hit in hits(bob, "key of the greenhouse"))


def test_threads_pictures_and_documents_open(ada, upgraded):
    pages = {thread: ada.thread_page(thread) for thread in threads(ada)}

    for said in ("Behind the kitchen clock.", "On the second Saturday in May.", "Four metres and a half."):
        assert any(said in page for page in pages.values()), said
    pictures = [found[1] for page in pages.values() if (found := re.search(r'src="(/images/[^"]+)"', page))]
    assert [ada.get(picture).content for picture in pictures] == [PNG]
    (document,) = set(re.findall(r'href="(/d/[0-9a-f-]{36})', ada.get("/documents").text))
    page = ada.get(document).text
    assert "in seven fathoms of water" in page
    (original,) = re.findall(rf'href="({document}/original/2)"', page)
    assert b"in seven fathoms" in ada.get(original).content


def test_nothing_has_to_be_made_anew_and_nothing_is_adrift(upgraded):
    """The rows name every vector and every word that there was, so no start costs an embedding."""
    pending = "SELECT count(*) FROM memory_embeddingjob WHERE state <> 'done'"
    wordless = "SELECT count(*) FROM memory_exchange WHERE forgotten_at IS NULL AND id NOT IN (SELECT exchange_id FROM memory_lexicalentry)"
    assert [upgraded.sql(query)[0][0] for query in (pending, wordless)] == [0, 0]
    mended = upgraded.manage("reconcile", "--dry-run")
    assert re.findall(r"\d+", mended.stdout) == ["0"] * len(re.findall(r"\d+", mended.stdout)), mended.stdout


def test_the_conversation_goes_on_and_what_is_said_is_remembered(ada, upgraded):
    (thread,) = [t for t in threads(ada) if "<title>Where does the spare key" in ada.thread_page(t)]
    ada.send_message("The greenhouse got a new lock: zebra-17.", thread)

    server.wait_for(lambda: "zebra-17" in ada.thread_page(thread), "the message")
    server.wait_for(lambda: any("zebra-17" in hit for hit in hits(ada, "lock of the greenhouse")), "it to be found")
