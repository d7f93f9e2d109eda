"""Messages that ask what happened in a period recall what was remembered in it, by date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.utils import timezone

from chat.answers.recall import recall_for_turn
from chat.models import Turn
from memory.embeddings.local import LocalEmbedder
from memory.retrieval import probes, what_happened
from memory.retrieval.periods import named_period
from memory.retrieval.tuning.probe_fitting import load_examples
from memory.spaces import access
from tests.factories import PersonFactory, ago, answer_job, document, exchange, group, statement, thread, turn
from tests.questions import no_recall, work
from tests.test_probes import HELD_OUT, NEW_LANGUAGES

NOW = datetime(2026, 9, 16, 12, tzinfo=UTC)  # a Wednesday


# The period


def day(number: int, month: int = 9) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


PERIODS = {
    (day(15), day(16)): "What happened yesterday?, was war gestern los, 昨日は何がありましたか",
    (
        day(15),
        NOW,
    ): "What happened since yesterday?, Was ist seit gestern passiert?, Que s'est-il passé depuis hier soir ?, "
    "¿Qué ha pasado desde ayer?, Che cosa è successo da ieri?, Wat is er sinds gisteren gebeurd?, "
    "Co się wydarzyło od wczoraj?, 从昨天开始发生了什么",
    (day(16), NOW): "What's new today?, Was gibt es heute Neues?, 今天有什么新消息, что нового сегодня",
    (
        day(14),
        NOW,
    ): "what did we do this week, was war diese Woche, cette semaine, questa settimana, на этой неделе, 这周, "
    "since Monday, seit Montag, depuis lundi, 从星期一, 月曜日から",
    (day(7), day(14)): "what did we discuss last week, letzte Woche, la semaine dernière, la semana pasada, 上周, 先週",
    (day(13), NOW): "the last three days, der letzten drei Tage, les trois derniers jours, los últimos tres días, "
    "ultimi tre giorni, последние три дня, 最近三天",
    (day(1), NOW): "this month, dieses Monats, ce mois, este mes, 这个月",
    (day(1, 8), day(1)): "what was decided last month, letzten Monat, le mois dernier, 上个月",
    (day(11), day(12)): "on Friday, am Freitag, vendredi, el viernes, venerdì, в пятницу, 星期五",
    (day(1, 5), day(1, 6)): "in May, im Mai 2026",
}


@pytest.mark.parametrize(
    ("text", "period"), [(t, period) for period, texts in PERIODS.items() for t in texts.split(", ")]
)
def test_a_period_has_exact_borders(text, period):
    found = named_period(text, NOW)
    assert found is not None
    assert (found.start, found.end) == period


@pytest.mark.parametrize("text", ["what did I miss", "was habe ich verpasst", "我错过了什么"])
def test_without_a_named_period_it_is_the_time_since_the_last_visit(text):
    visit = NOW - timedelta(days=3)
    assert named_period(text, NOW) is None
    assert what_happened.period_asked(text, NOW, lambda: visit).start == visit
    assert what_happened.period_asked(text, NOW, lambda: None).start == NOW - timedelta(days=7)


# What asks for it


@pytest.fixture(scope="module")
def is_asked():
    embedder = LocalEmbedder(probes.SHIPPED_MODEL)

    def read(texts) -> np.ndarray:
        vectors = embedder.embed_queries(texts)
        return np.array(
            [what_happened.is_asked(probes.read_traits(vector, "local", probes.SHIPPED_MODEL)) for vector in vectors]
        )

    return read


def test_held_out_messages_are_told_apart(is_asked):
    rows = load_examples("what_happened", HELD_OUT)
    found, has_trait = is_asked(rows.texts), np.array(rows.labels) == 1
    is_new = np.isin(rows.languages, NEW_LANGUAGES)
    assert found[has_trait].mean() >= 0.75
    assert found[has_trait & is_new].mean() >= 0.8
    assert not found[~has_trait].any()


def test_other_messages_are_hardly_ever_taken_for_it(is_asked):
    questions = [question for pairs in (work.IN_OTHER_WORDS, work.NAMES_ONLY) for question, _key in pairs]
    texts = [*no_recall.SMALL_TALK, *no_recall.TASKS, *no_recall.NEAR_MISSES, *questions]
    assert is_asked(texts).mean() <= 0.01


# What is recalled


@pytest.fixture
def ada(db):
    return PersonFactory(name="Ada")


def results(person, question: str, **fields):
    asked = turn(thread(person, **fields), question, answer="", state=Turn.State.RECALLING)
    return recall_for_turn(answer_job(asked)).search_results


def messages(found) -> list[str]:
    return [hit.exchange.user_message for hit in found.results]


def test_what_was_remembered_in_the_period_is_listed_in_its_order(ada, memory):
    for text, days in {"The boat is red": 3, "The harbour opens in May": 2, "We bought a new anchor": 9}.items():
        said = exchange(ada, text, timestamp=ago(days=days))
        statement(said, text=f"So: {text}")
    document(ada, "plan.txt", "\n\n".join(f"Paragraph {n}. " + "Rope and wire. " * 60 for n in range(4)))
    memory.index_pending()
    found = results(ada, "What happened in the last five days?")
    assert found.note == "date"
    assert messages(found)[:2] == ["The boat is red", "The harbour opens in May"]
    assert [text.startswith("Paragraph 0.") for text in messages(found)[2:]] == [True]
    assert all(hit.similarity is None and hit.explanation for hit in found.results)


def test_only_what_all_readers_of_the_thread_may_read_is_listed(ada, memory):
    bob = PersonFactory(name="Bob")
    crew = group("Crew", ada, bob)
    exchange(ada, "A secret of Ada", timestamp=ago(hours=1))
    exchange(bob, "A secret of Bob", timestamp=ago(hours=1))
    exchange(bob, "For the crew", space=crew, timestamp=ago(hours=1))
    exchange(bob, "For everyone", space=access.team_space(), timestamp=ago(hours=1))
    memory.index_pending()
    assert set(messages(results(ada, "Was ist seit gestern passiert?", space=crew))) == {"For the crew", "For everyone"}
    assert set(messages(results(ada, "Was ist seit gestern passiert?"))) == {
        "A secret of Ada", "For the crew", "For everyone",
    }  # fmt: skip


def test_nothing_in_the_period_is_said(ada, memory):
    exchange(ada, "The boat is red", timestamp=ago(days=30))
    memory.index_pending()
    found = results(ada, "What happened since yesterday?")
    assert (found.results, found.note) == ((), "nothing")


def test_the_time_away_begins_with_the_last_message_some_hours_ago(ada, memory):
    exchange(ada, "Before the holiday", timestamp=ago(days=12))
    exchange(ada, "During the holiday", timestamp=ago(days=3))
    memory.index_pending()
    for hours in (1, 24 * 10):
        written = turn(thread(ada), "Hello")
        Turn.objects.filter(id=written.id).update(created_at=timezone.now() - timedelta(hours=hours))
    assert messages(results(ada, "Anything new since I was away?")) == ["During the holiday"]


def test_a_question_with_a_subject_is_searched_by_meaning(ada, memory):
    exchange(ada, "The red van broke down at the bridge", timestamp=ago(hours=20))
    exchange(ada, "The harbour opens in May", timestamp=ago(hours=20))
    memory.index_pending()
    found = results(ada, "What happened to the red van yesterday?")
    assert messages(found) == ["The red van broke down at the bridge"]
    assert found.note == ""
