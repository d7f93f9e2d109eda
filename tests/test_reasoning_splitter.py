"""Splitting a model's output into reasoning and answer, however it is chunked."""

from __future__ import annotations

import random

import pytest

from chat.llm.reasoning import ReasoningSplitter


def split(text: str, cuts: random.Random) -> tuple[str, str]:
    """Return reasoning and answer of `text` when it arrives in pieces of these sizes."""
    splitter, reasoning, answer, start = ReasoningSplitter(), "", "", 0
    while start < len(text):
        size = cuts.randint(1, 9)
        more_reasoning, more_answer = splitter.feed(text[start : start + size])
        reasoning, answer, start = reasoning + more_reasoning, answer + more_answer, start + size
    more_reasoning, more_answer = splitter.end()
    return reasoning + more_reasoning, answer + more_answer


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
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
def test_reasoning_at_the_start_is_separated_from_the_answer(text, reasoning, answer, seed):
    found = split(text, random.Random(seed))

    assert (found[0].strip(), found[1]) == (reasoning, answer)
