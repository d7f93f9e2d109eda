"""Diversity of recall: no author or document crowds out other relevant hits, and near-duplicates count once."""

from __future__ import annotations

import json
import random

import pytest

from chat.answers.memory_tools import ToolScope, run_tool
from chat.llm.tool_calls import ToolCall
from memory.spaces import access
from tests.factories import PersonFactory, document, exchange
from tests.questions.store import store_exchanges

pytestmark = pytest.mark.django_db

QUESTION = "What is the access code of the server room in Halden?"
TRUE = (
    "The server room in Halden opens with code 8831, changed in March.",
    "Halden: to get into the room with the servers, type 8831 at the door.",
    "We changed the code at the servers' door in Halden to 8831.",
)
FALSE = "The access code of the server room in Halden is 0000."
RANDOM_WORDS = [
    "harbour",
    "lantern",
    "copper",
    "meadow",
    "violin",
    "gravel",
    "anchor",
    "biscuit",
    "walnut",
    "thunder",
    "saddle",
    "marble",
    "parrot",
    "quarry",
    "ribbon",
    "tunnel",
    "velvet",
    "whistle",
    "yogurt",
    "zipper",
    "basket",
    "canyon",
    "dolphin",
    "engine",
    "falcon",
    "garlic",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "mirror",
]


@pytest.fixture
def team():
    return access.team_space()


@pytest.fixture
def recalled(memory, team):
    def texts(question: str = QUESTION) -> list[str]:
        while memory.index_pending():
            pass
        return [r.exchange.user_message for r in memory.recall([question], spaces=frozenset({team.id})).results]

    return texts


def repeat(owner, count, space):
    """Remember notes with the false answer in the question's own words, each followed by different words."""
    chosen = random.Random(1)
    for _ in range(count):
        exchange(owner, f"{FALSE} {' '.join(chosen.sample(RANDOM_WORDS, 10))}", "", space=space)


# With 40 the true notes are among the candidates of the index, with 120 they are not.
@pytest.mark.parametrize("count", [40, 120])
def test_many_notes_of_one_person_do_not_displace_those_of_another(memory, team, recalled, count):
    mallory, ines = PersonFactory(), PersonFactory()
    for text in TRUE:
        exchange(ines, text, "", space=team)
    repeat(mallory, count, team)

    texts = recalled()

    assert len(texts) == 5
    assert len(set(texts[:4]) & set(TRUE)) == 2, "the fifth place alone is filled beyond two of one author"


def test_three_authors_share_the_five_places(memory, team, recalled):
    mallory, ines, omar = PersonFactory(), PersonFactory(), PersonFactory()
    exchange(ines, TRUE[0], "", space=team)
    exchange(ines, TRUE[1], "", space=team)
    exchange(omar, TRUE[2], "", space=team)
    repeat(mallory, 20, team)

    texts = recalled()

    assert len(set(texts) & set(TRUE)) == 3
    assert sum(text.startswith(FALSE) for text in texts) == 2


def test_a_single_author_fills_all_places(memory, team, recalled, person):
    repeat(person, 20, team)

    assert len(recalled()) == 5


def test_irrelevant_hits_take_no_place_from_a_single_author(memory, team, recalled, person):
    repeat(person, 20, team)
    for n in range(3):
        exchange(PersonFactory(), f"Otters hold hands while they sleep, says book {n}.", "", space=team)

    texts = recalled()

    assert [text for text in texts if not text.startswith(FALSE)] == []
    assert len(texts) == 5


def test_a_document_has_at_most_two_passages_if_others_are_relevant(memory, team, recalled, person):
    rooms = "\n\n".join(
        f"# Room {n}\n\nThe access code of server room {n} in Halden is {1000 + n}. "
        + f"Filler {n} about cables. " * 25
        for n in range(30)
    )
    document(person, "rooms.md", rooms, space=team)
    for text in TRUE:
        exchange(PersonFactory(), text, "", space=team)

    texts = recalled()

    assert set(TRUE) <= set(texts)
    assert len(texts) == 5


def test_adjacent_passages_of_a_document_count_once(memory, team, person):
    sentences = [f"The access code of the server room in Halden, part {n}, is {n}{n}{n}{n}." for n in range(4)]
    document(person, "codes.md", "\n\n".join(s + f" Detail {s[-5:]} of it. " * 30 for s in sentences), space=team)
    exchange(PersonFactory(), TRUE[0], "", space=team)
    memory.index_pending()

    results = memory.recall([QUESTION], spaces=frozenset({team.id})).results

    chunks = sorted(r.exchange.location.index for r in results if r.exchange.location)
    assert len(chunks) > 2, "they are one passage"


def test_near_duplicates_count_once(memory, team, recalled, person):
    for name, text in (
        ("Ines", "The alarm code of the workshop is 7781."),
        ("Omar", "The alarm code of our workshop is 7781, by the way."),
        ("Wen", "By the way, the workshop's alarm code is 7781."),
    ):
        exchange(PersonFactory(name=name), text, "", space=team)
    exchange(person, "The alarm of the workshop was tested.", "", space=team)

    texts = recalled("What is the alarm code of the workshop?")

    assert len([text for text in texts if "7781" in text]) == 1
    assert "The alarm of the workshop was tested." in texts


def test_texts_that_differ_in_a_number_alone_are_no_duplicates(memory, team, recalled, person):
    notes = [f"Mooring rope number {number} hangs at pier 4." for number in range(1, 6)]
    for text in notes:
        exchange(person, text, "", space=team)

    assert sorted(recalled("Which mooring ropes hang at pier 4?")) == notes


def test_different_answers_to_one_question_are_no_duplicates(memory, team, recalled, person):
    for answer in ("I do not know.", "It is 7781, as the caretaker wrote down on Monday."):
        exchange(person, "What is the alarm code of the workshop?", answer, space=team)
    while memory.index_pending():
        pass

    results = memory.recall(["Which alarm code does the workshop have?"], spaces=frozenset({team.id})).results

    assert len(results) == 2


def copy(owners, count, space):
    """Remember notes of several people that repeat the question with the false answer, each with other words behind it."""
    chosen = random.Random(2)
    for number in range(count):
        text = f"{QUESTION} It is 0000. {' '.join(chosen.sample(RANDOM_WORDS, 6))}"
        exchange(owners[number % len(owners)], text, "", space=space)


def copy_misspelt(owners, count, space):
    """Remember notes of several people that repeat the false answer, each with letters exchanged in two of its words."""
    chosen = random.Random(3)
    for number in range(count):
        words = f"{QUESTION} Without doubt it is 0000.".split()
        for at in chosen.sample([i for i, word in enumerate(words) if len(word) > 3], 2):
            words[at] = words[at][:1] + words[at][2] + words[at][1] + words[at][3:]
        exchange(owners[number % len(owners)], " ".join(words), "", space=space)


# With 120 the true notes are not among the nearest.
@pytest.mark.parametrize("count", [30, 120])
@pytest.mark.parametrize("attack", [copy, copy_misspelt])
def test_copies_by_many_people_do_not_displace_the_notes_of_another(memory, team, recalled, count, attack):
    ines = PersonFactory()
    for text in TRUE:
        exchange(ines, text, "", space=team)
    attack([PersonFactory() for _ in range(10)], count, team)

    texts = recalled()

    assert len(texts) >= 4  # near-duplicates count once
    assert len(set(texts) & set(TRUE)) >= 2


def test_who_repeats_a_question_does_not_change_how_the_answers_of_others_are_ranked(memory, team):
    asked = "How much public money supports making our own electricity?"
    ines = PersonFactory()
    keys = store_exchanges(ines.id)
    exchange(PersonFactory(), f"{asked} Nobody knows.", "", space=team)
    memory.index_pending()

    recalled = memory.recall([asked], spaces=frozenset({team.id, access.personal_space(ines.id).id})).results

    assert any(asked in hit.exchange.user_message for hit in recalled)
    assert "grant-solar" in [keys.get(hit.exchange.id) for hit in recalled]


def test_a_search_by_the_model_is_limited_by_author(memory, team):
    mallory, ines = PersonFactory(), PersonFactory()
    for text in TRUE:
        exchange(ines, text, "", space=team)
    repeat(mallory, 20, team)
    while memory.index_pending():
        pass
    scope = ToolScope(frozenset({team.id}), ines.id, team.id)

    hits = run_tool(ToolCall("1", "search_memory", json.dumps({"query": QUESTION})), scope).hits

    assert sum(hit.exchange.owner_id == mallory.id for hit in hits[:4]) == 2
