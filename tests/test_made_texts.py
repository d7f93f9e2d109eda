"""Texts that a model made beside its answers, as branches of a conversation change them, in bounded memory."""

from __future__ import annotations

import tracemalloc

import pytest

from chat.imports.formats import claude
from chat.imports.formats.conversation import Conversation


def message(id: str, parent: str, command: str, *, text: str = "poem", **fields: str) -> dict[str, object]:
    """Return an answer of Claude that makes or changes a text."""
    block = {"type": "tool_use", "name": "artifacts", "input": {"id": text, "command": command, **fields}}
    return {"uuid": id, "parent_message_uuid": parent, "sender": "assistant", "content": [block]}


def read(*messages: dict[str, object]) -> Conversation:
    return claude.read({"uuid": "c", "name": "Texts", "chat_messages": list(messages)})


def test_each_branch_changes_the_text_as_it_was_where_the_branch_begins():
    conversation = read(
        message("a", "root", "create", title="Tide", type="text/markdown", content="It comes and goes."),
        message("b1", "a", "update", old_str="comes and ", new_str=""),
        message("c1", "b1", "create", title="Ebb", content="New."),
        message("d1", "c1", "create", text="other", content="Else."),
        message("b2", "a", "update", old_str="goes", new_str="stays"),
        message("c2", "b2", "update", text="other", old_str="Else", new_str="More"),
    )
    texts = {said.id: said.text for said in conversation.messages}
    assert texts == {
        "a": "**Tide**\n\nIt comes and goes.",
        "b1": "**Tide**\n\nIt goes.",
        "c1": "**Ebb**\n\nNew.",
        "d1": "Else.",
        "b2": "**Tide**\n\nIt comes and stays.",
    }


@pytest.mark.parametrize("length", [200, 19_000, 200_000])
def test_many_updates_of_texts_take_memory_in_proportion_to_the_file(length):
    """A file of some megabytes must not take a worker's memory."""
    messages, last = [message("0", "root", "create", title="Tide", content="y" * length)], "0"
    for number in range(1, 1500):
        messages.append(message(f"u{number}", last, "update", old_str="y", new_str="yz"))
        messages.append(message(f"n{number}", f"u{number}", "create", text=f"other {number}", content="x"))
        last = f"n{number}"
    tracemalloc.start()
    try:
        conversation = read(*messages)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(conversation.messages) == 2999
    assert sum(len(said.text) for said in conversation.messages) < 6_000_000
    assert peak < 20_000_000
