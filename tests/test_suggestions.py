"""Spelling suggestions: the distance of words, and how many are compared."""

from __future__ import annotations

import itertools

import pytest

from memory.lexical import suggestions
from memory.lexical.suggestions import edit_distance, suggest_query
from memory.spaces.access import personal_space
from tests.factories import exchange


@pytest.mark.parametrize(
    ("one", "other", "limit", "distance"),
    [
        ("antena", "antenna", 1, 1),
        ("antenna", "antenna", 1, 0),
        ("mainsial", "mainsail", 1, 1),
        ("corosoin", "corrosion", 2, 2),
        ("corosoin", "corrosion", 1, 2),
        ("lid", "lids and more", 2, 3),
        ("mast", "lamp", 2, 3),
    ],
)
def test_distance(one, other, limit, distance):
    assert edit_distance(one, other, limit) == distance
    assert edit_distance(other, one, limit) == distance


@pytest.mark.django_db
def test_many_long_words_that_resemble_the_typed_one_are_not_all_compared(person, monkeypatch):
    beginning = "corrosionofthekeelandtherudde"
    endings = itertools.islice(itertools.permutations("corshkeltdn"), 3_000)
    exchange(person, " ".join(beginning + "".join(ending) for ending in endings), "")
    compared = []
    monkeypatch.setattr(suggestions, "edit_distance", lambda *words: compared.append(words) or 9)

    typed = beginning + "ndtlekhsroc"
    suggest_query(typed, typed, frozenset({personal_space(person.id).id}))

    assert 0 < len(compared) <= 2_000
