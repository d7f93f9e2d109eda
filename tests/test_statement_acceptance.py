"""A statement is accepted only if its numbers, dates and names are in its sources."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memory.embeddings import get_embedder
from memory.knowledge.acceptance import SourceText, unsupported_part

RETRIES = "From now on 28 retries a day per buoy when the uplink drops."
DEADLINE = "We move the deadline to 5 December."
LID = "Seit wir die Antenne verschoben haben, ist der Deckel 3 mm dünner."


def unsupported(statement: str, source: str) -> str:
    said = SourceText(source, datetime(2025, 11, 12, tzinfo=UTC), "Aisha Bello", "Winter power review")
    get_log_probabilities = get_embedder().log_probabilities
    return unsupported_part(statement, [said], get_log_probabilities, written_at=datetime.now(UTC))


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("A buoy makes at most 28 retries a day when the uplink drops.", RETRIES),
        ("Aisha Bello decided on 12 November 2025 to allow 28 retries.", RETRIES),
        ("The winter power review allowed 28 retries in November 2025.", RETRIES),
        ("The deadline was moved to 5 December 2025.", DEADLINE),
        ("The deadline was moved to December 2025.", DEADLINE),
        ("Halden signed the contract on 5 November 2025.", "The contract was signed last week by Halden."),
        ("Der Deckel ist 3 mm dünner, seit die Antenne versetzt wurde.", LID),
        ("Frau Bergmann liefert das Gehäuse.", "Das Gehäuse kommt von Bergmanns Firma."),
        ("传感器每天校准两次。", "我们决定传感器每天要校准两次"),
        ("The budget is 1500 euros.", "Das Budget sind 1.500 Euro."),
        ("The budget is 2.5 million.", "Das Budget sind 2,5 Millionen."),
    ],
)
def test_what_the_source_says_is_accepted(statement, source):
    assert unsupported(statement, source) == ""


@pytest.mark.parametrize(
    ("statement", "source", "part"),
    [
        ("A buoy makes at most 30 retries a day.", RETRIES, "30"),
        ("A buoy makes at most 280 retries a day.", RETRIES, "280"),
        ("Jürgen Weißmann decided on 28 retries.", RETRIES, "Weißmann"),
        ("The axolotl makes 28 retries a day.", RETRIES, "axolotl"),
        ("Frau Bergmann liefert das Gehäuse.", "Das Gehäuse kommt von der neuen Firma.", "Bergmann"),
        ("The deadline was moved to 6 December 2025.", DEADLINE, "6 December 2025"),
        ("The deadline was moved to 5 December 2027.", DEADLINE, "5 December 2027"),
        ("传感器每天校准两次。", "今天天气很好, 我们去公园吧", "传感器每天校准两次。"),
    ],
)
def test_what_the_source_does_not_say_is_refused(statement, source, part):
    assert part in unsupported(statement, source)


# Said on Wednesday, 12 November 2025.
@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("The uplink test is tomorrow.", "2025-11-13"),
        ("We meet the insurer the day after tomorrow.", "2025-11-14"),
        ("Übermorgen kommt der Prüfer.", "2025-11-14"),
        ("On déménage demain.", "2025-11-13"),
        ("明天开会。", "2025-11-13"),
        ("Nächste Woche ist der Laden zu.", "2025-11-19"),
        ("La reunión es la semana que viene.", "2025-11-18"),
        ("下个月搬家。", "2025-12-05"),
        ("The lease ends in two months.", "2026-01-10"),
        ("Через 3 дня приедет мастер.", "2025-11-15"),
        ("三天后发布。", "2025-11-15"),
        ("Delivery is on Friday.", "2025-11-14"),
        ("Freitag in einer Woche ist Abnahme.", "2025-11-21"),
        ("The lid broke on Monday.", "2025-11-10"),
        ("В пятницу сдаём отчёт.", "2025-11-14"),
        ("星期五交货。", "2025-11-14"),
        ("金曜日に納品します。", "2025-11-14"),
    ],
)
def test_a_date_that_follows_from_a_relative_expression_is_accepted(text, day):
    assert unsupported(f"It is on {day}.", text) == ""
    assert unsupported("It is on 2026-06-20.", text) != ""


def test_another_weekday_is_refused():
    assert unsupported("Delivery is on 2025-11-13.", "Delivery is on Friday.") == "Delivery is on 2025-11-13."
