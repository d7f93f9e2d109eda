"""German interface: every text is translated, and numbers and dates are localised."""

from __future__ import annotations

import gettext
import html
import re
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from django.template.loader import render_to_string
from django.utils import translation

from cato_web.config.loader import ConfigError, load
from cato_web.stats.plots import Series, line_plot
from memory.documents.extraction.result import Marker, location_label
from memory.errors import ExtractionError
from memory.utils import formatting
from tests import catalog, server
from tests.fake_endpoint import FakeEndpoint
from tests.server import wait_for
from tests.socket import open_socket

# Placeholders and markup in a text.
_PLACES = re.compile(r"%\(\w+\)[.\d]*[a-z]|%%|\*|</?\w+>")
# Words that identify an English sentence; neither German texts nor the test data contain them.
_ENGLISH = re.compile(r"\b(the|and|are|you|your|with|who|what|this|that|of|is|it|to|no|not)\b", re.IGNORECASE)
_SPOKEN = "aria-label|title|placeholder|alt|data-[a-z-]+"
WORD = "Die Leiter steht im Schuppen hinter dem Haus."
AT = datetime(2026, 11, 2, 14, 40, tzinfo=UTC)


@pytest.fixture(scope="module")
def german(home: Path, endpoint: FakeEndpoint) -> Iterator[server.Cato]:
    """Start a Cato in German whose model endpoint has the key `german`."""
    endpoint.script("german", answer="Alles klar.")
    with server.running(
        # Pages show the folder's path, and unlike `tmp_path_factory` its name contains no English words.
        Path(tempfile.mkdtemp(prefix="german-", dir=home)),
        CATO_SERVER_LANGUAGE="de",
        OPENAI_BASE_URL=endpoint.openai_url,
        OPENAI_API_KEY="german",
        CATO_CHAT_MESSAGES_PER_MINUTE="100000",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def ada(german: server.Cato) -> server.Client:
    return german.set_up("Ada Admin")


@pytest.fixture(scope="module")
def thread(ada: server.Client) -> str:
    """Return a thread with one remembered turn."""
    thread_id = ada.send_message(WORD)
    wait_for(lambda: '<span class="turn__memory-text">Gemerkt</span>' in ada.thread_page(thread_id), "the worker")
    return thread_id


def texts(page: str) -> list[str]:
    """Return the visible texts of a page and those for screen readers."""
    page = re.sub(r"(?s)<(script|style|code)\b.*?</\1>", "\n", page)
    visible = [*re.sub(r"<[^>]+>", "\n", page).splitlines(), *re.findall(rf'(?:{_SPOKEN})="([^"]*)"', page)]
    return [text for each in visible if (text := " ".join(html.unescape(each).split()))]


def english_texts(page: str) -> list[str]:
    """Return the texts of a page that are English."""
    untranslated = {entry.text for entry in catalog.entries() if entry.text in entry.translations.values()}
    interface_texts = {entry.text for entry in catalog.entries()} - untranslated
    return [text for text in texts(page) if text in interface_texts or _ENGLISH.search(text)]


def test_the_catalog_contains_exactly_the_marked_texts():
    marked, translated = catalog.marked_texts(), {entry.key for entry in catalog.entries()}
    assert {text: source for text, source in marked.items() if text not in translated} == {}, (
        "make messages, and translate"
    )
    assert translated - set(marked) == set(), "make messages"


def test_every_text_is_translated_and_none_is_fuzzy():
    wanting = [
        e.text for e in catalog.entries() if e.is_fuzzy or not all(e.translations.values()) or not e.translations
    ]
    assert wanting == []
    assert [e.text for e in catalog.entries() if len(e.translations) != (2 if e.plural else 1)] == []


def test_translations_have_the_same_placeholders():
    for entry in catalog.entries():
        placeholders = sorted(_PLACES.findall(entry.plural or entry.text))
        assert sorted(_PLACES.findall(entry.translations[max(entry.translations)])) == placeholders, entry.text
        # "The last turn" needs no number.
        assert set(_PLACES.findall(entry.translations[0])) <= set(placeholders), entry.text


def test_the_compiled_catalog_is_current():
    with catalog.GERMAN.with_suffix(".mo").open("rb") as file:
        compiled = dict(gettext.GNUTranslations(file)._catalog)  # type: ignore[attr-defined]
    compiled.pop("")
    written = {}
    for entry in catalog.entries():
        key = f"{entry.context}\x04{entry.text}" if entry.context else entry.text
        written |= (
            {(key, number): text for number, text in entry.translations.items()}
            if entry.plural
            else {key: entry.translations[0]}
        )
    assert compiled == written, "make messages"


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["1,204", "84.3%", ".84", "2 Nov 2026", "2 Nov", "02 Nov 14:40 UTC", "a, b and c"]),
        ("de", ["1.204", "84,3\xa0%", "0,84", "2. Nov. 2026", "2. Nov.", "2. Nov., 14:40 UTC", "a, b und c"]),
    ],
)
def test_numbers_and_dates_are_localised(language, expected):
    with translation.override(language):
        assert expected == [
            formatting.format_number(1204),
            formatting.format_percent(0.843, 1),
            formatting.format_similarity(0.843),
            formatting.format_date(AT),
            formatting.day_of_this_year(AT),
            formatting.format_datetime(AT),
            formatting.format_list(["a", "b", "c"]),
        ]


def test_numbers_are_rounded_not_truncated():
    with translation.override("de"):
        assert [
            formatting.format_number(2.678, 1),
            formatting.format_number(-0.847, 2),
            formatting.format_number(1_234_567.5),
        ] == [
            "2,7",
            "-0,85",
            "1.234.568",
        ]


def test_extraction_errors_are_translated_with_their_values():
    error = ExtractionError("This file has more than %(most)s characters of text. Upload it in parts.", most=20_000_000)
    assert str(error) == "This file has more than 20,000,000 characters of text. Upload it in parts."
    kinds = ExtractionError("Unsupported file type. Supported: %(formats)s.", formats=["Plain text", "PDF"])
    with translation.override("de"):
        assert formatting.error_text(error).startswith("Diese Datei hat mehr als 20.000.000 Zeichen Text.")
        assert formatting.error_text(kinds).endswith("Unterstützt: Reiner Text und PDF.")


def test_an_invented_error_of_an_extractor_is_shown_as_plain_text():
    hostile = "%(most)s %(most)1000000000d %(other)s %s %"
    with translation.override("de"):
        assert formatting.error_text(ExtractionError(hostile, most=3)) == "3 %(most)1000000000d %(other)s %s %"


def test_locations_in_documents_are_translated():
    marks = [Marker(0, "row", "14", within="Kosten"), Marker(10, "row", "15", within="Kosten")]
    with translation.override("de"):
        assert location_label(marks, 0, 20, translate=translation.gettext) == "Blatt Kosten, Zeilen 14–15"


def test_an_unsupported_language_prevents_the_start():
    assert load(environ={"CATO_SERVER_LANGUAGE": "de"}).server.language == "de"
    with pytest.raises(ConfigError, match=r"(?s)server\.language.*fr.*'en' or 'de'"):
        load(environ={"CATO_SERVER_LANGUAGE": "fr"})


def test_pages_before_signing_in_ignore_the_browsers_language(german):
    page = httpx.get(f"{german.url}/sign-in", headers={"Accept-Language": "en"}).text
    assert '<html lang="de"' in page
    assert "Anmelden" in texts(page)
    assert english_texts(page) == []


def test_the_set_up_page_and_its_errors_are_german(tmp_path, endpoint):
    with server.running(tmp_path / "new", CATO_SERVER_LANGUAGE="de") as new:
        link = wait_for(lambda: re.search(r"/setup/(\S+)", new.logs()), "the set-up link")[0]
        browser = httpx.Client(base_url=new.url)
        assert english_texts(browser.get(link).text) == []
        headers = {"X-CSRFToken": browser.cookies["cato_csrf"], "Referer": new.url}
        refused = browser.post(link, data={"name": "Ada", "email": "ada", "password": "kurz"}, headers=headers).text
        assert "Nimm mindestens 10 Zeichen. Vier einfache Wörter sind gut." in texts(refused)
        assert english_texts(refused) == []
        # A banner is shown without a model.
        ada = new.set_up()
        assert "Dummy-Modus." in texts(ada.get("/").text)
        assert english_texts(ada.get("/").text) == []


@pytest.mark.parametrize(
    ("path", "visible"),
    [
        ("/", "Was möchtest du wissen oder dir merken?"),
        ("/t/{thread}", "In deinem persönlichen Bereich gespeichert"),
        ("/t/{thread}/rename", "Dieses Gespräch umbenennen"),
        ("/t/{thread}/move", "Gespräch verschieben"),
        ("/t/{thread}/delete", "„Die Leiter steht im Schuppen hinter dem Haus.“ löschen?"),
        ("/t/{thread}/memory", "Dieses Gespräch nicht mehr im Gedächtnis speichern?"),
        ("/t/{thread}/recall-filter", "Abruf in diesem Gespräch beschränken"),
        ("/t/{thread}/model", "Chatmodell dieses Gesprächs"),
        ("/model", "Auf diesem Server; keine Daten verlassen ihn"),
        ("/t/{thread}/delete-turns?n=1", "Den letzten Wechsel löschen?"),
        ("/threads", "Archivierte Gespräche"),
        ("/threads?q=unauffindbar", "Kein Gesprächstitel passt zu „unauffindbar“."),
        ("/search", "Nach Bedeutung oder Wort finden"),
        ("/search?q=Leiter", "Ähnlichkeit"),
        ("/documents", "Dokumente hinzufügen"),
        ("/import", "Gespräche importieren"),
        ("/settings/export", "Alles exportieren"),
        ("/nirgends", "Nicht gefunden."),
        ("/stats", "Dein Gedächtnis"),
        ("/settings", "Wo du angemeldet bist"),
        ("/settings/password", "Passwort ändern"),
        ("/instructions", "Noch keine Anweisungen"),
        ("/prompts", "Noch keine Prompts"),
        ("/settings/delete-account", "Was gelöscht wird"),
        ("/settings/model", "Chatmodell"),
        ("/admin/people", "Jemanden einladen"),
        ("/admin/groups", "Gruppe anlegen"),
        ("/notes", "Notizen"),
        ("/stats?of=everything", "Auf diesem Rechner"),
        ("/admin/exchanges", "Alle auf dieser Seite"),
        ("/admin/exchanges?q=Leiter&state=none", "Keine passenden Austausche unter denen, die du lesen kannst."),
        ("/admin/documents", "Noch keine Dokumente."),
        ("/admin/operations", "Datenbank und Index vergleichen"),
        ("/admin/retention", "Vorschau"),
        ("/admin/audit", "Prüfprotokoll"),
        ("/admin/audit", "Administrator"),
        ("/admin/jobs", "Keine fehlgeschlagenen Aufgaben."),
    ],
)
def test_every_page_is_german(ada, thread, path, visible):
    page = ada.get(path.format(thread=thread)).text
    assert visible in texts(page)
    assert english_texts(page) == []


def test_quick_search_is_german(ada, thread):
    box = ada.get("/find?q=Leiter", headers={"HX-Request": "true"}).text
    assert "Gespräche" in texts(box)
    assert english_texts(box) == []


def test_similarities_have_a_decimal_comma(ada, thread):
    assert re.search(r">(0,\d\d|1,00)</span>", ada.search_page("Leiter"))


def test_machine_readable_numbers_are_not_localised():
    plot = line_plot([Series("hybrid", [0.8437, 0.912])], columns=["1. Nov.", "2. Nov."], title="Anteile")
    turn = {"id": uuid.uuid4(), "revision": 1204}
    with translation.override("de"):
        drawn = render_to_string("charts/_lines.html", {"plot": plot, "id": "plot"})
        assert 'data-revision="1204"' in render_to_string("chat/_streaming_block.html", {"turn": turn})
    heights = re.findall(r'(?:x|y|transform)="([^"]*[.,][^"]*)"', drawn)
    assert heights
    assert not [each for each in heights if "," in each]


@pytest.mark.parametrize(
    ("command", "visible"),
    [
        ("/vgett", "Unbekannter Befehl /vgett. Meintest du /vget?"),
        ("/history 99", "Gib eine Zahl von 1 bis 50 an: /history [N]."),
        ("/vquery", "Was suchst du? Schreib /vquery TEXT [K]."),
        ("/vget 7", "„7“ ist keine ID eines Austauschs. /vquery zeigt IDs."),
        ("/vget 'offen", "Schließendes Anführungszeichen fehlt."),
    ],
)
def test_errors_of_commands_are_german(ada, thread, command, visible):
    answer = ada.post(f"/t/{thread}/messages", {"message": command, "client_key": str(uuid.uuid4())}, htmx=True)
    assert answer.status_code == 422
    assert visible in " ".join(texts(answer.text))


def test_cards_and_help_of_commands_are_german(ada, thread):
    for command, visible in (("/help", "Zeigen, was gemerkt ist"), ("/vstats", "Austausche, die du lesen darfst")):
        answer = ada.post(f"/t/{thread}/messages", {"message": command, "client_key": str(uuid.uuid4())}, htmx=True)
        assert visible in texts(answer.text)
        assert english_texts(answer.text) == []


def test_the_length_of_a_too_long_message_has_thousands_separators(ada, thread):
    answer = ada.post(f"/t/{thread}/messages", {"message": "a" * 100_204, "client_key": str(uuid.uuid4())}, htmx=True)
    assert "Nachricht zu lang: 100.204 von höchstens 100.000 Zeichen." in " ".join(texts(answer.text))


def test_frames_and_messages_of_the_worker_are_german(ada, thread, endpoint):
    endpoint.script("german", answer="Alles klar.", token_delay=0.2)
    with open_socket(ada, thread) as page:
        page.hello()
        ada.send_message("Die Säge liegt daneben.", thread)
        page.until("Antwort anhalten")
        frame = page.until('<span class="turn__memory-text">Gemerkt</span>')
        frames_text = "".join(page.received)
    assert "Gemerkt" in texts(frame)
    assert english_texts(frames_text) == []


def test_the_worker_reports_unreadable_documents_in_german(ada):
    headers = {"X-CSRFToken": ada.http.cookies["cato_csrf"], "Referer": ada.url, "HX-Request": "true"}
    sent = [("files", ("bericht.pdf", b"%PDF-1.4 und dann nichts")), ("files", ("leer.txt", b""))]
    chips = ada.http.post("/documents", files=sent, headers=headers).text
    assert "leer.txt ist leer." in texts(chips)
    message = "Diese PDF-Datei ist beschädigt und kann nicht gelesen werden."
    wait_for(lambda: message in texts(ada.get("/documents").text), message)
    assert english_texts(ada.get("/documents").text) == []
