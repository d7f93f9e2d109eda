"""A backup from before the tables were renamed is restored completely, and conversations continue in it.

tests/fixtures/backups holds two backups of that time. `conversation.tar.gz` is of a Cato that two people used: threads in
three spaces, a branch, an image, notes, a document of two versions, and a forgotten exchange. `every-table.tar.gz` has
rows in every table. Their secrets open nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cato_web.backups import legacy, rows
from cato_web.backups.restoring import restore
from memory.embeddings import multilingual_e5
from memory.retrieval.search import LEXICAL_ONLY, SearchResults
from tests import server
from tests.backups import members, rows_of, wipe_installation
from tests.factories import PNG
from tests.fake_endpoint import FakeEndpoint
from tests.topology import TOPOLOGY, clean_environment

BACKUPS = Path(__file__).parent / "fixtures" / "backups"
# Columns that were added since, with the values that older rows get.
ADDED_COLUMNS = {"memory.recalllogentry": {"later_id": None}}
# Names that were changed since, besides those of `legacy`.
RENAMED_TABLES = {
    "chat.image": "chat.attachment",
    "chat.turn_images": "chat.turn_attachments",
    "chat.readmarker": "chat.readermarks",
}
# Columns whose values are elsewhere now: the marks of a thread are those of its owner.
MOVED_COLUMNS = {"chat.thread": ("pinned_at", "archived_at")}
RENAMED_COLUMNS = {"chat.turn_attachments": {"image_id": "attachment_id"}}
ADA, BOB = ("Ada Admin", "ada@halden.example"), ("Bob Team", "bob@halden.example")


@pytest.mark.django_db(transaction=True)
def test_every_row_of_every_table_is_restored():
    data = (BACKUPS / "every-table.tar.gz").read_bytes()
    counts = json.loads(members(data)["manifest.json"])["rows"]
    assert all(counts.values())

    restore(wipe_installation(data))

    tables = rows.backed_up_tables()
    for old_name, count in counts.items():
        legacy_name = legacy.TABLES.get(old_name, old_name)
        name = RENAMED_TABLES.get(legacy_name, legacy_name)
        columns = legacy.COLUMNS.get(legacy_name, {}) | RENAMED_COLUMNS.get(name, {})
        expected = [
            {columns.get(key, key): value for key, value in row.items()} | ADDED_COLUMNS.get(name, {})
            for row in rows_of(data, old_name)
        ]
        moved = MOVED_COLUMNS.get(name, ())
        for row in expected:
            for column in moved:
                row.pop(column)
        if name == "memory.calibration":  # its thresholds had another meaning
            expected = []
        restored_rows = [json.loads(line) for line in rows.dump_table(tables[name])]
        # Later versions have more columns.
        known = [{key: row[key] for key in old} for row, old in zip(restored_rows, expected, strict=True)]
        assert known == expected, name
        assert name == "memory.calibration" or len(expected) == count


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory, endpoint: FakeEndpoint) -> Iterator[server.Cato]:
    """Start a Cato on the restored backup of conversations."""
    if TOPOLOGY == "services":
        pytest.skip("restores into the data directory of `serve`")
    home = tmp_path_factory.mktemp("restored")
    endpoint.script("restored", answer="Good to know.")
    environment = {"OPENAI_BASE_URL": endpoint.openai_url, "OPENAI_API_KEY": "restored"}
    command = [sys.executable, "manage.py", "restore", str(BACKUPS / "conversation.tar.gz")]
    target = clean_environment() | environment | {"CATO_DATA_DIR": str(home / "data"), "CATO_CONFIG_FILE": ""}
    subprocess.run(command, cwd=server.ROOT, env=target, check=True, capture_output=True, timeout=120)
    with server.running(home, **environment) as cato:
        # The model of the backup's index is not installed any more, so that the index is built with the present one.
        models = "SELECT state, model FROM memory_indexgeneration"
        is_replaced = [("serving", multilingual_e5.NAME)]
        server.wait_for(lambda: cato.sql(models) == is_replaced, "the new index to have replaced the old one", 120)
        yield cato


@pytest.fixture(scope="module")
def ada(restored) -> server.Client:
    return signed_in(restored, *ADA)


@pytest.fixture(scope="module")
def bob(restored) -> server.Client:
    return signed_in(restored, *BOB)


def signed_in(cato: server.Cato, name: str, email: str) -> server.Client:
    return cato.sign_in(server.Client(cato.url, name, email, httpx.Client()))


def hits(person: server.Client, query: str) -> list[str]:
    """Return the search page's hits as HTML, best first, once it does not say that the vector store is unavailable.

    `serve` stops the store for a moment to remove forgotten texts and the old index from its files.
    """

    def complete_page() -> str | None:
        page = person.search_page(query)
        return None if SearchResults(note=LEXICAL_ONLY).note_text in page else page

    page: str = server.wait_for(complete_page, "the vector store to answer")
    return page.split('class="search-hit')[1:]


def threads(person: server.Client) -> list[str]:
    return sorted(set(re.findall(r'href="/t/([0-9a-f-]{36})', person.get("/threads").text)))


@pytest.mark.parametrize(
    ("query", "expected_text"),
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
def test_everything_is_found_by_meaning_and_by_word(ada, query, expected_text):
    found = hits(ada, query)

    assert any(expected_text in re.sub(r"</?mark>", "", hit) for hit in found), found


@pytest.mark.parametrize("query", ["zarquon-4711", "the combination of the safe", "Eleven metres", "three fathoms"])
def test_forgotten_replaced_and_inactive_exchanges_are_not_found(ada, restored, query):
    assert restored.sql("SELECT count(*) FROM memory_exchange WHERE forgotten_at IS NOT NULL") == [(2,)]
    assert not any(word in hit for hit in hits(ada, query) for word in ("zarquon", "Eleven metres", "in three fathoms"))


def test_people_find_only_what_they_may_read(bob):
    assert any("Signal red" in hit for hit in hits(bob, "colour of the hull"))
    assert not any("kitchen clock" in hit for hit in hits(bob, "key of the greenhouse"))


def test_threads_images_and_documents_open(ada, restored):
    pages = {thread: ada.thread_page(thread) for thread in threads(ada)}

    for said in ("Behind the kitchen clock.", "On the second Saturday in May.", "Four metres and a half."):
        assert any(said in page for page in pages.values()), said
    images = [found[1] for page in pages.values() if (found := re.search(r'src="(/attachments/[^"]+)"', page))]
    assert [ada.get(image).content for image in images] == [PNG]
    (document,) = set(re.findall(r'href="(/d/[0-9a-f-]{36})', ada.get("/documents").text))
    page = ada.get(document).text
    assert "in seven fathoms of water" in page
    (original,) = re.findall(rf'href="({document}/original/2)"', page)
    assert b"in seven fathoms" in ada.get(original).content


def test_every_exchange_has_its_terms_and_vectors(restored):
    without_terms = (
        "SELECT count(*) FROM memory_exchange WHERE forgotten_at IS NULL "
        "AND id NOT IN (SELECT exchange_id FROM memory_lexicalentry)"
    )
    assert restored.sql(without_terms) == [(0,)]
    report = restored.manage("reconcile", "--dry-run")
    assert set(re.findall(r"\d+", report.stdout)) == {"0"}, report.stdout


def test_a_thread_continues_and_new_exchanges_are_remembered(ada, restored):
    (thread,) = [t for t in threads(ada) if "<title>Where does the spare key" in ada.thread_page(t)]
    ada.send_message("The greenhouse got a new lock: zebra-17.", thread)

    server.wait_for(lambda: "zebra-17" in ada.thread_page(thread), "the message")
    server.wait_for(lambda: any("zebra-17" in hit for hit in hits(ada, "lock of the greenhouse")), "it to be found")
