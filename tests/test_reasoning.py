"""Reasoning of a model is shown collapsed, and is neither remembered nor sent again."""

from __future__ import annotations

import json
import re
import uuid

import pytest

from tests.server import wait_for
from tests.socket import open_socket

KEY = "cato"
THOUGHT = "The marmalade cat knows where it hangs, so I say it."


@pytest.mark.parametrize(
    "script",
    [
        {"reasoning": THOUGHT},
        {"reasoning": THOUGHT, "reasoning_field": "reasoning"},
        {"answer": f"<think>\n{THOUGHT}\n</think>\n\nBehind the clock."},
    ],
)
def test_reasoning_is_shown_and_neither_remembered_nor_sent_again(alice, cato, endpoint, script):
    endpoint.script(KEY, **{"answer": "Behind the clock.", "token_delay": 0.2} | script)
    thread = alice.send_message("Where does the key of the shed hang?")
    with open_socket(alice, thread) as socket:
        socket.hello()
        socket.until(r"(?s)beforeend:#turn-[0-9a-f-]+-reasoning.*Thinking…")
        socket.until(r'class="turn__actions"')
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "the exchange to be remembered")
    page = alice.thread_page(thread)
    assert f'-reasoning" dir="auto" tabindex="0">{THOUGHT}</div>' in page
    assert "<p>Behind the clock.</p>" in page

    endpoint.script(KEY, answer="On the hook.")
    endpoint.clear(KEY)
    alice.send_message("And the one of the barn?", thread)
    wait_for(lambda: endpoint.requests(KEY), "the model to be asked again")
    assert "Behind the clock." in json.dumps(endpoint.requests(KEY))
    assert "marmalade" not in json.dumps(endpoint.requests(KEY))
    stored = cato.sql(
        "SELECT user_message, assistant_message FROM memory_exchange WHERE thread_id = ?", uuid.UUID(thread).hex
    )
    assert ("Where does the key of the shed hang?", "Behind the clock.") in stored


def test_reasoning_in_frames_equals_the_stored_reasoning(alice, endpoint):
    reasoning = " ".join(f"step{number}" for number in range(40))
    endpoint.script(KEY, reasoning=reasoning, answer="Done.", token_delay=0.05)
    thread = alice.send_message("Think in small steps")
    with open_socket(alice, thread) as page:
        page.hello()
        page.until(r'class="turn__actions"')
    frames_html = "".join(page.received)
    started = re.findall(r'-reasoning" dir="auto" tabindex="0">([^<]*)<', frames_html)[-1]
    added = re.findall(r'beforeend:#turn-[0-9a-f-]+-reasoning">([^<]*)<', frames_html)

    assert len(added) > 2
    assert started + "".join(added) == reasoning
