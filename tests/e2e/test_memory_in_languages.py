"""What was told in one language is recalled for a question in the same or in another one, without a shared word."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import KEY, begin_thread, turn

TOLD = {
    "German": "Frau Okafor hat uns die Türöffnung für Lieferanten auf halb sechs Uhr morgens vorverlegt.",
    "Spanish": "El servidor de copias se apaga todos los domingos para ahorrar electricidad.",
    "Chinese": "王莉把合同放在三楼的蓝色柜子里。",
}
ASKED = [
    ("German", "Ab wann können Zulieferer rein?"),
    ("Spanish", "¿Qué día no hay respaldo porque la máquina está desconectada?"),
    ("Chinese", "协议书在哪儿？"),
    ("German", "How early are suppliers let in?"),
    ("Spanish", "An welchem Tag läuft die Datensicherung nicht?"),
    ("Chinese", "Where did Wang Li put the contract?"),
]


@pytest.fixture
def page_after_telling(visit, alice, endpoint):
    """Return a page of Alice, who has told one thing in each language."""
    endpoint.script(KEY, answer="OK.")
    page = visit(alice)
    for text in TOLD.values():
        page.goto("/")
        begin_thread(page, text)
        expect(turn(page).locator(".turn__memory-text")).to_have_text("Remembered")
    return page


def test_a_question_recalls_what_was_told_in_the_same_or_another_language(page_after_telling):
    page = page_after_telling
    for language, question in ASKED:
        page.goto("/")
        begin_thread(page, question)
        excerpts = turn(page).locator(".recall-item__excerpt", has_text=TOLD[language][:20])
        expect(excerpts, question).to_have_count(1)
