"""Events of servers that send a part of an answer in another form than OpenAI."""

from __future__ import annotations

import pytest

from chat.llm.events import EventError, parse_chunk


def chunk_of(content: object):
    return parse_chunk({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]})


def test_the_thoughts_of_a_model_of_mistral_are_reasoning():
    thought = chunk_of(
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Keys "}, {"type": "text", "text": "hang."}]}]
    )
    assert (thought.text, thought.reasoning) == ("", "Keys hang.")

    answer = chunk_of(
        [
            {"type": "text", "text": "Behind "},
            {"type": "reference", "reference_ids": [1]},
            {"type": "text", "text": "it."},
        ]
    )
    assert (answer.text, answer.reasoning) == ("Behind it.", "")


@pytest.mark.parametrize("content", [["x"], [7], [{"text": "x"}], [None]])
def test_a_list_of_something_else_is_an_error_of_the_stream(content):
    with pytest.raises(EventError):
        chunk_of(content)
