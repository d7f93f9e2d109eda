"""Quick search: one box for threads, exchanges, documents and commands."""

from __future__ import annotations

import pytest
from django.urls import reverse

from cato_web.mcp.arguments import ListDocuments, SearchMemory
from cato_web.mcp.caller import Caller
from cato_web.mcp.reading import list_documents, search_memory
from chat.answers.memory_tools import ToolScope, run_tool
from chat.llm.tool_calls import ToolCall
from chat.quick_search import quick_search
from memory.errors import VectorStoreUnavailableError
from tests.factories import PersonFactory, document, exchange, signed_in, thread, turn

pytestmark = pytest.mark.django_db(transaction=True)
DOWN = "The search index cannot be used at the moment: found by keywords only."


@pytest.fixture
def stored(memory, person):
    """Return a person with a remembered thread, one that is not remembered, and a document, all about boats."""
    remembered = thread(person, title="Where the boats lie")
    one = turn(remembered, "Where does the red boat lie?", "At the north quay.")
    exchange(person, one.message, one.answer, thread_id=remembered.id, turn_id=one.id)
    quiet = thread(person, title="A surprise", is_remembered=False)
    turn(quiet, "What boat shall we give Ingrid?", "A dinghy.")
    document(person, "boat list.txt", "The red boat is called Petrel and has two oars. " * 20)
    return person


def test_all_readable_kinds_are_found_in_groups(stored):
    found = quick_search("boat", person_id=stored.id)

    assert [t.title for t in found.threads] == ["Where the boats lie"]
    assert {hit.exchange.source_file for hit in found.memories} >= {""}
    assert [t.message for t in found.turns] == ["What boat shall we give Ingrid?"]
    assert [d.name for d in found.documents] == ["boat list.txt"]


def test_letters_of_every_script_are_found_in_upper_and_lower_case(memory, person):
    thread(person, title="Ärger mit der Fähre")
    turn(thread(person, title="A surprise", is_remembered=False), "Что купить?", "ЛОДКУ.")
    document(person, "Übersicht (neu).txt", "The red boat is called Petrel.")

    assert [t.title for t in quick_search("ärger FÄHRE", person_id=person.id).threads] == ["Ärger mit der Fähre"]
    assert [t.answer for t in quick_search("лодку", person_id=person.id).turns] == ["ЛОДКУ."]
    assert [d.name for d in quick_search("übersicht (NEU)", person_id=person.id).documents] == ["Übersicht (neu).txt"]


def test_tools_of_models_list_documents_in_upper_and_lower_case_of_every_script(memory, person):
    document(person, "Übersicht (neu).txt", "The red boat is called Petrel.")
    caller = Caller(person.pk, is_administrator=False, scopes=frozenset({"read"}))
    listed = list_documents(caller, ListDocuments(name="übersicht ("))
    assert [d.name for d in listed.documents] == ["Übersicht (neu).txt"]

    spaces = memory.readable_space_ids(person.id)
    scope = ToolScope(spaces, person.id, thread_space=memory.personal_space(person.id).id)
    call = ToolCall("1", "list_documents", '{"name": "übersicht ("}')
    assert "Übersicht (neu).txt" in run_tool(call, scope).text


def test_commands_are_found_by_prefix_and_fill_the_composer(stored):
    assert [c.name for c in quick_search("/vst", person_id=stored.id).commands] == ["vstats"]
    client = signed_in(stored)
    box = client.get(reverse("quick_search"), {"q": "vstats"}, headers={"HX-Request": "true"}).content.decode()
    assert "/?say=/vstats" in box
    assert "/vstats" in client.get("/?say=/vstats").content.decode()


def test_an_empty_query_lists_the_latest_threads(stored):
    found = quick_search("", person_id=stored.id)
    assert {t.title for t in found.threads} == {"Where the boats lie", "A surprise"}
    assert found.memories == []


def test_nothing_of_other_people_is_found(stored):
    found = quick_search("boat", person_id=PersonFactory().id)

    assert not any((found.threads, found.memories, found.turns, found.documents, found.commands))


def test_without_the_index_other_kinds_are_still_found(stored, monkeypatch):
    from memory.index import store

    monkeypatch.setattr(store, "query", lambda *a, **k: (_ for _ in ()).throw(VectorStoreUnavailableError()))
    found = quick_search("boat", person_id=stored.id)
    assert found.threads
    assert found.documents
    assert found.note == DOWN


def test_the_lexical_fallback_is_reported_only_without_the_index(memory, person, monkeypatch):
    from memory.index import store

    client = signed_in(person)
    file = document(person, "boats.txt", "The red boat is called Petrel.")
    exchange(person, "The red boat lies at the north quay.")  # not yet in the index: a lexical match
    routes = [("search", []), ("quick_search", []), ("document", [file.pk])]

    def pages(query: str) -> list[str]:
        requests = [
            (reverse(name, args=args), {"HX-Request": "true"} if name == "quick_search" else {})
            for name, args in routes
        ]
        return [client.get(url, {"q": query}, headers=headers).content.decode() for url, headers in requests]

    search, box, inside = pages("boat")
    assert "north quay" in search
    assert "Keyword match" in search
    assert [DOWN in page for page in (search, box, inside)] == [False] * 3

    monkeypatch.setattr(store, "query", lambda *a, **k: (_ for _ in ()).throw(VectorStoreUnavailableError()))
    assert [DOWN in page for page in pages("boat")] == [True] * 3
    assert DOWN in pages("umbrella")[0], "also where nothing is found, since meaning might have found it"


def test_search_tools_of_models_report_the_lexical_fallback(memory, person, monkeypatch):
    from memory.index import store

    caller = Caller(person.pk, is_administrator=False, scopes=frozenset({"read"}))
    exchange(person, "The red boat lies at the north quay.")
    memory.index_pending()
    complete = search_memory(caller, SearchMemory(query="boat"))
    monkeypatch.setattr(store, "query", lambda *a, **k: (_ for _ in ()).throw(VectorStoreUnavailableError()))
    degraded = search_memory(caller, SearchMemory(query="boat"))

    assert [hit.message for hit in degraded.results] == ["The red boat lies at the north quay."]
    assert "by words alone" in degraded.note
    assert "by words alone" not in complete.note


def test_quick_search_opened_as_a_page_is_the_search_page(person):
    answer = signed_in(person).get(reverse("quick_search"), {"q": "red boat"})
    assert answer.url == "/search?q=red+boat"


def test_searches_are_rate_limited_per_person_with_a_message(memory, stored, settings):
    conf = settings.CATO.vector_store.model_copy(update={"searches_per_minute": 2})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
    client = signed_in(stored)
    assert client.get(reverse("search"), {"q": "boat"}).status_code == 200
    client.get(reverse("quick_search"), {"q": "boat"}, headers={"HX-Request": "true"})
    refused = client.get(reverse("search"), {"q": "boat"})
    assert refused.status_code == 429
    assert "Too many searches. Try again in a minute." in refused.content.decode()
    box = client.get(reverse("quick_search"), {"q": "boat"}, headers={"HX-Request": "true"}).content.decode()
    assert "Where the boats lie" in box, "threads are found by their titles all the same"
    assert "Too many searches. Try again in a minute." in box
    assert signed_in(PersonFactory()).get(reverse("search"), {"q": "boat"}).status_code == 200
