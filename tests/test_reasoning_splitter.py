"""What a model thinks aloud is told apart from what it answers, however it comes."""

from __future__ import annotations

import random

import pytest

from chat.answers.reasoning import ReasoningSplitter


def split(text: str, cuts: random.Random) -> tuple[str, str]:
    """What was thought and said of `text` when it comes in pieces."""
    thoughts, thought, said, at = ReasoningSplitter(), "", "", 0
    while at < len(text):
        size = cuts.randint(1, 9)
        more_thought, more_said = thoughts.feed(text[at : at + size])
        thought, said, at = thought + more_thought, said + more_said, at + size
    more_thought, more_said = thoughts.end()
    return thought + more_thought, said + more_said


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("<think>\nHm, a key.</think>\n\nBehind the clock.", "Hm, a key.", "Behind the clock."),
        ("\n<think>a < b</think>So it is.", "a < b", "So it is."),
        ("Behind the clock.", "", "Behind the clock."),
        ("<thinking> is a tag of HTML 9.", "", "<thinking> is a tag of HTML 9."),
        ("Write <think> and </think> around it.", "", "Write <think> and </think> around it."),
        ("<think>It never comes to an end", "It never comes to an end", ""),
        ("<thi", "", "<thi"),
    ],
)
def test_thoughts_at_the_head_of_an_answer_are_told_apart(text, thought, said, seed):
    found = split(text, random.Random(seed))

    assert (found[0].strip(), found[1]) == (thought, said)
