"""What a model thinks aloud is shown folded, and goes nowhere: not into memory, not into a later prompt."""

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
    with open_socket(alice, thread) as page:
        page.hello()
        page.until(r"(?s)beforeend:#turn-[0-9a-f-]+-reasoning.*Thinking…")
        page.until(r'class="turn__actions"')
    wait_for(lambda: "Remembered</span>" in alice.thread_page(thread), "the exchange to be remembered")
    shown = alice.thread_page(thread)
    assert f'-reasoning" dir="auto" tabindex="0">{THOUGHT}</div>' in shown
    assert "<p>Behind the clock.</p>" in shown

    endpoint.script(KEY, answer="On the hook.")
    endpoint.clear(KEY)
    alice.send_message("And the one of the barn?", thread)
    wait_for(lambda: endpoint.requests(KEY), "the model to be asked again")
    assert "Behind the clock." in json.dumps(endpoint.requests(KEY))
    assert "marmalade" not in json.dumps(endpoint.requests(KEY))
    kept = cato.sql(
        "SELECT user_message, assistant_message FROM memory_exchange WHERE thread_id = ?", uuid.UUID(thread).hex
    )
    assert ("Where does the key of the shed hang?", "Behind the clock.") in kept


def test_what_pages_hear_of_the_reasoning_adds_up_to_what_is_kept(alice, endpoint):
    thought = " ".join(f"step{number}" for number in range(40))
    endpoint.script(KEY, reasoning=thought, answer="Done.", token_delay=0.05)
    thread = alice.send_message("Think in small steps")
    with open_socket(alice, thread) as page:
        page.hello()
        page.until(r'class="turn__actions"')
    whole = "".join(page.received)
    begun = re.findall(r'-reasoning" dir="auto" tabindex="0">([^<]*)<', whole)[-1]
    added = re.findall(r'beforeend:#turn-[0-9a-f-]+-reasoning">([^<]*)<', whole)

    assert len(added) > 2
    assert begun + "".join(added) == thought
