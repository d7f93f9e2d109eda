"""Lexical search: all word forms and scripts, identical on every database, also without the index."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection

from memory.errors import VectorStoreUnavailableError
from memory.index import store
from memory.lexical import bm25, postings
from memory.lexical.analyser import analyse, query_terms
from memory.lexical.candidates import build_lexical_query, lexical_candidates
from memory.lexical.expected import amount, kind_asked, says
from memory.lexical.postings import statistics
from memory.models import LexicalEntry
from memory.retrieval.fusion import proximity
from memory.spaces import access
from tests.factories import PersonFactory, ago, exchange

pytestmark = pytest.mark.django_db


@pytest.fixture
def unavailable_index(monkeypatch):
    """Make the vector store unavailable, so that only lexical search works."""

    def down(*args: object) -> None:
        raise VectorStoreUnavailableError

    monkeypatch.setattr(store, "query", down)


def texts_of(results):
    return [result.exchange.user_message for result in results]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The invoices were paid late.", "invoice payment paid"),
        ("Die Rechnungen sind bezahlt worden.", "Wann wurde die Rechnung bezahlt?"),
        ("Nous avons décidé de fermer les ateliers.", "Quel atelier avons-nous fermé ?"),
        ("Las reuniones empiezan a las nueve.", "¿A qué hora empieza la reunión?"),
        ("我们决定在东京开会。", "东京"),
        ("会議は京都で開きます。", "京都の会議"),
        ("서울에서 만나기로 했습니다.", "서울"),
        ("京 is the code name of the project.", "京"),
        ("Host kestrel-02 ran out of disk.", "What was wrong with kestrel-02?"),
        ("CAFÉ NAÏVE opens at nine.", "cafe naive"),
        ("Straße und Fußball", "STRASSE"),
        ("Ｆｕｌｌｗｉｄｔｈ letters", "fullwidth"),
    ],
)
def test_a_word_is_found_in_any_form_and_script(memory, person, unavailable_index, text, query):
    exchange(person, "Something else altogether was said here.")
    exchange(person, text)

    assert texts_of(memory.search(query, spaces=access.readable_space_ids(person.id)).results)[0] == text


def test_without_the_index_weak_term_matches_still_order_the_hits(memory, person, unavailable_index):
    exchange(
        person, "The heron hides in the reeds, where the old ferry used to land its passengers.", timestamp=ago(days=9)
    )
    exchange(person, "The ferry is late.", timestamp=ago(days=1))
    question = (
        "Which bird that likes quiet corners was seen beside the landing of the wooden ferry of our grandparents?"
    )

    assert "heron" in texts_of(memory.search(question, spaces=access.readable_space_ids(person.id)).results)[0]


@pytest.mark.parametrize("typed", ["kub", "kuber", "kubern", "kubernet", "kubernete", "kubernetes"])
def test_a_prefix_finds_a_word(memory, person, unavailable_index, typed):
    exchange(person, "Our Kubernetes cluster has three nodes.")
    exchange(person, "The garden has three trees.")

    assert texts_of(memory.search(typed, spaces=access.readable_space_ids(person.id)).results) == [
        "Our Kubernetes cluster has three nodes."
    ]


def test_an_exchange_is_found_by_its_date(memory, person, unavailable_index):
    from datetime import UTC, datetime

    exchange(person, "We met the architect.", timestamp=datetime(2026, 3, 7, 12, tzinfo=UTC))
    exchange(person, "We met the plumber.", timestamp=datetime(2026, 5, 9, 12, tzinfo=UTC))

    for query in ("Whom did we meet on 7 March 2026?", "Wen haben wir am 7. März getroffen?"):
        assert (
            texts_of(memory.search(query, spaces=access.readable_space_ids(person.id)).results)[0]
            == "We met the architect."
        )


def test_an_exchange_is_found_by_its_authors_name(memory, unavailable_index):
    from tests.factories import group

    petra, tom = PersonFactory(name="Petra Okafor"), PersonFactory(name="Tom Lind")
    shared = group("Workshop", petra, tom)
    exchange(petra, "The lathe needs oil.", space=shared)
    exchange(tom, "The lathe needs a belt.", space=shared)

    assert texts_of(
        memory.search("What did Petra say about the lathe?", spaces=access.readable_space_ids(tom.id)).results
    )[0] == ("The lathe needs oil.")


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"retrieval_strategy": "default"},
        {"retrieval_strategy": "dynamic"},
        {"similarity_threshold": 0.4},
        {"dynamic_threshold": True},
    ],
)
def test_without_the_index_every_strategy_recalls_lexically_whatever_the_threshold(
    memory, person, unavailable_index, settings, changed
):
    conf = settings.CATO.vector_store.model_copy(update=changed)
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
    exchange(person, "The boiler valve was replaced by Bergmann.")
    memory.index_pending()
    readable = access.readable_space_ids(person.id)

    found = memory.recall(["Who replaced the boiler valve?"], spaces=readable)

    assert (found.note, texts_of(found.results)) == ("words", ["The boiler valve was replaced by Bergmann."])
    assert memory.recall(["What is the capital of Mongolia?"], spaces=readable).results == ()


def test_words_are_found_from_the_commit_on_by_readers_only(memory, unavailable_index):
    alice, bob = PersonFactory(), PersonFactory()
    exchange(alice, "The safe combination is 4711.")

    assert texts_of(memory.search("safe combination", spaces=access.readable_space_ids(alice.id)).results)
    assert memory.search("safe combination", spaces=access.readable_space_ids(bob.id)).results == ()


def test_words_of_a_forgotten_exchange_are_removed_at_once(memory, person, unavailable_index):
    stored = exchange(person, "The safe combination is 4711.")

    memory.forget([stored.id], by=person.id)

    assert not LexicalEntry.objects.filter(exchange=stored).exists()
    assert memory.search("safe combination", spaces=access.readable_space_ids(person.id)).results == ()


def test_the_order_of_hits_is_the_same_on_every_database(memory, person, unavailable_index):
    """The expected order is fixed, so that SQLite and PostgreSQL must agree."""
    texts = [
        "The boiler in the basement was replaced by a heat pump.",
        "The boiler was inspected; the boiler man found nothing.",
        "Bergmann replaced the boiler valve in the basement in May.",
        "The basement was painted white.",
        "Heat the oven before the bread goes in.",
        "We never discussed pumps.",
    ]
    for text in texts:
        exchange(person, text, "")

    results = memory.search(
        "Who replaced the boiler valve in the basement?", spaces=access.readable_space_ids(person.id)
    ).results

    assert [texts.index(text) for text in texts_of(results)] == [2, 0, 1, 3]
    assert [round(result.score, 4) for result in results] == sorted(
        (round(result.score, 4) for result in results), reverse=True
    )


def test_rows_with_a_common_term_are_selected_by_their_rare_terms(memory, person, unavailable_index):
    for number in range(150):
        exchange(person, f"The meeting number {number} was short.", "")
    wanted = exchange(person, "The meeting about zinc was long.", "")

    results = memory.search("meeting about zinc", spaces=access.readable_space_ids(person.id), count=5).results

    assert results[0].exchange.id == wanted.id


@pytest.mark.skipif(connection.vendor == "sqlite", reason="only PostgreSQL can keep new rows outside its index")
def test_common_terms_are_not_searched_in_addition_to_the_index(person):
    exchange(person, "The heron stands in the reeds.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT gin_clean_pending_list('memory_terms_index'::regclass)")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize("max_candidates", [postings.MAX_PROPOSED, 20])
def test_a_term_that_others_use_far_more_often_is_found_in_readable_rows(
    memory, unavailable_index, monkeypatch, max_candidates
):
    """Also if more rows contain it than candidates are selected; the newest readable ones are needed."""
    monkeypatch.setattr(postings, "MAX_PROPOSED", max_candidates)
    quiet, loud = PersonFactory(), PersonFactory()
    readable = [exchange(quiet, f"My zinc roof has {number} leaks.", "") for number in range(2)]
    foreign = [exchange(loud, f"Zinc of lot {number} was sold.", "") for number in range(230)]

    found = memory.search("zinc", spaces=access.readable_space_ids(quiet.id)).results
    proposed_to_quiet = lexical_candidates(
        build_lexical_query("zinc", [readable[0].space_id]), [readable[0].space_id], 100
    )
    proposed_to_loud = lexical_candidates(
        build_lexical_query("zinc", [foreign[0].space_id]), [foreign[0].space_id], 100
    )

    assert {result.exchange.id for result in found} == {row.id for row in readable}
    assert proposed_to_quiet == [row.id.hex for row in reversed(readable)]
    newest = (
        LexicalEntry.objects.filter(exchange__in=foreign).order_by("-id").values_list("exchange_id", flat=True)[:100]
    )
    assert proposed_to_loud == [id.hex for id in newest]


def test_terms_of_unreadable_exchanges_change_nothing(memory, person, unavailable_index):
    """Prefixes and inflected words are searched as if other people's exchanges did not exist."""
    exchange(person, "The zarbellonics are red.", "")
    exchange(person, "Our brontov is blue.", "")
    readable = access.readable_space_ids(person.id)

    def found(text: str) -> set[uuid.UUID]:
        return {result.exchange.id for result in memory.search(text, spaces=readable).results}

    before = found("zarbell"), found("brontovish")
    assert all(len(ids) == 1 for ids in before)
    other = PersonFactory()
    exchange(other, "Some zarbell for me, and some brontovish, and brontovi.", "")

    assert (found("zarbell"), found("brontovish")) == before
    assert len(memory.search("zarbell", spaces=access.readable_space_ids(other.id)).results) == 1


def test_a_pasted_log_of_thousands_of_words_yields_a_query(memory, person, unavailable_index):
    exchange(person, "The turbine controller reported overtemperature.", "")
    log = " ".join(f"line{n} ok" for n in range(3000)) + " turbine controller overtemperature"

    assert texts_of(memory.search(log, spaces=access.readable_space_ids(person.id)).results) == [
        "The turbine controller reported overtemperature."
    ]


def test_statistics_follow_the_corpus(memory, person):
    statistics.refresh()
    before = statistics.documents
    exchange(person, "One more.")
    statistics.refresh()

    assert statistics.documents == before + 1


def test_the_formula_is_bm25():
    """Against values computed by hand: N 1000, n 10, tf 2, length 50 of a mean of 100, k1 .9, b .3."""
    import numpy as np

    weight = bm25.idf(1000, 10)
    query_term = bm25.QueryTerm("zinc", "zinc", weight)

    (share,) = bm25.normalised_scores([query_term], np.array([[2.0]]), np.array([50.0]), 100.0)

    assert weight == pytest.approx(4.5573, abs=1e-4)
    assert share == pytest.approx((2 / (2 + 0.765) + 1) / 2, abs=1e-6)


def test_repeated_words_count_and_parts_of_words_do_not():
    query_terms = [
        bm25.QueryTerm("zinc", "zinc", 1.0),
        bm25.QueryTerm("zin", "zin", 1.0),
        bm25.QueryTerm("zin", "zin", 1.0, is_prefix=True),
    ]

    counted = bm25.term_frequencies(query_terms, ["zinc zinc roof zincs", "roof", ""])

    assert counted.tolist() == [[2, 0, 3], [0, 0, 0], [0, 0, 0]]


def test_terms_of_a_text():
    assert analyse("Caroline's e-mail, 東京都!") == ["carolin", "s", "e", "mail", "東京", "京都"]
    assert query_terms("When did Caroline go to the bank?") == {"carolin": "Caroline", "go": "go", "bank": "bank"}
    assert query_terms("and what about it?") == {}


def terms_and_idf(*terms: str) -> list[bm25.QueryTerm]:
    return [bm25.QueryTerm(term, term, idf=1.0) for term in terms]


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("the key hangs behind the clock in the hall", 3 / 4),
        ("the key " + "and so on " * 10 + "the clock " + "and so on " * 10 + "the hall", 0.0),
        ("the key " + "and so on " * 10 + "the clock in the hall", 2 / 4),
        ("the key and the key and the key", 0.0),
        ("", 0.0),
    ],
)
def test_adjacent_terms_score_higher_than_scattered_ones(text, share):
    assert proximity(terms_and_idf("key", "clock", "hall", "cellar"), text.split(" ")) == pytest.approx(share)


def test_a_prefix_counts_for_proximity_like_the_word():
    query = [bm25.QueryTerm("kub", "kub", idf=1.0, is_prefix=True), bm25.QueryTerm("node", "nodes", idf=3.0)]

    assert proximity(query, ["our", "kubernet", "cluster", "has", "three", "node"]) == 1.0


def test_a_sentence_with_the_answer_ranks_above_scattered_terms(memory, person, unavailable_index):
    filling = "and then somebody told another long story about something else entirely "
    exchange(person, f"The kettle was old. {filling}. The valve arrived. {filling}. It leaked on Sunday.")
    exchange(person, f"{filling}. The valve of the kettle leaked. {filling}. {filling}. Nobody minded that.")

    assert (
        "valve of the kettle"
        in texts_of(memory.search("leaking valve kettle", spaces=access.readable_space_ids(person.id)).results)[0]
    )


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("How many trees did we plant?", "we planted twelve trees", "we planted the trees"),
        ("Wie oft gießen wir?", "wir gießen zweimal", "wir gießen gern"),
        ("And when was the valve changed?", "it was changed last Tuesday", "it was changed by Bergmann"),
        ("Quand a-t-on changé la vanne ?", "on l'a changée mardi", "on l'a changée enfin"),
        ("Why did the pump stop?", "it stopped because of the frost", "it stopped"),
        ("¿Por qué se paró la bomba?", "se paró a causa del hielo", "se paró"),
    ],
)
def test_a_question_prefers_texts_of_the_expected_answer_type(question, answer, other):
    kind = kind_asked(question)

    assert kind is not None
    assert says(kind, frozenset(analyse(answer)))
    assert not says(kind, frozenset(analyse(other)))


def test_most_questions_have_no_expected_answer_type():
    assert kind_asked("What does Anna think of the new valve?") is None


def test_informativeness_grows_with_distinct_terms_up_to_some_sentences():
    little, more = (amount(frozenset(analyse(text))) for text in ("Yes, of course!", "The valve leaks at the kettle."))
    long, longer = (amount(frozenset(f"word{n}" for n in range(count))) for count in (60, 6000))

    assert 0 < little < more < long == longer == 1


def test_quantities_rank_higher_for_how_many_questions(memory, unavailable_index):
    person = PersonFactory(name="Ada")
    exchange(person, "In the orchard we planted forty trees.", timestamp=ago(days=9))
    exchange(person, "In the orchard we planted apple trees.", timestamp=ago(days=1))

    readable = access.readable_space_ids(person.id)
    assert "forty" in texts_of(memory.search("How many trees did we plant in the orchard?", spaces=readable).results)[0]
