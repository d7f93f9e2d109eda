"""Retrieval quality on labelled questions: recall in the first five hits, and no recall for irrelevant messages."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from itertools import islice

import pytest

from memory import retrieval
from memory.errors import InvalidInputError
from memory.exchanges.feedback import set_feedback
from memory.filters import parse_filter
from memory.index import generations, store
from memory.index.vectors import Similarities, best_by_exchange
from memory.models import EmbeddingJob, Feedback
from memory.retrieval import candidates, strategies
from memory.retrieval.recall import RecallOptions, iter_recall
from memory.retrieval.search import rank
from memory.retrieval.types import Query, RankedHits
from memory.spaces import access
from tests.factories import PersonFactory, exchange
from tests.questions.follow_ups import CHANGES, FOLLOW_UPS
from tests.questions.no_recall import AFTER_TOPIC, SMALL_TALK, TASKS
from tests.questions.store import store_exchanges
from tests.questions.work import IN_OTHER_WORDS, NAMES_ONLY

pytestmark = pytest.mark.django_db

# The first _ENGLISH of IN_OTHER_WORDS ask in English about English exchanges, the last _ACROSS in English about others.
_ENGLISH, _ACROSS = 28, 10


@pytest.fixture
def work(memory, person):
    """Store the exchanges of a small company's assistant; return their keys by id."""
    return store_exchanges(person.id)


def test_the_expected_exchange_is_among_the_first_five(memory, person, work):
    readable = access.readable_space_ids(person.id)

    def share(pairs):
        found = [key in [work[r.exchange.id] for r in rank(q, spaces=readable, limit=5).results] for q, key in pairs]
        return sum(found) / len(found)

    assert share(NAMES_ONLY) == 1
    assert share(IN_OTHER_WORDS[:_ENGLISH]) >= 0.7
    # 19 or 20 of 22: vectors differ a little between processors, which moves one exchange from the fifth to the sixth rank.
    assert share(IN_OTHER_WORDS[_ENGLISH:-_ACROSS]) >= 0.86
    assert share(IN_OTHER_WORDS[-_ACROSS:]) >= 0.4


def test_most_paraphrased_questions_recall_and_tasks_recall_nothing(memory, person, work):
    readable = access.readable_space_ids(person.id)

    def recalled(message):
        return [work[r.exchange.id] for r in memory.recall([message], spaces=readable).results]

    recalled_flags = [key in recalled(question) for question, key in IN_OTHER_WORDS[:-_ACROSS]]
    assert sum(recalled_flags) >= 0.75 * len(recalled_flags)
    assert sum(recalled(task) == [] for task in TASKS) >= 0.9 * len(TASKS)


@pytest.mark.parametrize(
    ("question", "recalls_nothing"),
    [
        ("Where does Anna keep the spare key for the greenhouse?", False),
        ("Where does Mortimer Ashdown keep the spare key for Lake Quillan?", True),
        ("and when was that?", True),
    ],
)
def test_a_question_is_compared_with_the_names_it_contains(memory, person, question, recalls_nothing):
    exchange(person, "Anna keeps the spare key for the greenhouse behind the clock.")
    memory.index_pending()

    assert (memory.recall([question], spaces=access.readable_space_ids(person.id)).results == ()) is recalls_nothing


@pytest.mark.parametrize("mentions_by_others", [0, 400])
def test_an_unknown_name_has_the_same_weight_however_often_others_use_it(memory, person, mentions_by_others):
    exchange(person, "Anna keeps the spare key for the greenhouse behind the clock.")
    other = PersonFactory()
    for number in range(mentions_by_others):
        exchange(other, f"Mortimer Ashdown and Wilma Quillan walked, day {number}.")
    memory.index_pending(limit=1)
    questions = ("Where does Anna keep the key?", "Where do Mortimer Ashdown and Wilma Quillan keep the key?")

    known, unknown = (
        memory.recall([question], spaces=access.readable_space_ids(person.id)).results for question in questions
    )

    assert known
    assert unknown == ()


def test_in_a_small_store_irrelevant_exchanges_are_not_recalled_with_the_answer(memory, person):
    exchange(person, "The greenhouse key hangs behind the kitchen clock.")
    exchange(person, "Our buoy waits ten seconds before it dials again.")
    memory.index_pending()

    question = "Where did we put the thing that opens the greenhouse?"
    recalled = memory.recall([question], spaces=access.readable_space_ids(person.id)).results

    assert [result.exchange.user_message for result in recalled] == [
        "The greenhouse key hangs behind the kitchen clock."
    ]


def test_follow_ups_and_changes_of_subject_recall_their_exchanges_and_thanks_recall_nothing(memory, person, work):
    readable = access.readable_space_ids(person.id)

    def recalled(*messages):
        return [work[r.exchange.id] for r in memory.recall(messages, spaces=readable).results]

    follow_ups = [f.key in recalled(*f.before, f.asks) for f in FOLLOW_UPS]
    changes = [c.key in recalled(*c.before, c.asks) for c in CHANGES]
    thanks = [recalled(*a.before, a.message) == [] for a in AFTER_TOPIC]
    talk = [recalled(message) == [] for message in SMALL_TALK]

    assert sum(follow_ups) >= 36
    assert sum(changes) >= 36
    assert sum(thanks) >= 36
    assert sum(talk) >= 57


def test_excluded_exchanges_do_not_count_as_candidates_of_the_gate(memory, person, work):
    readable, message = access.readable_space_ids(person.id), "When do we have lunch together?"
    nearest_sixty = [result.exchange.id for result in rank(message, spaces=readable, limit=60).results]
    active = generations.active_generation()
    vector = generations.embedder_for(active).embed_query(message)

    pool = candidates.gather_candidates(
        Query(
            message, lambda: vector, active, readable, limit=5, now=datetime.now(UTC), exclude=frozenset(nearest_sixty)
        )
    )

    assert len(pool.similarities) >= 60
    assert {candidate.id for candidate in pool.candidates}.isdisjoint(id.hex for id in nearest_sixty)


def test_similarity_of_lexical_candidates_is_known_beyond_the_vector_candidates(memory, person, monkeypatch):
    """Otherwise it would count as the similarity of the last vector candidate."""
    monkeypatch.setattr(candidates, "VECTOR_CANDIDATES", 2)
    for number in range(8):
        exchange(person, f"Musicians gave a concert on day {number}.")
    dissimilar = exchange(person, "Ticket 48213: the radiator leaks, the caretaker drains it and orders a valve.")
    memory.index_pending()
    active, readable = generations.active_generation(), access.readable_space_ids(person.id)
    message = "Who plays an instrument, says 48213?"
    vector = generations.embedder_for(active).embed_query(message)

    pool = candidates.gather_candidates(
        Query(message, lambda: vector, active, readable, limit=1, now=datetime.now(UTC))
    )

    assert len(pool.candidates) == 3
    similarity = {c.id: c.similarity for c in pool.candidates}[dissimilar.id.hex]
    assert similarity == min(pool.similarities) < pool.similarities[1]


def test_an_exchange_is_as_similar_as_its_best_vector_and_a_second_one_adds_evidence(memory):
    one, other = uuid.uuid4(), uuid.uuid4()
    found = best_by_exchange(
        [(f"{one}:whole:1", 0.9), (f"{other}:part1:1", 0.8), (f"{one}:part2:1", 0.5), (f"{one}:part1:1", 0.4)]
    )

    assert found == {
        one.hex: Similarities(best=0.9, second=0.5, message=0.4),
        other.hex: Similarities(best=0.8, second=0.8, message=0.8),
    }


@pytest.mark.parametrize("name", ["default", "dynamic", "hybrid", "temporal", "diverse"])
def test_every_strategy_ranks_and_explains(memory, person, name):
    exchange(person, "The boiler was replaced with a heat pump by Bergmann.")
    exchange(person, "The garden shed has a new roof.")
    memory.index_pending()

    ranking = rank("Who replaced the boiler?", spaces=access.readable_space_ids(person.id), limit=2, strategy_name=name)

    first = ranking.results[0]
    assert first.exchange.user_message.startswith("The boiler")
    assert first.strategy == name
    assert first.ranks["meaning"] == 1
    assert first.explanation
    assert not ranking.is_lexical_only


@pytest.mark.parametrize("max_exact", [200, 0])
def test_matches_of_a_selective_filter_are_ranked_by_exact_similarity(memory, person, monkeypatch, max_exact):
    """At most MAX_EXACT matches are compared exactly; for more, the vector store applies the filter."""
    monkeypatch.setattr(candidates, "MAX_EXACT", max_exact)
    stranger = PersonFactory()
    for number in range(30):
        exchange(person, f"Boiler {number} was replaced.", metadata={"shelf": number, "even": number % 2 == 0})
    exchange(stranger, "Boiler 4 was replaced by Bob.", metadata={"shelf": 4, "even": True})
    memory.index_pending()
    query = {"text": "Who replaced the boiler?", "spaces": access.readable_space_ids(person.id), "count": 30}
    similarities = {r.exchange.user_message: r.similarity for r in memory.search(**query).results}
    store_filters = []
    monkeypatch.setattr(store, "query", lambda *args, query=store.query: store_filters.append(args[3]) or query(*args))

    found = memory.search(**query, filters=parse_filter({"shelf": {"$in": [3, 4, 5, 6]}, "even": True})).results

    texts = {f"Boiler {number} was replaced." for number in (4, 6)}
    assert {r.exchange.user_message for r in found} == texts
    for result in found:
        assert result.similarity == pytest.approx(similarities[result.exchange.user_message], abs=1e-5)
    assert any("metadata.shelf" in str(where) for where in store_filters) == (max_exact == 0)


def test_an_unknown_strategy_is_refused_with_the_known_ones(memory, person):
    with pytest.raises(InvalidInputError, match="default, dynamic, hybrid, temporal, diverse"):
        rank("boiler", spaces=access.readable_space_ids(person.id), limit=2, strategy_name="magic")


def test_with_a_missing_strategy_an_answer_gets_no_context(memory, person, settings):
    conf = settings.CATO.vector_store.model_copy(update={"retrieval_strategy": "magic"})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})

    found = memory.recall(["What about the boiler?"], spaces=access.readable_space_ids(person.id))

    assert (found.results, found.note) == ((), "failed")


@pytest.fixture
def install_plug_ins(monkeypatch):
    """Return a function that installs strategies as entry points."""

    class FakeEntryPoint:
        def __init__(self, name, load):
            self.name, self.value, self.load = name, f"plugged:{name}", load

    def install(**loaders):
        found = [FakeEntryPoint(name, load) for name, load in loaders.items()]
        monkeypatch.setattr(retrieval, "entry_points", lambda group: found if group == retrieval.ENTRY_POINTS else [])

    retrieval._entry_points.cache_clear()
    yield install
    retrieval._entry_points.cache_clear()
    retrieval._load.cache_clear()


def newest(query: Query) -> RankedHits:
    return RankedHits([])


def test_a_package_can_add_a_strategy(install_plug_ins):
    install_plug_ins(newest=lambda: newest)

    assert retrieval.get_strategy("newest") is newest
    assert retrieval.strategy_names()[-1] == "newest"


def test_a_strategy_that_cannot_be_loaded_breaks_no_other(install_plug_ins):
    def fail():
        raise ImportError("no module named oldest")

    install_plug_ins(newest=lambda: newest, oldest=fail)

    assert retrieval.strategy_names()[-2:] == ["newest", "oldest"]
    assert retrieval.get_strategy("newest") is newest
    with pytest.raises(InvalidInputError, match=r"oldest \(plugged:oldest\) cannot be loaded: ImportError"):
        retrieval.get_strategy("oldest")


def test_temporal_prefers_recent_exchanges_only_if_requested(memory, person):
    old = exchange(person, "The rota is kept by Gethin.", timestamp=datetime(2026, 1, 5, tzinfo=UTC))
    new = exchange(person, "The rota is kept by Maryam now.", timestamp=datetime(2026, 6, 5, tzinfo=UTC))
    memory.index_pending()
    options = {"spaces": access.readable_space_ids(person.id), "limit": 2, "now": datetime(2026, 6, 8, tzinfo=UTC)}

    latest = rank("Who keeps the rota currently?", strategy_name="temporal", **options).results
    dated = rank("When did Gethin keep the rota?", strategy_name="temporal", **options).results

    assert latest[0].exchange.id == new.id
    assert dated[0].exchange.id == old.id


def test_a_named_date_boosts_exchanges_of_that_time(memory, person):
    for month in (3, 4, 5):
        exchange(
            person, "We went through the budget.", f"Month {month}.", timestamp=datetime(2026, month, 14, tzinfo=UTC)
        )
    memory.index_pending()
    options = {"spaces": access.readable_space_ids(person.id), "limit": 3, "now": datetime(2026, 9, 1, tzinfo=UTC)}

    for question in ("What about the budget in April?", "Was war mit dem Budget im April?"):
        first = rank(question, **options).results[0]
        assert first.exchange.timestamp.month == 4
        assert "From the date mentioned" in first.explanation


def test_an_exchange_forgotten_during_ranking_is_replaced_by_the_next(memory, person, monkeypatch):
    forgotten = exchange(person, "The boiler was replaced with a heat pump by Bergmann.")
    exchange(person, "The boiler in the annex was replaced in May.")
    memory.index_pending()
    fuse = strategies.fuse

    def forget_and_fuse(*arguments, **options):
        memory.forget([forgotten.id], by=person.id)
        return fuse(*arguments, **options)

    monkeypatch.setattr(strategies, "fuse", forget_and_fuse)
    found = memory.search(
        "Who of Bergmann's replaced the boiler?", spaces=access.readable_space_ids(person.id), count=1
    ).results

    assert [result.exchange.user_message for result in found] == ["The boiler in the annex was replaced in May."]


def test_duplicates_are_recalled_once(memory, person):
    for _ in range(4):
        exchange(person, "The alarm code of the workshop is 7781.", "Noted.")
    exchange(person, "The alarm in the workshop was tested.", "Good.")
    memory.index_pending()

    texts = [
        r.exchange.user_message
        for r in memory.search("alarm workshop", spaces=access.readable_space_ids(person.id)).results
    ]

    assert sorted(texts) == ["The alarm code of the workshop is 7781.", "The alarm in the workshop was tested."]


def test_an_interrupted_recall_returns_the_first_hits_of_the_full_one(memory, person, work):
    readable = access.readable_space_ids(person.id)
    question = [FOLLOW_UPS[0].in_full]

    all_hits = memory.recall(question, spaces=readable).results

    assert [r.exchange.id for r in iter_recall(question, RecallOptions(spaces=readable))] == [
        r.exchange.id for r in all_hits
    ]
    assert [r.exchange.id for r in islice(iter_recall(question, RecallOptions(spaces=readable)), 1)] == [
        all_hits[0].exchange.id
    ]


def test_an_exchange_marked_not_relevant_is_not_recalled_for_that_person_only(memory, person):
    from tests.factories import PersonFactory, group

    stranger = PersonFactory()
    shared = group("Workshop", person, stranger)
    stored = exchange(person, "The boiler was replaced with a heat pump.", space=shared)
    memory.index_pending()
    set_feedback(person.id, stored, Feedback.Kind.IRRELEVANT)
    question, readable = ["What about the boiler?"], access.readable_space_ids(stranger.id)

    assert memory.recall(question, spaces=readable, person_id=person.id).results == ()
    assert memory.recall(question, spaces=readable, person_id=stranger.id).results
    set_feedback(person.id, stored, "")
    assert memory.recall(question, spaces=readable, person_id=person.id).results


def test_prompt_context_topics_and_related_threads(memory, person):
    readable = access.readable_space_ids(person.id)
    first, second, third = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
    exchange(person, "The boiler was replaced with a heat pump.", thread_id=first, session_id=first)
    exchange(person, "The heat pump of the boiler room is loud.", thread_id=second, session_id=second)
    exchange(person, "My grandmother was born in Trieste.", thread_id=third, session_id=third)
    memory.index_pending()

    assert "heat pump" in memory.get_relevant_context("What about the boiler?", spaces=readable, max_tokens=300)
    assert memory.get_relevant_context("What about the boiler?", spaces=frozenset(), max_tokens=300) == ""
    assert {
        r.exchange.thread_id for r in memory.search_by_topic("boiler", spaces=readable, thread_id=first).results
    } == {first}
    assert next(t.thread_id for t in memory.related_threads(first, spaces=readable)) == second
    assert memory.related_threads(first, spaces=frozenset()) == []
    with pytest.raises(InvalidInputError, match="thread or session"):
        memory.search_by_topic("boiler", spaces=readable)


def test_forgetting_an_exchange_also_removes_its_text_from_the_vectors_of_its_follower(memory, person):
    """A follower is embedded with the end of its predecessor, so it is embedded again without it."""
    session = uuid.uuid4()
    before = exchange(person, "The secret is zebra.", thread_id=session, session_id=session)
    after = exchange(person, "Good to know.", thread_id=session, session_id=session)
    memory.index_pending()
    version, digest = after.version, after.content_hash

    memory.forget([before.id], by=person.id)

    after.refresh_from_db()
    assert (after.version, after.content_hash != digest) == (version + 1, True)
    assert memory.memory_states([after.id]) == {after.id: "remembering"}
    memory.index_pending()
    assert memory.memory_states([after.id]) == {after.id: "remembered"}


def test_a_configured_cross_encoder_reranks(memory, person, settings, monkeypatch, tmp_path):
    from memory.retrieval import rerank

    conf = settings.CATO.vector_store.model_copy(update={"reranker": tmp_path})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
    for text in ("The boiler was replaced.", "The boiler is blue."):
        exchange(person, text, "")
    memory.index_pending()
    readable = access.readable_space_ids(person.id)

    with pytest.raises(InvalidInputError, match=r"should hold tokenizer\.json and model\.onnx"):
        memory.search("boiler replaced", spaces=readable)
    monkeypatch.setattr(
        rerank, "cross_encoder_scores", lambda folder, text, passages: [float("blue" in p) for p in passages]
    )
    found = memory.search("boiler replaced", spaces=readable).results

    assert [r.exchange.user_message for r in found] == ["The boiler is blue.", "The boiler was replaced."]
    assert found[0].score == 1.0


@pytest.mark.parametrize("question", ["axolotl Thursday 340 euros", "axolotl", "zeppelin axolotl gazebo"])
def test_a_rare_word_that_occurs_decides_even_if_the_others_are_unknown(memory, person, work, question):
    stored = exchange(person, "The axolotl in the reception eats once a day, Ottoline feeds it.")
    memory.index_pending()
    readable = access.readable_space_ids(person.id)

    assert rank(question, spaces=readable, limit=5).results[0].exchange.id == stored.id
    assert memory.recall([question], spaces=readable).results[0].exchange.id == stored.id


@pytest.mark.parametrize("word", ["zeppelin", "thanks", "garden", "meeting", "danke", "merci"])
def test_one_word_that_is_common_or_unknown_recalls_nothing(memory, person, work, word):
    exchange(person, "The axolotl in the reception eats once a day, thanks to Ottoline. Danke! Merci!")
    memory.index_pending()

    assert memory.recall([word], spaces=access.readable_space_ids(person.id)).results == ()


def test_results_far_below_the_best_are_not_recalled(memory, person, work):
    readable = access.readable_space_ids(person.id)
    recalled = [[work[r.exchange.id] for r in memory.recall([q], spaces=readable).results] for q, _key in NAMES_ONLY]

    assert sum(key in keys for (_q, key), keys in zip(NAMES_ONLY, recalled, strict=True)) >= len(NAMES_ONLY) - 1
    assert sum(map(len, recalled)) <= 4 * len(NAMES_ONLY)


def test_a_long_exchange_is_compared_mainly_by_its_message(memory, person):
    page = "The choir meets in the old school. Chairs, lamps and the coffee machine are in the cellar. " * 15
    paragraph = "Calibrate the tide gauge against the brass mark at slack water, twice, and note the offset. "
    asked = exchange(person, "How do we keep the water level readings honest?", page + paragraph + page + page)
    mentioned = exchange(person, "Plan the evening of the choir, please.", page + page + paragraph * 3 + page)
    memory.index_pending()

    found = rank("How is the tide gauge calibrated?", spaces=access.readable_space_ids(person.id), limit=2).results

    assert EmbeddingJob.objects.get(exchange=mentioned).parts >= 4
    assert [hit.exchange.id for hit in found] == [asked.id, mentioned.id]
