"""The statistics page: counts and charts of readable data, and of everything for administrators."""

from __future__ import annotations

import html
import re
import uuid
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from cato_web.stats import charts
from chat import stats as figures
from chat.models import Turn
from memory.models import EmbeddingJob, Exchange, Job, RecallLogEntry
from memory.spaces import access
from memory.stats import history
from tests.factories import AdministratorFactory, PersonFactory, ago, exchange, signed_in, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty_cache():
    cache.clear()


@pytest.fixture
def alice():
    return PersonFactory(name="Alice Owner")


def stats(person, **query) -> str:
    client = signed_in(person)
    answer = client.get("/stats", query)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(answer.content.decode()))


def tile(page: str, label: str) -> str:
    return re.search(rf"<dt>{label}</dt>\s*<dd class=\"stat-tile__value\">(.*?)</div>", page)[1]


def line(page: str, label: str) -> str | None:
    found = re.search(rf"<dt>{label}</dt>.*?<dd>\s*(.*?)\s*</dd>", page)
    return found[1] if found else None


def test_members_see_statistics_of_readable_data_and_administrators_of_everything(chroma, alice):
    exchange(alice, "Mine")
    for n in range(3):
        exchange(PersonFactory(name="Bob Team"), f"Not hers {n}", source="import")

    page = stats(alice, of="everything")
    assert tile(page, "Remembered").startswith("1<")
    assert line(page, "Alice Owner") == "1"
    assert "Bob Team" not in page
    assert line(page, "Import") is None
    assert "Queue" not in page

    page = stats(AdministratorFactory(), of="everything")
    assert tile(page, "Remembered").startswith("4<")
    assert line(page, "Import") == "3"
    assert line(page, "Exchanges to be embedded") == "4"
    assert re.match(r"\d+(\.\d)?\W(KB|MB|bytes)", line(page, "Database"))
    assert line(page, "Drift") == "none"


def test_a_source_without_a_name_is_shown_as_it_is_stored(chroma):
    """A later version, whose database this one opens, may have other sources."""
    person = AdministratorFactory()
    row = exchange(person, "Said", source="telegram")

    assert line(stats(person), "telegram") == "1"
    for path in (f"/m/{row.pk}", "/admin/exchanges", "/search?q=said"):
        assert "telegram" in signed_in(person).get(path).content.decode()


def test_growth_counts_exchanges_at_the_end_of_each_week(chroma, alice):
    for days in (20, 20, 10, 1):
        row = exchange(alice, f"Said {days}")
        Exchange.objects.filter(pk=row.pk).update(created_at=ago(days=days))
    readable = access.readable_space_ids(alice.pk)

    assert history.growth_counts(readable, history.period_ends(4, history.WEEK)) == [0, 0, 2, 3, 4]
    page = stats(alice, by="stored")
    assert "Remembered by week of storing: from 0 on" in page
    assert "4 of them stored in the last 30 days" in page
    assert page.count("<polyline") == 1
    assert page.count("style=") == 0


def test_an_import_of_old_messages_does_not_look_like_growth_of_today(chroma, alice):
    for number in range(3):
        exchange(alice, f"Said long ago {number}", source="import", timestamp=ago(days=300))
    exchange(alice, "Said today")

    page = stats(alice)
    assert "Remembered by week of the message: from 3 on" in page
    assert "3 imported exchanges are counted at the dates of their messages, not of the import." in page
    assert re.search(r'aria-current="true">By date of the message</a>', page)

    page = stats(alice, by="stored")
    assert "Remembered by week of storing: from 0 on" in page
    assert "3 imported exchanges are counted at the date of the import, not of their messages." in page
    assert re.search(r'aria-current="true">By date of storing</a>', page)


def test_forgotten_exchanges_are_not_counted_and_the_page_shows_it(chroma, alice, memory):
    row = exchange(alice, "Gone")
    exchange(alice, "Stays")
    memory.forget([row.pk], by=alice.pk)
    page = stats(alice)
    assert tile(page, "Remembered").startswith("1<")
    assert line(page, "Forgotten in the last 30 days") == "1"


def test_answers_with_context_are_counted_by_week_and_recalls_by_day(chroma, alice):
    stored = exchange(alice, "The key hangs behind the clock", turn_id=uuid.uuid4())
    answered = exchange(alice, "Where is the key?", turn_id=uuid.uuid4())
    RecallLogEntry.objects.create(
        turn_id=answered.turn_id, exchange=stored, rank=1, score=1, strategy="hybrid", reason=""
    )
    page = stats(alice)
    assert "The last: 50% of 2." in page
    assert "How often something was recalled, by day. The last: 1." in page
    # Recalls of other people are not counted.
    assert "How often something was recalled" not in stats(PersonFactory())


def test_recall_latency_is_shown_as_median_and_maximum(alice):
    own = thread(alice)
    for ms in range(1, 101):
        turn(own, f"Question {ms}", recall_ms=ms)
    found = figures.recall_latency(access.readable_space_ids(alice.pk))
    assert (found.answers, found.median, found.p90, found.p99) == (100, 51, 91, 100)
    assert figures.recall_latency(access.readable_space_ids(PersonFactory().pk)) is None


def test_tokens_are_summed_by_model_and_person_in_readable_threads(chroma, alice):
    own, bob = thread(alice), PersonFactory(name="Bob Team")
    for _ in range(2):
        turn(own, model="large", usage={"prompt_tokens": 100, "completion_tokens": 7})
    turn(own, model="small", usage={"prompt_tokens": 3, "completion_tokens": 1})
    turn(own, model="large", usage={})
    turn(thread(bob), model="large", usage={"prompt_tokens": 5000, "completion_tokens": 9})
    since = timezone.now() - timedelta(days=1)

    rows = figures.token_usage(access.readable_space_ids(alice.pk), since=since)
    assert [(row.model, row.person, row.answers, row.prompt_tokens, row.completion_tokens) for row in rows] == [
        ("large", "Alice Owner", 2, 200, 14),
        ("small", "Alice Owner", 1, 3, 1),
    ]
    assert "Bob Team" not in stats(alice)
    assert [row.person for row in figures.token_usage(None, since=since)] == ["Bob Team", "Alice Owner", "Alice Owner"]


def test_a_failure_links_administrators_to_a_retry(chroma, alice):
    row = exchange(alice, "Broken")
    EmbeddingJob.objects.filter(exchange=row).update(state=Job.State.FAILED)
    turn(thread(alice), state="failed")
    turn(thread(alice), recall_note=Turn.RECALL_SKIPPED)
    page = stats(alice)
    assert "1 failed" in tile(page, "Still to be embedded")
    assert tile(page, "Failed answers").startswith("1<")
    assert tile(page, "Answers without recall").startswith("1<")
    assert "/admin/jobs" not in page
    assert 'href="/admin/jobs">1 failed' in stats(AdministratorFactory(), of="everything")


def test_an_empty_memory_has_counts_but_no_charts(chroma, alice):
    page = stats(alice)
    assert tile(page, "Remembered").startswith("0<")
    assert "<polyline" not in page
    assert "Growth" not in page


@given(st.lists(st.integers(0, 10**7), max_size=30))
def test_an_area_chart_stays_in_its_box_with_round_ticks(values):
    chart = charts.area_chart(values, columns=[str(n) for n in range(len(values))], title="")
    heights = [float(point.split(",")[1]) for point in chart.line.split()]
    assert all(0 <= height <= charts.HEIGHT for height in heights)
    ticks = [int(tick.replace(",", "")) for tick in chart.ticks]
    assert ticks[-1] == 0
    assert ticks[0] >= max(values, default=0)
    assert ticks[0] - ticks[1] == ticks[1] - ticks[2] == ticks[2]
    assert len(chart.rows) == len(values)


@pytest.mark.parametrize(
    "bad",
    [10**19, 10**30, -5, 1.5e300, 7.5, "many", None, True, [1], {"a": 1}],
    ids=lambda bad: type(bad).__name__ + str(bad)[:4],
)
def test_implausible_stored_numbers_are_not_counted(chroma, alice, bad):
    own = thread(alice)
    turn(own, model="large", usage={"prompt_tokens": 100, "completion_tokens": 7})
    for _ in range(2):
        turn(own, model="large", usage={"prompt_tokens": bad, "completion_tokens": bad})
    turn(own, model="large", usage={"other": 1})

    (row,) = figures.token_usage(access.readable_space_ids(alice.pk), since=timezone.now() - timedelta(days=1))
    assert row.answers == 4
    assert 100 <= row.prompt_tokens <= 115
    assert 7 <= row.completion_tokens <= 22
    assert "Alice Owner" in stats(alice)


def test_figures_of_a_large_store_are_cached_for_those_who_may_read_the_same(chroma, alice, monkeypatch):
    # As if counting had taken long.
    monkeypatch.setattr("cato_web.stats.figures._QUICK", -1)
    monkeypatch.setattr("cato_web.stats.figures._CACHED_TIMES", 10_000)
    monkeypatch.setattr("cato_web.stats.figures._MIN_CACHED_EXCHANGES", 1)
    exchange(alice, "Mine")
    assert "Counted:" not in stats(alice)
    exchange(alice, "Another")
    later = stats(alice)
    assert tile(later, "Remembered").startswith("1<")
    assert "Counted:" in later
    bob = PersonFactory()
    exchange(bob, "His")
    exchange(bob, "His, too")
    assert tile(stats(bob), "Remembered").startswith("2<")
    cache.clear()
    assert tile(stats(alice), "Remembered").startswith("2<")


def test_figures_of_a_small_store_are_always_counted_anew(chroma, alice, monkeypatch):
    # As if counting had taken long on a busy machine.
    monkeypatch.setattr("cato_web.stats.figures._QUICK", -1)
    monkeypatch.setattr("cato_web.stats.figures._CACHED_TIMES", 10_000)
    for count in (1, 2):
        exchange(alice, f"Mine {count}")
        page = stats(alice)
        assert tile(page, "Remembered").startswith(f"{count}<")
        assert "Counted:" not in page
