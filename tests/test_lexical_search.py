"""What is found by its words: any form of them, any script, the same on every database, and without the index."""

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
from memory.retrieval.fusion import together
from memory.spaces import access
from tests.factories import PersonFactory, ago, exchange

pytestmark = pytest.mark.django_db


@pytest.fixture
def no_index(monkeypatch):
    """An index that does not answer, so that words alone find."""

    def down(*args: object) -> None:
        raise VectorStoreUnavailableError

    monkeypatch.setattr(store, "query", down)


def said(results):
    return [result.exchange.user_message for result in results]


@pytest.mark.parametrize(
    ("text", "asked"),
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
def test_a_word_is_found_in_any_form_and_script(memory, person, no_index, text, asked):
    exchange(person, "Something else altogether was said here.")
    exchange(person, text)

    assert said(memory.search(asked, spaces=access.readable_space_ids(person.id)).results)[0] == text


def test_without_the_index_the_little_that_words_say_still_orders_what_is_found(memory, person, no_index):
    exchange(
        person, "The heron hides in the reeds, where the old ferry used to land its passengers.", timestamp=ago(days=9)
    )
    exchange(person, "The ferry is late.", timestamp=ago(days=1))
    question = (
        "Which bird that likes quiet corners was seen beside the landing of the wooden ferry of our grandparents?"
    )

    assert "heron" in said(memory.search(question, spaces=access.readable_space_ids(person.id)).results)[0]


@pytest.mark.parametrize("typed", ["kub", "kuber", "kubern", "kubernet", "kubernete", "kubernetes"])
def test_the_beginning_of_a_word_finds_it(memory, person, no_index, typed):
    exchange(person, "Our Kubernetes cluster has three nodes.")
    exchange(person, "The garden has three trees.")

    assert said(memory.search(typed, spaces=access.readable_space_ids(person.id)).results) == [
        "Our Kubernetes cluster has three nodes."
    ]


def test_the_day_something_was_said_is_found_by_its_words(memory, person, no_index):
    from datetime import UTC, datetime

    exchange(person, "We met the architect.", timestamp=datetime(2026, 3, 7, 12, tzinfo=UTC))
    exchange(person, "We met the plumber.", timestamp=datetime(2026, 5, 9, 12, tzinfo=UTC))

    for asked in ("Whom did we meet on 7 March 2026?", "Wen haben wir am 7. März getroffen?"):
        assert (
            said(memory.search(asked, spaces=access.readable_space_ids(person.id)).results)[0]
            == "We met the architect."
        )


def test_who_said_it_is_found_by_their_name(memory, no_index):
    from tests.factories import group

    petra, tom = PersonFactory(name="Petra Okafor"), PersonFactory(name="Tom Lind")
    shared = group("Workshop", petra, tom)
    exchange(petra, "The lathe needs oil.", space=shared)
    exchange(tom, "The lathe needs a belt.", space=shared)

    assert said(memory.search("What did Petra say about the lathe?", spaces=access.readable_space_ids(tom.id)).results)[
        0
    ] == ("The lathe needs oil.")


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
def test_without_the_index_words_are_recalled_whatever_the_strategy_and_threshold(
    memory, person, no_index, settings, changed
):
    conf = settings.CATO.vector_store.model_copy(update=changed)
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
    exchange(person, "The boiler valve was replaced by Bergmann.")
    memory.index_pending()
    readable = access.readable_space_ids(person.id)

    found = memory.recall(["Who replaced the boiler valve?"], spaces=readable)

    assert (found.note, said(found.results)) == ("words", ["The boiler valve was replaced by Bergmann."])
    assert memory.recall(["What is the capital of Mongolia?"], spaces=readable).results == ()


def test_words_are_found_from_the_commit_on_and_only_by_who_may_read_them(memory, no_index):
    alice, bob = PersonFactory(), PersonFactory()
    exchange(alice, "The safe combination is 4711.")

    assert said(memory.search("safe combination", spaces=access.readable_space_ids(alice.id)).results)
    assert memory.search("safe combination", spaces=access.readable_space_ids(bob.id)).results == ()


def test_forgotten_words_are_gone_at_once(memory, person, no_index):
    kept = exchange(person, "The safe combination is 4711.")

    memory.forget([kept.id], by=person.id)

    assert not LexicalEntry.objects.filter(exchange=kept).exists()
    assert memory.search("safe combination", spaces=access.readable_space_ids(person.id)).results == ()


def test_the_order_of_results_is_the_same_on_every_database(memory, person, no_index):
    """The expected order stands here, so that SQLite and PostgreSQL are held against the same."""
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

    assert [texts.index(text) for text in said(results)] == [2, 0, 1, 3]
    assert [round(result.score, 4) for result in results] == sorted(
        (round(result.score, 4) for result in results), reverse=True
    )


def test_many_rows_that_hold_a_common_word_are_proposed_by_their_rare_ones(memory, person, no_index):
    for number in range(150):
        exchange(person, f"The meeting number {number} was short.", "")
    wanted = exchange(person, "The meeting about zinc was long.", "")

    results = memory.search("meeting about zinc", spaces=access.readable_space_ids(person.id), count=5).results

    assert results[0].exchange.id == wanted.id


@pytest.mark.skipif(connection.vendor == "sqlite", reason="PostgreSQL alone can keep what is new beside an index")
def test_no_term_waits_beside_the_index_where_every_question_would_read_it(person):
    exchange(person, "The heron stands in the reeds.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT gin_clean_pending_list('memory_terms_index'::regclass)")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize("most_proposed", [postings.MOST_PROPOSED, 20])
def test_a_word_that_others_said_much_more_often_is_found_where_it_may_be_read(
    memory, no_index, monkeypatch, most_proposed
):
    """Also where more rows hold it than are proposed, of which the newest that may be read are wanted."""
    monkeypatch.setattr(postings, "MOST_PROPOSED", most_proposed)
    quiet, loud = PersonFactory(), PersonFactory()
    mine = [exchange(quiet, f"My zinc roof has {number} leaks.", "") for number in range(2)]
    others = [exchange(loud, f"Zinc of lot {number} was sold.", "") for number in range(230)]

    found = memory.search("zinc", spaces=access.readable_space_ids(quiet.id)).results
    proposed_to_quiet = lexical_candidates(build_lexical_query("zinc", [mine[0].space_id]), [mine[0].space_id], 100)
    proposed_to_loud = lexical_candidates(build_lexical_query("zinc", [others[0].space_id]), [others[0].space_id], 100)

    assert {result.exchange.id for result in found} == {row.id for row in mine}
    assert proposed_to_quiet == [row.id.hex for row in reversed(mine)]
    newest = (
        LexicalEntry.objects.filter(exchange__in=others).order_by("-id").values_list("exchange_id", flat=True)[:100]
    )
    assert proposed_to_loud == [id.hex for id in newest]


def test_a_word_that_others_keep_for_themselves_changes_nothing_that_one_finds(memory, person, no_index):
    """A beginning of words, and one with an ending, are looked for as if the others had said nothing."""
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


def test_a_pasted_log_of_thousands_of_words_still_asks_for_something(memory, person, no_index):
    exchange(person, "The turbine controller reported overtemperature.", "")
    log = " ".join(f"line{n} ok" for n in range(3000)) + " turbine controller overtemperature"

    assert said(memory.search(log, spaces=access.readable_space_ids(person.id)).results) == [
        "The turbine controller reported overtemperature."
    ]


def test_statistics_follow_the_corpus(memory, person):
    statistics.refresh()
    before = statistics.documents
    exchange(person, "One more.")
    statistics.refresh()

    assert statistics.documents == before + 1


def test_the_formula_is_bm25():
    """Against numbers worked out by hand: N 1000, n 10, tf 2, length 50 of a mean of 100, k1 .9, b .3."""
    import numpy as np

    weight = bm25.idf(1000, 10)
    ask = bm25.QueryTerm("zinc", "zinc", weight)

    (share,) = bm25.normalised_scores([ask], np.array([[2.0]]), np.array([50.0]), 100.0)

    assert weight == pytest.approx(4.5573, abs=1e-4)
    assert share == pytest.approx((2 / (2 + 0.765) + 1) / 2, abs=1e-6)


def test_a_word_said_twice_in_a_row_counts_twice_and_no_part_of_a_word_does():
    asks = [
        bm25.QueryTerm("zinc", "zinc", 1.0),
        bm25.QueryTerm("zin", "zin", 1.0),
        bm25.QueryTerm("zin", "zin", 1.0, is_prefix=True),
    ]

    counted = bm25.frequencies(asks, ["zinc zinc roof zincs", "roof", ""])

    assert counted.tolist() == [[2, 0, 3], [0, 0, 0], [0, 0, 0]]


def test_terms_of_a_text():
    assert analyse("Caroline's e-mail, 東京都!") == ["carolin", "s", "e", "mail", "東京", "京都"]
    assert query_terms("When did Caroline go to the bank?") == {"carolin": "Caroline", "go": "go", "bank": "bank"}
    assert query_terms("and what about it?") == {}


def asked_for(*terms: str) -> list[bm25.QueryTerm]:
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
def test_words_that_stand_together_say_more_than_scattered_ones(text, share):
    assert together(asked_for("key", "clock", "hall", "cellar"), text.split(" ")) == pytest.approx(share)


def test_the_beginning_of_a_word_stands_together_with_another_as_the_word_does():
    asked = [bm25.QueryTerm("kub", "kub", idf=1.0, is_prefix=True), bm25.QueryTerm("node", "nodes", idf=3.0)]

    assert together(asked, ["our", "kubernet", "cluster", "has", "three", "node"]) == 1.0


def test_a_sentence_that_says_it_is_found_before_a_text_that_holds_its_words_here_and_there(memory, person, no_index):
    filling = "and then somebody told another long story about something else entirely "
    exchange(person, f"The kettle was old. {filling}. The valve arrived. {filling}. It leaked on Sunday.")
    exchange(person, f"{filling}. The valve of the kettle leaked. {filling}. {filling}. Nobody minded that.")

    assert (
        "valve of the kettle"
        in said(memory.search("leaking valve kettle", spaces=access.readable_space_ids(person.id)).results)[0]
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
def test_a_question_of_a_kind_is_answered_by_what_says_something_of_that_kind(question, answer, other):
    kind = kind_asked(question)

    assert kind is not None
    assert says(kind, frozenset(analyse(answer)))
    assert not says(kind, frozenset(analyse(other)))


def test_most_questions_ask_for_nothing_of_a_kind():
    assert kind_asked("What does Anna think of the new valve?") is None


def test_a_text_says_more_the_more_different_words_it_has_up_to_some_sentences():
    little, more = (amount(frozenset(analyse(text))) for text in ("Yes, of course!", "The valve leaks at the kettle."))
    long, longer = (amount(frozenset(f"word{n}" for n in range(count))) for count in (60, 6000))

    assert 0 < little < more < long == longer == 1


def test_what_says_how_many_is_found_before_what_does_not(memory, no_index):
    person = PersonFactory(name="Ada")
    exchange(person, "In the orchard we planted forty trees.", timestamp=ago(days=9))
    exchange(person, "In the orchard we planted apple trees.", timestamp=ago(days=1))

    readable = access.readable_space_ids(person.id)
    assert "forty" in said(memory.search("How many trees did we plant in the orchard?", spaces=readable).results)[0]
