"""The sources of an answer: cited passages first, and a passage of several chunks counts once everywhere."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.models import Thread
from chat.realtime import frames
from chat.rows.sources import citations_of, summary_row
from memory.models import Exchange, Feedback, RecallLogEntry
from memory.spaces import access
from memory.stats.history import recall_counts
from tests.factories import PersonFactory, api_client, document, exchange, group, signed_in, thread, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(db):
    return PersonFactory(name="Kim Keeper")


def log_recall(one, *numbered) -> None:
    """Log these exchanges as recalled for a turn, each with the number of its passage."""
    for number, stored in numbered:
        RecallLogEntry.objects.create(
            turn_id=one.id, exchange=stored, rank=number, similarity=0.8, score=1, strategy="hybrid", reason=""
        )


@pytest.fixture
def notes(person):
    """Return four memories of different days."""
    days = [datetime(timezone.now().year, 1, day, 12, tzinfo=UTC) for day in (2, 5, 9, 12)]
    return [exchange(person, f"Memory number {n}", "", timestamp=day) for n, day in enumerate(days, start=1)]


def answered(person, notes, answer: str, **fields):
    """Return a turn with this answer for which the four memories were recalled."""
    one = turn(thread(person), "What happened?", answer, **fields)
    Thread.objects.filter(id=one.thread_id).update(head=one)
    log_recall(one, *enumerate(notes, start=1))
    return one


def panel(one) -> str:
    """Return the text of the recall panel that all readers get, without tags; items are marked by their numbers."""
    html = frames.turn(one.id).html
    html = html[html.index("recall__panel") : html.index('class="answer"')]
    html = re.sub(r'data-number="(\d+)"', r">#\1<", html)
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def numbers(one) -> tuple[list[str], list[str]]:
    """Return the numbers of the items in the list of the panel, and in that of the others."""
    listed, _, others = panel(one).rpartition("more recalled")
    return re.findall(r"#(\d+)", listed), re.findall(r"#(\d+)", others)


def test_cited_passages_come_first_in_the_order_of_their_citations(person, notes):
    one = answered(person, notes, "It was so [3]. Then so [1, 3].")

    assert panel(one).split(" #")[0].endswith("Based on 2 sources · 2 more recalled from 2 Jan to 9 Jan")
    assert numbers(one) == (["3", "1"], ["2", "4"])


def test_while_the_answer_is_generated_only_the_number_of_passages_is_known(person, notes):
    one = answered(person, notes, "It was so [3].", state="answering")

    assert "4 recalled" in panel(one)
    assert "Based on" not in panel(one)
    assert "none cited" not in panel(one)
    assert "more recalled" not in panel(one).replace("0 more recalled", "")


def test_an_answer_that_cites_nothing_is_based_on_nothing(person, notes):
    one = answered(person, notes, "Nobody knows, `a[1]` least of all.\n\n```\nb[2]\n```\n")

    assert "4 recalled, none cited" in panel(one)
    assert "Based on" not in panel(one)
    assert "from 2 Jan" not in panel(one)


def test_without_recall_there_is_no_panel(person):
    one = turn(thread(person), "Hello", "Hello [1].")

    assert "recall__panel" not in frames.turn(one.id).html
    assert "recall__line" not in frames.turn(one.id).html


def test_the_end_of_a_stream_sends_the_summary_that_a_new_page_has(person, notes, memory):
    one = answered(person, notes, "It was so [3]. Then so [1].")
    passages = memory.recalled_for([one.id], spaces=access.readable_space_ids(person.id))[one.id]
    summary = summary_row(one, citations_of(one.id, passages, {}), [3, 1])

    end, _footer = frames.answer_finished(one, None, None, has_blocks=True, summary=summary)

    line = re.search(r'<span class="recall__line".*?</svg>\s*</span>\s*</span>', end.html, re.DOTALL)
    assert line
    assert line[0] in frames.turn(one.id).html
    assert "Memory number" not in end.html, "what was forgotten meanwhile must not return"


@pytest.fixture
def merged(memory, person):
    """Return a turn for which three adjacent chunks of a document were recalled as one passage, and a message."""
    text = "\n\n".join(
        f"Chapter {n} of the lighthouse handbook. " + f"Keeper number {n} trims the lamp of tower {n} at dusk. " * 10
        for n in range(1, 9)
    )
    document(person, "Handbook.txt", text)
    chunks = list(Exchange.objects.filter(source="upload").order_by("chunk_index")[2:5])
    one = turn(thread(person), "Who trims the lamps?", "The keepers do [1].")
    Thread.objects.filter(id=one.thread_id).update(head=one)
    exchange(person, one.message, one.answer, thread_id=one.thread_id, turn_id=one.id)
    log_recall(one, (1, chunks[1]), (1, chunks[0]), (1, chunks[2]), (2, exchange(person, "The lamps are old.")))
    return one, chunks


@pytest.mark.django_db(transaction=True)
def test_a_passage_of_several_chunks_counts_once_on_the_page_in_programs_and_in_statistics(person, merged):
    one, chunks = merged
    readable = access.readable_space_ids(person.id)

    assert "Based on 1 source · 1 more recalled" in panel(one)
    assert numbers(one) == (["1"], ["2"])
    page = " ".join(frames.turn(one.id).html.split())
    assert page.index("Chapter 3") < page.index("Chapter 4") < page.index("Chapter 5")
    sources = api_client(person).get(f"/api/threads/{one.thread_id}").json()["turns"][0]["sources"]
    assert [(source["number"], source["is_cited"]) for source in sources] == [(1, True), (2, False)]
    assert sources[0]["exchange_ids"] == [str(chunks[index].id) for index in (1, 0, 2)]
    assert recall_counts(readable, [timezone.now() - timedelta(days=1), timezone.now()]) == [2]


@pytest.mark.django_db(transaction=True)
def test_a_passage_shows_the_chunks_that_are_left_and_is_forgotten_with_the_last_one(memory, person, merged):
    one, chunks = merged
    memory.forget([chunks[1].id], by=person.id)

    assert "Chapter 3" in panel(one)
    assert "Chapter 4" not in panel(one)
    memory.forget([chunks[0].id, chunks[2].id], by=person.id)
    assert "#1 1 Forgotten" in panel(one)
    assert "Sources forgotten · 1 more recalled" in panel(one)


@pytest.mark.django_db(transaction=True)
def test_pinning_and_forgetting_apply_to_all_chunks_of_a_passage(person, merged):
    one, chunks = merged
    client = signed_in(person)
    actions = client.get(reverse("recalled_exchanges", args=[one.id]), headers={"HX-Request": "true"}).content.decode()
    address = re.search(r'formaction="([^"]*feedback[^"]*)"', actions)
    forget = re.search(r'href="([^"]*/forget[^"]*)"', actions)
    assert address
    assert forget

    client.post(address[1].replace("&amp;", "&"), {"kind": "pinned"})
    assert set(Feedback.objects.values_list("exchange_id", flat=True)) == {chunk.id for chunk in chunks}

    question = client.get(forget[1].replace("&amp;", "&")).content.decode()
    assert "Forget this passage?" in question
    action = re.search(r'action="([^"]*/forget[^"]*)"', question)
    assert action
    client.post(action[1].replace("&amp;", "&"))
    assert Exchange.objects.exclude(forgotten_at=None).count() == len(chunks)


def test_only_readable_exchanges_can_be_named_besides_the_first(person):
    other, own = exchange(PersonFactory(), "Private"), exchange(person, "Mine")
    url = reverse("feedback", args=[own.id])

    for also in (other.id, uuid.uuid4(), "nothing"):
        assert signed_in(person).post(f"{url}?also={also}", {"kind": "pinned"}).status_code == 404
    assert not Feedback.objects.exists()
    garden = exchange(PersonFactory(), "Shared", space=group("Garden", person))
    assert signed_in(person).post(f"{url}?also={garden.id}", {"kind": "pinned"}).status_code == 302


def source_lines(person, *stored) -> list[str]:
    """Return the sentences about the sources of these exchanges, as other readers than their authors get them."""
    one = turn(thread(person), "What happened?", "This [1].")
    log_recall(one, *enumerate(stored, start=1))
    found = re.findall(r'<p class="recall-item__source">(.*?)</p>', frames.turn(one.id).html, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", line).split()).replace(" ,", ",") for line in found]


def test_the_source_of_a_message_a_note_and_a_record_is_a_sentence(person):
    at = datetime(2026, 10, 9, 12, tzinfo=UTC)
    kiel = thread(person, title="Kiel field test")

    said, noted, added = (
        exchange(person, "Cap at 15 minutes", timestamp=at, thread_id=kiel.id),
        exchange(person, "Cap at 16 minutes", "", timestamp=at, source="vadd_command"),
        exchange(person, "Cap at 17 minutes", "", timestamp=at, source="api"),
    )

    assert source_lines(person, said, noted, added) == [
        "Kim Keeper said in Kiel field test, 9 Oct 2026",
        "Kim Keeper noted on 9 Oct 2026",
        "Kim Keeper added this on 9 Oct 2026",
    ]


def test_the_author_of_a_source_and_the_person_who_asked_are_addressed_by_a_script(person, notes):
    one = answered(person, notes, "It was so [3].", author=PersonFactory(name="Lin Mei"))
    RecallLogEntry.objects.update(reason="Similar to your question")
    html = " ".join(frames.turn(one.id).html.split())

    assert html.count(f'data-owner="{person.id}" data-own-text="You added') + html.count(
        f'data-owner="{person.id}" data-own-text="You said'
    ) == len(notes)
    asked = f'data-owner="{one.author_id}" data-own-text="Similar to your question">Similar to the question<'
    assert html.count(asked) == len(notes)


@pytest.mark.django_db(transaction=True)
def test_the_source_of_a_document_names_its_version_and_its_passages(person, merged):
    one, chunks = merged
    single = exchange(person, "A message")
    line, *_others = source_lines(person, chunks[1])
    assert re.fullmatch(r"Handbook\.txt, passage 4, \d+ \w+ \d{4}", line)

    document(person, "Handbook.txt", "Chapter 1 of the new handbook. " * 5)
    (newest,) = Exchange.objects.filter(source="upload", is_inactive=False)
    assert source_lines(person, newest, single)[0].startswith("Handbook.txt, version 2, passage 1, ")

    merged_lines = re.findall(r"<bdi>(.*?)</bdi>", frames.turn(one.id).html)
    assert merged_lines == [], "the chunks of the former version are hidden"


def test_an_item_says_which_one_it_follows_and_at_most_two_reasons(person):
    in_thread, session = thread(person), uuid.uuid4()
    first, second = (
        exchange(person, message, thread_id=in_thread.id, session_id=session) for message in ("One", "Two")
    )
    assert second.previous_id == first.id
    one = turn(thread(person), "What happened?", "This [1].")
    log_recall(one, (1, second), (2, first))

    for reason, shown in (
        ("Contains “one”", "Contains “one”; Follows 2 in the same thread"),
        ("Contains “one”; From the date mentioned", "Contains “one”; From the date mentioned;"),
        ("Similar to your question", "Follows 2 in the same thread"),
    ):
        RecallLogEntry.objects.update(reason=reason)
        html = " ".join(re.sub(r"<[^>]*>", " ", frames.turn(one.id).html).split()).replace(" ;", ";")
        assert shown in html
        assert ("Follows 2" in html) == ("Follows 2" in shown)
    assert frames.turn(one.id).html.count("data-mentioned") == 1
