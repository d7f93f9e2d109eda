"""The question sets keep their promises: sizes, existing keys, and shared words only where allowed."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from itertools import groupby

import pytest

from tests.questions import english_spring, english_summer, english_winter, french, german, spanish
from tests.questions.exchange import LabelledExchange
from tests.questions.follow_ups import CHANGES, FOLLOW_UPS, Change, FollowUp
from tests.questions.no_recall import AFTER_TOPIC, NEAR_MISSES, SMALL_TALK, TASKS, Closing
from tests.questions.work import EXCHANGES, IN_OTHER_WORDS, NAMES_ONLY

# Words of at least four letters without a topic, in four languages.
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        about after also again been before being both could does doing down during each else even ever every from have
        having here hers herself himself into just like many more most much must only other ours over same shall
        should since some such than that their theirs them then there these they this those though through till under
        until very were what when where whether which while whom whose will with without would your yours
        aber alle allem allen aller alles also auch beim bevor dabei dafür damit dann darf daran darauf daraus darum
        dass davon dazu dein deine denen denn deren derer deshalb diese diesem diesen dieser dieses doch dort durch
        eine einem einen einer eines euch euer etwa etwas ganz gegen habe haben hast hatte hatten hier ihnen ihre
        ihrem ihren ihrer immer jede jedem jeden jeder jedes jetzt kann kein keine keinen können mehr mein meine
        meinem meinen meiner mich müssen nach nicht nichts noch oder ohne schon sehr sein seine seinem seinen seiner
        seit sich sind soll sollen sonst über unser unsere unserem unseren unserer unter viel viele vielen wann warum
        weil welche welchem welchen welcher welches wenn werden wessen weshalb wieder will wird wollen womit worum
        wozu wofür woran wurde wurden zwischen
        ainsi alors après aussi autre avant avec avoir avons avez beaucoup cela celle celui cette ceux chaque chez
        comme comment dans depuis deux dont donc elle elles encore entre être était étaient faire fait faut jusqu leur
        leurs lors mais même moins nôtre notre nous parce pendant peut plus pour pourquoi quand quel quelle quelles
        quels quoi sans sera seront sont sous suis sommes tous tout toute toutes très votre vous
        ahora algo algún antes aquí aunque cada casi como cómo contra cual cuál cuáles cuando cuándo cuánta cuánto
        cuántas cuántos desde donde dónde durante ella ellas ellos entre eran esta está están este esto estos había
        hacer hace hacia hasta mientras mucho muchos nada nosotros nuestra nuestras nuestro nuestros nunca otra otro
        otros para pero porque puede quien quién quiénes según sido siempre sobre solo somos tanto también tener tiene
        tenemos tienen toda todas todo todos unos unas vamos
        """,
    )
)

BY_KEY = {row.key: row for row in EXCHANGES}
ENGLISH = frozenset(row.key for part in (english_winter, english_spring, english_summer) for row in part.EXCHANGES)


def words(text: str) -> set[str]:
    """Return the content words of `text`: at least four letters or digits, no stop words."""
    return {word for word in re.findall(r"[^\W_]{4,}", text.casefold()) if word not in STOP_WORDS}


def stems(text: str) -> set[str]:
    """Return the content words of `text`, cut to their first five letters."""
    return {word[:5] for word in words(text)}


def both_sides(row: LabelledExchange) -> str:
    """Return message and answer of an exchange."""
    return f"{row.user} {row.assistant}"


def looks_like_a_name(token: str) -> bool:
    """Return whether a word is a name or an identifier: a capital, a digit, or a host name."""
    return token[0].isupper() or any(map(str.isdigit, token)) or token in {"heron", "puffin"}


STEMS = {row.key: stems(both_sides(row)) for row in EXCHANGES}
USED_BY = Counter(word for row in EXCHANGES for word in words(both_sides(row)))


def closest(text: str) -> set[str]:
    """Return the exchanges that share the most content words with `text`, if any."""
    shared = {key: len(stems(text) & found) for key, found in STEMS.items()}
    highest = max(shared.values())
    return {key for key, count in shared.items() if highest and count == highest}


def test_there_are_130_exchanges_in_26_sessions_and_four_languages() -> None:
    assert len(EXCHANGES) == 130
    assert set(Counter(row.session for row in EXCHANGES).values()) == {5}
    assert len({row.session for row in EXCHANGES}) == 26
    assert [len(ENGLISH), *(len(part.EXCHANGES) for part in (german, french, spanish))] == [70, 25, 20, 15]


def test_exchanges_are_unique() -> None:
    for field in ("key", "timestamp", "user", "assistant"):
        assert len({getattr(row, field) for row in EXCHANGES}) == len(EXCHANGES), field


def test_a_session_is_on_one_day_of_2026_in_order() -> None:
    for _, rows in groupby(EXCHANGES, key=lambda row: row.session):
        times = [datetime.fromisoformat(row.timestamp) for row in rows]
        assert times == sorted(times)
        assert {time.year for time in times} == {2026}
        assert len({time.date() for time in times}) == 1


@pytest.mark.parametrize("row", EXCHANGES, ids=lambda row: row.key)
def test_exchanges_have_realistic_lengths(row: LabelledExchange) -> None:
    assert 8 <= len(row.user.split()) <= 60
    assert 10 <= len(row.assistant.split()) <= 400


@pytest.mark.parametrize(
    ("pairs", "count"), [(IN_OTHER_WORDS, 60), (NAMES_ONLY, 50)], ids=["in other words", "names only"]
)
def test_each_question_is_unique_and_has_a_different_exchange(pairs: tuple[tuple[str, str], ...], count: int) -> None:
    assert len(pairs) == count
    assert len({question for question, _ in pairs}) == count
    assert len({key for _, key in pairs} & BY_KEY.keys()) == count


@pytest.mark.parametrize(("question", "key"), IN_OTHER_WORDS)
def test_a_paraphrased_question_shares_no_content_word(question: str, key: str) -> None:
    assert not stems(question) & STEMS[key]


def test_the_last_ten_paraphrases_ask_in_english_about_other_languages() -> None:
    english = {"did", "do", "does", "the", "are", "is", "where", "why", "what", "which"}
    for question, key in IN_OTHER_WORDS[-10:]:
        assert key not in ENGLISH
        assert len(english & set(question.casefold().split())) >= 2, question


@pytest.mark.parametrize(("question", "key"), NAMES_ONLY)
def test_a_name_question_shares_only_the_name_which_is_unique(question: str, key: str) -> None:
    assert 1 <= len(stems(question) & STEMS[key]) <= 2
    names = words(question) & words(both_sides(BY_KEY[key]))
    assert any(USED_BY[name] == 1 for name in names)
    assert all(looks_like_a_name(token) for token in re.findall(r"[\w-]{4,}", question) if stems(token) & STEMS[key])


def test_there_are_forty_follow_ups_and_forty_changes() -> None:
    assert len({row.key for row in FOLLOW_UPS} & BY_KEY.keys()) == len(FOLLOW_UPS) == 40
    assert len({row.key for row in CHANGES} & BY_KEY.keys()) == len(CHANGES) == 40


@pytest.mark.parametrize("row", FOLLOW_UPS, ids=lambda row: row.key)
def test_a_follow_up_is_shorter_than_the_complete_question(row: FollowUp) -> None:
    assert len(stems(row.asks) & STEMS[row.key]) < len(stems(row.in_full) & STEMS[row.key])
    assert row.key in closest(" ".join((*row.before, row.in_full)))


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: row.key)
def test_a_change_switches_the_topic(row: Change) -> None:
    assert row.key in closest(row.asks)
    assert closest(" ".join(row.before))
    assert row.key not in closest(" ".join(row.before))


@pytest.mark.parametrize(
    ("messages", "count"),
    [(SMALL_TALK, 60), (TASKS, 60), (NEAR_MISSES, 40), (tuple(row.message for row in AFTER_TOPIC), 40)],
    ids=["small talk", "tasks", "near misses", "after a topic"],
)
def test_messages_without_recall_are_unique(messages: tuple[str, ...], count: int) -> None:
    assert len(set(messages)) == len(messages) == count


@pytest.mark.parametrize("question", NEAR_MISSES)
def test_a_near_miss_is_on_a_topic_of_the_exchanges(question: str) -> None:
    assert closest(question)


@pytest.mark.parametrize("row", AFTER_TOPIC, ids=lambda row: row.message)
def test_small_talk_follows_one_topic_of_the_exchanges(row: Closing) -> None:
    assert closest(" ".join(row.before))
    assert len(row.message.split()) <= 8
