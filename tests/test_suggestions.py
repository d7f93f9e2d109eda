"""The distance of words for spelling suggestions."""

from __future__ import annotations

import pytest

from memory.lexical.suggestions import edit_distance


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
