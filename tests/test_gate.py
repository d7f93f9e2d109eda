"""The words of a message that count as names."""

from __future__ import annotations

from memory.retrieval.gate import _sentence_starts


def test_the_first_word_of_each_sentence_is_none():
    text = "«Where» is Ada? In Lund… Perhaps: Bob knows\nThe rest, Carl said."

    assert _sentence_starts(text) == {"Where", "In", "Perhaps", "Bob", "The"}
    assert _sentence_starts("") == frozenset()


def test_a_message_of_dots_is_read_in_linear_time():
    """A search for the next word from each dot would take minutes, and stop all other answers meanwhile."""
    assert _sentence_starts("Why" + "." * 100_000) == {"Why"}
