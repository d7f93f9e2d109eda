"""Long lists: the newest rows of many spaces, and pages of lists that are counted as far as needed."""

from __future__ import annotations

import random
import re
from datetime import timedelta

import pytest
from django.db.models import Q
from django.utils import timezone

from chat.models import SavedPrompt, Thread
from chat.threads.reader_marks import set_archived
from memory.models import Exchange
from memory.spaces import access
from memory.spaces.newest import newest_in_spaces
from memory.views import paging
from memory.views.paging import LongPaginator
from tests.factories import AdministratorFactory, exchange, group, signed_in, thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def short(monkeypatch):
    """Count up to 100 rows only."""
    monkeypatch.setattr(paging, "_MAX_COUNTED", 100)


def threads_of(person, count: int, **fields) -> None:
    """Create threads, one a minute, the last one is the newest."""
    now = timezone.now()
    Thread.objects.bulk_create(
        Thread(
            owner=person, space=access.personal_space(person.pk), title=f"Thread {number}",
            last_message_at=now + timedelta(minutes=number), **fields,
        )
        for number in range(count)
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_the_newest_of_several_spaces_are_those_of_a_sorted_list(person, seed):
    dice = random.Random(seed)
    spaces = [group(f"Group {number}", person) for number in range(4)]
    now = timezone.now()
    for number in range(60):
        at = now - timedelta(minutes=dice.randrange(40))  # some at the same time
        title = dice.choice(["odd", "even"])
        space = spaces[min(dice.randrange(8), 3)]
        Thread.objects.create(owner=person, space=space, title=f"{title} {number}", last_message_at=at)
    wanted, read = Q(title__startswith="odd"), [space.pk for space in spaces[1:]]
    rows = Thread.objects.order_by("-last_message_at", "id")
    for count in (1, 2, 7, 20, 100):
        few = newest_in_spaces(rows, read, count, by="last_message_at", where=wanted)
        assert list(few[:count]) == list(rows.filter(wanted, space__in=read)[:count])
        assert few.count() <= count * len(read) + 40


def test_no_spaces_have_no_newest_rows(person):
    thread(person)
    assert not newest_in_spaces(Thread.objects.all(), [], 5, by="last_message_at")


def test_a_short_list_is_counted_exactly(person, short):
    threads_of(person, 100)
    page = LongPaginator(Thread.objects.order_by("-last_message_at"), 50).get_page("2")
    assert (page.paginator.count, page.paginator.is_cut, page.has_next()) == (100, False, False)
    assert [row.title for row in page][-1] == "Thread 0"


def test_each_page_of_a_long_list_leads_to_the_next_one(person, short):
    threads_of(person, 260)
    titles, number = [], 1
    while True:
        page = LongPaginator(Thread.objects.order_by("-last_message_at"), 50).get_page(str(number))
        titles += [row.title for row in page]
        if not page.has_next():
            break
        assert page.paginator.is_cut
        assert page.paginator.counted_pages == max(2, number)
        number = page.next_page_number()
    assert titles == [f"Thread {number}" for number in reversed(range(260))]
    assert number == 6


@pytest.mark.parametrize(
    ("asked", "number"), [("", 1), (None, 1), ("x", 1), ("-1", 3), ("0", 3), ("99", 6), ("9" * 30, 3)]
)
def test_a_page_that_does_not_exist_is_the_first_or_the_last_known(person, short, asked, number):
    threads_of(person, 260)
    assert LongPaginator(Thread.objects.order_by("-last_message_at"), 50).get_page(asked).number == number


def test_pages_of_threads_say_that_there_are_more(person, short):
    threads_of(person, 260)
    page = signed_in(person).get("/threads?page=2").content.decode()
    assert "Page 2 of more than 2" in page
    assert "Thread 160" in page  # not in the list beside the page, which has sixty
    assert "Thread 159" not in page
    assert "Page 6 of 6" in signed_in(person).get("/threads?page=6").content.decode()


def test_archived_threads_and_titles_are_found_in_a_long_list(person, short):
    threads_of(person, 120)
    hidden = Thread.objects.get(title="Thread 57")
    set_archived(hidden, person.pk, True)
    found = signed_in(person).get("/threads?q=Thread+5").content.decode()
    assert "Thread 56" in found
    assert "Thread 46" not in found  # nor in the list beside the page, which has sixty
    assert "Thread 57" not in found
    assert "Thread 57" in signed_in(person).get("/threads?archived=yes").content.decode()


def save_prompts(person, space, names) -> None:
    SavedPrompt.objects.bulk_create(
        SavedPrompt(space=space, author=person, name=name, text=f"Text of {name}") for name in names
    )


def prompt_names(person, **query) -> list[str]:
    page = signed_in(person).get("/prompts", query).content.decode()
    return re.findall(r'dir="auto">/([^<]*)</h3>', page)


def test_prompts_are_in_pages_by_space_and_name(person):
    crew = group("Crew", person)
    save_prompts(person, access.team_space(), ["z-team"])
    save_prompts(person, crew, [f"crew-{number:03}" for number in range(70)])
    save_prompts(person, access.personal_space(person.pk), ["own"])
    pages = [signed_in(person).get("/prompts", {"page": number}).content.decode() for number in (1, 2)]

    assert prompt_names(person, page=1) == ["own", *(f"crew-{number:03}" for number in range(49))]
    assert prompt_names(person, page=2) == [*(f"crew-{number:03}" for number in range(49, 70)), "z-team"]
    assert [page.count(f'id="of-{crew.pk}"') for page in pages] == [1, 1]
    assert "Page 1 of 2" in pages[0]
    assert "Next page" in pages[0]


def test_prompts_are_filtered_by_name_and_space(person):
    crew = group("Crew", person)
    save_prompts(person, crew, ["weekly-report", "minutes"])
    save_prompts(person, access.personal_space(person.pk), ["report"])

    assert prompt_names(person, q="Report") == ["report", "weekly-report"]
    assert prompt_names(person, q="/Weekly report") == ["weekly-report"]
    assert prompt_names(person, space=crew.pk) == ["minutes", "weekly-report"]
    assert prompt_names(person, space=crew.pk, q="report") == ["weekly-report"]
    assert "No matching prompts." in signed_in(person).get("/prompts?q=x").content.decode()
    assert signed_in(person).get("/prompts", {"space": group("Other").pk}).status_code == 404


def test_a_prompt_that_was_just_added_or_edited_is_on_the_page_that_opens(person):
    save_prompts(person, access.personal_space(person.pk), [f"n{number:03}" for number in range(100)])
    browser = signed_in(person)

    page = browser.post("/prompts", {"name": "n099a", "text": "The last one"}, follow=True).content.decode()
    assert "Page 3 of 3" in page
    assert "The last one" in page
    first = SavedPrompt.objects.get(name="n060")
    url = f"/prompts/{first.pk}/edit"
    assert "Page 2 of 3" in browser.post(url, {"name": "n060", "text": "Edited"}, follow=True).content.decode()
    assert "Page 1 of 3" in browser.get("/prompts", {"at": first.pk, "page": 1}).content.decode()


def test_administrators_forget_all_of_a_long_list(chroma, monkeypatch):
    monkeypatch.setattr(paging, "_MAX_COUNTED", 50)
    person = AdministratorFactory()
    for number in range(52):
        exchange(person, f"Lamp {number} is green.")
    page = signed_in(person).get("/admin/exchanges").content.decode()
    assert "of more than 50" in page
    assert "Forget all…" in page
    assert "Page 1 of more than 1" in page
    question = signed_in(person).post("/admin/exchanges/forget", {"all": "yes"}).content.decode()
    assert "52" in question
    assert Exchange.objects.findable().count() == 52


def test_a_search_by_date_says_how_many_at_least(chroma, monkeypatch):
    monkeypatch.setattr(paging, "_MAX_COUNTED", 20)
    person = AdministratorFactory()
    for number in range(21):
        exchange(person, f"Lamp {number} is green.")
    browser = signed_in(person)
    assert "More than 20 results, newest first" in browser.get("/search?since=2020-01-01").content.decode()
    assert "21 results, newest first" in browser.get("/search?since=2020-01-01&page=2").content.decode()
