"""What people type into the search box."""

from __future__ import annotations

import pytest

from chat.search.query import parse_query


@pytest.mark.parametrize(
    ("typed", "text", "operators", "phrases", "excluded"),
    [
        ("why did it move", "why did it move", {}, (), ()),
        ("from:jürgen antenna", "antenna", {"from": "jürgen"}, (), ()),
        ('FROM:"Ines Dvorak" antenna', "antenna", {"from": "Ines Dvorak"}, (), ()),
        ("since:may since:june x", "x", {"since": "june"}, (), ()),
        ('the "wet lid" again', "the wet lid again", {}, ("wet lid",), ()),
        ("the “wet lid” again", "the wet lid again", {}, ("wet lid",), ()),
        ('lid -wet -"on the mast"', "lid", {}, (), ("wet", "on the mast")),
        ("kept at -5 °C, e-mail", "kept at -5 °C, e-mail", {}, (), ()),
        ("https://example.org note: file:x", "https://example.org note: file:x", {}, (), ()),
        ("from: nobody", "from: nobody", {}, (), ()),
        ('an "open quote', 'an "open quote', {}, (), ()),
        ('lid " " -" " on', "lid on", {}, (), ()),
        ("sin in:hardware", "sin", {"in": "hardware"}, (), ()),
        ("login:admin", "login:admin", {}, (), ()),
    ],
)
def test_operators_phrases_and_exclusions_are_told_from_text(typed, text, operators, phrases, excluded):
    query = parse_query(typed)
    assert (query.text, query.operators, query.phrases, query.excluded) == (text, operators, phrases, excluded)


def test_operators_after_a_minus_are_neither_filters_nor_excluded_words():
    query = parse_query('lid -from:olga -Since:2026 -Thread: x -in: -"type:"')
    assert (query.negated_operators, query.operators) == (("from", "since", "thread", "in"), {})
    assert (query.text, query.excluded) == ("lid x", ("type:",))


def test_what_is_left_without_operators_means_the_same_when_it_is_parsed_again():
    query = parse_query('from:ines the "wet lid" -mast since:june')
    again = parse_query(query.typed)
    assert (again.text, again.phrases, again.excluded) == (query.text, query.phrases, query.excluded)
    assert again.operators == {}
