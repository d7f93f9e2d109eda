"""Dates and periods that a question names, in eleven languages."""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime

import pytest

from memory.retrieval import date_words
from memory.retrieval.date_words import key_of
from memory.retrieval.dates import day_called, parse_date_range, split_dates
from memory.retrieval.periods import named_period

NOW = datetime(2026, 9, 16, 12, tzinfo=UTC)  # a Wednesday

TODAY = "today, heute, aujourd'hui, hoy, oggi, hoje, vandaag, dzisiaj, dziś, сегодня, 今天, 今日, きょう"
MARCH = "in March 2026, im letzten März, en mars 2026, en marzo, in marzo, em março, in maart, w marcu, в марте, 三月, 3月に, last March"
THIRD_OF_APRIL = (
    "2025-04-03|3.4.2025|April 3, 2025|3. April 2025|3 avril 2025|3 de abril de 2025|3 aprile 2025|3 april 2025|"
    "3 kwietnia 2025|3 апреля 2025|2025年4月3日"
)
YESTERDAY = "yesterday, gestern, hier soir, ayer, ieri, ontem, gisteren, wczoraj, вчера, 昨天, 昨日"
LAST_MONTH = (
    "last month, letzten Monat, le mois dernier, el mes pasado, il mese scorso, no mês passado, vorige maand, "
    "w zeszłym miesiącu, в прошлом месяце, 上个月, 先月"
)
LAST_YEAR = "last year, letztes Jahr, l'année dernière, el año pasado, l'anno scorso, vorig jaar, 去年, 昨年"
TWO_WEEKS_AGO = (
    "two weeks ago, vor zwei Wochen, il y a deux semaines, hace dos semanas, due settimane fa, há duas semanas, "
    "twee weken geleden, dwa tygodnie temu, две недели назад, 两周前, 二週間前"
)
NO_DATE = (
    "may I go, march on, la marca de la bici, Maja wohnt hier, vor Jahren, a month of work, an ordinary day, 三个月, 上面, "
    "前年度の予算の話"
)


@pytest.mark.parametrize("text", MARCH.split(", "))
def test_a_month_is_the_latest_that_has_begun(text):
    found = parse_date_range(text, NOW)
    assert (found.start, found.end) == (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))


@pytest.mark.parametrize("text", THIRD_OF_APRIL.split("|"))
def test_a_day_with_its_year(text):
    found = parse_date_range(f"({text})", NOW)
    assert (found.start, found.end) == (datetime(2025, 4, 3, tzinfo=UTC), datetime(2025, 4, 4, tzinfo=UTC))


@pytest.mark.parametrize(
    ("texts", "inside", "outside"),
    [
        (YESTERDAY, datetime(2026, 9, 15, 12, tzinfo=UTC), datetime(2026, 9, 12, tzinfo=UTC)),
        (LAST_MONTH, datetime(2026, 8, 10, tzinfo=UTC), datetime(2026, 6, 30, tzinfo=UTC)),
        (LAST_YEAR, datetime(2025, 6, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)),
        (TWO_WEEKS_AGO, datetime(2026, 9, 2, 12, tzinfo=UTC), datetime(2026, 9, 10, tzinfo=UTC)),
    ],
)
def test_relative_periods(texts, inside, outside):
    for text in texts.split(", "):
        found = parse_date_range(text, NOW)
        assert found is not None, text
        assert found.start <= inside < found.end, text
        assert not found.start <= outside < found.end, text


@pytest.mark.parametrize("text", NO_DATE.split(", "))
def test_words_that_only_resemble_a_date(text):
    assert parse_date_range(text, NOW) is None


def test_a_huge_count_is_no_error():
    assert parse_date_range("999999999999 years ago", NOW) is not None


def test_today_and_yesterday_are_days_where_a_day_is_asked_for():
    today = NOW.date()
    assert {day_called(word, today) for word in TODAY.split(", ")} == {today}
    assert {day_called(word.upper(), today) for word in YESTERDAY.split(", ")} == {date(2026, 9, 15)}
    assert [day_called(word, today) for word in ("march", "todays", "since yesterday", "")] == [None] * 4


def test_every_letter_that_a_pattern_takes_for_another_one_is_found_in_the_tables():
    tables = (date_words.MONTHS, date_words.COUNTS, date_words.DAYS, date_words.WEEKDAYS)
    letters = {letter for table in tables for word in table for letter in word if letter.isalpha()}
    others = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    pattern = re.compile(f"[{''.join(letters)}]", re.IGNORECASE)
    taken = [other for other in others if pattern.fullmatch(other)]

    assert {"İ", "ı", "ſ", "K"} <= set(taken)
    assert [other for other in taken if key_of(other) not in letters] == []


@pytest.mark.parametrize("text", ["5 APRİL 2024", "3. Auguſt 2024", "2 DİAS atrás", "FRİDAY", "1" * 5000 + " days ago"])
def test_unusual_letters_and_numbers_are_read_or_ignored(text):
    parse_date_range(text, NOW)
    named_period(text, NOW)


def test_all_dates_are_cut_out_of_a_text():
    dates, rest = split_dates("On 2026-04-03 and on 5 April 2026 we met, and in May.", NOW)

    assert [found.start.date() for found in dates] == [date(2026, 4, 3), date(2026, 4, 5), date(2026, 5, 1)]
    assert rest == "On   and on   we met, and in  "


@pytest.mark.parametrize("text", ["January" + " " * 100_000 + "x", "Jan 12 10:00:03 gate opened\n" * 4_000])
def test_long_messages_are_read_in_linear_time(text):
    """Each would take minutes otherwise, and stop all other answers meanwhile."""
    assert parse_date_range(text, NOW).start.month == 1
    assert named_period(text, NOW).start.month == 1
    assert len(split_dates(text, NOW)[0]) in (1, 4_000)
